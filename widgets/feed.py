"""Rounds on their way to a front end: short arrays, one for each run of rounds in which everybody did the same.

An item is [number of the first round, its start, lengths and pauses in turn, works, seats, waiting, more]:

- times are whole steps of 10 microseconds: the length of a round, the pause after it, the length of the next, ...
- works is one text, a part for each slot between bars, a sign for each kind of work: "=|=~||#";
- seats is [[slot, id, kind], ...], or 0 where they are those of the item before; a kind is "s" or "d";
- waiting is [streams, decisions], or 0 where nobody waits;
- more is 0, or an object of what only one round has: came, in, out, end, piece, rows, got, error.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

from lanes.record import Round
from lanes.record.stays import cells
from lanes.record.timeline import SIGNS
from lanes_widgets.tape import Tape

TICKS = 100_000
"""Steps of time in a second."""
RUN = 32
"""Rounds in one item at most."""
ITEMS = 64
"""Items in one frame at most."""
AT_ONCE = 4096
"""Rounds that one picture takes in at most, so that none takes long."""

Item = list[Any]


class Feed:
    """A run of rounds as items, the newest `keep` rounds of it; for the publisher's thread alone."""

    def __init__(self, slots: int, keep: int, rounds: Iterable[Round] = ()) -> None:
        self.tape = Tape(ITEMS)
        self._slots, self._keep = slots, keep
        self._waiting = deque(rounds)
        self._items: list[Item] = []
        self._seats: list[Any] = []
        """What each item's seats are, also where it does not say."""
        self._gone = self._given = 0
        self._last: Round | None = None

    def put(self, rounds: Iterable[Round]) -> None:
        """Take in more rounds; they become items little by little."""
        self._waiting.extend(rounds)

    def cut(self) -> dict[str, Any]:
        """The next items for the front ends; see `Tape.cut`."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            self._add(self._waiting.popleft())
        self._forget()
        cut = self.tape.cut(self._items, self._gone)
        self._given = max(self._given, self.tape.sent)
        return cut

    def _add(self, done: Round) -> None:
        works, more, last = _works(done, self._slots), _more(done), self._last
        waiting = (
            [done.waiting_streams, done.waiting_decisions] if done.waiting_streams or done.waiting_decisions else 0
        )
        seats = [[seat.slot, seat.id, seat.kind[0]] for seat in done.seats]
        same = bool(self._seats) and self._seats[-1] == seats and last is not None and last.index + 1 == done.index
        self._last = done
        if same and last and not more and self._fits(works, waiting):
            self._items[-1][2] += [_steps(done.start) - _steps(last.end), _steps(done.end) - _steps(done.start)]
            return
        steps = [_steps(done.end) - _steps(done.start)]
        self._items.append([done.index, _steps(done.start), steps, works, 0 if same else seats, waiting, more])
        self._seats.append(seats)

    def _fits(self, works: str, waiting: Any) -> bool:
        """Whether the last item can hold one more round like these: not once a front end may have it."""
        if self._gone + len(self._items) <= self._given:
            return False
        _, _, steps, own, _, waited, more = self._items[-1]
        return own == works and waited == waiting and not more and len(steps) < 2 * RUN - 1

    def _forget(self) -> None:
        """Drop what is older than the record keeps; the first item left says who sits where."""
        if self._last is None or self._last.index - self._items[0][0] <= self._keep:
            return
        oldest = self._last.index - self._keep
        drop = 0
        while drop + 1 < len(self._items) and self._items[drop + 1][0] <= oldest:
            drop += 1
        del self._items[:drop], self._seats[:drop]
        self._gone += drop
        self._items[0][4] = self._seats[0]


def _steps(seconds: float) -> int:
    return round(seconds * TICKS)


def _works(done: Round, slots: int) -> str:
    signs = [""] * slots
    for cell in cells(done):
        signs[cell.slot] = "".join(SIGNS[work] for work in cell.works)
    return "|".join(signs)


def _more(done: Round) -> dict[str, Any] | int:
    """What happened in this round alone; 0 where nothing did."""
    piece, slots = done.piece, {seat.id: seat.slot for seat in done.seats}
    drew = sorted(row.slot for row in done.rows if row.kind == "decode")
    got = sorted({slots[id] for id, _ in done.gains if id in slots})
    found: dict[str, Any] = {
        "came": [[new.id, new.kind[0], new.prompt_tokens, _steps(new.at)] for new in done.submitted],
        "in": [[new.slot, new.id, new.kind[0], new.cached] for new in done.admitted],
        "out": [[out.slot, out.id] for out in done.evicted],
        "end": [[end.slot, end.id, end.kind[0], end.reason] for end in done.finished],
        "piece": piece and [piece.slot, piece.id, piece.start, piece.tokens, piece.part, piece.parts],
        "rows": [[row.slot, SIGNS[row.kind], row.rows] for row in done.rows if row.kind != "decode"],
        "error": done.error and done.error[:200],
    }
    said: dict[str, Any] = {name: value for name, value in found.items() if value}
    if got != drew:
        said["got"] = got
    return said or 0
