"""Two runs over the same rows: what moved, by how much, and whether the model did."""

from typing import Any

import numpy as np
import pytest
import scipy.stats
from answered import KEYS, answer, answers, frame, simulate
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from lanes.errors import InvalidRequest
from lanes.evaluation import Change, drift, evaluate, threshold
from lanes.evaluation.comparison import mcnemar

OLD, GOLD = simulate(200, 3, seed=1)
NEW, _ = simulate(200, 3, seed=2)
PLACES = [KEYS.index(key) for key in GOLD]


def ends(change: Change | None) -> tuple[float, float]:
    assert change is not None
    return change.old.value, change.new.value


def test_the_same_answers_do_not_move() -> None:
    found = drift(answers(OLD), answers(OLD), GOLD)
    assert (found.changed.value, found.changed.high, found.variation.value) == (0.0, 0.0, 0.0)
    assert (found.mcnemar, found.model_changed, found.coverage, found.flip_rate) == (1.0, False, None, None)
    assert found.findings[1:] == ("No figure moved beyond its interval.", "The model is the same.")


def test_the_figures_are_scikit_learns_and_numpys() -> None:
    found = drift(answers(OLD), answers(NEW), GOLD, threshold=0.7)
    assert ends(found.accuracy) == tuple(accuracy_score(PLACES, p.argmax(axis=1)) for p in (OLD, NEW))
    assert ends(found.coverage) == tuple((p.max(axis=1) >= 0.7).mean() for p in (OLD, NEW))
    assert found.changed.value == (OLD.argmax(axis=1) != NEW.argmax(axis=1)).mean()
    assert found.variation.value == pytest.approx((np.abs(OLD - NEW).sum(axis=1) / 2).mean())
    right, right_now = (p.argmax(axis=1) == PLACES for p in (OLD, NEW))
    lost, won = int((right & ~right_now).sum()), int((right_now & ~right).sum())
    assert found.mcnemar == pytest.approx(scipy.stats.binomtest(lost, lost + won).pvalue)
    assert found.accuracy is not None and found.accuracy.moved
    assert found.accuracy.change.value == pytest.approx((won - lost) / 200)
    assert any(words.startswith("Accuracy fell from") for words in found.findings)


def test_intervals_of_differences_are_paired() -> None:
    found = drift(answers(OLD), answers(NEW), GOLD, resamples=300, seed=4)
    draws = np.random.default_rng(4).integers(0, 200, (300, 200))
    gain = (NEW.argmax(axis=1) == PLACES).astype(float) - (OLD.argmax(axis=1) == PLACES)
    assert found.accuracy is not None
    wanted = np.quantile(gain[draws].mean(axis=1), [0.025, 0.975])
    assert (found.accuracy.change.low, found.accuracy.change.high) == pytest.approx(tuple(wanted))


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemars_p_is_scipys_binomial_test(lost: int, won: int) -> None:
    wanted = scipy.stats.binomtest(lost, lost + won).pvalue if lost + won else 1.0
    assert mcnemar(lost, won) == pytest.approx(wanted)


def test_mass_and_order_flips_are_watched_where_both_runs_have_them() -> None:
    old = [answer(p, label_mass=0.8, orders=4, flips=at % 2) for at, p in enumerate(OLD)]
    new = [answer(p, label_mass=0.5, orders=4 if at < 100 else 1) for at, p in enumerate(OLD)]
    found = drift(old, new)
    assert ends(found.label_mass) == (pytest.approx(0.8), pytest.approx(0.5))
    assert ends(found.flip_rate) == (0.5, 0.0)
    assert "Label mass fell from 0.8000 to 0.5000." in found.findings
    assert "Rows with order flips fell from 0.5000 to 0.0000." in found.findings
    assert (found.accuracy, found.mcnemar) == (None, None)


def test_coverage_is_the_share_that_the_threshold_lets_pass() -> None:
    p, gold = simulate(200, 3, spread=4.0, seed=3)
    fitted = threshold(answers(p), gold, resamples=200)
    now = [answer(row, abstain=0.9 if at < 50 else None) for at, row in enumerate(p)]
    found = drift(answers(p), now, threshold=fitted)
    assert ends(found.coverage) == tuple(np.mean([fitted.passes(row) for row in rows]) for rows in (answers(p), now))
    assert ends(found.coverage)[0] == fitted.coverage
    assert (
        drift(answers(p), answers(p, temperature=3.0), threshold=fitted).coverage
        == drift(answers(p), answers(p), threshold=fitted).coverage
    )
    none = threshold(answers(np.array([[0.9, 0.1]] * 60)), ["green"] * 60, resamples=20)
    assert ends(drift(answers(p[:, :2]), answers(p[:, :2]), threshold=none).coverage) == (0.0, 0.0)


def test_the_models_are_compared() -> None:
    found = drift(answers(OLD), answers(OLD, model="b" * 64))
    assert (found.model_changed, found.old_models, found.new_models) == (True, ("a" * 64,), ("b" * 64,))
    assert found.findings[-1] == "The model changed."
    unknown = drift(frame(answers(OLD)), answers(OLD))
    assert unknown.model_changed is None
    assert "unknown" in unknown.findings[-1]


def test_rows_that_failed_in_either_run_are_left_out_and_gold_keeps_its_place() -> None:
    old: list[Any] = list(answers(OLD))
    new: list[Any] = list(answers(NEW))
    old[0] = new[7] = None
    gold: list[Any] = [None if at in (3, 7) else key for at, key in enumerate(GOLD)]
    found = drift(old, new, gold)
    assert (found.rows, found.left_out) == (198, 2)
    kept = [at for at in range(200) if at not in (0, 3, 7)]
    wanted = evaluate([new[at] for at in kept], [GOLD[at] for at in kept], resamples=1).accuracy
    assert wanted is not None
    assert ends(found.accuracy)[1] == pytest.approx(wanted.value)
    assert "198 rows, 2 left out" in repr(found)


def test_keys_in_another_order_are_the_same_question() -> None:
    turned = answers(OLD[:, ::-1], KEYS[2::-1])
    found = drift(answers(OLD), turned, GOLD)
    assert (found.changed.value, found.variation.value) == (0.0, 0.0)


def test_one_row_has_no_interval_and_nothing_moved() -> None:
    found = drift([answer([0.9, 0.1])], [answer([0.1, 0.9])], ["red"])
    assert (found.changed.value, found.changed.low) == (1.0, None)
    assert found.accuracy is not None and not found.accuracy.moved
    assert found.findings[0] == "1 of 1 rows changed their choice (1.0000)."


def test_it_reads_as_a_table_with_its_findings() -> None:
    found = drift(answers(OLD), answers(NEW), GOLD)
    lines = repr(found).splitlines()
    assert lines[0] == "Drift: choice, 200 rows"
    assert lines[1].split() == ["figure", "old", "new", "change"]
    assert tuple(lines[-len(found.findings) :]) == found.findings
    html = found._repr_html_()
    assert all(words in html for words in found.findings)
    for foreign in ("<script", "<style", "http", "class="):
        assert foreign not in html


def test_runs_that_cannot_be_compared_are_refused() -> None:
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        (answers(OLD), answers(NEW[:-1]), {}, "different numbers of rows"),
        (answers(OLD), answers(NEW, ("red", "green", "mauve")), {}, "different questions"),
        (answers(OLD), answers(NEW, type="score"), {}, "different questions"),
        ([answer(OLD[0]), None], [None, answer(NEW[0])], {}, "nothing to compare"),
        (answers(OLD), answers(NEW), {"gold": GOLD[1:]}, "gold entries"),
        (answers(OLD), answers(NEW), {"threshold": 0.0}, "threshold must be"),
        (answers(OLD), answers(NEW), {"level": 2}, "level must be"),
    ]
    for old, new, options, words in refused:
        with pytest.raises(InvalidRequest, match=words):
            drift(old, new, **options)
