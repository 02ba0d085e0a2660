"""The planner: rules one by one, what must hold in every round, and the scheduling faults of engines before it."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.errors import Busy, InvalidRequest
from lanes.jobs import WHOLE, Held, Job, Leg, Part, route, stretch
from lanes.plan import (
    PATIENCE,
    Plan,
    Policy,
    Rules,
    Settled,
    advance,
    bind,
    check_room,
    enters_now,
    expired,
    plan,
    settle,
    share,
)
from lanes.record import Kind


def job(order: int, kind: Kind = "stream", pieces: int = 0, rows: int = 1, deadline: float | None = None) -> Job:
    return Job(order, kind, order, (Leg(pieces, rows),), deadline)


def live(order: int) -> Held:
    return Held(job(order), 0, 0, 0, live=True)


def filling(order: int, kind: Kind = "stream", pieces: int = 1, rows: int = 1, passed: int = 0) -> Held:
    return Held.of(job(order, kind, pieces, rows))._replace(passed=passed)


def run(rules: Rules, slots: Sequence[Held | None], rounds: int) -> tuple[list[Plan], Sequence[Held | None]]:
    plans = []
    for _ in range(rounds):
        plans.append(plan(rules, slots, (), ()))
        slots = advance(plans[-1], slots)
    return plans, slots


# The route of a prompt.


@pytest.mark.parametrize(
    ("tokens", "leg"), [(1, (0, 1)), (32, (0, 32)), (33, (1, 1)), (64, (1, 32)), (65, (2, 1)), (2000, (62, 16))]
)
def test_a_prompt_goes_in_whole_pieces_and_leaves_at_least_one_row(tokens: int, leg: tuple[int, int]) -> None:
    assert route(tokens, 32) == leg


@given(st.integers(1, 300), st.integers(0, 8), st.integers(1, 40))
def test_a_stretch_of_a_prompt_takes_the_cut_of_the_whole(tokens: int, pieces: int, piece: int) -> None:
    whole = route(tokens, piece)
    skipped = min(pieces, whole.pieces)
    assert stretch(skipped * piece, tokens, piece) == Leg(whole.pieces - skipped, whole.rows)
    assert stretch(tokens - 1, tokens, piece) == Leg(0, 1)
    assert stretch(skipped * piece, tokens, piece, packed=False).pieces * piece >= tokens - skipped * piece


def test_a_prompt_without_tokens_has_no_route() -> None:
    with pytest.raises(InvalidRequest, match="at least 1"):
        route(0, 32)


@pytest.mark.parametrize("legs", [(), (Leg(0, 0),), (Leg(-1, 3),), (Leg(1, 0), Leg(0, 0), Leg(0, 1))])
def test_legs_without_work_or_without_a_last_row_are_refused(legs: tuple[Leg, ...]) -> None:
    with pytest.raises(InvalidRequest, match="needs legs"):
        Job(0, "decision", 0, legs)


def test_a_job_knows_how_far_it_is_over_all_its_legs() -> None:
    held = Held.of(Job(0, "decision", 0, (Leg(2, 0), Leg(1, 3), Leg(0, 4))))
    seen = [(held.leg, held.at(32), held.filled(32))]
    for step in ("piece", "piece", "piece", 2, 1, 4):
        held = held.after_part() if step == "piece" else held.after_rows(int(step))
        seen.append((held.leg, held.at(32), held.filled(32)))
    assert seen == [(0, 0, 0), (0, 32, 32), (1, 0, 64), (1, 32, 96), (1, 34, 98), (2, 0, 99), (2, 4, 103)]
    assert held.done and not held.live


def test_cached_pieces_are_skipped_and_may_end_the_leg() -> None:
    held = Held.of(Job(0, "decision", 0, (Leg(3, 0), Leg(0, 2))))
    assert held.skip(0) == held
    assert held.skip(2).pieces == 1
    assert held.skip(3) == Held(held.job, 1, 0, 2)
    with pytest.raises(ValueError, match="3 are left"):
        held.skip(4)


# Who enters a slot.


def test_streams_enter_before_decisions_each_in_order_into_the_lowest_free_slots() -> None:
    streams = [job(5), job(6)]
    decisions = [job(1, "decision"), job(2, "decision")]
    found = bind(Rules(slots=4), (None, live(0), None, None), streams, decisions)
    assert found == ((), ((0, 5), (2, 6), (3, 1)))


def test_a_stream_without_a_slot_takes_the_decision_that_loses_least() -> None:
    slots = (live(0), filling(1, "decision", 2), filling(2, "decision", 9).after_part(), filling(3, "decision", 2))
    found = bind(Rules(slots=4), slots, [job(9)], [])
    assert found == (((3, 3),), ((3, 9),)), "of equals the newest"
    advanced = (*slots[:3], slots[3].after_part().after_part())
    assert bind(Rules(slots=4), advanced, [job(9)], []).evict == ((1, 1),)


def test_a_stream_takes_no_slot_while_one_is_free() -> None:
    assert bind(Rules(slots=2), (filling(0, "decision"), None), [job(1)], []) == ((), ((1, 1),))


def test_streams_and_their_prompts_are_never_evicted() -> None:
    assert bind(Rules(slots=2), (live(0), filling(1)), [job(2)], [job(3, "decision")]) == ((), ())


def test_an_evicted_decision_starts_again_at_the_head_with_its_order() -> None:
    slots = (filling(1, "decision", 4).after_part(), filling(2, "decision", 4))
    queue = (job(3, "decision"), job(7, "decision"))
    planned = plan(Rules(slots=2), slots, [job(8), job(9)], queue)
    after = settle(planned, slots, [job(8), job(9)], queue)
    assert planned.evict == ((0, 1), (1, 2))
    assert after == Settled((Held.of(job(8)), Held.of(job(9))), (), (slots[0].job, slots[1].job, *queue))


def test_idle_admits_decisions_only_without_any_stream() -> None:
    rules = Rules(slots=3, policy="idle")
    queue = [job(5, "decision"), job(6, "decision")]
    assert bind(rules, (None, None, None), [], queue).admit == ((0, 5), (1, 6))
    assert bind(rules, (live(0), None, None), [], queue).admit == ()
    assert bind(rules, (filling(0), None, None), [], queue).admit == ()
    assert bind(rules, (None, None, None), [job(7)], queue).admit == ((0, 7),)


def test_idle_clears_every_decision_when_a_stream_arrives() -> None:
    slots = (filling(0, "decision"), None, filling(1, "decision"))
    assert bind(Rules(slots=3, policy="idle"), slots, [job(2)], []) == (((0, 0), (2, 1)), ((0, 2),))


def test_off_admits_no_decision() -> None:
    assert bind(Rules(slots=2, policy="off"), (None, None), [], [job(0, "decision")]) == ((), ())


def test_the_reserve_keeps_slots_from_streams_and_for_decisions() -> None:
    rules = Rules(slots=3, reserved=1)
    queue = [job(9, "decision")]
    assert bind(rules, (live(0), live(1), None), [job(2)], queue).admit == ((2, 9),)
    held = (live(0), filling(3, "decision"), filling(4, "decision"))
    assert bind(rules, held, [job(5), job(6)], []) == (((2, 4),), ((2, 5),)), "one of the two decisions stays"


def test_a_caller_who_will_not_wait_can_ask_first() -> None:
    rules = Rules(slots=2)
    full = (live(0), filling(1, "decision"))
    assert enters_now(rules, job(9), full, [], [])
    assert not enters_now(rules, job(9), full, [job(8)], [])
    assert not enters_now(rules, job(9, "decision"), full, [], [])
    assert enters_now(rules, job(9, "decision"), (live(0), None), [], [])


# Who gets the piece and the rows.


def test_the_piece_goes_to_streams_then_to_the_soonest_through_then_to_the_oldest() -> None:
    rules = Rules(slots=5)
    assert share(rules, (filling(0, "decision", 1), filling(1, "stream", 9))).piece == 1
    assert share(rules, (filling(0, "stream", 3), filling(1, "stream", 2))).piece == 1
    assert share(rules, (filling(2, "stream", 3), filling(1, "stream", 3))).piece == 1


def test_a_prompt_that_was_passed_over_goes_first_the_longest_wait_before_age() -> None:
    short = filling(5, "stream", 1)
    assert share(Rules(), (short, filling(1, "decision", 90, passed=PATIENCE - 1))).piece == 0
    assert share(Rules(), (short, filling(1, "decision", 90, passed=PATIENCE))).piece == 1
    longest = filling(3, "decision", 90, passed=PATIENCE + 1)
    assert share(Rules(), (short, filling(1, "decision", 90, passed=PATIENCE), longest)).piece == 2
    assert share(Rules(), (filling(3, pieces=90, passed=PATIENCE), filling(1, pieces=90, passed=PATIENCE))).piece == 1


def test_what_is_left_of_a_job_counts_all_its_legs() -> None:
    many = Held.of(Job(0, "decision", 0, (Leg(1, 1), Leg(3, 1))))
    assert share(Rules(), (many, filling(1, "decision", 2))).piece == 1
    tails = (Held.of(Job(0, "decision", 0, (Leg(0, 4), Leg(0, 9)))), filling(1, "decision", 0, 8))
    assert share(Rules(), tails).groups == (((1, 8),),)


def test_the_piece_and_the_tail_of_one_prompt_are_different_rounds() -> None:
    plans, after = run(Rules(), (filling(0, "stream", 2, 3),), 3)
    assert [(one.piece, one.groups) for one in plans] == [(0, ()), (0, ()), (None, (((0, 3),),))]
    assert after == (live(0)._replace(job=job(0, pieces=2, rows=3)),)


def test_a_piece_is_computed_in_parts_beside_live_streams_in_more_after_many_keys() -> None:
    rules = Rules(piece=32, span=64)
    plans, after = run(rules, (live(0), filling(1, "decision", 4, 3)), 10)
    assert [one.part for one in plans] == [
        *[Part(1, 2), Part(2, 2)] * 2,  # after 0 and 32 keys
        *[Part(1, 3), Part(2, 3), Part(3, 3)] * 2,  # after 64 and 96
    ]
    assert all(one.groups == (((0, 1),),) for one in plans[:-1]), "live streams have a row in each"
    assert plans[-1].groups == (((0, 1), (1, 3)),), "the tail begins in the round that ends the last piece"
    assert after[1] is not None and after[1].done


def test_a_tail_behind_its_piece_gets_only_rows_that_are_free_anyway() -> None:
    last = filling(1, "decision", 1, 9)._replace(begun=Part(1, 2))
    assert share(Rules(), (live(0), last)).groups == (((0, 1), (1, 7)),)
    assert share(Rules(), (None, last)).groups == (), "no group of its own"
    assert share(Rules(width=2), (live(0), last, live(2))).groups == (((0, 1), (2, 1)),), "no further one"
    tail = filling(3, "decision", 0, 5)
    assert share(Rules(), (live(0), last, tail)).groups == (((0, 1), (2, 5), (1, 2)),), "after those that wait for rows"
    after = advance(share(Rules(), (live(0), last)), (live(0), last))[1]
    assert after is not None and (after.pieces, after.rows, after.begun) == (0, 2, None)
    more = last._replace(pieces=2)
    assert share(Rules(), (live(0), more)).groups == (((0, 1),),), "another piece comes first"


def test_a_piece_is_whole_with_no_stream_live_and_where_parts_are_off() -> None:
    deep = filling(1, "decision", 9)._replace(pieces=4)
    assert share(Rules(span=32), (None, deep)).part == WHOLE
    assert share(Rules(span=0), (live(0), deep)).part == WHOLE
    assert share(Rules(span=32), (live(0), deep)).part == Part(1, 7)


def test_what_is_begun_goes_on_before_any_other_piece_and_keeps_its_parts() -> None:
    deep = filling(5, "decision", 9)._replace(pieces=4)
    begun = advance(share(Rules(span=96), (live(0), deep)), (live(0), deep))[1]
    assert begun is not None and begun.begun == Part(1, 3) and begun.pieces == 4, "160 keys stand before it"
    first = filling(1, "stream", 1, passed=PATIENCE)
    planned = share(Rules(), (None, begun, first))
    assert (planned.piece, planned.part) == (1, Part(2, 3)), "also when the streams are gone"
    after = advance(planned, (None, begun, first))
    assert after[1] and after[2] and (after[1].begun, after[2].passed) == (Part(2, 3), PATIENCE + 1)
    last = advance(share(Rules(), after), after)
    assert last[1] and (last[1].begun, last[1].pieces) == (None, 3)
    assert share(Rules(), last).piece == 2


def test_a_job_may_work_in_the_round_that_admits_it() -> None:
    assert plan(Rules(slots=2), (None, None), [job(0, pieces=1)], [job(1, "decision", 0, 5)]) == Plan(
        admit=((0, 0), (1, 1)), piece=0, groups=(((1, 5), (0, 1)),)
    )


def test_live_streams_come_first_and_tails_get_what_is_left() -> None:
    slots = (filling(9, "decision", 0, 30), live(0), live(1), filling(8, "stream", 0, 4))
    assert share(Rules(slots=4, width=8), slots).groups == (((1, 1), (2, 1), (3, 4), (0, 2)),)


def test_tails_alone_take_one_group() -> None:
    assert share(Rules(slots=2, width=4), (filling(0, rows=9, pieces=0), None)).groups == (((0, 4),),)


def test_more_live_rows_than_the_width_run_as_several_groups() -> None:
    assert share(Rules(slots=5, width=2), tuple(live(i) for i in range(5))).groups == (
        ((0, 1), (1, 1)),
        ((2, 1), (3, 1)),
        ((4, 1),),
    )


def test_a_tail_without_a_spare_row_gets_one_more_group() -> None:
    slots = (live(0), live(1), filling(2, pieces=0, rows=5))
    assert share(Rules(slots=3, width=2), slots).groups == (((0, 1), (1, 1)), ((2, 2),))
    assert share(Rules(slots=3, width=3), slots).groups == (((0, 1), (1, 1), (2, 1)),)
    assert share(Rules(slots=3, width=3, tail=2), slots).groups == (((0, 1), (1, 1)), ((2, 3),))


def test_a_branch_waits_for_the_end_of_the_one_before() -> None:
    plans, after = run(Rules(), (Held.of(Job(0, "decision", 0, (Leg(1, 0), Leg(0, 2), Leg(1, 3)))),), 4)
    assert [(one.piece, one.groups) for one in plans] == [(0, ()), (None, (((0, 2),),)), (0, ()), (None, (((0, 3),),))]
    assert after[0] is not None and after[0].done


def test_a_decision_is_done_and_takes_no_part_any_more() -> None:
    done = filling(0, "decision", 0, 1).after_rows(1)
    assert done.done and plan(Rules(slots=1), (done,), (), ()).idle
    assert advance(Plan(), (done, filling(1))) == (done, filling(1, passed=1))


def test_nothing_changes_in_a_round_of_live_streams() -> None:
    slots = (live(0), None, live(1))
    assert advance(plan(Rules(slots=3), slots, (), ()), slots) is slots


# Rules and deadlines.


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"slots": 0}, "slots must be a whole number of at least 1"),
        ({"width": -1}, "width must be"),
        ({"piece": 1.5}, "piece must be"),
        ({"queue": 0}, "queue must be"),
        ({"policy": "sometimes"}, "policy must be one of off, idle, beside"),
        ({"reserved": -1}, "reserved must be a whole number of at least 0"),
        ({"slots": 2, "reserved": 2}, "leave streams a slot"),
        ({"policy": "idle", "reserved": 1}, "need policy='beside'"),
        ({"width": 4, "tail": 5}, "tail can be at most"),
    ],
)
def test_rules_that_cannot_work_are_refused(bad: dict, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        Rules(**bad)


def test_a_deadline_has_passed_at_its_very_time() -> None:
    jobs = [job(0), job(1, deadline=2.0), job(2, deadline=2.1)]
    assert [one.id for one in expired(jobs, 2.0)] == [1]


def test_a_decision_is_refused_at_submit_when_the_policy_is_off() -> None:
    with pytest.raises(InvalidRequest, match="serves no decisions"):
        check_room(Rules(policy="off"), "decision", 0)
    check_room(Rules(policy="off"), "stream", 0)


# Faults that other engines had.


def test_an_evicted_decision_is_not_deferred_again_behind_newcomers() -> None:
    rules, newcomers = Rules(slots=1), [job(2, "decision"), job(3, "decision")]
    slots: Sequence[Held | None] = (filling(0, "decision", 3),)
    slots, _, queue = settle(plan(rules, slots, [job(1)], newcomers), slots, [job(1)], newcomers)
    assert [one.order for one in queue] == [0, 2, 3]
    assert plan(rules, (None,), (), queue).admit == ((0, 0),)


def test_admission_goes_on_when_running_and_deferred_together_reach_the_number_of_slots() -> None:
    deferred = [job(order, "decision") for order in range(4)]
    assert plan(Rules(slots=4), (live(4), live(5), None, None), [job(6)], deferred).admit == ((2, 6), (3, 0))


def test_a_decision_that_is_evicted_is_not_admitted_in_the_same_pass() -> None:
    slots = (filling(0, "decision"), filling(1, "decision"))
    for policy in ("beside", "idle"):
        planned = plan(Rules(slots=2, policy=policy), slots, [job(2)], [])
        evicted = {one for _, one in planned.evict}
        assert evicted and not evicted & {one for _, one in planned.admit}


def test_a_stream_that_meets_a_full_engine_evicts_in_the_first_round_that_sees_it() -> None:
    rules, full = Rules(slots=2), (live(0), filling(1, "decision"))
    assert plan(rules, full, [], [job(2, "decision")]).evict == ()
    assert plan(rules, full, [job(3)], [job(2, "decision")]).admit == ((1, 3),)


def test_a_waiting_stream_enters_in_the_very_round_that_has_a_slot() -> None:
    rules, waiting = Rules(slots=1), [job(1)]
    assert all(plan(rules, (live(0),), waiting, []).admit == () for _ in range(20))
    assert plan(rules, (None,), waiting, []).admit == ((0, 1),)


def test_long_prompts_do_not_starve_decoding() -> None:
    slots = (live(0), live(1), *(filling(order, pieces=50, rows=32) for order in range(2, 8)))
    for one in run(Rules(), slots, 100)[0]:
        assert {(0, 1), (1, 1)} <= set(one.groups[0])


def test_the_number_of_pieces_in_a_round_is_bounded_not_only_their_size() -> None:
    plans, after = run(Rules(), tuple(filling(order, pieces=10) for order in range(8)), 40)
    filled = [10 - item.pieces for item in after if item]
    assert all(one.piece is not None for one in plans)
    assert sum(filled) == sum(one.part.last for one in plans)


def test_a_short_decision_is_not_stuck_behind_long_prompts() -> None:
    slots = (*(filling(order, pieces=60) for order in range(7)), filling(7, "decision", pieces=3))
    plans, _ = run(Rules(), slots, 3 * (PATIENCE + 8))
    assert [one.piece for one in plans].count(7) >= 3


def test_a_long_prompt_is_not_starved_by_a_flood_of_short_ones() -> None:
    slots: tuple[Held | None, ...] = (filling(0, pieces=4), filling(1, pieces=1))
    rounds = 0
    while slots[0] is not None and slots[0].pieces:
        slots = (slots[0], filling(2 + rounds, pieces=1))
        slots = tuple(advance(plan(Rules(slots=2), slots, (), ()), slots))
        rounds += 1
    assert rounds == 3 * (PATIENCE + 1) + 1, "its last piece is as short as theirs, and it is older"


def test_the_bound_of_the_queue_is_kept() -> None:
    rules = Rules(queue=3)
    check_room(rules, "stream", 2)
    for waiting in (3, 4):
        with pytest.raises(Busy, match="the queue holds 3"):
            check_room(rules, "stream", waiting)


def test_work_without_decoding_counts_as_work() -> None:
    assert not plan(Rules(slots=1), (filling(0),), (), ()).idle
    assert plan(Rules(slots=1), (None,), (), ()).idle


# What holds in every round of any workload.


class World:
    """An engine without a model: takes jobs, runs planned rounds, and checks each of them."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.slots: Sequence[Held | None] = (None,) * rules.slots
        self.streams: tuple[Job, ...] = ()
        self.decisions: tuple[Job, ...] = ()
        self.left: dict[int, int] = {}
        self.admitted: dict[Kind, list[int]] = {"stream": [], "decision": []}
        self.ended: list[int] = []
        self.lost = self.work = 0

    def submit(self, kind: Kind, legs: tuple[Leg, ...], output: int) -> None:
        order = len(self.left)
        self.left[order] = output
        self.work += sum(map(sum, legs)) + output
        new = (Job(order, kind, order, legs),)
        if kind == "stream":
            self.streams += new
        else:
            self.decisions += new

    def cancel(self, order: int) -> None:
        self.slots = tuple(None if item and item.job.id == order else item for item in self.slots)
        self.streams = tuple(one for one in self.streams if one.id != order)
        self.decisions = tuple(one for one in self.decisions if one.id != order)
        self.ended.append(order)

    def present(self) -> list[int]:
        return sorted([item.job.id for item in self.slots if item] + [one.id for one in self.streams + self.decisions])

    def step(self) -> Plan:
        planned = plan(self.rules, self.slots, self.streams, self.decisions)
        settled = settle(planned, self.slots, self.streams, self.decisions)
        self.check_binding(planned, settled)
        self.check_work(planned, settled.slots)
        before = self.present()
        self.slots, self.streams, self.decisions = advance(planned, settled.slots), *settled[1:]
        assert self.present() == before, "no job is lost, doubled or in two places"
        self.deliver()
        return planned

    def check_binding(self, planned: Plan, settled: Settled) -> None:
        rules, old = self.rules, self.slots
        held = [item.job.kind for item in settled.slots if item]
        for slot, order in planned.evict:
            item = old[slot]
            assert item and item.job.id == order and item.job.kind == "decision" and self.streams
            self.lost += sum(map(sum, item.job.legs))
        enter = [order for _, order in planned.admit]
        assert not {order for _, order in planned.evict} & set(enter)
        streams = [one.id for one in self.streams][: len(self.streams) - len(settled.streams)]
        decisions = [order for order in enter if order not in streams]
        assert enter == streams + decisions and streams == enter[: len(streams)]
        assert decisions == [one.id for one in self.decisions][: len(decisions)]
        assert [slot for slot, _ in planned.admit] == sorted(slot for slot, _ in planned.admit)
        assert list(settled.decisions) == sorted(settled.decisions, key=lambda one: one.order)
        for before, after in zip(old, settled.slots, strict=True):
            if before and before.job.kind == "stream":
                assert after == before, "a stream keeps its slot"
        if rules.policy == "beside":
            assert len(planned.evict) <= len(streams)
            assert held.count("decision") >= min(rules.reserved, sum(bool(i and i.job.kind == "decision") for i in old))
        if rules.policy == "idle" and "decision" in held:
            assert "stream" not in held and not settled.streams
        assert held.count("stream") <= rules.slots - rules.reserved
        assert not settled.streams or held.count("stream") == rules.slots - rules.reserved, (
            "a decision never blocks one"
        )
        if None in settled.slots:
            assert not settled.decisions or (rules.policy == "idle" and "stream" in held)

    def check_work(self, planned: Plan, slots: Sequence[Held | None]) -> None:
        rules = self.rules
        assert (planned.piece is None) == (not any(item and item.pieces for item in slots))
        if planned.piece is not None:
            item = slots[planned.piece]
            assert item and item.pieces
        pairs = [pair for group in planned.groups for pair in group]
        rows = dict(pairs)
        assert len(rows) == len(pairs) and all(count > 0 for count in rows.values())
        assert all(sum(count for _, count in group) <= rules.width for group in planned.groups)
        living = [slot for slot, item in enumerate(slots) if item and item.live]
        tails = [slot for slot, item in enumerate(slots) if item and item.rows and not item.pieces]
        assert [slot for slot, _ in pairs][: len(living)] == living and all(rows[slot] == 1 for slot in living)
        assert set(rows) <= {*living, *tails, planned.piece}
        if planned.piece in rows:
            item = slots[planned.piece]
            assert item
            behind = planned.before_rows(planned.piece, item)
            assert not behind.pieces and rows[planned.piece] <= behind.rows and len(rows) > 1
        assert len(planned.groups) <= -(-len(living) // rules.width) + bool(tails)
        wanted = sum(item.rows for slot in tails if (item := slots[slot]))
        assert sum(rows.get(slot, 0) for slot in tails) >= min(rules.tail, wanted)
        for item in slots:
            assert item is None or item.passed < PATIENCE + rules.slots

    def deliver(self) -> None:
        for item in self.slots:
            if item and item.live:
                self.left[item.job.id] -= 1
            if item and (item.done or (item.live and self.left[item.job.id] == 0)):
                self.cancel(item.job.id)


RULES = st.builds(
    lambda slots, width, policy, reserved, tail: Rules(
        slots, width, 4, policy, min(reserved, slots - 1) if policy == "beside" else 0, min(tail, width)
    ),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(["beside", "idle"]),
    st.integers(0, 3),
    st.integers(1, 4),
)
LEG = st.builds(Leg, st.integers(0, 5), st.integers(0, 9)).filter(any)
LEGS = st.lists(LEG, min_size=1, max_size=4).map(tuple)
STREAM = st.tuples(st.just("stream"), st.integers(1, 60).map(lambda tokens: (route(tokens, 4),)), st.integers(1, 20))
DECISION = st.tuples(st.just("decision"), LEGS, st.just(0))
ROUNDS = st.lists(st.lists(st.one_of(STREAM, DECISION), max_size=3), max_size=40)


@settings(max_examples=300)
@given(RULES, ROUNDS, st.lists(st.integers(0, 60), max_size=10))
def test_every_round_keeps_the_rules_and_every_job_ends(rules: Rules, rounds: list, cancels: list[int]) -> None:
    world = World(rules)
    worked = 0
    for number, arrivals in enumerate(rounds):
        for arrival in arrivals:
            world.submit(*arrival)
        for order in cancels:
            if number % 3 == 0 and order in world.present() and order % (number + 1) == 0:
                world.cancel(order)
        worked += not world.step().idle
    while world.present():
        assert not world.step().idle, "a round with jobs advances one of them"
        worked += 1
    assert sorted(world.ended) == list(range(len(world.left))), "each ends once"
    assert worked <= world.work + world.lost


@settings(max_examples=80)
@given(RULES, st.lists(st.lists(STREAM, max_size=3), max_size=30))
def test_without_decisions_every_policy_makes_the_same_rounds(rules: Rules, rounds: list) -> None:
    def plans(policy: Policy) -> list[Plan]:
        world = World(Rules(rules.slots, rules.width, rules.piece, policy, tail=rules.tail))
        made = []
        for arrivals in [*rounds, *([[]] * 30)]:
            for arrival in arrivals:
                world.submit(*arrival)
            made.append(world.step())
        return made

    assert plans("off") == plans("idle") == plans("beside")


def test_the_same_values_make_the_same_plan_and_stay_as_they_were() -> None:
    slots = [live(0), filling(1, "decision", 2), None]
    streams, decisions = [job(2), job(3)], [job(4, "decision")]
    copies = list(slots), list(streams), list(decisions)
    assert plan(Rules(slots=3), slots, streams, decisions) == plan(Rules(slots=3), slots, streams, decisions)
    assert (slots, streams, decisions) == copies
