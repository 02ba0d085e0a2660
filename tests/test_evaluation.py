"""Figures of an evaluation against scikit-learn, scipy and closed forms; bounds, ties, one row, seeds."""

import json
import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import scipy.stats
from answered import KEYS, answer, answers, frame, simulate, softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, log_loss, mean_absolute_error

from lanes.errors import InvalidRequest
from lanes.evaluation import Evaluation, Figure, evaluate
from lanes.evaluation.measures import wilson
from lanes.evaluation.ranking import coverage
from lanes.evaluation.scores import ece_if_calibrated

P, GOLD = simulate(300, 4, seed=5)
PLACES = [KEYS.index(key) for key in GOLD]
LEVELS = ("0", "1", "2", "3", "4")


def value(figure: Figure | None) -> float:
    assert figure is not None
    return figure.value


def quick(*args: Any, **options: Any) -> Evaluation:
    return evaluate(*args, **{"resamples": 20, **options})


def test_shares_and_losses_are_scikit_learns() -> None:
    found = quick(answers(P), GOLD)
    names = list(KEYS[:4])
    order = np.argsort(names)  # scikit-learn wants the classes in alphabetical order
    assert value(found.accuracy) == accuracy_score(PLACES, P.argmax(axis=1))
    assert value(found.nll) == pytest.approx(log_loss(GOLD, P[:, order], labels=sorted(names)))
    assert value(found.brier) == pytest.approx(brier_score_loss(GOLD, P[:, order], labels=sorted(names)))
    assert found.confusion_counts.tolist() == confusion_matrix(PLACES, P.argmax(axis=1)).tolist()
    assert (found.rows, found.unlabelled, found.failed, found.keys) == (300, 0, 0, KEYS[:4])


def test_the_reliability_table_is_scikit_learns_and_ece_its_mean_distance() -> None:
    found = quick(answers(P), GOLD, bins=8)
    right = P.argmax(axis=1) == PLACES
    shares, means = calibration_curve(right, P.max(axis=1), n_bins=8)
    filled = [line for line in found.bins if line.rows]
    assert [line.accuracy for line in filled] == pytest.approx(shares.tolist())
    assert [line.confidence for line in filled] == pytest.approx(means.tolist())
    assert sum(line.rows for line in found.bins) == 300
    weights = np.array([line.rows for line in filled]) / 300
    assert value(found.ece) == pytest.approx(float(weights @ np.abs(shares - means)))
    for line in filled:
        wanted = scipy.stats.binomtest(round((line.accuracy or 0) * line.rows), line.rows).proportion_ci(0.95, "wilson")
        assert (line.low, line.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


@given(st.integers(1, 400), st.data(), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_wilson_interval_is_scipys(rows: int, data: st.DataObject, level: float) -> None:
    right = data.draw(st.integers(0, rows))
    wanted = scipy.stats.binomtest(right, rows).proportion_ci(level, "wilson")
    assert wilson(right, rows, level) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_a_bins_edge_belongs_to_the_bin_above_and_certainty_to_the_last() -> None:
    found = quick(answers(np.array([[0.5, 0.5], [1 - 1e-300, 1e-300]])), ["red", "red"], bins=2)
    assert [line.rows for line in found.bins] == [0, 2]
    assert found.bins[0].accuracy is None


@pytest.mark.parametrize(("rows", "confidence"), [(1, 0.7), (10, 0.5), (25, 0.9)])
def test_the_noise_floor_of_one_bin_is_the_binomials_mean_deviation(rows: int, confidence: float) -> None:
    floor = ece_if_calibrated(np.full(rows, confidence), 1, 20_000, 0)
    k = np.arange(rows + 1)
    wanted = np.abs(k / rows - confidence) @ scipy.stats.binom.pmf(k, rows, confidence)
    assert floor.mean() == pytest.approx(wanted, abs=5 * floor.std() / math.sqrt(20_000))


def test_an_honest_model_stays_at_its_noise_floor_and_a_boastful_one_does_not() -> None:
    honest = evaluate(answers(P), GOLD)
    assert honest.ece_floor is not None and honest.ece_floor.high is not None
    assert value(honest.ece) < honest.ece_floor.high
    boastful = evaluate(answers(P), GOLD, temperature=0.4)
    assert boastful.ece_floor is not None and boastful.ece_floor.high is not None
    assert value(boastful.ece) > boastful.ece_floor.high
    assert boastful.accuracy == honest.accuracy


def naive_aurc(confidence: list[float], wrong: list[bool]) -> float:
    """The mean over all orders of equals of the mean, over k, of the error of the k first rows."""
    n, areas = len(wrong), []
    for order in permutations(range(n)):
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order)):
            areas.append(np.mean([np.mean([wrong[i] for i in order[:k]]) for k in range(1, n + 1)]))
    return float(np.mean(areas))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([0.6, 0.7, 0.9]), st.booleans()), min_size=1, max_size=6))
def test_aurc_is_the_mean_risk_over_coverage_and_over_the_orders_of_equals(rows: list[tuple[float, bool]]) -> None:
    found = quick(answers(np.array([[p, 1 - p] for p, _ in rows])), ["green" if wrong else "red" for _, wrong in rows])
    assert value(found.aurc) == pytest.approx(naive_aurc([p for p, _ in rows], [wrong for _, wrong in rows]))


def test_aurc_without_ties_is_the_mean_of_the_running_error() -> None:
    order = np.argsort(-P.max(axis=1))
    wrong = (P.argmax(axis=1) != PLACES)[order]
    running = wrong.cumsum() / np.arange(1, 301)
    found = quick(answers(P), GOLD)
    assert value(found.aurc) == pytest.approx(running.mean())
    assert found.curve.risk == pytest.approx(running)
    assert found.curve.coverage == pytest.approx(np.arange(1, 301) / 300)
    assert value(found.coverage_at_5) == (np.flatnonzero(running <= 0.05).max(initial=-1) + 1) / 300


def test_coverage_counts_equals_as_a_whole_and_one_in_twenty_as_five_percent() -> None:
    p = np.array([[0.9, 0.1]] * 20 + [[0.6, 0.4]] * 2)
    at_most = quick(answers(p), ["green"] + ["red"] * 21)
    assert value(at_most.coverage_at_5) == 1.0  # 1 in 22
    beyond = quick(answers(p), ["green"] + ["red"] * 19 + ["green", "red"])
    assert value(beyond.coverage_at_5) == 20 / 22  # 1 in 20; the two equals below would make it 2 in 22
    assert value(quick(answers(p[:3]), ["green", "red", "red"]).coverage_at_5) == 0.0


def test_an_allowance_is_met_however_it_is_rounded() -> None:
    assert 0.29 * 100 < 29
    assert coverage(np.array([[100.0]]), np.array([[29.0]]), 0.29).tolist() == [1.0]
    assert coverage(np.array([[100.0]]), np.array([[30.0]]), 0.29).tolist() == [0.0]


def test_wrong_answers_above_a_probability_are_a_share_of_all_rows() -> None:
    p = np.array([[0.95, 0.05], [0.85, 0.15], [0.95, 0.05], [0.6, 0.4]])
    found = quick(answers(p), ["green", "green", "red", "green"])
    assert (value(found.wrong_above_80), value(found.wrong_above_90)) == (0.5, 0.25)


def test_scores_have_the_ranked_probability_score_and_the_error_of_the_expected_level() -> None:
    p, _ = simulate(60, 5, seed=1)
    gold = np.random.default_rng(2).integers(0, 5, 60)
    found = quick(answers(p, LEVELS, type="score"), gold)
    step = (np.arange(5) >= gold[:, None]).astype(float)
    assert value(found.rps) == pytest.approx(float(((p.cumsum(axis=1) - step) ** 2).sum(axis=1).mean() / 4))
    assert value(found.mae) == pytest.approx(mean_absolute_error(gold, p @ np.arange(5)))
    assert quick(answers(P), GOLD).rps is None
    assert quick(answers(P), GOLD).mae is None


def test_a_score_of_two_levels_has_the_rps_of_the_yes_or_no_brier_score() -> None:
    p, _ = simulate(40, 2, seed=3)
    gold = np.random.default_rng(4).integers(0, 2, 40)
    found = quick(answers(p, LEVELS, type="score"), gold)
    assert value(found.rps) == pytest.approx(brier_score_loss(gold, p[:, 1]))
    assert value(found.brier) == pytest.approx(2 * value(found.rps))


def test_gold_distributions_have_scipys_kl_and_plain_gold_none() -> None:
    soft = softmax(np.random.default_rng(7).normal(size=(30, 4)))
    gold = [dict(zip(KEYS, row, strict=False)) for row in soft]
    found = quick(answers(P[:30]), gold)
    assert value(found.kl) == pytest.approx(np.mean([scipy.stats.entropy(g, p) for g, p in zip(soft, P, strict=False)]))
    assert value(found.nll) - value(found.kl) == pytest.approx(np.mean([scipy.stats.entropy(g) for g in soft]))
    assert value(found.accuracy) == np.mean(soft.argmax(axis=1) == P[:30].argmax(axis=1))
    hard = quick(answers(P), GOLD)
    assert hard.kl is None
    as_distributions = quick(answers(P), [{key: 1.0} for key in GOLD])
    assert value(as_distributions.kl) == pytest.approx(value(hard.nll))


def test_flips_count_only_rows_that_were_asked_in_several_orders() -> None:
    rows = [answer(P[0]), *(answer(P[0], orders=4, flips=flips) for flips in (0, 1, 3))]
    found = quick(rows, ["red"] * 4)
    assert value(found.flip_rate) == pytest.approx(2 / 3)
    assert value(found.flips_per_order) == pytest.approx(1 / 3)
    assert quick(answers(P), GOLD).flip_rate is None


def test_abstaining_is_counted_where_it_was_offered() -> None:
    rows = [answer([0.6, 0.4], abstain=0.5), answer([0.6, 0.4], abstain=0.3), answer([0.6, 0.4])]
    assert [row.abstained for row in rows] == [True, False, False]
    assert value(quick(rows, ["red"] * 3).abstained) == 0.5
    assert quick(answers(P), GOLD).abstained is None


def test_seconds_are_numpys_quantiles_of_the_rows_that_have_them() -> None:
    seconds = np.random.default_rng(0).exponential(size=25)
    rows = [*(answer(P[0], seconds=float(s)) for s in seconds), answer(P[0])]
    found = quick(rows, ["red"] * 26)
    assert value(found.seconds_p50) == pytest.approx(np.quantile(seconds, 0.5))
    assert value(found.seconds_p95) == pytest.approx(np.quantile(seconds, 0.95))
    assert quick(answers(P), GOLD).seconds_p50 is None


def test_intervals_are_those_of_a_plain_bootstrap_over_rows() -> None:
    found = evaluate(answers(P), GOLD, resamples=300, seed=3)
    draws = np.random.default_rng(3).integers(0, 300, (300, 300))
    confidence, right = P.max(axis=1), P.argmax(axis=1) == PLACES
    losses = -np.log(P[np.arange(300), PLACES])
    ece, aurc = [], []
    for rows in draws:
        again = quick(answers(P[rows]), [GOLD[row] for row in rows], resamples=1)
        ece.append(value(again.ece))
        aurc.append(value(again.aurc))
    wanted = {"accuracy": right[draws].mean(axis=1), "nll": losses[draws].mean(axis=1), "ece": ece, "aurc": aurc}
    wanted["wrong_above_80"] = (~right & (confidence > 0.8))[draws].mean(axis=1)
    for name, samples in wanted.items():
        figure = found.figures[name]
        assert figure is not None
        assert (figure.low, figure.high) == pytest.approx(tuple(np.quantile(samples, [0.025, 0.975])))


def test_quantiles_of_seconds_are_resampled_with_the_rows() -> None:
    seconds = np.random.default_rng(1).random(40)
    found = evaluate([answer(P[0], seconds=float(s)) for s in seconds], ["red"] * 40, resamples=200, seed=9)
    draws = np.random.default_rng(9).integers(0, 40, (200, 40))
    assert found.seconds_p95 is not None
    wanted = np.quantile(np.quantile(seconds[draws], 0.95, axis=1), [0.025, 0.975])
    assert (found.seconds_p95.low, found.seconds_p95.high) == pytest.approx(tuple(wanted))


def test_a_seed_gives_the_same_intervals_and_another_gives_others() -> None:
    first, again, other = (evaluate(answers(P), GOLD, resamples=50, seed=seed) for seed in (1, 1, 2))
    assert first.to_dict() == again.to_dict()
    assert first.accuracy != other.accuracy
    assert first.ece_floor != other.ece_floor


def test_a_higher_level_is_a_wider_interval() -> None:
    narrow, wide = (evaluate(answers(P), GOLD, level=level).accuracy for level in (0.5, 0.99))
    assert narrow is not None and narrow.low is not None and narrow.high is not None
    assert wide is not None and wide.low is not None and wide.high is not None
    assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def test_one_row_has_values_and_no_intervals() -> None:
    found = quick([answer([0.7, 0.2, 0.1], seconds=0.5)], ["green"])
    assert found.accuracy == Figure(0.0)
    assert value(found.nll) == pytest.approx(-math.log(0.2))
    assert (value(found.aurc), value(found.coverage_at_5), value(found.seconds_p95)) == (1.0, 0.0, pytest.approx(0.5))
    assert "accuracy               0.0000  -" in repr(found)


@pytest.mark.parametrize("right", [True, False])
def test_all_right_and_all_wrong_are_the_ends_of_every_scale(right: bool) -> None:
    found = quick(answers(np.array([[0.95, 0.05]] * 30)), ["red" if right else "green"] * 30)
    assert value(found.accuracy) == value(found.coverage_at_5) == right
    assert value(found.aurc) == value(found.wrong_above_80) == value(found.wrong_above_90) == (not right)
    assert value(found.ece) == pytest.approx(0.05 if right else 0.95)
    assert found.accuracy == Figure(float(right), float(right), float(right))


def test_a_probability_that_underflows_to_zero_has_a_finite_loss() -> None:
    one = answer([0.5, 0.5])
    surer = type(one)(**{**vars(one), "logs": np.array([0.0, -2000.0])})
    assert surer["green"] == 0.0
    found = quick([surer, one], ["green", "green"])
    assert value(found.nll) == pytest.approx((2000 + math.log(2)) / 2)
    json.dumps(found.to_dict(), allow_nan=False)


def test_equals_choose_the_first_key_and_are_right_only_there() -> None:
    found = quick(answers(np.full((4, 4), 0.25)), ["red", "green", "blue", "red"])
    assert value(found.accuracy) == 0.5
    assert found.curve.coverage.tolist() == [1.0]


def test_a_given_temperature_replaces_those_of_the_answers() -> None:
    rows = answers(P, temperature=3.0)
    own, raw = quick(rows, GOLD), quick(rows, GOLD, temperature=1)
    hot = softmax(np.log(P) / 3)
    assert value(own.nll) == pytest.approx(float(-np.log(hot[np.arange(300), PLACES]).mean()))
    assert value(raw.nll) == pytest.approx(value(quick(answers(P), GOLD).nll))
    assert (own.temperature, raw.temperature) == (None, 1.0)


PROBABILITIES = st.lists(st.floats(-30, 30), min_size=3, max_size=3).map(lambda logits: softmax(np.array(logits)))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(PROBABILITIES, st.integers(0, 2)), min_size=1, max_size=12), st.randoms(use_true_random=False)
)
def test_figures_stay_in_their_bounds_and_ignore_the_order_of_rows(rows: list[Any], random: Any) -> None:
    def of(rows: list[Any]) -> Evaluation:
        scores = answers(np.array([p for p, _ in rows]), LEVELS, type="score")
        return quick(scores, [gold for _, gold in rows])

    found = of(rows)
    bounds = {"brier": 2.0, "nll": math.inf, "mae": 2.0}
    for name, figure in found.figures.items():
        if figure is not None:
            assert -1e-12 <= figure.value <= bounds.get(name, 1.0) + 1e-12, name
            assert figure.low is None or figure.high is None or figure.low <= figure.high
    shuffled = random.sample(rows, len(rows))
    for name, figure in of(shuffled).figures.items():
        if name != "ece_floor":  # simulated row by row
            assert (figure and figure.value) == pytest.approx(found.figures[name] and value(found.figures[name])), name


def test_a_frame_and_a_list_give_the_same_evaluation() -> None:
    rows = [answer(p, orders=3, flips=1, seconds=0.25, abstain=0.1) for p in P[:40]]
    listed, framed = quick(rows, GOLD[:40], question="q"), quick(frame(rows), GOLD[:40], question="q")
    assert {**listed.to_dict(), "models": []} == framed.to_dict()


def test_a_table_has_one_row_a_figure_that_is_there() -> None:
    table = quick(answers(P), GOLD).to_frame()
    assert list(table.columns) == ["value", "low", "high"]
    assert table.index.name == "figure"
    assert "rps" not in table.index
    assert table.loc["accuracy", "value"] == accuracy_score(PLACES, P.argmax(axis=1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bins": 0}, "bins must be"),
        ({"resamples": 0}, "resamples must be"),
        ({"seed": -1}, "seed must be"),
        ({"level": 1.0}, r"level must be a number between 0 and 1, such as 0\.95"),
        ({"level": True}, "level must be"),
        ({"temperature": 0}, "temperature must be"),
        ({"temperature": 1e-308}, "overflow"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        evaluate(answers(P), GOLD, **options)
