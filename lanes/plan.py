"""The planner: who holds which slot, and what the next round computes, from plain values alone.

No MLX, no clock, no thread. Engine and simulator hold the state and call once a round: `bind` (who enters, who must
leave), `settle` (the slots and queues after that), `share` (the piece and the rows), run it, then `advance`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias, get_args

from lanes.errors import Busy, InvalidRequest
from lanes.jobs import WHOLE, Held, Job, Part
from lanes.record import Kind

Policy: TypeAlias = Literal["off", "idle", "beside"]
Slots: TypeAlias = Sequence[Held | None]
Queue: TypeAlias = Sequence[Job]
Group: TypeAlias = tuple[tuple[int, int], ...]

PATIENCE = 8
"""How often a prompt may be passed over before it goes first."""
SPAN = 1024
"""Keys over which a piece costs about half as much again as over none, on the embedded model."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What does not change from round to round.

    `slots` W, `width` R (packed rows a group), `piece` C (tokens a piece). `policy` says when decisions may run: never
    (off), only with no stream waiting, filling or live (idle), or in any free slot (beside). Streams hold at most
    W - `reserved` slots and never take back a slot that would leave decisions fewer than `reserved`. `tail` is the
    least number of rows that a round offers to the tails of prompts: where the live streams leave fewer, one more group
    runs. `queue` bounds each of the two queues. Beside live streams a piece after k keys is computed in 2 + k // `span`
    parts, one a round, so that no round grows with the prompt (0: always whole). Raises InvalidRequest for values that
    cannot work.
    """

    slots: int = 8
    width: int = 8
    piece: int = 32
    policy: Policy = "beside"
    reserved: int = 0
    tail: int = 1
    queue: int = 1024
    span: int = SPAN

    def __post_init__(self) -> None:
        for name in ("slots", "width", "piece", "reserved", "tail", "queue", "span"):
            value, least = getattr(self, name), int(name not in ("reserved", "span"))
            if not isinstance(value, int) or value < least:
                raise InvalidRequest(f"{name} must be a whole number of at least {least}, got {value!r}")
        if self.tail > self.width:
            raise InvalidRequest(f"tail can be at most the width of {self.width} rows, got {self.tail}")
        if self.policy not in get_args(Policy):
            raise InvalidRequest(f"policy must be one of {', '.join(get_args(Policy))}, got {self.policy!r}")
        if self.reserved >= self.slots:
            raise InvalidRequest(f"reserved must leave streams a slot: at most {self.slots - 1}, got {self.reserved}")
        if self.reserved and self.policy != "beside":
            raise InvalidRequest(f"reserved slots need policy='beside': with {self.policy!r} they would stay empty")


class Binding(NamedTuple):
    """Changes of who holds a slot, each (slot, job id): evictions happen first, so a slot may be in both."""

    evict: tuple[tuple[int, int], ...] = ()
    admit: tuple[tuple[int, int], ...] = ()


class Settled(NamedTuple):
    """Slots and queues after a binding."""

    slots: tuple[Held | None, ...]
    streams: tuple[Job, ...]
    decisions: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One round: evictions and admissions as (slot, job id), the slot whose prompt gets the piece, the row groups.

    `part` is how much of the piece the round computes. Rows come after it: a prompt's tail may begin in the round
    of its last part.

    A group is one forward of R packed rows: (slot, rows) of each slot in it, at most R rows in all. A live stream has
    exactly one row in the round; other rows are the tails of prompts.
    """

    evict: tuple[tuple[int, int], ...] = ()
    admit: tuple[tuple[int, int], ...] = ()
    piece: int | None = None
    part: Part = WHOLE
    groups: tuple[Group, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether the round would compute nothing."""
        return self.piece is None and not self.groups

    def before_rows(self, slot: int, item: Held) -> Held:
        """The job in a slot as the round's rows find it."""
        return item.after_part(self.part) if slot == self.piece else item


NO_CHANGE = Binding()


def plan(rules: Rules, slots: Slots, streams: Queue, decisions: Queue) -> Plan:
    """The next round, from the slots and the two queues (each sorted by `order`).

    Cancelled jobs and those whose deadline has passed are taken out before. Deterministic; changes nothing.
    """
    binding = bind(rules, slots, streams, decisions)
    return share(rules, settle(binding, slots, streams, decisions).slots, binding)


def bind(rules: Rules, slots: Slots, streams: Queue, decisions: Queue) -> Binding:
    """Who enters a slot and which decisions must leave one.

    Streams first, then decisions, each first come first served into the lowest free slot. A stream that finds none
    takes back the slot of the decision that loses least: the fewest filled tokens, the newest of equals.
    """
    if not streams and not decisions:
        return NO_CHANGE
    held = sum(item is not None and item.job.kind == "stream" for item in slots)
    entering = max(0, min(len(streams), rules.slots - rules.reserved - held))
    evicted = _evict(rules, slots, entering)
    free = sorted([slot for slot, item in enumerate(slots) if item is None] + [slot for slot, _ in evicted])
    entrants = list(streams[:entering])
    if rules.policy == "beside" or (rules.policy == "idle" and not held and not streams):
        # Streams that still wait here are held back by the reserve: the slots left are not theirs.
        entrants += decisions[: len(free) - entering]
    return Binding(evicted, tuple((slot, job.id) for slot, job in zip(free, entrants, strict=False)))


def _evict(rules: Rules, slots: Slots, entering: int) -> tuple[tuple[int, int], ...]:
    if not entering:
        return ()
    running = [(slot, item) for slot, item in enumerate(slots) if item and item.job.kind == "decision"]
    if rules.policy != "idle":
        free = sum(item is None for item in slots)
        running.sort(key=lambda pair: (pair[1].filled(rules.piece), -pair[1].job.order))
        running = running[: max(0, entering - free)]
    return tuple((slot, item.job.id) for slot, item in sorted(running))


def settle(binding: Binding | Plan, slots: Slots, streams: Queue, decisions: Queue) -> Settled:
    """Slots and queues after the binding: an evicted decision is back in its queue, where its `order` puts it."""
    if not binding.evict and not binding.admit:
        return Settled(tuple(slots), tuple(streams), tuple(decisions))
    after = list(slots)
    back = [item.job for slot, _ in binding.evict if (item := after[slot])]
    for slot, _ in binding.evict:
        after[slot] = None
    entering = sum(job.id == entrant for job, (_, entrant) in zip(streams, binding.admit, strict=False))
    heads = [*streams[:entering], *decisions[: len(binding.admit) - entering]]
    for (slot, _), job in zip(binding.admit, heads, strict=True):
        after[slot] = Held.of(job)
    behind = decisions[len(heads) - entering :]
    queue = sorted([*back, *behind], key=lambda job: job.order) if back else behind
    return Settled(tuple(after), tuple(streams[entering:]), tuple(queue))


def share(rules: Rules, slots: Slots, binding: Binding = NO_CHANGE) -> Plan:
    """What the settled slots compute in one round; the binding that led to them is kept in the plan.

    One filling prompt gets the piece (the one whose piece is begun, if there is one), and every live stream one row.
    Tails get the rows that are left in the last group, or one more group when fewer than `rules.tail` are. Piece and
    rows go to whom was passed over PATIENCE times (most often, then oldest), else to streams before decisions, to the
    job that is soonest through, to the oldest. Rows that are still free go to the tail behind the round's own piece.
    """
    live: list[tuple[int, int]] = []
    filling: list[tuple[int, Held]] = []
    tails: list[tuple[int, Held]] = []
    for slot, item in enumerate(slots):
        if item is None:
            continue
        if item.live:
            live.append((slot, 1))
        elif item.pieces:
            filling.append((slot, item))
        elif item.rows:
            tails.append((slot, item))
    groups = [tuple(live[first : first + rules.width]) for first in range(0, len(live), rules.width)]
    if tails:
        if not groups or _spare(rules, groups[-1]) < rules.tail:
            groups.append(())
        groups[-1] += _deal(sorted(tails, key=_row_turn), _spare(rules, groups[-1]))
    planned = Plan(binding.evict, binding.admit, *_piece(rules, filling, bool(live)), tuple(groups))
    return _begin_tail(rules, planned, slots)


def _begin_tail(rules: Rules, planned: Plan, slots: Slots) -> Plan:
    """With rows for the tail behind the piece, where the piece ends in this round and rows are free in it anyway."""
    slot = planned.piece
    if slot is None or not planned.groups or not (item := slots[slot]):
        return planned
    behind = planned.before_rows(slot, item)
    if behind.pieces or not behind.rows:
        return planned
    *full, last = planned.groups
    return replace(planned, groups=(*full, last + _deal([(slot, behind)], _spare(rules, last))))


def _spare(rules: Rules, group: Group) -> int:
    """The rows of a group that are free."""
    return rules.width - sum(rows for _, rows in group)


def _piece(rules: Rules, filling: Sequence[tuple[int, Held]], beside: bool) -> tuple[int | None, Part]:
    """Whose piece it is and which part of it; what is begun goes on, so that at most one piece ever is."""
    if not filling:
        return None, WHOLE
    slot, item = min(filling, key=lambda place: (place[1].begun is None, *_piece_turn(place)))
    if item.begun:
        return slot, Part(item.begun.number + 1, item.begun.of)
    parts = 2 + item.position(rules.piece) // rules.span if beside and rules.span else 1
    return slot, Part(1, parts)


def _deal(tails: Sequence[tuple[int, Held]], spare: int) -> Group:
    """As many of the spare rows to each tail as it has left, in turn, until none is left."""
    rows: list[tuple[int, int]] = []
    for slot, item in tails:
        if not spare:
            break
        rows.append((slot, min(item.rows, spare)))
        spare -= rows[-1][1]
    return tuple(rows)


def _piece_turn(place: tuple[int, Held]) -> tuple[int, ...]:
    item = place[1]
    return _turn(item, item.pieces + sum(leg.pieces for leg in item.job.legs[item.leg + 1 :]))


def _row_turn(place: tuple[int, Held]) -> tuple[int, ...]:
    item = place[1]
    return _turn(item, item.rows + sum(leg.rows for leg in item.job.legs[item.leg + 1 :]))


def _turn(item: Held, left: int) -> tuple[int, ...]:
    """The sort key of whose turn it is; all that is left of the job counts, so many short legs are not a short job."""
    if item.passed >= PATIENCE:
        return (0, -item.passed, item.job.order)
    return (1, item.job.kind == "decision", left, item.job.order)


def advance(plan: Plan, slots: Slots) -> Slots:
    """The settled slots after the plan's round; the very same object when no prompt was there to fill.

    A stream whose prompt is through is live, a decision is `done`: whoever runs the rounds takes it out then.
    """
    if plan.piece is None and all(item is None or item.live for item in slots):
        return slots
    rows = dict(pair for group in plan.groups for pair in group)
    return tuple(
        _after(item, plan.part if slot == plan.piece else None, rows.get(slot, 0)) for slot, item in enumerate(slots)
    )


def _after(item: Held | None, part: Part | None, rows: int) -> Held | None:
    if item is None or item.live or item.done:
        return item
    if part:
        item = item.after_part(part)
    elif not rows:
        return item.after_wait()
    return item.after_rows(rows) if rows else item


def expired(jobs: Iterable[Job], now: float) -> tuple[Job, ...]:
    """The jobs whose deadline has passed at `now`, a time on the clock that the deadlines use."""
    return tuple(job for job in jobs if job.deadline is not None and job.deadline <= now)


def check_room(rules: Rules, kind: Kind, waiting: int) -> None:
    """Let one more job of `kind` into its queue of `waiting` jobs, or raise.

    Raises InvalidRequest for a decision under policy="off" and Busy for a full queue. Evicted decisions count as
    waiting, but go back to their queue without asking.
    """
    if kind == "decision" and rules.policy == "off":
        raise InvalidRequest('policy="off" serves no decisions: make the engine with policy="beside" or "idle"')
    if waiting >= rules.queue:
        raise Busy(f"{waiting} {kind}s are waiting and the queue holds {rules.queue}: try again later, or raise queue=")


def enters_now(rules: Rules, job: Job, slots: Slots, streams: Queue, decisions: Queue) -> bool:
    """Whether the job, if it came last, would get a slot in the next round: what a caller who will not wait asks."""
    queues = ([*streams, job], decisions) if job.kind == "stream" else (streams, [*decisions, job])
    return any(job_id == job.id for _, job_id in bind(rules, slots, *queues).admit)
