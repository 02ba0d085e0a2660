"""A sweep's file: killed anywhere and resumed it ends as that of one run; other sweeps' files are refused."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rigs import ROOT, until

import lanes
from lanes.evaluation import Calibration, Fit
from lanes.sweeping import locks, sweep

TEAM = lanes.Choice("Which team?", {"billing": "Payments", "other": None})
ROWS = ["first", "", "second é", {"text": "third"}, "fourth", "fifth", "sixth"]

MANY = [f"Message number {number}" for number in range(30)]
KILLED = """
import sys, lanes
from lanes.sweeping import sweep
rows = [f"Message number {number}" for number in range(30)]
team = lanes.Choice("Which team?", {"billing": "Payments", "other": None})
with lanes.Engine(lanes.tiny("llama"), slots=2) as engine:
    sweep(engine, rows, {"team": team}, path=sys.argv[1], progress=False)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(lanes.tiny("llama"), slots=2) as engine:
        yield engine


@pytest.fixture(scope="module")
def whole(engine: lanes.Engine, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of one run."""
    path = tmp_path_factory.mktemp("whole") / "sweep.jsonl"
    swept(engine, path)
    return path.read_bytes()


def swept(engine: lanes.Engine, path: Path, rows: Any = ROWS, **options: Any) -> Any:
    questions = options.pop("questions", {"team": TEAM})
    return sweep(engine, rows, questions, path=path, progress=False, **options)


def asked(engine: lanes.Engine) -> int:
    return engine.rounds.totals.decisions.submitted


def test_one_line_for_each_row_in_their_order(whole: bytes) -> None:
    header, *lines = map(json.loads, whole.splitlines())
    assert (header["format"], header["version"], header["prompt_version"]) == ("lanes.sweep", 1, 1)
    assert [line["row"] for line in lines] == list(range(len(ROWS)))
    assert ["error" in line for line in lines] == [row == "" for row in ROWS]


def test_a_whole_file_is_only_read_back(engine: lanes.Engine, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    fresh = swept(engine, path)
    before = asked(engine)
    back = swept(engine, path)
    assert asked(engine) == before and path.read_bytes() == whole
    assert back["seconds"].isna().all()
    assert back.drop(columns="seconds").equals(fresh.drop(columns="seconds"))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_cut_anywhere_it_is_made_whole(engine: lanes.Engine, whole: bytes, tmp_path: Path, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(whole)))
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(whole[:cut])
    there = [json.loads(line) for line in whole[:cut].split(b"\n")[1:-1]]
    before = asked(engine)
    swept(engine, path)
    assert path.read_bytes() == whole
    assert asked(engine) - before == len(ROWS) - 1 - sum("answers" in line for line in there), "none asked twice"


def test_killed_at_random_rows_it_ends_as_one_run_does(engine: lanes.Engine, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    for stop in sorted(random.Random(7).sample(range(2, 20), 2)):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(killed)], cwd=ROOT)
        until(lambda stop=stop, process=process: process.poll() is not None or _lines(killed) >= stop)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was killed before its end"
        assert stop <= _lines(killed) <= len(MANY)
    swept(engine, killed, MANY)
    swept(engine, whole, MANY)
    assert killed.read_bytes() == whole.read_bytes() and _lines(killed) == 1 + len(MANY)
    assert sorted(tmp_path.iterdir()) == [killed, whole], "no lock is left"


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_an_interrupted_iterator_leaves_a_file_to_go_on_with(
    engine: lanes.Engine, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "sweep.jsonl"

    def rows() -> Iterator[Any]:
        yield from ROWS[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept(engine, path, rows(), in_flight=1)
    assert whole.startswith(path.read_bytes()) and _lines(path) >= 5
    swept(engine, path)
    assert path.read_bytes() == whole


def test_rows_may_be_added_at_the_end(engine: lanes.Engine, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    swept(engine, path, ROWS[:3])
    before = asked(engine)
    swept(engine, path)
    assert path.read_bytes() == whole and asked(engine) - before == len(ROWS) - 3


# Errors.


def test_errors_that_may_pass_are_asked_again(engine: lanes.Engine, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    engine.pause()
    late = swept(engine, path, deadline=0.05)
    engine.resume()
    assert [("deadline" in error, "empty" in error) for error in late["error"]] == [
        (row != "", row == "") for row in ROWS
    ]
    before = asked(engine)
    assert swept(engine, path, deadline=60)["error"].notna().tolist() == [row == "" for row in ROWS]
    assert asked(engine) - before == len(ROWS) - 1
    assert path.read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["sweep.jsonl"]


def test_a_row_that_has_a_state_by_now_is_asked(engine: lanes.Engine, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    swept(engine, path, ["first", "", None])
    swept(engine, path, ROWS[:3])
    assert whole.startswith(path.read_bytes()) and _lines(path) == 4


# Files that are not this sweep's.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"questions": {"group": TEAM}}, "questions"),
        ({"questions": {"team": lanes.Choice("Which?", ["a", "b"])}}, "questions"),
        ({"method": "labels"}, "method"),
        ({"orders": "auto"}, 'orders 1 there, "auto" here'),
        ({"abstain": True}, "abstain false there, true here"),
        ({"prior": "contextual"}, "prior null there"),
        ({"rows": ["first", "", "another"]}, "row 2"),
        ({"rows": ROWS[:4]}, "more rows"),
        ({"rows": ["first", None, ""]}, "row 2"),
    ],
)
def test_another_sweeps_file_is_refused(
    engine: lanes.Engine, whole: bytes, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(whole)
    before = asked(engine)
    with pytest.raises(lanes.InvalidRequest, match=said):
        swept(engine, path, **options)
    assert path.read_bytes() == whole and asked(engine) == before
    assert [one.name for one in tmp_path.iterdir()] == ["sweep.jsonl"]


def test_another_temperature_or_model_is_refused(engine: lanes.Engine, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(whole)
    warm = Calibration(engine.info.fingerprint, (Fit("choice", 2, 1.5, 50, 0.7, 0.6),))
    with pytest.raises(lanes.InvalidRequest, match="temperature"):
        swept(engine, path, calibration=warm)
    other = tmp_path / "warm.jsonl"
    assert swept(engine, other, calibration=warm)["team.temperature"][0] == 1.5
    assert swept(engine, other, calibration=warm)["team.temperature"][0] == 1.5
    with lanes.Engine(lanes.tiny("llama", seed=1), slots=2) as stranger:
        with pytest.raises(lanes.InvalidRequest, match="model"):
            swept(stranger, path)
        with pytest.raises(lanes.InvalidRequest, match="calibration was fitted for"):
            swept(stranger, tmp_path / "new.jsonl", calibration=warm)
    assert path.read_bytes() == whole and not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize("data", [b"my notes", b"my notes\nmore of them\n", b'{"format": "other"}\n', b"[1]\n"])
def test_a_file_that_no_sweep_wrote_is_left_alone(engine: lanes.Engine, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    with pytest.raises(lanes.InvalidRequest, match="no sweep's file"):
        swept(engine, path)
    assert path.read_bytes() == data


@pytest.mark.parametrize("damage", [b"not json", b'{"row": 2}', b"[]", b'{"row": 5, "state": null, "error": {}}'])
def test_a_damaged_line_is_named(engine: lanes.Engine, whole: bytes, tmp_path: Path, damage: bytes) -> None:
    lines = whole.split(b"\n")
    path = tmp_path / "sweep.jsonl"
    path.write_bytes(b"\n".join([*lines[:3], damage, *lines[4:]]))
    with pytest.raises(lanes.InvalidRequest, match="the line of row 2"):
        swept(engine, path)


@pytest.mark.parametrize("known", [True, False])
def test_one_sweep_at_a_time(
    engine: lanes.Engine, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    if not known:
        monkeypatch.setattr(locks, "fcntl", None)  # a system without locks
    path = tmp_path / "sweep.jsonl"
    with locks.locked(path), pytest.raises(lanes.InvalidRequest, match="another sweep works on this file"):
        swept(engine, path)
    swept(engine, path)
    assert path.read_bytes() == whole and len(list(tmp_path.iterdir())) == 1
