"""An immutable picture of the engine between two rounds: slots, queues, totals."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from lanes.record.shapes import Kind, Reason, RequestId, State
from lanes.record.totals import Totals

SlotState: TypeAlias = Literal["free"] | State


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot: who holds it and how far that request is; times in seconds, None where there is nothing to say.

    `filled` of `prompt_tokens` are in the cache, `generated` were drawn, `context_fill` is the used part of the context
    window (0 to 1). `finish_reason` is that of the last request that ended here.
    """

    index: int
    state: SlotState = "free"
    kind: Kind | None = None
    id: RequestId | None = None
    prompt_tokens: int = 0
    filled: int = 0
    generated: int = 0
    context_fill: float = 0.0
    tokens_per_s: float | None = None
    ttft: float | None = None
    finish_reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request in the queue; age in seconds since it was submitted (an eviction does not reset it)."""

    id: RequestId
    kind: Kind
    prompt_tokens: int
    age: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The engine at `time` (seconds since its start), after `round` rounds.

    `waiting` is the queue, heads first, streams before decisions. `pace` is the limit in rounds per second, None for
    none. `width` (packed rows a round) and `piece` (tokens a piece) are the engine's own.
    """

    time: float
    round: int
    slots: tuple[SlotView, ...]
    waiting: tuple[Waiting, ...]
    totals: Totals
    policy: str
    paused: bool
    pace: float | None
    width: int
    piece: int

    @property
    def waiting_streams(self) -> tuple[Waiting, ...]:
        """The streams in the queue, oldest first."""
        return tuple(item for item in self.waiting if item.kind == "stream")

    @property
    def waiting_decisions(self) -> tuple[Waiting, ...]:
        """The decisions in the queue, oldest first."""
        return tuple(item for item in self.waiting if item.kind == "decision")

    def to_dict(self) -> dict[str, Any]:
        """The picture as nested dicts and lists, ready for JSON."""
        return asdict(self)
