"""What a simulation found: how each request fared, and the spread of waits and gaps."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from lanes.errors import InvalidRequest
from lanes.plan import Rules
from lanes.record import Kind, Round
from lanes.simulation.cost import Cost

if TYPE_CHECKING:
    from pandas import DataFrame

Left: TypeAlias = Literal["length", "answered", "deadline"]
End: TypeAlias = Left | Literal["refused"]
Measure: TypeAlias = Literal["wait", "ttft", "latency", "gap"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one request fared; times in seconds, None where there is nothing to say.

    `wait` is all the time it spent in the queue, that after an eviction too. `ttft` (streams) and `latency` count from
    the arrival to the first token and to the end; a token's time is the end of its round. `gap` is the longest time
    between two of its tokens. `reason`: a stream ends with `length`, a decision is `answered`, either may meet its
    `deadline`, or be `refused` by a full queue or policy="off".
    """

    id: int
    kind: Kind
    arrival: float
    prompt: int
    output: int
    reason: End
    tokens: int = 0
    evictions: int = 0
    wait: float | None = None
    ttft: float | None = None
    latency: float | None = None
    gap: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """How `count` durations (s) spread; None where there are none. Percentiles interpolate between ranks."""

    count: int = 0
    p50: float | None = None
    p99: float | None = None
    worst: float | None = None

    @classmethod
    def of(cls, counted: "Counter[float]") -> "Spread":
        """The spread of durations, each with how often it occurred."""
        count = counted.total()
        if not count:
            return cls()
        order = sorted(counted.items())
        return cls(count, _rank(order, 0.5 * (count - 1)), _rank(order, 0.99 * (count - 1)), order[-1][0])


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The share of the slots' time that each kind held; `free` is the rest."""

    streams: float
    decisions: float
    free: float


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """A workload's way through the planner's rounds under `rules` and `cost`.

    `seconds` is the time from the first arrival to the last round's end, `rounds` their number, `tokens` what streams
    drew, `gaps` the times between two tokens of a stream, over all streams. `log` holds the rounds in the shape of an
    engine's record if they were asked for.
    """

    rules: Rules
    cost: Cost
    seconds: float
    rounds: int
    tokens: int
    gaps: Spread
    occupancy: Occupancy
    outcomes: tuple[Outcome, ...]
    log: tuple[Round, ...] = ()

    @property
    def tokens_per_s(self) -> float:
        """Tokens drawn by all streams over `seconds`; 0 when nothing ran."""
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def evictions(self) -> int:
        """How often a decision lost its slot to a stream."""
        return sum(outcome.evictions for outcome in self.outcomes)

    def spread(self, measure: Measure, kind: Kind) -> Spread:
        """The spread of one measure over the requests of one kind that have it; InvalidRequest for no measure."""
        if measure not in get_args(Measure):
            raise InvalidRequest(f"measure must be one of {', '.join(get_args(Measure))}, got {measure!r}")
        values = (getattr(outcome, measure) for outcome in self.outcomes if outcome.kind == kind)
        return Spread.of(Counter(value for value in values if value is not None))

    def ended(self, reason: End) -> int:
        """The number of requests that ended for this reason."""
        return sum(outcome.reason == reason for outcome in self.outcomes)

    def to_frame(self) -> "DataFrame":
        """One row a request, the columns as an outcome's fields; missing times are NaN."""
        import pandas as pd

        frame = pd.DataFrame(map(asdict, self.outcomes), columns=[field.name for field in fields(Outcome)])
        times = {name: "float64" for name in ("arrival", "wait", "ttft", "latency", "gap")}
        counts = {name: "int64" for name in ("id", "prompt", "output", "tokens", "evictions")}
        return frame.astype(times | counts).set_index("id")

    def __repr__(self) -> str:
        parts = [
            f"policy={self.rules.policy!r}, {self.rounds} rounds in {self.seconds:.3f} s",
            f"{self.tokens} tokens ({self.tokens_per_s:.1f}/s), gap {_show(self.gaps)}",
            f"stream ttft {_show(self.spread('ttft', 'stream'))}",
            f"decision latency {_show(self.spread('latency', 'decision'))}, {self.evictions} evictions",
            f"{self.ended('refused')} refused, {self.ended('deadline')} past their deadline",
        ]
        return f"Simulation({'; '.join(parts)})"


def _rank(order: list[tuple[float, int]], rank: float) -> float:
    """The value at a rank that may lie between two: as numpy.percentile does it, over counted values."""
    low, high = _at(order, math.floor(rank)), _at(order, math.ceil(rank))
    return low + (high - low) * (rank - math.floor(rank))


def _at(order: Iterable[tuple[float, int]], rank: int) -> float:
    for value, count in order:
        if rank < count:
            return value
        rank -= count
    raise IndexError(rank)


def _show(spread: Spread) -> str:
    if spread.p50 is None:
        return "none"
    return f"{spread.p50:.3f}/{spread.p99:.3f}/{spread.worst:.3f} s (p50/p99/worst of {spread.count})"
