"""The bounded record of rounds: the engine's thread appends, any thread reads a consistent copy at any time."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from lanes.record.gaps import Summary, gaps, summarise
from lanes.record.shapes import RequestId, Round, RowsOf, Seat
from lanes.record.show import html_page, html_table, totals_rows
from lanes.record.totals import Tally, Totals

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure

    from lanes.record.compare import Comparison
    from lanes.record.source import Source
    from lanes.record.story import Story
    from lanes.record.timeline import Timeline

KEEP = 20_000
_Part = TypeVar("_Part", RowsOf, Seat)


class Since(NamedTuple):
    """What happened after a reader last looked."""

    rounds: tuple[Round, ...]
    lost: int
    """Rounds that were forgotten before they could be read."""
    next: int
    """The index to ask for next time."""


class Rounds:
    """The last `keep` rounds of an engine with `slots` slots, and counters over all of them.

    With 8 slots a round takes about 0.4 kB while most slots go on as they were, and at most 4 kB where every slot
    changes hands: the default of 20,000 rounds is usually under 10 MB and never over 80 MB. Times are seconds since
    the record was made (`now()`); `started` is the wall clock at its zero, in seconds since 1970.

    Indexing, slicing and iterating go over the rounds that are kept, oldest first; a round's own number is its `index`.
    """

    def __init__(self, slots: int, keep: int = KEEP, clock: Callable[[], float] = time.perf_counter) -> None:
        if slots < 1 or keep < 1:
            raise ValueError(f"a record needs at least one slot and one round, not slots={slots}, keep={keep}")
        self.slots = slots
        self.keep = keep
        self.started = time.time()
        self._clock = clock
        self._zero = clock()
        self._ring: deque[Round] = deque(maxlen=keep)
        self._tally = Tally()
        self._next = 0
        self._lock = Lock()

    def now(self) -> float:
        """Seconds since the record was made, on the clock of every time in it."""
        return self._clock() - self._zero

    def append(self, done: Round) -> None:
        """Add the next round; the engine's thread alone calls this.

        Raises ValueError for a round that does not follow the last one in number and in time.
        """
        last = self._ring[-1] if self._ring else None
        if done.index != self._next:
            raise ValueError(f"round {done.index} cannot follow: the record expects round {self._next}")
        if not (last.end if last else 0.0) <= done.start <= done.end < float("inf"):
            raise ValueError(f"round {done.index}, {done.start} s to {done.end} s, overlaps the one before or itself")
        done = _share(done, last)
        with self._lock:
            self._ring.append(done)
            self._tally.add(done)
            self._next += 1

    @property
    def next_index(self) -> int:
        """The number of rounds so far, and so the index of the next one."""
        return self._next

    @property
    def totals(self) -> Totals:
        """Counters over every round since the start, forgotten ones included."""
        with self._lock:
            return self._tally.totals()

    @property
    def last(self) -> Round | None:
        """The latest round, None before the first."""
        with self._lock:
            return self._ring[-1] if self._ring else None

    def copy(self) -> tuple[Round, ...]:
        """The rounds that are kept, oldest first, as they are now."""
        # The lock is held for one copy of pointers: tens of microseconds for a full record.
        with self._lock:
            return tuple(self._ring)

    def since(self, index: int) -> Since:
        """The rounds from number `index` on, how many of them are lost, and where to go on."""
        if index < 0:
            raise ValueError(f"a round's index starts at 0, not {index}")
        with self._lock:
            wanted = max(0, self._next - index)
            newest = tuple(islice(reversed(self._ring), wanted))
            return Since(newest[::-1], wanted - len(newest), self._next)

    def gaps(self, id: RequestId | None = None) -> dict[RequestId, list[float]]:
        """Seconds between the tokens of each stream, or of one; see `lanes.record.gaps`."""
        found = gaps(self.copy())
        return found if id is None else {key: value for key, value in found.items() if key == id}

    def summary(self) -> Summary:
        """Gaps and steps of the rounds that are kept, in seconds."""
        return summarise(self.copy())

    def timeline(self, since: int = 0, last: int = 300) -> "Timeline":
        """A picture of the rounds from number `since` on, of them the `last` newest; a notebook shows it."""
        from lanes.record.timeline import Timeline

        return Timeline(self.since(since).rounds[-last:], self.slots)

    def story(self, id: RequestId) -> "Story":
        """What happened to one stream or decision, and what it cost the streams beside it: its value says it in words.

        Raises InvalidRequest for an id that the rounds that are kept do not show.
        """
        from lanes.record.story import story

        return story(self.copy(), id, self.slots)

    def figure(self, since: int = 0, last: int = 300) -> "Figure":
        """The rounds of `timeline` as a plotly figure to look into, with the gaps of each stream below the slots."""
        from lanes.record.figure import figure

        return figure(self.since(since).rounds[-last:], self.slots)

    def compare(self, other: "Source", names: tuple[str, str] = ("this run", "the other")) -> "Comparison":
        """This record and another run, or a simulation, on one axis of time; see `lanes.record.compare`."""
        from lanes.record.compare import compare

        return compare(self, other, names)

    def to_frame(self) -> "DataFrame":
        """One row a round, as a pandas frame; the columns are described in `lanes.record.frame`."""
        from lanes.record.frame import to_frame

        return to_frame(self.copy())

    def to_trace(self, path: str | Path) -> Path:
        """Write the rounds that are kept as a Chrome trace, which ui.perfetto.dev opens; returns the path."""
        from lanes.record.trace import write_trace

        return write_trace(self.copy(), path, slots=self.slots, started=self.started)

    def __len__(self) -> int:
        return len(self._ring)

    def __iter__(self) -> Iterator[Round]:
        return iter(self.copy())

    @overload
    def __getitem__(self, at: int) -> Round: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Round, ...]: ...
    def __getitem__(self, at: int | slice) -> Round | tuple[Round, ...]:
        return self.copy()[at]

    def __repr__(self) -> str:
        with self._lock:
            kept, errors = len(self._ring), self._tally.totals().errors
        return f"Rounds({kept} kept of {self._next}; {self.slots} slots; {errors} errors)"

    def _repr_html_(self) -> str:
        return html_page(repr(self), html_table(("", "streams", "decisions"), totals_rows(self.totals)))


def _share(done: Round, last: Round | None) -> Round:
    """The same round, built from the last one's equal parts: most slots go on as they were, and take no memory then."""
    if last is None:
        return done
    return replace(done, rows=_reuse(done.rows, last.rows), seats=_reuse(done.seats, last.seats))


def _reuse(new: tuple[_Part, ...], old: tuple[_Part, ...]) -> tuple[_Part, ...]:
    if new == old:
        return old
    known = dict(zip(old, old, strict=True))
    return tuple(known.get(part, part) for part in new)
