"""The books of a simulation: what became of each request, and the sums over all of them. Times are nanoseconds."""

from collections import Counter
from dataclasses import dataclass, field

from lanes.plan import Plan
from lanes.record import Kind
from lanes.simulation.result import End, Occupancy, Outcome, Spread
from lanes.simulation.workload import Arrival

SECOND = 1_000_000_000


@dataclass(slots=True)
class Entry:
    """A request on its way: when it came, when it last entered its queue, what it still has to draw."""

    arrival: Arrival
    came: int
    queued: int
    left: int
    waited: int = 0
    evictions: int = 0
    first: int | None = None
    gap: int = 0


@dataclass(slots=True)
class Ledger:
    """Every open request, the outcome of every ended one, and what all slots did together."""

    open: dict[int, Entry] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    gaps: Counter[int] = field(default_factory=Counter)
    held: dict[Kind, int] = field(default_factory=lambda: {"stream": 0, "decision": 0})
    tokens: int = 0

    def submit(self, id: int, arrival: Arrival, at: int) -> None:
        """Open a request's entry as it joins its queue."""
        self.open[id] = Entry(arrival, at, at, arrival.output)

    def bind(self, planned: Plan, now: int) -> None:
        """Queue time ends with an admission and begins again with an eviction."""
        for _, id in planned.evict:
            self.open[id].queued = now
            self.open[id].evictions += 1
        for _, id in planned.admit:
            self.open[id].waited += now - self.open[id].queued

    def draw(self, id: int, now: int) -> int:
        """The first token of a stream, at `now`; returns how many it has left to draw."""
        entry = self.open[id]
        entry.first = now
        entry.left -= 1
        self.tokens += 1
        return entry.left

    def decode(self, id: int, gap: int, count: int) -> int:
        """`count` more tokens of a live stream, `gap` apart; returns how many it has left to draw."""
        entry = self.open[id]
        entry.left -= count
        entry.gap = max(entry.gap, gap)
        self.gaps[gap] += count
        self.tokens += count
        return entry.left

    def end(self, id: int, reason: End, now: int) -> None:
        """Close a request's entry for good."""
        entry = self.open.pop(id)
        arrival, served = entry.arrival, reason in ("length", "answered")
        self.outcomes[id] = Outcome(
            id=id,
            kind=arrival.kind,
            arrival=arrival.time,
            prompt=arrival.prompt,
            output=arrival.output,
            reason=reason,
            tokens=arrival.output - entry.left,
            evictions=entry.evictions,
            wait=None if reason == "refused" else entry.waited / SECOND,
            ttft=None if entry.first is None else (entry.first - entry.came) / SECOND,
            latency=(now - entry.came) / SECOND if served else None,
            gap=entry.gap / SECOND if entry.gap else None,
        )

    def spread(self) -> Spread:
        """The spread of all gaps, in seconds."""
        return Spread.of(Counter({gap / SECOND: count for gap, count in self.gaps.items()}))

    def occupancy(self, slots: int, elapsed: int) -> Occupancy:
        """The shares of the time of `slots` slots over `elapsed` nanoseconds."""
        total = slots * elapsed or 1
        streams, decisions = self.held["stream"], self.held["decision"]
        return Occupancy(streams / total, decisions / total, (total - streams - decisions) / total)
