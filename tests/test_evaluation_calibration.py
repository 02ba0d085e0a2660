"""Temperatures: the known one is found, scipy agrees, files come back whole, and what cannot be fitted is refused."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from answered import KEYS, answer, answers, frame, simulate, softmax
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes.decisions.answers import Answers
from lanes.errors import InvalidRequest
from lanes.evaluation import Calibration, Fit, calibrate, evaluate
from lanes.evaluation.calibration import best_temperature

MODEL = "a" * 64
SAVED = Calibration(MODEL, (Fit("choice", 4, 1.5, 60, 0.9, 0.8), Fit("noul", 2, 0.7, 25, 0.5, 0.4)), ("mind this",))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_that_spoiled_the_logits_is_found(temperature: float) -> None:
    p, gold = simulate(4000, temperature=temperature, seed=1)
    found = calibrate(answers(p, temperature=9.0), gold)
    assert found.for_("choice", 4) == pytest.approx(temperature, rel=0.08)
    assert (found.for_("choice", 3), found.for_("score", 4)) == (None, None)
    assert found.model == MODEL


def test_the_temperature_is_scipys_and_the_losses_are_those_of_an_evaluation() -> None:
    p, gold = simulate(200, temperature=1.7, seed=2)
    (fit,) = calibrate(answers(p), gold).fits

    def loss(log: float) -> float:
        tempered = softmax(np.log(p) / math.exp(log))
        return float(-np.log(tempered[np.arange(200), [KEYS.index(key) for key in gold]]).mean())

    wanted: Any = scipy.optimize.minimize_scalar(loss, bounds=(math.log(0.05), math.log(20)), method="bounded")
    assert fit.temperature == pytest.approx(math.exp(wanted.x), rel=1e-4)
    before, after = (evaluate(answers(p), gold, temperature=t, resamples=1).nll for t in (1.0, fit.temperature))
    assert before is not None and after is not None
    assert (fit.before, fit.after, fit.rows) == (pytest.approx(before.value), pytest.approx(after.value), 200)
    assert fit.after < fit.before


def test_gold_distributions_are_fitted_too() -> None:
    p, _ = simulate(50, temperature=2.0, seed=3)
    gold = [dict(zip(KEYS, row, strict=False)) for row in softmax(np.log(p) / 2)]
    assert calibrate(answers(p), gold).for_("choice", 4) == pytest.approx(2.0)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.integers(0, 2)), min_size=1, max_size=8))
def test_no_temperature_nearby_is_better(rows: list[tuple[float, float, int]]) -> None:
    logs = np.log(softmax(np.array([[a, b, 0.0] for a, b, _ in rows])))
    shares = np.eye(3)[[place for _, _, place in rows]]

    def loss(temperature: float) -> float:
        return float(-(shares * np.log(softmax(logs / temperature))).sum(axis=1).mean())

    found = best_temperature(logs, shares)
    assert 0.05 <= found <= 20
    for near in (found * 0.97, found / 0.97):
        if 0.05 <= near <= 20:
            assert loss(found) <= loss(near) + 1e-12


def test_answers_without_an_opinion_keep_temperature_one() -> None:
    assert best_temperature(np.log(np.full((5, 4), 0.25)), np.eye(4)[[0, 1, 2, 3, 0]]) == 1.0


@pytest.mark.parametrize(("gold", "bound"), [("red", 0.05), ("green", 20.0)])
def test_a_temperature_at_its_bound_is_warned_of(gold: str, bound: float) -> None:
    p = np.array([[0.7, 0.3]] * 30)
    with pytest.warns(UserWarning, match=f"choice with 2 options is at its bound {bound:g}"):
        found = calibrate(answers(p), [gold] * 30)
    assert found.for_("choice", 2) == bound
    assert "at its bound" in repr(found)


def test_questions_of_one_type_and_size_share_a_temperature() -> None:
    (one, gold), (two, other) = simulate(15, temperature=2.0, seed=4), simulate(15, temperature=2.0, seed=5)
    third, truth = simulate(40, 2, seed=6)
    truths = [key == "red" for key in truth]
    named = {"one": answers(one), "two": answers(two), "third": answers(third, ("true", "false"), type="noul")}
    found = calibrate(named, {"one": gold, "two": other, "third": truths})
    assert [(fit.type, fit.options, fit.rows) for fit in found.fits] == [("choice", 4, 30), ("noul", 2, 40)]
    together = calibrate([*named["one"], *named["two"]], gold + other)
    assert found.for_("choice", 4) == together.for_("choice", 4)


def test_several_questions_come_from_a_frame_or_from_sets_of_answers() -> None:
    (one, gold), (two, other) = simulate(25, seed=7), simulate(25, 3, seed=8)
    named = {"one": answers(one), "two": answers(two)}
    right = {"one": gold, "two": other}
    wanted = calibrate(named, right)
    sets = [Answers(dict(zip(named, pair, strict=True))) for pair in zip(*named.values(), strict=True)]
    assert calibrate(sets, right) == wanted
    swept = pd.concat(
        [frame(named["one"], "one"), frame(named["two"], "two").drop(columns=["seconds", "error"])], axis=1
    )
    assert calibrate(swept, right, model=MODEL) == wanted


def test_too_few_rows_are_refused() -> None:
    p, gold = simulate(20)
    with pytest.raises(InvalidRequest, match="needs 20 rows with gold, a choice with 4 options has 19"):
        calibrate(answers(p), [None, *gold[1:]])
    assert calibrate(answers(p), gold).fits[0].rows == 20


def test_a_calibration_belongs_to_one_model() -> None:
    p, gold = simulate(20)
    two = [*answers(p[:10]), *answers(p[10:], model="b" * 64)]
    for found, options in ((two, {}), (answers(p), {"model": "c" * 64})):
        with pytest.raises(InvalidRequest, match="belongs to one model"):
            calibrate(found, gold, **options)
    with pytest.raises(InvalidRequest, match="do not name the model"):
        calibrate(frame(answers(p)), gold)
    assert calibrate(answers(p, model=""), gold, model="c" * 64).model == "c" * 64


def test_names_that_do_not_match_are_refused() -> None:
    p, gold = simulate(20)
    refused: list[tuple[Any, Any, str | None, str]] = [
        ({"one": answers(p)}, {"two": gold}, None, "name the same questions"),
        ({"one": answers(p)}, gold, None, "gold is not"),
        (answers(p), {"one": gold}, "one", "leave question= out"),
        (answers(p), {}, None, "names no question"),
    ]
    for found, right, question, words in refused:
        with pytest.raises(InvalidRequest, match=words):
            calibrate(found, right, question=question)


def test_another_model_is_refused() -> None:
    SAVED.check(MODEL)
    for other in ("b" * 64, ""):
        with pytest.raises(InvalidRequest, match="fitted for the model aaaaaaaaaaaa, not for"):
            SAVED.check(other)


def test_a_file_brings_every_bit_back(tmp_path: Path) -> None:
    p, gold = simulate(64, temperature=1.3, seed=9)
    for found in (SAVED, calibrate(answers(p), gold)):
        path = found.save(tmp_path / "temperatures.json")
        assert Calibration.load(str(path)) == found
    assert [file.name for file in tmp_path.iterdir()] == ["temperatures.json"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: Any) -> None:
    path = SAVED.save(tmp_path / "temperatures.json")
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("lanes.paths.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Calibration("b" * 64, ()).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["temperatures.json"]


def test_a_number_that_is_none_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        Calibration(MODEL, (Fit("choice", 4, math.nan, 60, 0.9, 0.8),)).save(tmp_path / "bad.json")
    assert list(tmp_path.iterdir()) == []


def changed(**fields: Any) -> dict[str, Any]:
    fit = {"type": "choice", "options": 4, "temperature": 1.5, "rows": 60, "before": 0.9, "after": 0.8}
    file = {"kind": "lanes.calibration", "version": 1, "model": MODEL, "fits": [fit], "warnings": []}
    top = {name: value for name, value in fields.items() if name in file or name == "extra"}
    return {**file, **top, "fits": fields.get("fits", [{**fit, **fields.get("fit", {})}])}


def test_the_file_that_the_refusals_start_from_is_good(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(json.dumps(changed()))
    assert Calibration.load(tmp_path / "good.json").temperatures == {("choice", 4): 1.5}


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (changed(extra=1), "should have the fields"),
        (changed(fit={"extra": 1}), "should have the fields"),
        ({"version": 1}, "should have the fields"),
        ([], "it has list"),
        (changed(version=2), "version 2; this Lanes reads"),
        (changed(kind="other"), "is 'other'"),
        (changed(version=True), r"another type in \['version'\]"),
        (changed(model=None), r"another type in \['model'\]"),
        (changed(fits=[3]), "it has int"),
        (changed(fit={"temperature": "1"}), r"another type in \['temperature'\]"),
        (changed(fit={"rows": 1.5}), r"another type in \['rows'\]"),
        (changed(fit={"temperature": 0.0}), "has the temperature 0.0"),
        (changed(fit={"temperature": -1.0}), "has the temperature -1.0"),
        (changed(fit={"temperature": math.nan}), "NaN is no number"),
        (changed(fit={"after": math.inf}), "Infinity is no number"),
        (changed(warnings=[1]), "warnings that are no texts"),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, shape: Any, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(shape))
    with pytest.raises(InvalidRequest, match=words):
        Calibration.load(path)


@pytest.mark.parametrize("text", ["", "{", "\x00", '{"version": 1e999}'])
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InvalidRequest):
        Calibration.load(path)


def test_a_huge_number_in_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(changed()).replace("1.5", "1e999"))
    with pytest.raises(InvalidRequest, match="has the temperature inf"):
        Calibration.load(path)


def test_it_reads_as_a_table() -> None:
    assert repr(SAVED).splitlines() == [
        "Calibration: model aaaaaaaaaaaa",
        "type    options  temperature  rows  NLL before  after",
        "choice  4        1.5000       60    0.9000      0.8000",
        "noul    2        0.7000       25    0.5000      0.4000",
        "mind this",
    ]
    html = SAVED._repr_html_()
    assert "1.5000" in html and "mind this" in html and "<script" not in html
    assert answer([0.5, 0.5]).at(SAVED.temperatures["noul", 2]).temperature == 0.7
