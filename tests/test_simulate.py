"""The simulator: hand-reckoned rounds, leaps that change nothing, and a log that is an engine's record."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.errors import InvalidRequest
from lanes.plan import Policy, Rules
from lanes.record import Piece, Round, RowsOf
from lanes.record.gaps import summarise
from lanes.record.rounds import Rounds
from lanes.simulation import Arrival, Cost, Occupancy, Simulation, Spread, Workload, every, poisson, simulate
from lanes.simulation.run import Run

WHOLE = Cost(step=1, piece=10, row=0)
A_ROUND_A_SECOND = Cost(0, 0, 0, overhead=1)


def stream(time: float, prompt: int, output: int, deadline: float | None = None) -> Arrival:
    return Arrival(time, "stream", prompt, output, deadline=deadline)


def decision(time: float, prompt: int, deadline: float | None = None) -> Arrival:
    return Arrival(time, "decision", prompt, deadline=deadline)


def plain(found: Simulation) -> Simulation:
    return replace(found, log=())


def test_a_stream_and_a_decision_beside_it_take_the_rounds_reckoned_by_hand() -> None:
    found = simulate([stream(0, 5, 3), decision(10.5, 6)], cost=WHOLE, slots=2, width=2, piece=4, span=0)
    text, answer = found.outcomes
    # Ends: 10 (piece), 11 (tail), 22 (row beside the decision's piece, first tail row), 23 (row, tail row).
    assert (found.rounds, found.seconds, found.tokens, found.tokens_per_s) == (4, 23.0, 3, 3 / 23)
    assert (text.wait, text.ttft, text.latency, text.gap, text.reason) == (0.0, 11.0, 23.0, 11.0, "length")
    assert (answer.wait, answer.ttft, answer.latency, answer.gap, answer.reason) == (0.5, None, 12.5, None, "answered")
    assert found.gaps == Spread(2, 6.0, 1 + 10 * 0.99, 11.0)
    assert found.occupancy == Occupancy(23 / 46, 12 / 46, 11 / 46)


def test_a_piece_in_parts_lets_the_stream_draw_in_between() -> None:
    found = simulate([stream(0, 5, 3), decision(10.5, 6)], cost=WHOLE, slots=2, width=2, piece=4)
    # Ends: 10 (piece), 11 (tail), 17 (row beside half a piece), 23 (row beside the other, tail row), 24 (tail row).
    assert (found.rounds, found.seconds) == (5, 24.0)
    assert found.gaps == Spread(2, 6.0, 6.0, 6.0)


def test_an_eviction_restarts_the_decision_and_counts_as_waiting() -> None:
    found = simulate([decision(0, 9), stream(5, 1, 2)], cost=WHOLE, slots=1, width=2, piece=4)
    answer, text = found.outcomes
    # 10: piece; the stream takes the slot: 11, 12; then the decision again: 22, 32 (pieces), 33 (tail).
    assert (answer.evictions, found.evictions, answer.wait, answer.latency) == (1, 1, 2.0, 33.0)
    assert (text.wait, text.ttft, text.latency) == (5.0, 6.0, 7.0)


def test_the_branches_of_a_decision_follow_their_trunk() -> None:
    found = simulate([Arrival(0, "decision", 6, branches=(1, 4))], cost=WHOLE, width=8, piece=4, record=True)
    assert [(one.piece and one.piece.start, [row.rows for row in one.rows]) for one in found.log] == [
        (0, []),
        (None, [3]),
        (4, []),
        (None, [2]),
    ]
    assert [[seat.state for seat in one.seats] for one in found.log] == [["filling"], *([["branch"]] * 3)]
    assert found.outcomes[0].latency == 22.0


def test_branches_without_a_whole_piece_in_common_each_begin_at_the_start() -> None:
    found = simulate([Arrival(0, "decision", 2, branches=(5, 6))], cost=WHOLE, piece=4, record=True)
    assert [one.piece and one.piece.start for one in found.log] == [0, None, 0, None]


def test_a_piece_may_cost_more_the_more_keys_are_before_it() -> None:
    found = simulate([decision(0, 13)], cost=Cost(step=1, piece=10, row=0.5, key=0.25, overhead=2), piece=4)
    assert found.seconds == (12 + 13 + 14) + (2 + 1 + 0.5)


def test_the_clock_starts_with_the_first_arrival_and_idle_time_is_no_round() -> None:
    found = simulate([stream(100, 1, 1), stream(200, 1, 1)], cost=WHOLE)
    assert (found.rounds, found.seconds, found.outcomes[1].latency) == (2, 101.0, 1.0)


def test_an_empty_workload_has_an_empty_result() -> None:
    found = simulate([])
    assert (found.rounds, found.seconds, found.tokens_per_s, found.gaps) == (0, 0.0, 0.0, Spread())
    assert found.occupancy == Occupancy(0.0, 0.0, 1.0)
    assert len(found.to_frame()) == 0


def test_the_bound_of_the_queue_refuses_and_the_rest_is_served() -> None:
    found = simulate([stream(0, 1, 5)] * 6, cost=WHOLE, slots=1, queue=2)
    assert [one.reason for one in found.outcomes] == ["length"] * 2 + ["refused"] * 4
    assert found.ended("refused") == 4
    assert found.outcomes[2].latency is None and found.outcomes[2].wait is None


def test_off_refuses_decisions_and_streams_go_on() -> None:
    found = simulate([decision(0, 5), stream(0, 5, 2)], "off", cost=WHOLE, piece=4)
    assert [one.reason for one in found.outcomes] == ["refused", "length"]


def test_a_deadline_ends_a_request_in_the_queue_and_in_a_slot() -> None:
    arrivals = [stream(0, 1, 10, deadline=4.5), decision(0, 1, deadline=3.0), stream(0, 1, 1)]
    found = simulate(arrivals, cost=WHOLE, slots=1)
    held, queued, rest = found.outcomes
    assert (held.reason, held.tokens, held.latency, held.wait) == ("deadline", 5, None, 0.0)
    assert (queued.reason, queued.tokens, queued.wait) == ("deadline", 0, 3.0)
    assert (rest.reason, rest.wait, rest.latency) == ("length", 5.0, 6.0)
    assert found.ended("deadline") == 2


def test_beside_answers_beside_the_streams_and_idle_behind_them() -> None:
    workload = every(0, 4, "stream", output=256) + every(1, 20, "decision", first=2)
    beside, idle = simulate(workload), simulate(workload, "idle")
    quick, slow = beside.spread("latency", "decision").p50, idle.spread("latency", "decision").p50
    assert quick is not None and slow is not None and slow > 10 * quick
    assert idle.tokens == beside.tokens == 1024
    worst = Cost().seconds(1, 8) + 1.5 * Cost().piece
    assert beside.gaps.worst is not None and beside.gaps.worst <= worst, "a quiet step and one piece and a half"


def test_a_measure_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="one of wait, ttft, latency, gap, got 'total'"):
        simulate((stream(0, 1, 2),)).spread("total", "stream")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("span", "worst"), [(0, 11.0), (1024, 6.0)])
def test_a_long_prompt_beside_streams_stretches_no_gap_beyond_one_piece(span: int, worst: float) -> None:
    workload = every(0, 4, "stream", output=400) + every(0, 1, "stream", prompt=2000, first=5)
    assert simulate(workload, cost=WHOLE, span=span).gaps.worst == worst


def test_without_decisions_the_policy_changes_nothing() -> None:
    workload = poisson(60, "stream", 1.0, prompt=(1, 300), output=(1, 90))
    off, idle, beside = (simulate(workload, policy, record=True) for policy in ("off", "idle", "beside"))
    assert off.log == idle.log == beside.log and off.outcomes == beside.outcomes


# Leaps over equal rounds.

ARRIVALS = st.lists(
    st.one_of(
        st.builds(stream, st.floats(0, 60), st.integers(1, 40), st.integers(1, 60), st.none() | st.floats(0.1, 60)),
        st.builds(decision, st.floats(0, 60), st.integers(1, 40), st.none() | st.floats(0.1, 60)),
        st.builds(
            lambda time, trunk, branches: Arrival(time, "decision", trunk, branches=tuple(branches)),
            st.integers(0, 60),
            st.integers(1, 40),
            st.lists(st.integers(1, 9), min_size=1, max_size=3),
        ),
    ),
    max_size=25,
)
COSTS = st.builds(Cost, st.floats(0.01, 2), st.floats(0.01, 5), st.floats(0, 0.1), st.floats(0, 0.01), st.floats(0, 1))


@settings(max_examples=200)
@given(ARRIVALS, COSTS, st.sampled_from(["off", "idle", "beside"]), st.integers(1, 5), st.integers(1, 6))
def test_leaping_over_equal_rounds_changes_nothing(
    arrivals: list[Arrival], cost: Cost, policy: Policy, slots: int, width: int
) -> None:
    rules = Rules(slots, width, 4, policy, queue=6)
    one_by_one = Run(rules, cost, Workload(tuple(arrivals)), leap=False)
    steps = 0
    while one_by_one.take():
        one_by_one.round()
        steps += 1
    found = one_by_one.result()
    assert found.rounds == steps
    assert simulate(arrivals, policy, cost, slots=slots, width=width, piece=4, queue=6) == found


def test_a_million_equal_rounds_are_a_handful_of_steps() -> None:
    run = Run(Rules(), Cost(), Workload((stream(0, 1, 1_000_000), stream(5000.0, 1, 10))))
    steps = 0
    while run.take():
        run.round()
        steps += 1
    assert run.result().rounds == 1_000_000
    assert steps < 10


@settings(max_examples=100)
@given(ARRIVALS, st.sampled_from(["off", "idle", "beside"]))
def test_every_request_ends_once_and_the_sums_agree(arrivals: list[Arrival], policy: Policy) -> None:
    found = simulate(arrivals, policy, slots=3, width=2, piece=4, queue=6, record=True)
    assert [one.id for one in found.outcomes] == list(range(len(arrivals)))
    assert found.tokens == sum(one.tokens for one in found.outcomes) == sum(one.tokens for one in found.log)
    assert all(one.tokens == one.output for one in found.outcomes if one.reason == "length")
    shares = found.occupancy
    assert shares.streams + shares.decisions + shares.free == pytest.approx(1)
    for one in found.outcomes:
        assert one.wait is None or one.latency is None or 0 <= one.wait < one.latency
        assert one.ttft is None or one.latency is None or 0 < one.ttft <= one.latency


# The log.


def test_a_recorded_run_finds_the_same_and_its_log_is_a_valid_record() -> None:
    workload = poisson(30, "stream", 1, output=(1, 80)) + poisson(30, "decision", 2, prompt=(1, 200), seed=1)
    found = simulate(workload, slots=4, record=True)
    assert plain(found) == simulate(workload, slots=4)
    record = Rounds(slots=4, keep=len(found.log))
    for one in found.log:
        record.append(one)
    totals = record.totals
    assert (totals.rounds, totals.tokens) == (found.rounds, found.tokens)
    assert totals.streams.submitted == totals.streams.length == sum(one.kind == "stream" for one in workload)
    assert totals.decisions.answered == sum(one.kind == "decision" for one in workload)
    assert totals.decisions.evicted == found.evictions
    assert len(record.to_frame()) == found.rounds


def test_gaps_are_those_that_the_record_shows() -> None:
    workload = poisson(30, "stream", 1, output=(1, 80)) + poisson(30, "decision", 1, prompt=(1, 200), seed=1)
    found = simulate(workload, slots=4, record=True)
    shown = summarise(found.log)
    assert (found.gaps.count, found.gaps.p50, found.gaps.p99, found.gaps.worst) == (
        shown.gaps,
        pytest.approx(shown.gap_p50_s),
        pytest.approx(shown.gap_p99_s),
        pytest.approx(shown.gap_worst_s),
    )


def test_a_round_shows_who_held_what_and_who_came_and_went() -> None:
    found = simulate([stream(0, 5, 2), decision(0, 2)], cost=WHOLE, slots=2, width=2, piece=4, record=True)
    first, last = found.log[0], found.log[-1]
    assert [one.id for one in first.submitted] == [0, 1]
    assert [(one.slot, one.id, one.kind) for one in first.admitted] == [(0, 0, "stream"), (1, 1, "decision")]
    assert (first.piece, first.rows) == (Piece(0, 0, 0, 4), (RowsOf(1, 1, "tail", 2),))
    assert [(one.id, one.reason) for one in first.finished] == [(1, "answered")]
    assert [(one.id, one.state) for one in first.seats] == [(0, "filling"), (1, "filling")]
    assert (last.rows, last.start, last.end) == ((RowsOf(0, 0, "decode", 1, 1),), 12.0, 13.0)
    assert [(one.slot, one.id, one.reason) for one in last.finished] == [(0, 0, "length")]


def test_a_record_replayed_by_round_numbers_makes_the_same_rounds() -> None:
    workload = poisson(40, "stream", 1, prompt=(1, 150), output=(1, 60)) + poisson(40, "decision", 2, seed=1)
    record = simulate(workload, slots=4, record=True).log
    again = simulate(Workload.from_rounds(record, clock="rounds"), cost=A_ROUND_A_SECOND, slots=4, record=True).log

    def drawn(rounds: tuple[Round, ...]) -> list:
        return [(one.admitted, one.evicted, one.piece, one.rows, one.seats, one.finished) for one in rounds]

    assert drawn(again) == drawn(record)


def test_a_record_in_seconds_under_its_own_cost_is_the_same_simulation() -> None:
    workload = poisson(40, "stream", 0.5, output=(1, 60)) + poisson(40, "decision", 1, seed=1)
    found = simulate(workload, record=True)
    again = simulate(Workload.from_rounds(found.log), cost=Cost.fit(found.log))
    assert again.rounds == found.rounds
    assert again.seconds == pytest.approx(found.seconds)


# Asking and showing.


def test_a_result_reads_as_one_stable_line() -> None:
    found = simulate([stream(0, 5, 3), decision(10.5, 6)], cost=WHOLE, slots=2, width=2, piece=4)
    assert repr(found) == (
        "Simulation(policy='beside', 5 rounds in 24.000 s; 3 tokens (0.1/s), "
        "gap 6.000/6.000/6.000 s (p50/p99/worst of 2); stream ttft 11.000/11.000/11.000 s (p50/p99/worst of 1); "
        "decision latency 13.500/13.500/13.500 s (p50/p99/worst of 1), 0 evictions; 0 refused, 0 past their deadline)"
    )
    assert "gap none" in repr(simulate([decision(0, 1)]))


def test_a_frame_has_one_row_a_request() -> None:
    frame = simulate([stream(0, 5, 3), decision(10.5, 6), stream(1, 1, 1)], cost=WHOLE, slots=2, piece=4).to_frame()
    assert list(frame.index) == [0, 1, 2]
    assert list(frame["kind"]) == ["stream", "stream", "decision"]
    assert frame["ttft"].isna().tolist() == [False, False, True]
    assert {str(frame[name].dtype) for name in ("arrival", "wait", "ttft", "latency", "gap")} == {"float64"}
    assert {str(frame[name].dtype) for name in ("prompt", "output", "tokens", "evictions")} == {"int64"}


def test_the_same_arguments_give_the_same_result() -> None:
    workload = poisson(20, "stream", 1) + poisson(20, "decision", 1, seed=3)
    assert simulate(workload) == simulate(workload)


def test_rules_that_cannot_work_are_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidRequest, match="slots must be"):
        simulate([], slots=0)
    with pytest.raises(InvalidRequest, match="record must be True or False, not 'no'"):
        simulate([], record="no")  # pyright: ignore[reportArgumentType]
