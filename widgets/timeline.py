"""The timeline: every round of an engine to scale, live; the story of each request; a run kept to compare with."""

import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanes.errors import InvalidRequest
from lanes.record import Comparison, Rounds, Story, compare
from lanes.record.compare import Figures
from lanes.record.show import many
from lanes.record.source import Run, Source, run
from lanes_widgets.acts import Command
from lanes_widgets.errand import Errand
from lanes_widgets.feed import Feed
from lanes_widgets.panel import Panel, Record
from lanes_widgets.publisher import HZ
from lanes_widgets.shown import View

if TYPE_CHECKING:
    from lanes import Engine

SLOW_S = 1.0
"""How old may be what takes a look at the whole record, in seconds."""
TRACE = "lanes-trace-{}.json"


class TimelinePanel(Panel):
    """The rounds as they come; a request's story, a run kept as a reference, the record as a file.

    `reference` is a run to stand above the live one: a record, rounds, or a recorded simulation.
    """

    name = "timeline"

    def __init__(self, engine: "Engine", reference: "Source | None" = None) -> None:
        super().__init__(engine)
        self._rounds: Rounds = engine.rounds
        self._live = Feed(self._rounds.slots, self._rounds.keep)
        self._next = self._origin = self._kept = 0
        self._reference: Reference | None = None
        self._told: int | str | None = None
        self._story = Slow(self._tell)
        self._figures = Slow(lambda: Figures.of(self._run().rounds).words())
        self._saved: Errand[Path] | None = None
        if reference is not None:
            self._keep(run(reference), _title(reference))
        else:
            self._keep(None, "")

    @property
    def commands(self) -> Mapping[str, Command]:
        """See `Panel.commands`."""
        found = (self.tell_story, self.keep_run, self.drop_run, self.save_trace)
        return {command.__name__: command for command in found}

    def tell_story(self, id: int | str | None) -> None:
        """Say what happened to this stream or decision; None to say nothing any more."""
        newest = self._rounds.next_index
        value = None if id is None else self._shown(self._rounds.story(id))
        self._told, self._story = id, Slow(self._tell, newest, value)

    def keep_run(self) -> None:
        """Keep what has run so far as the reference; what comes next stands below it, from its own first round on."""
        kept = self._run()
        if not kept.rounds:
            raise ValueError("there is no round to keep yet: run something first")
        self._origin = kept.rounds[-1].index + 1
        self._keep(kept, f"rounds {kept.rounds[0].index} to {kept.rounds[-1].index}, kept")

    def drop_run(self) -> None:
        """Compare no more: the whole record is one run again."""
        self._origin = 0
        self._keep(None, "")

    def save_trace(self) -> Errand[Path]:
        """Write the record as a file for ui.perfetto.dev into the kernel's working directory, under a free name."""
        if self._saved and not self._saved.done:
            raise ValueError("a trace is being written already")
        self._saved = Errand(lambda: _save(self._rounds))
        return self._saved

    def picture(self) -> dict[str, Any]:
        """See `Panel.picture`: the rounds that are new, as `Feed` writes them, and what people asked for."""
        since = self._rounds.since(self._next)
        self._next = since.next
        self._live.put(since.rounds)
        newest = self._next
        return {
            "slots": self._rounds.slots,
            "rounds": self._live.cut(),
            "origin": self._origin,
            "summary": self._summary(),
            "story": self._story.get(newest) if self._told is not None else None,
            "reference": self._reference.picture() if self._reference else None,
            "figures": self._figures.get((newest, self._origin)) if self._reference else None,
            "saved": str(self._saved.result) if self._saved and self._saved.result else None,
        }

    def record(self) -> Record:
        """See `Panel.record`: the newest rounds, under the reference where there is one."""
        shown = self._rounds.timeline() if self._reference is None else self._compared(self._reference)
        text = repr(shown)
        note = f"<details><summary>As text</summary><pre>{escape(text)}</pre></details>"
        return Record(text, f"<div>{shown.svg()}{note}</div>")

    def _compared(self, reference: "Reference") -> Comparison:
        return compare(reference.run, self._run(), (reference.title, "live"))

    def _run(self) -> Run:
        """The live run: all rounds since the one kept last."""
        return Run(self._rounds.since(self._origin).rounds, self._rounds.slots)

    def _keep(self, kept: Run | None, title: str) -> None:
        """Make this the reference; each has a tape of its own, as a tape only grows."""
        self._kept += 1
        name = f"kept-{self._kept}"
        self._reference = None if kept is None else Reference(name, kept, title)
        self.tapes = {"rounds": self._live.tape}
        if self._reference:
            self.tapes[name] = self._reference.feed.tape

    def _summary(self) -> str:
        totals = self._rounds.totals
        counts = (
            (self._rounds.slots, "slot", ""),
            (totals.rounds, "round", ""),
            (totals.tokens, "token", " drawn"),
            (totals.decisions.answered, "decision", " answered"),
            (totals.decisions.evicted, "eviction", ""),
        )
        return ", ".join(f"{many(count, noun)}{rest}" for count, noun, rest in counts)

    def _tell(self) -> dict[str, Any]:
        """The story once more, until it has ended."""
        before = self._story.value
        if before["ended"] or self._told is None:
            return before
        try:
            return self._shown(self._rounds.story(self._told))
        except InvalidRequest:  # the record is bounded, and this request is older by now
            return before

    def _shown(self, told: Story) -> dict[str, Any]:
        return {
            "id": told.id,
            "kind": told.kind,
            "words": told.words(self.engine.snapshot().policy),
            "pieces": told.pieces,
            "paid": [toll.id for toll in told.tolls],
            "ended": told.reason is not None,
        }


class Timeline(View):
    """Every round of an engine on an axis of time, live: slots, decisions from submit to answer, gaps of the streams.

    Keys, while the picture has the focus: arrows move and choose a request, Enter tells its story, `+` and `-` zoom,
    Home goes to the beginning, End follows the newest round, `0` shows all. `reference` is a run to compare with:
    `engine.rounds`, rounds of it, or `lanes.simulate(..., record=True)`. hz: frames a second at most. Raises
    InvalidRequest for anything but an engine, and for a reference that holds no rounds.
    """

    def __init__(self, engine: "Engine", hz: float = HZ, reference: "Source | None" = None) -> None:
        super().__init__(engine, (partial(TimelinePanel, reference=reference),), hz)


class Reference:
    """A run to compare with, on its way to the front ends under the name of its tape."""

    def __init__(self, name: str, kept: Run, title: str) -> None:
        self.name, self.run, self.title = name, kept, title
        self.feed = Feed(kept.slots, len(kept.rounds), kept.rounds)
        self._figures = Figures.of(kept.rounds).words()

    def picture(self) -> dict[str, Any]:
        """What the front end needs to draw it."""
        cut = self.feed.cut()
        return {
            "tape": self.name,
            "slots": self.run.slots,
            "title": self.title,
            "figures": self._figures,
            "rounds": cut,
        }


class Slow:
    """A value that takes a look at the whole record: made again where there is news, but not more often than SLOW_S."""

    def __init__(self, make: Callable[[], Any], key: Hashable = None, value: Any = None) -> None:
        self._make = make
        self._key, self.value = key, value
        self._made = time.monotonic() - SLOW_S * (value is None)

    def get(self, key: Hashable) -> Any:
        """The value for the news that `key` stands for, or the one before, for a while."""
        if key != self._key and time.monotonic() - self._made >= SLOW_S:
            self.value, self._key, self._made = self._make(), key, time.monotonic()
        return self.value


def _save(rounds: Rounds) -> Path:
    """Write the record; with many rounds that takes a second or two. Raises OSError with what to do."""
    try:
        return rounds.to_trace(_free(Path.cwd()))
    except OSError as error:
        raise OSError(f"the trace was not written: {error}; is the kernel's folder writable and not full?") from error


def _free(folder: Path) -> Path:
    """The first name with a number that no file has yet."""
    number = 1
    while (folder / TRACE.format(number)).exists():
        number += 1
    return folder / TRACE.format(number)


def _title(reference: Source) -> str:
    rules = getattr(reference, "rules", None)
    return "reference" if rules is None else f'simulated, policy "{rules.policy}"'
