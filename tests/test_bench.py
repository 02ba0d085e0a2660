"""The comparison with mlx-lm on a tiny model: its keys, that the sides take turns, and that they do the same work."""

import json
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

import lanes
from lanes import bench
from lanes.measure.own import Own
from lanes.measure.rival import MlxLm

SMALL = bench.Sizes(live=(1, 3), prompt=40, blocks=4, steps=3, fills=2, fill=100)
TINY = lanes.tiny("llama")


def test_the_keys_and_their_types():
    found = bench.run(TINY, sizes=SMALL)
    values = json.loads(json.dumps(found.to_dict()))
    assert values.keys() == {"arms", "fill"}
    speeds = {"lanes_tokens_per_s", "mlx_lm_tokens_per_s", "ratio"}
    assert [arm["live"] for arm in values["arms"]] == [1, 3]
    assert all(arm.keys() == {"live", *speeds} for arm in values["arms"])
    assert values["fill"].keys() == {"piece", *speeds} and values["fill"]["piece"] == 32
    for row in (*values["arms"], values["fill"]):
        assert row["ratio"] == pytest.approx(row["lanes_tokens_per_s"] / row["mlx_lm_tokens_per_s"])
    assert "decode, 3 live" in str(found) and "pieces of 32" in str(found)


def test_the_sides_take_turns_and_never_compute_at_once(monkeypatch: pytest.MonkeyPatch):
    spans: list[tuple[float, float, str]] = []

    def spy(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def call(self, *args):
            start = time.perf_counter()
            found = original(self, *args)
            spans.append((start, time.perf_counter(), f"{kind.__name__}.{name}{args if name == 'decode' else ''}"))
            return found

        monkeypatch.setattr(kind, name, call)

    for kind in (Own, MlxLm):
        for name in ("begin", "decode", "fill"):
            spy(kind, name)
    bench.run(TINY, sizes=replace(SMALL, live=(2,)))
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    order = [name for _, _, name in spans]
    assert order[:2] == ["Own.begin", "MlxLm.begin"] and order[2].startswith("MlxLm.decode(")
    mine, theirs = "Own.decode(3,)", "MlxLm.decode(3,)"
    assert order[3:11] == [theirs, mine, mine, theirs] * 2
    assert order[11:] == ["Own.fill", "MlxLm.fill"] * 3


def test_both_sides_have_the_same_tokens_at_hand(monkeypatch: pytest.MonkeyPatch):
    given: list[list[list[int]]] = []
    begin = MlxLm.begin

    def spy(self, prompts, tokens):
        given.append([list(prompt) for prompt in prompts])
        begin(self, prompts, tokens)

    monkeypatch.setattr(MlxLm, "begin", spy)
    lengths: list[int] = []
    start = Own.begin

    def spy_own(self, prompts, tokens):
        start(self, prompts, tokens)
        lengths.extend(stream.prompt_tokens for stream in self._streams)

    monkeypatch.setattr(Own, "begin", spy_own)
    bench.run(TINY, sizes=replace(SMALL, live=(3,)))
    assert [len(prompt) for prompt in given[0]] == lengths


def test_an_engine_whose_streams_have_ended_is_no_measurement():
    with lanes.Engine(TINY, slots=2) as engine:
        own = Own(engine)
        own.begin(["One", "Two"], 4)
        with pytest.raises(lanes.EngineFailed, match=r"one has ended|did not run"):
            own.decode(10)


def test_the_thread_of_mlx_lm_ends():
    with MlxLm(TINY) as rival:
        rival.begin([[1, 2, 3]], 20)
        assert rival.decode(2) > 0
        rival.end()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("mlx-lm")]


def test_a_model_that_cannot_be_loaded_leaves_no_thread():
    with pytest.raises(lanes.ModelError):
        MlxLm(7)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("mlx-lm")]
