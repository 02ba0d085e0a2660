"""What the planner knows of a request: the legs of its work, and how far it is while it holds a slot."""

from dataclasses import dataclass
from typing import NamedTuple

from lanes.errors import InvalidRequest
from lanes.record import Kind


class Leg(NamedTuple):
    """One stretch of work in a slot: `pieces` pieces of C tokens first, then `rows` packed rows, one token each."""

    pieces: int
    rows: int


def route(tokens: int, piece: int) -> Leg:
    """How a prompt of `tokens` tokens is filled: its body in pieces of `piece` tokens, the rest as rows.

    The body is ((tokens - 1) // piece) * piece, so at least one row is left: the one whose logits are read. The route
    depends on the request alone, never on load, and so do its bits. Raises InvalidRequest below one token.
    """
    if tokens < 1 or piece < 1:
        raise InvalidRequest(f"cannot route {tokens} tokens in pieces of {piece}: both must be at least 1")
    pieces = (tokens - 1) // piece
    return Leg(pieces, tokens - pieces * piece)


def stretch(start: int, end: int, piece: int, packed: bool = True) -> Leg:
    """How the tokens [start, end) of a prompt of `end` tokens are filled, by the route of the whole prompt.

    `start` is a piece's border or lies behind the body. packed: False where the model takes no packed rows: its tail is
    then one last, shorter piece.
    """
    if not packed:
        return Leg(-(-(end - start) // piece), 0)
    body = route(end, piece).pieces * piece
    return Leg(max(0, body - start) // piece, end - max(start, body))


class Part(NamedTuple):
    """The share of a piece that one round computes: the `number`th, from 1 on, of `of` parts of about equal work."""

    number: int = 1
    of: int = 1

    @property
    def last(self) -> bool:
        """Whether the piece is through after it."""
        return self.number == self.of


WHOLE = Part()


@dataclass(frozen=True, slots=True)
class Job:
    """A request as the planner sees it; it never changes, so an evicted decision queues again as it was.

    `order` is its arrival number, shared by both kinds: the queues are sorted by it. `legs` are done one after the
    other; a stream goes live after its last. A leg may have no rows: a trunk, and every leg of a model that takes no
    packed rows. `deadline` is a time on the caller's clock. Raises InvalidRequest for impossible legs.
    """

    id: int
    kind: Kind
    order: int
    legs: tuple[Leg, ...]
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("stream", "decision"):
            raise InvalidRequest(f"a job is a stream or a decision, not {self.kind!r}")
        if not self.legs or any(min(leg) < 0 or max(leg) == 0 for leg in self.legs):
            raise InvalidRequest(f"job {self.id} needs legs with work in each, got {self.legs}")


class Held(NamedTuple):
    """A job that holds a slot, and what is left of its current leg; made by `Held.of`, changed by making the next.

    While `pieces` are left it fills; then its `rows` (the tail) go; after the last leg a stream is `live` and a
    decision is done. `passed` counts the rounds since it last advanced in which others did and it could not. `begun` is
    the part of the next piece that is computed already.
    """

    job: Job
    leg: int
    pieces: int
    rows: int
    live: bool = False
    passed: int = 0
    begun: Part | None = None

    @classmethod
    def of(cls, job: Job) -> "Held":
        """The job at the beginning of its first leg."""
        return cls(job, 0, *job.legs[0])

    @property
    def done(self) -> bool:
        """Whether nothing is left to compute: a decision that can be answered. A live stream is never done."""
        return not (self.live or self.pieces or self.rows)

    def at(self, piece: int) -> int:
        """The tokens of the current leg that are filled: where its next piece or row begins within the leg."""
        leg = self.job.legs[self.leg]
        return (leg.pieces - self.pieces) * piece + leg.rows - self.rows

    def position(self, piece: int) -> int:
        """Where the next piece begins in the whole prompt: a branch's pieces follow those of its trunk."""
        trunk = self.job.legs[0]
        return self.at(piece) + (trunk.pieces * piece if self.leg and not trunk.rows else 0)

    def filled(self, piece: int) -> int:
        """The tokens filled so far in all legs."""
        before = self.job.legs[: self.leg]
        return sum(leg.pieces * piece + leg.rows for leg in before) + self.at(piece)

    def skip(self, pieces: int) -> "Held":
        """The job when the next `pieces` pieces of its leg need no work, because a prefix cache holds them."""
        if not 0 <= pieces <= self.pieces:
            raise ValueError(f"cannot skip {pieces} pieces: {self.pieces} are left in leg {self.leg}")
        return self._left(self.pieces - pieces, self.rows)

    def after_part(self, part: Part = WHOLE) -> "Held":
        """The job after one part of a piece."""
        return self._left(self.pieces - 1, self.rows) if part.last else self._replace(passed=0, begun=part)

    def after_rows(self, rows: int) -> "Held":
        """The job after `rows` rows of its tail."""
        return self._left(self.pieces, self.rows - rows)

    def after_wait(self) -> "Held":
        """The job after a round in which it was passed over."""
        return self._replace(passed=self.passed + 1)

    def _left(self, pieces: int, rows: int) -> "Held":
        job = self.job
        if pieces or rows:
            return Held(job, self.leg, pieces, rows)
        if self.leg + 1 < len(job.legs):
            return Held(job, self.leg + 1, *job.legs[self.leg + 1])
        return Held(job, self.leg, 0, 0, job.kind == "stream")
