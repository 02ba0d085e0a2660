"""Workloads from arrivals, frames and records, and the cost of a round."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.decisions.labels import BoundLabels
from lanes.decisions.program import compile_program
from lanes.decisions.trie import Trie
from lanes.errors import InvalidRequest
from lanes.jobs import Leg
from lanes.prompts import Prompt
from lanes.record import Piece, Round, RowsOf, Submitted
from lanes.simulation import Arrival, Cost, Workload, every, poisson, simulate


def test_arrivals_are_served_in_the_order_of_their_times_equal_ones_as_given() -> None:
    late, early = Arrival(2, "decision", 5), Arrival(1, "stream", 5, 1)
    also_early = Arrival(1, "decision", 7)
    assert Workload((late, early, also_early)).arrivals == (early, also_early, late)


def test_rows_of_many_kinds_make_the_same_workload() -> None:
    wanted = Workload((Arrival(0.5, "stream", 64, 10), Arrival(1.0, "decision", 7, branches=(3, 4), deadline=2.0)))
    rows = [(0.5, "stream", 64, 10), {"time": 1, "kind": "decision", "prompt": 7, "branches": [3, 4], "deadline": 2}]
    assert Workload.of(rows) == wanted
    assert Workload.of(wanted.arrivals) == wanted
    assert Workload.of(wanted) is wanted


def test_a_frame_makes_a_workload_and_back() -> None:
    workload = Workload.of([(0.5, "stream", 64, 10), (1.0, "decision", 7, 0, (3, 4), 2.0), (3.0, "decision", 9)])
    frame = workload.to_frame()
    assert list(frame.columns) == ["time", "kind", "prompt", "output", "branches", "deadline"]
    assert Workload.of(frame) == workload
    gaps = pd.DataFrame({"time": [0, 1], "kind": ["stream", "decision"], "prompt": [4, 5], "output": [3, None]})
    assert Workload.of(gaps) == Workload.of([(0, "stream", 4, 3), (1, "decision", 5)])
    assert simulate(gaps).ended("answered") == 1


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ((-1.0, "stream", 4, 3), "row 1 .* time must be seconds"),
        ((float("inf"), "stream", 4, 3), "time must be"),
        ((0, "stream", 0, 3), "prompt must be a whole number"),
        ((0, "stream", 2.5, 3), "prompt must be a whole number"),
        ((0, "stream", 4), "draws at least 1 token"),
        ((0, "stream", 4, 2, (1,)), "has no branches"),
        ((0, "decision", 4, 2), "output must be 0"),
        ((0, "decision", 4, -2), "output must be"),
        ((0, "decision", 4, 0, (3, 0)), "branch 1 must be"),
        ((0, "decision", 4, 0, (), 0.0), "deadline must be"),
        ((0, "picture", 4), "kind must be 'stream' or 'decision'"),
        ({"time": 0, "kind": "decision"}, "prompt"),
        ({"time": 0, "kind": "decision", "prompt": 4, "labels": 2}, "labels"),
        ((0, "stream", "four", 3), "row 1 "),
        (7, "row 1 "),
    ],
)
def test_a_row_that_is_no_arrival_is_refused_with_its_number(row: object, says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        Workload.of([(0, "stream", 4, 3), row])  # pyright: ignore[reportArgumentType]


def test_a_request_knows_its_legs() -> None:
    assert Arrival(0, "stream", 65, 1).legs(32) == (Leg(2, 1),)
    assert Arrival(0, "decision", 40, branches=(30,)).legs(32) == (Leg(2, 6),)
    assert Arrival(0, "decision", 40, branches=(30, 8, 9)).legs(32) == (Leg(1, 0), Leg(0, 16), Leg(0, 9), Leg(1, 6))


@given(st.integers(1, 40), st.lists(st.integers(1, 20), min_size=1, max_size=5), st.integers(1, 9))
def test_the_legs_of_branches_are_those_that_the_engine_makes(trunk: int, branches: list[int], piece: int) -> None:
    prompts = [Prompt("", (*range(trunk), *[1000 + i] * branch), False) for i, branch in enumerate(branches)]
    labels = BoundLabels(("a", "b"), ((1,), (2,)), Trie.build(((1,), (2,)), 3))
    program = compile_program(prompts, [labels] * len(prompts), piece, packed=True)
    assert Arrival(0, "decision", trunk, branches=tuple(branches)).legs(piece) == tuple(s.leg for s in program.segments)


def test_a_seed_makes_one_workload() -> None:
    first = poisson(50, "stream", 2, prompt=(10, 20), output=(1, 5), seed=7)
    assert first == poisson(50, "stream", 2, prompt=(10, 20), output=(1, 5), seed=7)
    assert first != poisson(50, "stream", 2, prompt=(10, 20), output=(1, 5), seed=8)
    assert 60 < len(first) < 140
    assert all(0 < one.time < 50 and 10 <= one.prompt <= 20 and 1 <= one.output <= 5 for one in first)
    assert {one.output for one in poisson(50, "decision", 2)} == {0}


def test_poisson_refuses_what_would_never_end_or_begin() -> None:
    for seconds, rate in ((0, 1), (5, 0), (float("inf"), 1), (5, -1)):
        with pytest.raises(InvalidRequest, match="more than 0"):
            poisson(seconds, "stream", rate)


def test_regular_arrivals_and_sums() -> None:
    both = every(0, 2, "stream", prompt=5, output=6) + every(0.5, 3, "decision", first=1)
    assert [(one.time, one.kind, one.output) for one in both] == [
        (0, "stream", 6),
        (0, "stream", 6),
        (1, "decision", 0),
        (1.5, "decision", 0),
        (2, "decision", 0),
    ]
    assert repr(both) == "Workload(2 streams, 3 decisions, 2.000 s)"


def a_round(index: int, **parts: object) -> Round:
    return Round(index, float(index), index + 0.5, 8, **parts)  # pyright: ignore[reportArgumentType]


def test_a_record_tells_who_arrived_and_what_each_drew() -> None:
    record = [
        a_round(1, groups=1),
        a_round(2),
        a_round(3, groups=1, submitted=(Submitted(4, "stream", 9, 2.5), Submitted("x", "decision", 7, 2.75))),
        a_round(4, rows=(RowsOf(0, 4, "tail", 9, 1), RowsOf(1, "x", "tail", 7), RowsOf(2, 1, "decode", 1, 1))),
        a_round(5, rows=(RowsOf(0, 4, "decode", 1, 1),), submitted=(Submitted(6, "stream", 3, 4.0),)),
    ]
    assert Workload.from_rounds(record).arrivals == (Arrival(2.5, "stream", 9, 2), Arrival(2.75, "decision", 7))
    assert [one.time for one in Workload.from_rounds(record, clock="rounds")] == [1.0, 1.0]


def test_a_record_with_branches_does_not_tell_their_lengths() -> None:
    with pytest.raises(InvalidRequest, match="round 0 has a branch of request 4"):
        Workload.from_rounds([a_round(0, rows=(RowsOf(0, 4, "branch", 2),))])


# Costs.


def test_a_fit_finds_the_cost_that_made_the_rounds() -> None:
    workload = poisson(60, "stream", 1, prompt=(1, 300), output=(1, 60)) + poisson(60, "decision", 1, seed=2)
    cost = Cost(step=0.05, piece=0.12, row=0.004, key=0.0001, overhead=0.02)
    found = Cost.fit(simulate(workload, cost=cost, width=3, record=True).log)
    for name in ("step", "piece", "row", "key", "overhead"):
        assert getattr(found, name) == pytest.approx(getattr(cost, name), abs=1e-6), name


def test_a_fit_puts_what_it_cannot_tell_apart_into_the_step() -> None:
    rounds = [
        Round(0, 0.0, 0.3, 8, groups=1, piece=Piece(1, 1, 0, 32), rows=(RowsOf(0, 0, "decode", 1, 1),)),
        Round(1, 0.3, 0.4, 8, groups=1, rows=(RowsOf(0, 0, "decode", 1, 1),)),
    ]
    found = Cost.fit(rounds)
    assert (found.step, found.piece, found.row, found.overhead) == (pytest.approx(0.1), pytest.approx(0.2), 0.0, 0.0)


def test_a_fit_has_no_cost_below_zero() -> None:
    rounds = [
        Round(i, 0.0, seconds, 8, 1, rows=(RowsOf(0, 0, "tail", rows),), piece=Piece(1, 1, 0, 32) if i % 2 else None)
        for i, (seconds, rows) in enumerate([(0.20, 1), (0.50, 1), (0.10, 8), (0.40, 8)])
    ]
    found = Cost.fit(rounds)
    assert (found.row, found.step, found.piece) == (0.0, pytest.approx(0.15), pytest.approx(0.3))


def test_a_piece_in_parts_costs_each_round_its_share_and_is_fitted_so() -> None:
    cost = Cost(step=0.05, piece=0.1, row=0.001, key=1e-4)
    assert cost.seconds(1, 2, 1024, parts=2) == pytest.approx(0.05 + 0.002 + (0.1 + 0.1024) / 2)
    shapes = [(start, parts, rows) for start in (0, 512, 1024, 2048) for parts in (1, 2, 3) for rows in (1, 4)]
    rounds = [
        Round(
            0, 0.0, cost.seconds(1, rows, start, parts), 8, groups=1,
            rows=(RowsOf(0, 0, "tail", rows),), piece=Piece(1, 1, start, 32, part=1, parts=parts),
        )
        for start, parts, rows in shapes
    ]  # fmt: skip
    rounds += [Round(0, 0.0, cost.seconds(1, rows), 8, groups=1, rows=(RowsOf(0, 0, "tail", rows),)) for rows in (1, 5)]
    found = Cost.fit(rounds)
    assert (found.step, found.piece, found.row, found.key) == pytest.approx((0.05, 0.1, 0.001, 1e-4))


@pytest.mark.parametrize("parts", [{"groups": 1}, {"piece": Piece(0, 0, 0, 32)}, {}])
def test_a_record_that_lacks_a_kind_of_work_is_not_fitted(parts: dict) -> None:
    with pytest.raises(InvalidRequest, match="rounds with a piece"):
        Cost.fit([a_round(0, **parts)])


@pytest.mark.parametrize(
    "bad", [{"step": -1}, {"piece": float("nan")}, {"key": float("inf")}, {"row": "1"}, {"step": 0.0}]
)
def test_costs_that_cannot_be_are_refused(bad: dict) -> None:
    with pytest.raises(InvalidRequest, match=r"must be seconds|must take time"):
        Cost(**bad)
