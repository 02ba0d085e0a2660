"""Sweeps over rows of every kind: what is asked, what comes back, how many at a time, and how they end early."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rigs import WAIT, rig, until

import lanes
from lanes.sweeping import sweep
from lanes.sweeping.frame import COLUMNS
from lanes.sweeping.rows import read_rows
from lanes.sweeping.terms import Maker, Terms
from lanes.sweeping.window import Window

TEAM = lanes.Choice("Which team?", {"billing": "Payments", "other": None})
QUESTIONS = {
    "team": TEAM,
    "urgency": lanes.Score("How urgent?", ["Can wait", "Today"]),
    "refund": lanes.Noul("Refund?"),
}
TEXTS = [f"Message number {number}" for number in range(6)]


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(lanes.tiny("llama"), slots=2) as engine:
        yield engine


def swept(engine: Any, rows: Any, questions: Any = None, **options: Any) -> pd.DataFrame:
    return sweep(engine, rows, questions or {"team": TEAM}, **{"progress": False, **options})


def states(rows: Any, state: Any = None) -> list[str | None]:
    return [row.state for row in read_rows(rows, state)]


# What a row is.


def test_texts_and_objects_are_their_own_states() -> None:
    assert states(iter(["a", {"b": 1}, ["c"]])) == ["a", '{"b": 1}', '["c"]']
    assert states(pd.Series(["a", "b"])) == ["a", "b"]


def test_a_frame_gives_its_one_column_or_whole_rows() -> None:
    times = pd.to_datetime(["2026-01-02"])
    assert states(pd.DataFrame({"text": ["a", "b"]})) == ["a", "b"]
    assert states(pd.DataFrame({"text": ["a"], "count": [3], "share": [np.nan], "at": times})) == [
        '{"text": "a", "count": 3, "share": null, "at": "2026-01-02T00:00:00"}'
    ]


def test_a_column_a_key_or_a_callable_picks_the_state() -> None:
    frame = pd.DataFrame({"id": [1, 2], "text": ["a", "b"]})
    assert states(frame, "text") == states(frame.to_dict("records"), "text") == ["a", "b"]
    assert states(frame, lambda row: f"{row['id']}: {row['text']}") == ["1: a", "2: b"]


def test_a_row_without_a_state_says_why() -> None:
    rows = list(read_rows([{"text": "a"}, {}, "b", {"text": None}, {"text": ""}], "text"))
    assert [row.state for row in rows] == ["a", None, None, None, None]
    assert "no 'text'" in rows[1].error and "NoneType" in rows[3].error and "empty" in rows[4].error
    assert "KeyError: 'text'" in next(iter(read_rows([{}], lambda row: row["text"]))).error


@pytest.mark.parametrize(
    ("rows", "state", "said"),
    [
        ("one text", None, "put it in a list"),
        ({"text": "a"}, None, "put it in a list"),
        (7, None, "not one int"),
        (pd.DataFrame({"a": [1]}), "b", "column 'b'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "different names"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(rows: Any, state: Any, said: str) -> None:
    with pytest.raises(lanes.InvalidRequest, match=said):
        read_rows(rows, state)


# What comes back.


def test_every_column_is_what_the_answer_says(engine: lanes.Engine) -> None:
    manner: dict[str, Any] = {"orders": "auto", "abstain": True, "prior": lanes.Prior.contextual(["N/A"])}
    found = swept(engine, TEXTS[:2], QUESTIONS, **manner)
    assert list(found) == [name + suffix for name in QUESTIONS for suffix in COLUMNS] + ["model", "seconds", "error"]
    for text, row in zip(TEXTS, found.to_dict("records"), strict=False):
        answers = lanes.ask(engine, text, QUESTIONS, **manner).result(WAIT)
        assert row["model"] == engine.info.fingerprint and row["seconds"] > 0 and row["error"] is None
        for name, answer in answers.items():
            assert (row[name], row[f"{name}.type"]) == (answer.choice, answer.type)
            assert row[f"{name}.logs"] == answer.logs.tolist() and row[f"{name}.keys"] == list(answer.options)
            assert row[f"{name}.probabilities"] == answer.probabilities.tolist()
            assert row[f"{name}.warnings"] == list(answer.warnings)
            for field in ("value", "label_mass", "margin", "abstain", "orders", "flips", "temperature"):
                assert row[f"{name}.{field}"] == getattr(answer, field)
            confidence = row[f"{name}.confidence"]
            assert np.isnan(confidence) if answer.confidence is None else confidence == answer.confidence


def test_a_frame_keeps_its_index_and_columns(engine: lanes.Engine) -> None:
    frame = pd.DataFrame({"text": TEXTS[:3], "id": [7, 8, 9]}, index=["x", "y", "x"])
    found = swept(engine, frame, state="text")
    assert found[["text", "id"]].equals(frame) and list(found.index) == ["x", "y", "x"]
    plain = swept(engine, frame["text"])
    assert list(plain.index) == ["x", "y", "x"] and "text" not in plain
    assert found["team.logs"].tolist() == plain["team.logs"].tolist() == swept(engine, TEXTS[:3])["team.logs"].tolist()


def test_rows_keep_their_order_where_a_later_one_is_done_first(engine: lanes.Engine) -> None:
    rows = ["a long message " * 60, *TEXTS[:3]]
    terms = Terms.read({"team": TEAM}, "codes", 1, None, False, None, None)
    engine.pause()
    with closing(Window(engine, terms, 4).lines(read_rows(rows, None))) as lines, ThreadPoolExecutor(1) as thread:
        first = thread.submit(next, lines)
        try:
            until(lambda: len(engine.snapshot().waiting) == 4)
        finally:
            engine.resume()  # the four rows have come by now: the long one is the first to begin
        assert first.result(WAIT).number > 0
    alone = [lanes.ask(engine, row, {"team": TEAM}).result(WAIT)["team"].logs.tolist() for row in rows]
    assert swept(engine, rows)["team.logs"].tolist() == alone


def test_no_rows_give_an_empty_frame(engine: lanes.Engine) -> None:
    found = swept(engine, [])
    assert len(found) == 0 and "team.logs" in found


@pytest.mark.parametrize(
    ("columns", "questions", "said"),
    [
        (["text", "error"], ["team"], "'error'"),
        (["text", "team.logs"], ["team"], "'team.logs'"),
        (["text"], ["seconds"], "'seconds'"),
        (["text"], ["a", "a.value"], "'a.value'"),
    ],
)
def test_columns_that_would_clash_are_refused(
    engine: lanes.Engine, columns: list[str], questions: list[str], said: str
) -> None:
    with pytest.raises(lanes.InvalidRequest, match=said):
        swept(engine, pd.DataFrame([["a"] * len(columns)], columns=columns), dict.fromkeys(questions, TEAM))


def test_the_statistics_read_the_frame(engine: lanes.Engine) -> None:
    from lanes.evaluation import evaluate

    found = swept(engine, [*TEXTS, ""])
    gold = ["billing"] * len(found)
    measured = evaluate(found, gold)
    assert measured.failed == 1
    assert measured.accuracy and measured.accuracy.value == np.mean(found["team"][:-1] == "billing")


# Errors.


def test_errors_are_recorded_in_their_rows(engine: lanes.Engine) -> None:
    found = swept(engine, ["a", "", {"text": object()}, "long " * 4000, "b"])
    errors = found["error"].tolist()
    assert errors[0] is errors[4] is None
    assert "empty" in errors[1] and "JSON" in errors[2] and "context of 4096" in errors[3]
    good = swept(engine, ["a", "b"])
    assert found["team.logs"].tolist() == [good["team.logs"][0], None, None, None, good["team.logs"][1]]
    assert found["seconds"].isna().tolist() == [False, True, True, True, False]


def test_a_failed_forward_costs_the_rows_that_shared_it() -> None:
    with rig(slots=2) as failing:
        failing.fail("rows", RuntimeError("broken"))
        errors = swept(failing.engine, TEXTS)["error"].tolist()
    assert 1 <= sum(error is not None and "broken" in error for error in errors) <= 2
    assert sum(error is None for error in errors) >= 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"questions": {"team": "which?"}}, "must be a lanes.Noul"),
        ({"method": "magic"}, "method"),
        ({"orders": 0}, "orders"),
        ({"prior": "domain"}, "prior"),
        ({"deadline": -1}, "deadline"),
        ({"deadline": float("inf")}, "deadline must be a finite number"),
        ({"calibration": 3}, "lanes.calibrate or lanes.Calibration.load gave, not 3"),
        ({"calibration": {}}, "lanes.calibrate"),
        ({"abstain": "no"}, "abstain must be True or False, not 'no'"),
        ({"progress": 0}, "progress must be True or False, not 0"),
        ({"questions": {1: lanes.Noul("?")}}, "the name of question 1 is not text"),
        ({"in_flight": 0}, "in_flight"),
        ({"questions": {"team": lanes.Choice("?", ["q7" * 2100, "b"])}, "method": "labels"}, "context"),
    ],
)
def test_what_fits_no_row_is_refused_before_any_is_asked(engine: lanes.Engine, options: Any, said: str) -> None:
    before = engine.rounds.next_index
    with pytest.raises(lanes.InvalidRequest, match=said):
        swept(engine, TEXTS, **options)
    assert engine.rounds.next_index == before


def test_an_engine_without_decisions_is_refused() -> None:
    with (
        lanes.Engine(lanes.tiny("llama"), slots=1, policy="off") as off,
        pytest.raises(lanes.InvalidRequest, match="off"),
    ):
        swept(off, TEXTS)
    with pytest.raises(lanes.InvalidRequest, match=r"lanes\.Engine"):
        swept({"model": lanes.tiny("llama")}, TEXTS)


def test_a_closed_engine_ends_the_sweep() -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=1) as closing_engine:

        def rows() -> Iterator[str]:
            yield from TEXTS[:3]
            closing_engine.close()
            yield from TEXTS

        with pytest.raises(lanes.EngineClosed):
            swept(closing_engine, rows(), in_flight=1)


def test_a_full_queue_is_waited_for() -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=1, queue=1) as narrow:
        assert swept(narrow, TEXTS, in_flight=4)["error"].tolist() == [None] * len(TEXTS)


# The window.


@pytest.mark.parametrize(("in_flight", "most"), [(None, 4), (3, 3)])
def test_the_window_is_full_and_bounded(in_flight: int | None, most: int) -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=2) as held:
        held.pause()
        asking = threading.Thread(target=swept, args=(held, [*TEXTS, *TEXTS]), kwargs={"in_flight": in_flight})
        asking.start()
        until(lambda: len(held.snapshot().waiting) == most)
        held.resume()
        asking.join(WAIT)
        table = held.rounds.to_frame()
        assert (table["decisions"] + table["waiting_decisions"]).max() == most
        assert held.rounds.totals.decisions.finished == 2 * len(TEXTS)


def test_closing_a_window_cancels_what_it_asked(engine: lanes.Engine) -> None:
    terms = Terms.read({"team": TEAM}, "codes", 1, None, False, None, None)
    cancelled = engine.rounds.totals.decisions.cancelled
    engine.pause()
    with closing(Window(engine, terms, 3).lines(read_rows(["", *TEXTS], None))) as lines:
        assert next(lines).failure  # the row without a state, which waits for nobody
        until(lambda: len(engine.snapshot().waiting) == 2)
    assert engine.snapshot().waiting == ()
    engine.resume()
    assert engine.wait(WAIT)
    assert engine.rounds.totals.decisions.cancelled == cancelled + 2


def test_an_interrupt_cancels_and_is_raised() -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=2) as held:
        held.pause()

        def interrupt() -> None:
            until(lambda: len(held.snapshot().waiting) == 4)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            swept(held, TEXTS)
        assert held.snapshot().waiting == ()
        held.resume()
        assert swept(held, TEXTS[:1])["error"].tolist() == [None]


def test_it_works_where_an_event_loop_runs(engine: lanes.Engine) -> None:
    async def inside() -> pd.DataFrame:
        return swept(engine, TEXTS)

    assert asyncio.run(inside())["team.logs"].tolist() == swept(engine, TEXTS)["team.logs"].tolist()


def test_the_bar_goes_to_stderr(engine: lanes.Engine, capsys: pytest.CaptureFixture[str]) -> None:
    sweep(engine, TEXTS, {"team": TEAM})
    said = capsys.readouterr()
    assert "6/6" in said.err and said.out == ""


def test_an_engine_can_be_made_again_from_its_options(engine: lanes.Engine) -> None:
    with lanes.Engine(**engine.options) as other:
        assert Maker.of(other) == Maker.of(engine) and other.options == engine.options
