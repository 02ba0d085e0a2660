"""The loop of a simulation: take, plan, pay, advance, deliver, as the engine does, on a clock of whole nanoseconds.

Whole nanoseconds, so that k equal rounds at once end exactly when k rounds one by one would.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanes import checks
from lanes.errors import Busy, InvalidRequest
from lanes.jobs import Job
from lanes.plan import SPAN, Plan, Policy, Queue, Rules, Slots, advance, check_room, expired, plan, settle
from lanes.record import Finished, Round, Submitted
from lanes.simulation.cost import Cost
from lanes.simulation.ledger import SECOND, Ledger
from lanes.simulation.log import log_round
from lanes.simulation.result import Left, Simulation
from lanes.simulation.workload import Arrival, Workload

if TYPE_CHECKING:
    from pandas import DataFrame


def simulate(
    workload: "Workload | DataFrame | Iterable[Arrival | Mapping[str, Any] | Sequence[Any]]",
    policy: Policy = "beside",
    cost: Cost | None = None,
    *,
    slots: int = 8,
    width: int = 8,
    piece: int = 32,
    reserved: int = 0,
    tail: int = 1,
    queue: int = 1024,
    span: int = SPAN,
    record: bool = False,
) -> Simulation:
    """Run a workload through the engine's own planner, each round taking the time that `cost` says.

    `workload` is a `Workload`, or what `Workload.of` makes one of; the other options are those of `Rules`. With
    `record` the result's `log` holds every round. The same arguments give the same result. Raises InvalidRequest.
    """
    rules = Rules(slots, width, piece, policy, reserved, tail, queue, span)
    run = Run(rules, cost or Cost(), Workload.of(workload), checks.flag("record", record))
    while run.take():
        run.round()
    return run.result()


class Run:
    """One simulation: the state that the engine's thread holds, and a clock that the cost model moves.

    With `leap`, rounds that are provably the same go at once; a recorded run takes each by itself.
    """

    def __init__(self, rules: Rules, cost: Cost, workload: Workload, record: bool = False, leap: bool = True) -> None:
        self.rules, self.cost = rules, cost
        self.arrivals = [(round(arrival.time * SECOND), arrival) for arrival in workload]
        self.timed = any(arrival.deadline is not None for arrival in workload)
        self.leap, self.record = leap and not record, record
        self.now = self.start = self.arrivals[0][0] if self.arrivals else 0
        self.slots: Slots = (None,) * rules.slots
        self.streams: Queue = ()
        self.decisions: Queue = ()
        self.taken = self.rounds = 0
        self.ledger = Ledger()
        self.log: list[Round] = []
        self.submitted: list[Submitted] = []
        self.finished: list[Finished] = []

    def take(self) -> bool:
        """Take what has arrived and drop what is past its deadline; False when nothing is left to do."""
        while True:
            while self.taken < len(self.arrivals) and self.arrivals[self.taken][0] <= self.now:
                self._submit(*self.arrivals[self.taken])
            if self.timed:
                self._expire()
            if self.streams or self.decisions or any(self.slots):
                return True
            if self.taken == len(self.arrivals):
                return False
            self.now = self.arrivals[self.taken][0]

    def round(self) -> None:
        """One round; or as many at once as are provably the same: all slots that are held are live."""
        planned = plan(self.rules, self.slots, self.streams, self.decisions)
        slots, self.streams, self.decisions = settle(planned, self.slots, self.streams, self.decisions)
        self.ledger.bind(planned, self.now)
        self.slots = after = advance(planned, slots)
        took = self._took(planned, slots)
        count = self._repeats(took) if self.leap and after is slots else 1
        start, self.now = self.now, self.now + took * count
        self._deliver(slots, after, took, count)
        if self.record:
            self._log(start, planned, slots, after)
        self.rounds += count
        self.submitted.clear()
        self.finished.clear()

    def result(self) -> Simulation:
        """What was found, once nothing is left to do."""
        elapsed = self.now - self.start
        return Simulation(
            rules=self.rules,
            cost=self.cost,
            seconds=elapsed / SECOND,
            rounds=self.rounds,
            tokens=self.ledger.tokens,
            gaps=self.ledger.spread(),
            occupancy=self.ledger.occupancy(self.rules.slots, elapsed),
            outcomes=tuple(self.ledger.outcomes[id] for id in range(len(self.arrivals))),
            log=tuple(self.log),
        )

    def _submit(self, at: int, arrival: Arrival) -> None:
        id, self.taken = self.taken, self.taken + 1
        self.ledger.submit(id, arrival, at)
        queue = self.streams if arrival.kind == "stream" else self.decisions
        try:
            check_room(self.rules, arrival.kind, len(queue))
        except (Busy, InvalidRequest):
            self.ledger.end(id, "refused", self.now)
            return
        deadline = None if arrival.deadline is None else at + round(arrival.deadline * SECOND)
        job = Job(id, arrival.kind, id, arrival.legs(self.rules.piece), deadline)
        self.submitted.append(Submitted(id, arrival.kind, arrival.prompt, at / SECOND))
        if arrival.kind == "stream":
            self.streams = (*self.streams, job)
        else:
            self.decisions = (*self.decisions, job)

    def _expire(self) -> None:
        for slot, item in enumerate(self.slots):
            if item and expired((item.job,), self.now):
                self._free(slot, item.job, "deadline")
        gone = expired((*self.streams, *self.decisions), self.now)
        for job in gone:
            entry = self.ledger.open[job.id]
            entry.waited += self.now - entry.queued
            self._end(None, job, "deadline")
        self.streams = tuple(job for job in self.streams if job not in gone)
        self.decisions = tuple(job for job in self.decisions if job not in gone)

    def _took(self, planned: Plan, slots: Slots) -> int:
        rows = sum(rows for group in planned.groups for _, rows in group)
        item = None if planned.piece is None else slots[planned.piece]
        start = None if item is None else item.position(self.rules.piece)
        return round(self.cost.seconds(len(planned.groups), rows, start, planned.part.of) * SECOND)

    def _repeats(self, took: int) -> int:
        """The number of rounds that start before anything can change: a finish, an arrival or a deadline."""
        held = [item.job for item in self.slots if item]
        finish = min(self.ledger.open[job.id].left for job in held)
        events = [self.arrivals[self.taken][0]] if self.taken < len(self.arrivals) else []
        if self.timed:
            events += [int(job.deadline) for job in (*held, *self.streams, *self.decisions) if job.deadline is not None]
        return min([finish, *(-((self.now - event) // took) for event in events)])

    def _deliver(self, slots: Slots, after: Slots, took: int, count: int) -> None:
        """Tokens to the streams that were live or now are; an end to those that have all they came for."""
        for slot, (before, item) in enumerate(zip(slots, after, strict=True)):
            if before is None or item is None:
                continue
            self.ledger.held[item.job.kind] += took * count
            left = None
            if before.live:
                left = self.ledger.decode(item.job.id, took, count)
            elif item.live:
                left = self.ledger.draw(item.job.id, self.now)
            if left == 0 or item.done:
                self._free(slot, item.job, "length" if item.live else "answered")

    def _free(self, slot: int, job: Job, reason: Left) -> None:
        self.slots = tuple(None if other == slot else item for other, item in enumerate(self.slots))
        self._end(slot, job, reason)

    def _end(self, slot: int | None, job: Job, reason: Left) -> None:
        self.ledger.end(job.id, reason, self.now)
        self.finished.append(Finished(slot, job.id, job.kind, reason))

    def _log(self, start: int, planned: Plan, slots: Slots, after: Slots) -> None:
        span, waiting = (start / SECOND, self.now / SECOND), (len(self.streams), len(self.decisions))
        events = tuple(self.submitted), tuple(self.finished)
        self.log.append(log_round(self.rules, self.rounds, span, planned, slots, after, *events, waiting))
