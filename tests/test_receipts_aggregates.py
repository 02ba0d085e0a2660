"""Figures and ratios from samples: what they are for any samples at all, and what refuses to be divided."""

from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.errors import InvalidRequest
from lanes.receipts.aggregates import aggregates, figure, figures, ratio
from lanes.receipts.arms import schedule
from lanes.receipts.shapes import Arm, Sample

NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9, allow_nan=False))
ABOVE = st.floats(1e-6, 1e6)
MAYBE = st.one_of(st.none(), ABOVE)
"""Seconds of an attempt; None: it failed."""


def arm(name: str, repeats: int, warmups: int = 0, group: int = 0) -> Arm:
    return Arm(name=name, group=group, repeats=repeats, warmups=warmups)


def run(arms: list[Arm], seconds: list[float | None]) -> list[Sample]:
    """Samples in the order of the plan, with these seconds."""
    return [
        Sample(
            position=at,
            **turn._asdict(),
            ok=taken is not None,
            error=None if taken is not None else "ValueError",
            values={} if taken is None else {"seconds": taken},
        )
        for at, (turn, taken) in enumerate(zip(schedule(arms), seconds, strict=True))
    ]


@given(st.lists(NUMBERS, min_size=1, max_size=300))
def test_figures_are_what_their_names_say(values: list[Any]):
    found = figures(values, failed=2)
    assert (found.n, found.failed, found.min, found.max) == (len(values), 2, min(values), max(values))
    assert found.median == pytest.approx(float(np.median(np.asarray(values, dtype=np.float64))))
    for percent, own in ((50, found.p50), (95, found.p95), (99, found.p99)):
        least = min(value for value in values if 100 * sum(other <= value for other in values) >= percent * len(values))
        assert own == least, "the least value that so many percent of them do not exceed"
    assert found.min <= found.p50 <= found.p95 <= found.p99 <= found.max


@given(st.lists(NUMBERS, min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_no_order_of_the_values_changes_a_figure(values: list[Any], chance: Any):
    shuffled = list(values)
    chance.shuffle(shuffled)
    assert figures(values) == figures(shuffled)


@given(st.integers(0, 3), st.integers(1, 8), st.data())
def test_warm_ups_and_failures_have_no_part_in_a_figure(warmups: int, repeats: int, data: st.DataObject):
    arms = [arm("a", repeats, warmups), arm("b", repeats, warmups)]
    turns = list(schedule(arms))
    seconds = data.draw(st.lists(MAYBE, min_size=len(turns), max_size=len(turns)))
    samples = run(arms, seconds)
    for name, values in aggregates(arms, samples).items():
        own = [taken for turn, taken in zip(turns, seconds, strict=True) if turn.arm == name and not turn.warmup]
        good = [taken for taken in own if taken is not None]
        assert values == ({"seconds": figures(good, failed=len(own) - len(good))} if good else {})
    others = [
        sample if not sample.warmup else sample.model_copy(update={"values": {"seconds": 1e6}}) for sample in samples
    ]
    assert aggregates(arms, others) == aggregates(arms, samples)


@given(st.integers(0, 2), st.integers(1, 8), st.data())
def test_a_ratio_of_pairs_is_over_the_repeats_in_which_nothing_failed(warmups: int, repeats: int, data: st.DataObject):
    arms = [arm("a", repeats, warmups), arm("b", repeats, warmups)]
    seconds = data.draw(st.lists(MAYBE, min_size=2 * (repeats + warmups), max_size=2 * (repeats + warmups)))
    samples = run(arms, seconds)
    by_turn = {(sample.arm, sample.repeat): sample.seconds for sample in samples if not sample.warmup}
    pairs = [
        (by_turn["a", repeat], by_turn["b", repeat])
        for repeat in range(warmups, warmups + repeats)
        if by_turn["a", repeat] and by_turn["b", repeat]  # 0: it failed
    ]
    if not pairs:
        with pytest.raises(InvalidRequest):
            ratio("r", ("a", "seconds"), ("b", "seconds"), "pairs", arms, samples)
        return
    found = ratio("r", ("a", "seconds"), ("b", "seconds"), "pairs", arms, samples)
    exact = [Fraction(a) / Fraction(b) for a, b in pairs]
    assert found.n == len(pairs)
    assert found.value == pytest.approx(float(median(exact)))
    assert (found.min, found.max) == (pytest.approx(float(min(exact))), pytest.approx(float(max(exact))))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=3))
def test_every_arm_runs_as_often_as_planned_and_leads_in_turn(groups: list[tuple[int, int, int]]):
    arms = [
        arm(f"{group}-{at}", repeats, warmups, group)
        for group, (members, repeats, warmups) in enumerate(groups)
        for at in range(members)
    ]
    turns = list(schedule(arms))
    assert len(turns) == sum(own.repeats + own.warmups for own in arms)
    for group, (members, repeats, warmups) in enumerate(groups):
        own = [turn for turn in turns if turn.arm.startswith(f"{group}-")]
        rounds = [own[first : first + members] for first in range(0, len(own), members)]
        assert len(rounds) == repeats + warmups
        for repeat, turn in enumerate(rounds):
            assert {one.repeat for one in turn} == {repeat}
            assert all(one.warmup == (repeat < warmups) for one in turn)
            assert [one.arm for one in turn] == [f"{group}-{(repeat + at) % members}" for at in range(members)]


def test_arms_that_took_no_turns_have_no_pairs():
    arms = [arm("a", 2), arm("b", 2, group=1)]
    samples = run(arms, [1.0, 2.0, 3.0, 5.0])
    with pytest.raises(InvalidRequest, match="took no turns: use kind='medians'"):
        ratio("r", ("a", "seconds"), ("b", "seconds"), "pairs", arms, samples)
    found = ratio("r", ("a", "seconds"), ("b", "seconds"), "medians", arms, samples)
    assert (found.value, found.n, found.min, found.max) == (1.5 / 4.0, 2, None, None)


@pytest.mark.parametrize("under", [0, 0.0, 1e-300])
def test_nothing_is_divided_by_nothing(under: float):
    arms = [arm("a", 1)]
    sample = run(arms, [1.0])[0].model_copy(update={"values": {"seconds": 1.0, "gaps": under}})
    with pytest.raises(InvalidRequest, match="is 0, or too near it, to divide by"):
        ratio("r", ("a", "seconds"), ("a", "gaps"), "pairs", arms, [sample])


@pytest.mark.parametrize(
    ("path", "why"),
    [
        (("speed",), "there is no ratio 'speed': there are 'twice'"),
        (("a",), "there is no ratio 'a'"),
        (("c", "seconds", "median"), "there is no arm 'c': there are 'a', 'b'"),
        (("a", "gap", "median"), "no sample of the arm 'a' has 'gap': they have 'seconds'"),
        (("a", "seconds", "p97"), "there is no figure 'p97'"),
        (("a", "seconds"), "a figure is the name of a ratio, or"),
        ((), "a figure is the name of a ratio, or"),
    ],
)
def test_an_unknown_figure_is_refused_with_those_that_there_are(path: tuple[str, ...], why: str):
    arms = [arm("a", 1), arm("b", 1)]
    samples = run(arms, [2.0, 1.0])
    twice = ratio("twice", ("a", "seconds"), ("b", "seconds"), "pairs", arms, samples)
    found = aggregates(arms, samples)
    assert figure(("twice",), found, [twice]) == 2.0 and figure(("a", "seconds", "n"), found, [twice]) == 1
    with pytest.raises(InvalidRequest, match=why):
        figure(path, found, [twice])
