"""Which round gave a stream which token, read from the record piece by piece: nobody else keeps it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from lanes.record import Round, Rounds

if TYPE_CHECKING:
    from lanes.engine.recent import StreamView


class Gain(NamedTuple):
    """A token's round, by its number, and whether the token was a draft that was accepted."""

    round: int
    draft: bool


@dataclass(slots=True)
class Gains:
    """What one stream got: a gain for each token, when the last one came (s), and drafts that were accepted and not."""

    tokens: list[Gain] = field(default_factory=list)
    last: float = 0.0
    drafted: int = 0
    rejected: int = 0

    def add(self, gain: Gain, count: int, end: float, proposed: int = 0) -> None:
        """Note `count` tokens of a round that ended at `end` seconds; of drafts, how many were proposed."""
        self.tokens += [gain] * count
        self.last = end if count else self.last
        if gain.draft:
            self.drafted += count
            self.rejected += proposed - count


class Gained:
    """The gains of all streams whose submit was read; those that the record forgot in between are unknown."""

    def __init__(self) -> None:
        self._next = 0
        self._of: dict[int | str, Gains] = {}

    def read(self, rounds: Rounds) -> None:
        """Catch up with the record."""
        since = rounds.since(self._next)
        if since.lost:
            self._of.clear()  # any of them may have got tokens meanwhile
        for done in since.rounds:
            self._add(done)
        self._next = since.next

    def _add(self, done: Round) -> None:
        for new in done.submitted:
            if new.kind == "stream":
                self._of[new.id] = Gains()
        plain, draft = Gain(done.index, False), Gain(done.index, True)  # shared, as there are many
        for row in done.rows:
            if gains := self._of.get(row.id):
                gains.add(draft if row.kind == "draft" else plain, row.tokens, done.end, row.rows)
        if done.piece and (gains := self._of.get(done.piece.id)):
            gains.add(plain, done.piece.gained, done.end)

    def of(self, id: int) -> Gains | None:
        """A stream's gains; None where the record has forgotten its beginning."""
        return self._of.get(id)

    def forget_but(self, ids: Iterable[int]) -> None:
        """Keep those streams alone, and what came after them."""
        kept = set(ids)
        latest = max(kept, default=-1)
        self._of = {id: gains for id, gains in self._of.items() if id in kept or (isinstance(id, int) and id > latest)}


def speed(view: "StreamView", gains: Gains | None) -> float | None:
    """Tokens a second up to the last token, so that one that is held or paused stands still; None before the second."""
    return view.timing.tokens_per_s(len(view.tokens), gains.last if gains else None) if view.timing else None
