"""Thresholds and prediction sets: they hold on fresh rows, and never let anything pass by default."""

import numpy as np
import pytest
from answered import KEYS, answer, answers, frame, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.errors import InvalidRequest
from lanes.evaluation import Conformal, Threshold, conformal, threshold

FRESH, FRESH_GOLD = simulate(40_000, spread=4.0, seed=99)
FRESH_WRONG = np.array([KEYS[place] for place in FRESH.argmax(axis=1)]) != np.array(FRESH_GOLD)


def quick(*args: object, **options: object) -> Threshold:
    return threshold(*args, **{"resamples": 200, **options})  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("error", [0.05, 0.1])
def test_the_error_holds_on_fresh_rows(error: float) -> None:
    found = [quick(answers(p), gold, error=error) for p, gold in (simulate(300, spread=4.0, seed=s) for s in range(25))]
    values = [one.value for one in found if one.value is not None]
    assert len(values) == 25
    errors = [FRESH_WRONG[FRESH.max(axis=1) >= value].mean() for value in values]
    coverages = [(FRESH.max(axis=1) >= value).mean() for value in values]
    assert np.mean(errors) <= error
    assert np.mean(errors) >= error / 2  # no more is given up than needed
    assert np.mean([one.coverage for one in found]) == pytest.approx(np.mean(coverages), abs=0.03)


def test_it_is_more_careful_than_a_fit_on_all_rows() -> None:
    for seed in range(5):
        p, gold = simulate(200, spread=5.0, seed=seed)
        confidence = np.sort(p.max(axis=1))[::-1]
        wrong = (p.argmax(axis=1) != [KEYS.index(key) for key in gold])[np.argsort(-p.max(axis=1))]
        within = np.flatnonzero(wrong.cumsum() <= 0.05 * np.arange(1, 201) + 1e-9)
        found = quick(answers(p), gold)
        assert found.value is not None and found.value >= confidence[within.max()] - 1e-12


def test_what_it_reports_is_what_it_says() -> None:
    p, gold = simulate(300, spread=4.0, seed=1)
    found = quick(answers(p), gold)
    rows = answers(p)
    passing = np.array([found.passes(row) for row in rows])
    assert passing.mean() == found.coverage
    assert (p.argmax(axis=1) != [KEYS.index(key) for key in gold])[passing].mean() <= 0.05
    assert found.out_of_bag is not None and found.out_of_bag.low is not None and found.out_of_bag.high is not None
    assert found.out_of_bag.low <= found.out_of_bag.value <= found.out_of_bag.high
    assert found.out_of_bag.value <= 0.05
    assert found.value == pytest.approx(p.max(axis=1)[passing].min(), abs=1e-12)
    assert repr(found).startswith(f"Threshold: probability {found.value:.4f} or more: ")


def test_luck_is_no_threshold() -> None:
    draw = np.random.default_rng(0)
    found = [
        quick(answers(np.stack([p, 1 - p], axis=1)), [KEYS[k] for k in draw.integers(0, 2, 100)])
        for p in draw.uniform(0.5, 1, (20, 100))
    ]
    assert [one.value for one in found] == [None] * 20


def test_a_missing_threshold_lets_nothing_pass() -> None:
    found = quick(answers(np.array([[0.9, 0.1]] * 60)), ["green"] * 60)
    assert (found.value, found.coverage, found.out_of_bag) == (None, 0.0, None)
    assert not found.passes(answer([1 - 1e-12, 1e-12]))
    assert repr(found) == "Threshold: no threshold keeps the error at 5 % (60 rows): nothing passes"


def test_all_right_passes_down_to_the_least_confident() -> None:
    p = np.stack([np.linspace(0.6, 0.9, 60), np.linspace(0.4, 0.1, 60)], axis=1)
    found = quick(answers(p), ["red"] * 60)
    assert (found.value, found.coverage) == (0.6, 1.0)
    assert found.passes(answer([0.6, 0.4]))
    assert not found.passes(answer([0.599, 0.401]))


@pytest.mark.parametrize(("rows", "provisional"), [(50, True), (199, True), (200, False)])
def test_few_rows_are_provisional(rows: int, provisional: bool) -> None:
    found = quick(answers(np.array([[0.9, 0.1]] * rows)), ["red"] * rows)
    assert (found.provisional, "provisional" in repr(found)) == (provisional, provisional)


def test_too_few_rows_are_refused() -> None:
    p, gold = simulate(60)
    with pytest.raises(InvalidRequest, match="needs 50 rows with an answer and gold, there are 49"):
        quick(answers(p), [None] * 11 + gold[11:])


def test_rows_that_abstain_never_pass_and_take_no_part() -> None:
    sure, outside = answer([0.9, 0.1]), answer([0.99, 0.01], abstain=0.8)
    found = quick([*([sure] * 60), *([outside] * 20)], ["red"] * 60 + ["green"] * 20)
    assert (found.value, found.coverage, found.rows) == (pytest.approx(0.9), 0.75, 80)
    assert found.passes(sure)
    assert not found.passes(outside)
    with pytest.raises(InvalidRequest, match="there are 40"):
        quick([*([sure] * 40), *([outside] * 20)], ["red"] * 60)


def test_probabilities_are_read_at_the_temperature_of_the_fit() -> None:
    p, gold = simulate(300, spread=4.0, seed=1)
    cool, hot = quick(answers(p), gold), quick(answers(p, temperature=2.0), gold)
    assert cool.value is not None and hot.value is not None and hot.value < cool.value
    for row in answers(p[:40]):
        assert cool.passes(row) == cool.passes(row.at(2.0))
    assert quick(answers(p, temperature=2.0), gold, temperature=1.0) == cool
    mixed = [*answers(p[:150]), *answers(p[150:], temperature=2.0)]
    with pytest.raises(InvalidRequest, match="2 different temperatures"):
        quick(mixed, gold)
    assert quick(mixed, gold, temperature=1.0) == cool


def test_the_same_seed_finds_the_same_and_a_frame_finds_what_a_list_does() -> None:
    p, gold = simulate(120, spread=4.0, seed=2)
    listed = quick(answers(p, model=""), gold)
    assert quick(answers(p, model=""), gold) == listed == quick(frame(answers(p)), gold)


def test_answers_to_another_question_or_of_another_model_are_refused() -> None:
    p, gold = simulate(60, spread=4.0)
    for fitted in (quick(answers(p), gold).passes, conformal(answers(p), gold).sets):
        with pytest.raises(InvalidRequest, match="not on a choice with"):
            fitted(answer([0.9, 0.1]))
        with pytest.raises(InvalidRequest, match="not on a score with"):
            fitted(answer(p[0], type="score"))
        with pytest.raises(InvalidRequest, match="of the model aaaaaaaaaaaa, not of bbbbbbbbbbbb"):
            fitted(answer(p[0], model="b" * 64))
        fitted(answer(p[0], model=""))
    for fit in (quick, conformal):
        with pytest.raises(InvalidRequest, match="come from 2 models"):
            fit([*answers(p[:30]), *answers(p[30:], model="b" * 64)], gold)


@pytest.mark.parametrize("error", [0, 1, -0.1, float("nan"), True, "0.05"])
def test_an_error_that_is_no_share_is_refused(error: object) -> None:
    p, gold = simulate(60)
    with pytest.raises(InvalidRequest, match=r"error must be a number between 0 and 1, such as 0\.05, not"):
        quick(answers(p), gold, error=error)
    with pytest.raises(InvalidRequest, match=r"coverage must be a number between 0 and 1, such as 0\.9, not"):
        conformal(answers(p), gold, coverage=error)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_sets_hold_the_right_key_as_often_as_asked(coverage: float) -> None:
    p, gold = simulate(1000, spread=2.0, seed=3, temperature=2.0)
    found = conformal(answers(p), gold, coverage=coverage)
    fresh, fresh_gold = simulate(3000, spread=2.0, seed=4, temperature=2.0)
    sets = [found.sets(row) for row in answers(fresh)]
    held = np.mean([key in keys for key, keys in zip(fresh_gold, sets, strict=True)])
    assert held == pytest.approx(coverage, abs=4 * np.sqrt(coverage * (1 - coverage) * (1 / 1000 + 1 / 3000)))
    assert 1 < np.mean([len(keys) for keys in sets]) < 4


def test_the_limit_is_the_score_of_the_finite_sample_rank() -> None:
    p, gold = simulate(59, seed=5)
    scores = np.sort(1 - p[np.arange(59), [KEYS.index(key) for key in gold]])
    assert conformal(answers(p), gold).limit == pytest.approx(scores[53])  # ceil(60 * 0.9) = 54
    assert conformal(answers(p), gold, coverage=0.91).limit == pytest.approx(scores[54])


@settings(max_examples=30)
@given(st.integers(1, 60), st.sampled_from([0.5, 0.8, 0.9, 0.95]))
def test_the_rows_that_it_was_fitted_on_are_covered(rows: int, coverage: float) -> None:
    p, gold = simulate(rows, seed=rows)
    found = conformal(answers(p), gold, coverage=coverage)
    held = np.mean([key in found.sets(row) for key, row in zip(gold, answers(p), strict=True)])
    assert held >= coverage


@pytest.mark.parametrize(("rows", "enough"), [(8, False), (9, True)])
def test_too_few_rows_give_all_keys_and_say_so(rows: int, enough: bool) -> None:
    p, gold = simulate(rows)
    found = conformal(answers(p), gold)
    assert (found.limit is not None) == enough
    if not enough:
        assert found.sets(answer([0.97, 0.01, 0.01, 0.01])) == KEYS[:4]
        assert repr(found) == "Conformal: 8 rows are too few for 90 % of rows: every set is all keys; label 9 or more"


def test_a_set_keeps_the_answers_order_and_may_be_empty() -> None:
    found = conformal(answers(np.array([[0.8, 0.1, 0.1]] * 20)), ["red"] * 20)
    assert isinstance(found, Conformal)
    assert found.sets(answer([0.8, 0.1, 0.1])) == ("red",)
    assert found.sets(answer([0.1, 0.1, 0.8], ("green", "blue", "red"))) == ("red",)
    assert found.sets(answer([0.4, 0.3, 0.3])) == ()
    assert (
        repr(found) == "Conformal: sets hold the right key in 90 % of rows: keys with a probability of 0.8000 or more"
    )


def test_they_show_their_words_without_scripts() -> None:
    p, gold = simulate(60, spread=4.0)
    for found in (quick(answers(p), gold), conformal(answers(p), gold)):
        html = found._repr_html_()
        assert found.words in html
        assert "<script" not in html
