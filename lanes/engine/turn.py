"""One round's work in plain values: what the desk hands to the runner, and what comes back."""

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from lanes.decisions.program import Read
from lanes.errors import LanesError
from lanes.jobs import WHOLE, Part
from lanes.plan import Plan
from lanes.record import Admitted, Evicted, Piece, Round, RowKind, RowsOf, Seat
from lanes.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Draw:
    """Draw a token from a row's logits, for this position of its stream.

    digest: also hash the row. logprobs: also its log-probability, and those of so many likeliest ones (None: none).
    """

    sampling: Sampling
    position: int
    digest: bool = False
    logprobs: int | None = None


class Logprob(NamedTuple):
    """How likely a drawn token was: its log-probability (nats) at temperature 1, before any filter.

    `top` are the vocabulary's likeliest tokens there as (token, logprob), the likeliest first.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token that was drawn; `finite` is False where the row's logits were not numbers."""

    token: int
    finite: bool
    digest: str | None = None
    logprob: Logprob | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a row was read for: the logits at the read's tokens ([n], float32) and the row's logsumexp (float32).

    `top` are the row's largest logits as (token, logit), the largest first, where they were asked for.
    """

    logits: np.ndarray
    logsumexp: float
    top: tuple[tuple[int, float], ...] = ()


Wanted: TypeAlias = Draw | Read


class Cell(NamedTuple):
    """One packed row: a token of a slot's request at a position, and what its logits are wanted for."""

    slot: int
    id: int
    kind: RowKind
    position: int
    token: int
    wanted: Wanted | None = None


class Chunk(NamedTuple):
    """One piece: tokens of a slot's request from `start` on; `wanted` pairs an index into them with what is wanted."""

    slot: int
    id: int
    start: int
    tokens: tuple[int, ...]
    wanted: tuple[tuple[int, Wanted], ...] = ()
    keep: tuple[int, ...] = ()
    """The prompt's tokens up to the piece's end, where the state after it may serve later prompts that begin alike."""
    part: Part = WHOLE

    def done(self, gained: bool) -> Piece:
        """Its place in the record."""
        return Piece(self.slot, self.id, self.start, len(self.tokens), int(gained), *self.part)


@dataclass(frozen=True, slots=True)
class Turn:
    """A planned round: what to run, and what the record needs to know of it."""

    start: float
    plan: Plan
    groups: tuple[tuple[Cell, ...], ...]
    chunk: Chunk | None
    seats: tuple[Seat, ...]
    admitted: tuple[Admitted, ...]
    evicted: tuple[Evicted, ...]

    def fill_in(self, done: Round, gained: set[int]) -> Round:
        """The round with this turn's part of its record; `gained` are the streams that got a token from it."""
        rows: dict[int, RowsOf] = {}
        for cell in (cell for group in self.groups for cell in group):
            before = rows[cell.slot].rows if cell.slot in rows else 0
            rows[cell.slot] = RowsOf(cell.slot, cell.id, cell.kind, before + 1, int(cell.id in gained))
        chunk = self.chunk
        return replace(
            done,
            groups=len(self.groups),
            rows=tuple(rows.values()),
            piece=chunk and chunk.done(chunk.id in gained and chunk.slot not in rows),
            admitted=self.admitted,
            evicted=self.evicted,
            seats=self.seats,
        )


class Reply(NamedTuple):
    """What a row gave to a request."""

    id: int
    wanted: Wanted
    got: Drawn | Found


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a turn gave: replies, and for each request that failed in it, by id, why."""

    replies: tuple[Reply, ...] = ()
    failures: tuple[tuple[int, LanesError], ...] = ()
