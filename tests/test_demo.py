"""The demo on a tiny model: what it measures, in which order, and what it says of what it did not measure."""

import json
import math
from dataclasses import replace

import pytest

import lanes
from lanes import demo
from lanes.demo import Demo

SMALL = replace(demo.FULL, tokens=300, solo=32, questions=(30, 40, 66), every=0.1, every_behind=0.1)
TINY = lanes.tiny("llama")
KEYS = {
    "decision_s": {"idle", "beside", "behind"},
    "streams_tokens_per_s": {"alone", "with_decisions"},
    "gap_s": {"quiet", "worst", "piece"},
    "equal_bits": {"stream", "decision"},
}


@pytest.fixture(scope="module")
def told() -> tuple[Demo, list[str]]:
    lines: list[str] = []
    return demo.run(TINY, sizes=SMALL, tell=lines.append), lines


def test_the_keys_and_their_types(told: tuple[Demo, list[str]]):
    values = json.loads(json.dumps(told[0].to_dict()))
    assert values.keys() == {"model", "device", "width", "exact", *KEYS}
    assert values["model"] == TINY.name and values["device"].split()[0] in ("cpu", "gpu")
    assert values["width"] == 8 and values["exact"] is True
    for part, names in KEYS.items():
        assert values[part].keys() == names
    for part in ("decision_s", "streams_tokens_per_s", "gap_s"):
        assert all(isinstance(value, float) and math.isfinite(value) for value in values[part].values())


def test_bits_are_equal_alone_and_in_company(told: tuple[Demo, list[str]]):
    assert told[0].to_dict()["equal_bits"] == {"stream": True, "decision": True}


def test_the_arms_take_turns(told: tuple[Demo, list[str]]):
    marks = {"on the idle engine": "idle", ", alone:": "alone", "beside them": "beside", "behind them": "behind"}
    order = [mark for line in told[1] for part, mark in marks.items() if part in line]
    assert order == ["idle", "alone", "beside"] * SMALL.pairs + ["behind"]


def test_the_table_shows_every_figure(told: tuple[Demo, list[str]]):
    text = str(told[0])
    assert "not measured" not in text and "streams yes" in text and "decisions yes" in text
    assert f"behind {told[0].decision_s.behind:.3f}" in text


def test_streams_too_short_for_anything_give_null_and_no_guess():
    found = demo.run(TINY, sizes=replace(SMALL, tokens=1, solo=1, pairs=1))
    values = json.loads(json.dumps(found.to_dict()))
    assert values["decision_s"]["idle"] > 0
    assert values["decision_s"]["beside"] is None and values["decision_s"]["behind"] is None
    assert values["streams_tokens_per_s"] == {"alone": None, "with_decisions": None}
    assert values["gap_s"] == {"quiet": None, "worst": None, "piece": None}
    assert values["equal_bits"] == {"stream": True, "decision": None}
    assert "not measured" in str(found) and "not compared" in str(found)


def test_a_long_prompt_fills_beside_the_streams():
    found = demo.run(TINY, sizes=replace(SMALL, pairs=1, long=200))
    long = found.to_dict()["long_prompt"]
    assert 190 < long["prompt_tokens"] <= 200
    assert long["decision_s"] > 0 and long["gap_s"].keys() == KEYS["gap_s"]
    assert f"as {long['prompt_tokens']} tokens fill" in str(found)


def test_fewer_slots_take_fewer_streams_and_one_is_refused():
    lines: list[str] = []
    found = demo.run(TINY, slots=2, sizes=replace(SMALL, pairs=1), tell=lines.append)
    assert any(line.startswith("1 stream of 300 tokens") for line in lines)
    assert found.decision_s.beside is not None
    with pytest.raises(lanes.InvalidRequest, match="slots=1"):
        demo.run(TINY, slots=1)


def test_a_model_that_cannot_be_packed_is_measured_too():
    found = demo.run(lanes.tiny("qwen3_5"), sizes=replace(SMALL, pairs=1, every=0.5, every_behind=0.5))
    assert found.width == 1 and found.streams_tokens_per_s.alone is not None
