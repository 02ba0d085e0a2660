"""What happened in one round, as plain values: the shapes that the engine writes and every view reads.

Times are float seconds since the engine's start, on one monotonic clock. The small shapes are named tuples, not
dataclasses: the engine makes a dozen of them every round, and a tuple costs a quarter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

RequestId: TypeAlias = int | str
Kind: TypeAlias = Literal["stream", "decision"]
RowKind: TypeAlias = Literal["decode", "draft", "tail", "branch"]
State: TypeAlias = Literal["filling", "branch", "live"]
SlotState: TypeAlias = Literal["free", "filling", "branch", "live"]
Reason: TypeAlias = Literal["stop", "length", "answered", "cancelled", "deadline", "error", "closed"]


class Submitted(NamedTuple):
    """A request that the engine took from its inbox."""

    id: RequestId
    kind: Kind
    prompt_tokens: int
    at: float
    """When it was submitted, in seconds: earlier than the round that took it."""


class Admitted(NamedTuple):
    """A request that was given a slot; an evicted decision is admitted again."""

    slot: int
    id: RequestId
    kind: Kind
    cached: int | None = None
    """Prompt tokens taken from the prefix cache: 0 is a miss, None means that it was not asked."""


class Evicted(NamedTuple):
    """A filling decision whose slot a waiting stream took back."""

    slot: int
    id: RequestId


class Finished(NamedTuple):
    """A request that ended, whatever the reason; slot is None when it ended in the queue."""

    slot: int | None
    id: RequestId
    kind: Kind
    reason: Reason


class Seat(NamedTuple):
    """Who held a slot during the round's forward: after evictions and admissions, before finishes."""

    slot: int
    id: RequestId
    kind: Kind
    state: State


class RowsOf(NamedTuple):
    """Rows of one slot in the round's forward, all of one kind.

    decode: a live stream's next token. draft: proposed tokens that are verified. tail: the end of a prompt.
    branch: tokens of a decision's branches or labels.
    """

    slot: int
    id: RequestId
    kind: RowKind
    rows: int
    tokens: int = 0
    """Tokens that the stream gained from these rows: 1 for decode, the accepted ones for draft, 1 for the last tail."""


class Piece(NamedTuple):
    """A stretch of one prompt: tokens [start, start + tokens), of whose work this round did one part.

    Parts are numbered from 1 on; the stretch is filled with the last. Mostly there is only one.
    """

    slot: int
    id: RequestId
    start: int
    tokens: int
    gained: int = 0
    """1 where the stream's first token came from this piece, as without packed rows; else 0."""
    part: int = 1
    parts: int = 1

    @property
    def filled(self) -> int:
        """The prompt tokens that are filled with this round: all of them with the last part."""
        return self.tokens if self.part == self.parts else 0


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of the engine's loop that did something: a forward, or only an event (groups 0, no piece).

    `index` counts from 0 without holes. `groups` forwards of `width` packed rows were run; unused rows were dummies.
    """

    index: int
    start: float
    end: float
    width: int
    groups: int = 0
    rows: tuple[RowsOf, ...] = ()
    piece: Piece | None = None
    submitted: tuple[Submitted, ...] = ()
    admitted: tuple[Admitted, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    finished: tuple[Finished, ...] = ()
    seats: tuple[Seat, ...] = ()
    waiting_streams: int = 0
    waiting_decisions: int = 0
    error: str | None = None

    @property
    def computed(self) -> bool:
        """Whether it ran the model: a forward, or a piece; else only something happened."""
        return bool(self.groups or self.piece)

    def count(self, kind: RowKind) -> int:
        """The number of packed rows of one kind."""
        return sum(row.rows for row in self.rows if row.kind == kind)

    @property
    def seconds(self) -> float:
        """How long the round took."""
        return self.end - self.start

    @property
    def decode_rows(self) -> int:
        """The number of live streams' next tokens in the forward."""
        return self.count("decode")

    @property
    def used_rows(self) -> int:
        """The number of packed rows that carried a token."""
        return sum(row.rows for row in self.rows)

    @property
    def idle_rows(self) -> int:
        """The number of dummy rows: what drafts and branches could still have used."""
        return self.groups * self.width - self.used_rows

    @property
    def tokens(self) -> int:
        """The number of tokens that streams gained."""
        return sum(tokens for _, tokens in self.gains)

    @property
    def gains(self) -> tuple[tuple[RequestId, int], ...]:
        """The streams that gained tokens, each with how many."""
        gains = tuple((row.id, row.tokens) for row in self.rows if row.tokens)
        return (*gains, (self.piece.id, self.piece.gained)) if self.piece and self.piece.gained else gains

    @property
    def filled(self) -> int:
        """The number of prompt tokens computed: the piece, tails and branches."""
        packed = sum(row.rows for row in self.rows if row.kind in ("tail", "branch"))
        return packed + (self.piece.filled if self.piece else 0)


@dataclass(frozen=True, slots=True)
class Timing:
    """When one request's stations were passed, in seconds since the engine's start; None: not yet, or never.

    `admitted` is the latest admission: an evicted decision is admitted again, and starts again.
    """

    submitted: float
    admitted: float | None = None
    first_token: float | None = None
    finished: float | None = None
    evictions: int = 0

    @classmethod
    def spanning(cls, timings: Sequence["Timing"]) -> "Timing":
        """From the first submit and admission to the last end of requests that make up one; all 0 for none."""
        return cls(
            submitted=min((one.submitted for one in timings), default=0.0),
            admitted=min((one.admitted for one in timings if one.admitted is not None), default=None),
            finished=max((one.finished for one in timings if one.finished is not None), default=None),
            evictions=sum(one.evictions for one in timings),
        )

    @property
    def waited(self) -> float | None:
        """Seconds from submit to the admission that counted."""
        return None if self.admitted is None else self.admitted - self.submitted

    @property
    def ttft(self) -> float | None:
        """Seconds from submit to the first token (TTFT), for streams."""
        return None if self.first_token is None else self.first_token - self.submitted

    @property
    def served(self) -> float | None:
        """Seconds from admission to the end: a decision's filling, a stream's filling and decoding."""
        if self.finished is None or self.admitted is None:
            return None
        return self.finished - self.admitted

    @property
    def seconds(self) -> float | None:
        """Seconds from submit to the end."""
        return None if self.finished is None else self.finished - self.submitted

    def tokens_per_s(self, tokens: int, now: float | None = None) -> float | None:
        """Decode speed: the `tokens - 1` that followed the first one over the time since it, to the end or `now`.

        None before the second token.
        """
        until = now if self.finished is None else self.finished
        if self.first_token is None or until is None or tokens <= 1 or until <= self.first_token:
            return None
        return (tokens - 1) / (until - self.first_token)
