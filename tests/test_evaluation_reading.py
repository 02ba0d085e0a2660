"""Answers and gold as they may come, read into one table; what is left out, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from answered import KEYS, answer, answers, frame, simulate

from lanes.decisions.answers import Answers
from lanes.errors import InvalidRequest
from lanes.evaluation.gold import labelled
from lanes.evaluation.table import read

P, GOLD = simulate(6, 3)
LEVELS = ("0", "1", "2")
TRUTH = ("true", "false")


def test_a_list_of_answers_becomes_arrays() -> None:
    table = read([answer(P[0], seconds=2.0, orders=3, flips=1, temperature=1.5), None, answer(P[1], abstain=0.2)])
    assert (table.type, table.keys, len(table), table.failed) == ("choice", KEYS[:3], 2, 1)
    assert table.logs == pytest.approx(np.log(P[:2]))
    assert table.logs.dtype == np.float64
    assert table.positions.tolist() == [0, 2]
    assert (table.orders.tolist(), table.flips.tolist(), table.temperatures.tolist()) == ([3, 1], [1, 0], [1.5, 1.0])
    assert table.seconds == pytest.approx([2.0, np.nan], nan_ok=True)
    assert table.abstain == pytest.approx([np.nan, 0.2], nan_ok=True)
    assert table.model == "a" * 64


def test_a_question_is_taken_out_of_sets_of_answers() -> None:
    sets = [Answers({"team": one, "other": answer([0.5, 0.5])}) for one in answers(P)]
    assert read(sets, "team").logs == pytest.approx(np.log(P))
    with pytest.raises(InvalidRequest, match="no answer to 'urgency' in Answers"):
        read(sets, "urgency")
    with pytest.raises(InvalidRequest, match="question="):
        read(sets)


def test_a_frame_leaves_out_rows_with_an_error_and_counts_them() -> None:
    table = frame(answers(P), errors=[None, "Busy: no slot", None, None, float("nan"), ""])  # pyright: ignore[reportArgumentType]
    known = labelled(table, GOLD)
    assert (len(known), known.table.failed, known.table.positions.tolist()) == (5, 1, [0, 2, 3, 4, 5])
    assert known.gold.tolist() == [KEYS.index(key) for at, key in enumerate(GOLD) if at != 1]


def test_a_frame_of_several_questions_needs_a_name() -> None:
    both = pd.concat(
        [frame(answers(P), "one"), frame(answers(P[::-1]), "two").drop(columns=["seconds", "error"])], axis=1
    )
    assert read(both, "two").logs == pytest.approx(np.log(P[::-1]))
    for name in (None, "three"):
        with pytest.raises(InvalidRequest, match=r"one of the frame's \['one', 'two'\]"):
            read(both, name)


def test_a_frame_may_hold_its_gold_and_name_its_model() -> None:
    table = frame(answers(P)).assign(truth=GOLD, model="f" * 64)
    assert labelled(table, "truth").gold.tolist() == [KEYS.index(key) for key in GOLD]
    assert read(table).model == "f" * 64
    with pytest.raises(InvalidRequest, match="gold must be a sequence"):
        labelled(table, "untruth")


def test_a_frame_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="lacks the columns"):
        read(pd.DataFrame({"q.logs": [[0.0]]}))


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA])
def test_rows_without_gold_are_left_out_and_counted(missing: Any) -> None:
    known = labelled(answers(P), [missing, *GOLD[1:]])
    assert (len(known), known.unlabelled, known.table.positions.tolist()) == (5, 1, [1, 2, 3, 4, 5])


@pytest.mark.parametrize("gold", [[True, False], ["true", "false"], [np.True_, np.False_], [1, 0], [1.0, 0.0]])
def test_yes_or_no_takes_truth_values(gold: list[Any]) -> None:
    assert labelled(answers(P[:2, :2], TRUTH, type="noul"), gold).gold.tolist() == [0, 1]


@pytest.mark.parametrize("gold", [[2, 0], ["2", "0"], [2.0, 0.0], [np.int64(2), np.float32(0)]])
def test_a_score_takes_levels(gold: list[Any]) -> None:
    assert labelled(answers(P[:2], LEVELS, type="score"), gold).gold.tolist() == [2, 0]


def test_gold_may_be_a_distribution_over_the_keys() -> None:
    known = labelled(answers(P[:3]), [{"red": 0.25, "blue": 0.75}, "green", {"red": 0.5, "green": 0.5}])
    assert known.shares.tolist() == [[0.25, 0, 0.75], [0, 1, 0], [0.5, 0.5, 0]]
    assert known.gold.tolist() == [2, 1, 0]
    assert known.soft


@pytest.mark.parametrize(
    ("type", "keys", "entry", "words"),
    [
        ("choice", KEYS, "mauve", "'mauve' is not among the keys 'red', 'green'"),
        ("choice", KEYS, "Red", "not among"),
        ("choice", KEYS, 0, "not among"),
        ("score", LEVELS, 3, "not among"),
        ("score", LEVELS, 1.5, "not among"),
        ("score", LEVELS, True, "not among"),
        ("score", LEVELS, float("inf"), "not among"),
        ("noul", TRUTH, 2, "not among"),
        ("choice", KEYS, {"red": 0.5}, "must sum to 1"),
        ("choice", KEYS, {"red": -0.5, "green": 1.5}, "from 0 to 1"),
        ("choice", KEYS, {"red": float("nan"), "green": 1.0}, "from 0 to 1"),
        ("choice", KEYS, {"red": True}, "from 0 to 1"),
        ("choice", KEYS, {"mauve": 1.0}, "not among"),
    ],
)
def test_gold_that_is_no_answer_is_refused(type: str, keys: tuple[str, ...], entry: Any, words: str) -> None:
    width = len(keys[:3])
    with pytest.raises(InvalidRequest, match=words):
        labelled(answers(P[:1, :width], keys, type=type), [entry])


@pytest.mark.parametrize("gold", ["red", None, 3, {"red": 1.0}])
def test_gold_that_is_no_sequence_is_refused(gold: Any) -> None:
    with pytest.raises(InvalidRequest, match="gold must be a sequence"):
        labelled(answers(P), gold)


def test_gold_of_another_length_or_none_at_all_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="6 answers and 5 gold entries"):
        labelled(answers(P), GOLD[:5])
    with pytest.raises(InvalidRequest, match="no answer has gold"):
        labelled(answers(P), [None] * 6)


def test_no_answers_are_refused() -> None:
    for none in ([], [None, None], frame(answers(P), errors=["lost"] * 6)):
        with pytest.raises(InvalidRequest, match="there are no answers"):
            read(none)


@pytest.mark.parametrize(
    "other",
    [answer(P[0], ("red", "green", "mauve")), answer(P[0], ("green", "red", "blue")), answer(P[0], type="score")],
)
def test_answers_to_different_questions_are_refused(other: Any) -> None:
    with pytest.raises(InvalidRequest, match="2 different questions"):
        read([answer(P[0]), other])


def test_broken_numbers_are_refused() -> None:
    with np.errstate(divide="ignore"):
        lost = answer([1.0, 0.0])
    with pytest.raises(InvalidRequest, match="not finite"):
        read([lost])
    table = frame(answers(P))
    table.at[1, "q.logs"] = [0.0]
    with pytest.raises(InvalidRequest, match="another number of log-probabilities"):
        read(table)
    with pytest.raises(InvalidRequest, match="temperature must be"):
        read(answers(P, temperature=0.0))


def test_several_models_are_named_where_one_is_needed() -> None:
    table = read([answer(P[0], model="a" * 64), answer(P[1], model="b" * 64), answer(P[2], model="")])
    assert table.models == ("a" * 64, "b" * 64)
    with pytest.raises(InvalidRequest, match="come from 2 models"):
        _ = table.model
