"""Rounded weights: what is rounded at each depth, what that does to the distributions, and what comes back."""

from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from generated import WAIT

import lanes
from lanes.measure.fidelity import distance, logits, rounded, stages, write_packed
from lanes.models import Loaded

TEXTS = [[5, 6, 7, 8, 9, 10], [11, 12, 13]]
GROUP = 32


@pytest.fixture
def loaded() -> Loaded:
    return lanes.load(lanes.tiny("llama"))


def weights(found: list[list[Any]]) -> list[list[np.ndarray]]:
    return [[np.array(part.weight) for part in stage] for stage in found]


def test_distance_is_the_kl_divergence_and_the_share_of_equal_guesses():
    one = np.log(np.array([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]))
    other = np.log(np.array([[0.25, 0.5, 0.25], [0.8, 0.1, 0.1]])) + 3.0  # logits are as good as probabilities
    found = distance([one], [other])
    moved = 0.5 * np.log(2) - 0.25 * np.log(2)
    assert (found.tokens, found.agree) == (2, 0.5)
    assert found.kl == pytest.approx(moved / 2) and found.kl_worst == pytest.approx(moved)
    assert distance([one], [one]).values() == {"places": 2, "kl": 0.0, "kl_worst": 0.0, "agree": 1.0}


def test_every_layer_is_a_stage_and_what_is_left_is_the_last_one(loaded: Loaded):
    model: Any = loaded.model
    *inside, last = stages(model)
    assert {id(part) for part in last} == {id(model.model.embed_tokens), id(model.lm_head)}
    for layer, stage in zip(model.layers, inside, strict=True):
        assert any(part is layer.mlp.up_proj for part in stage)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_so_many_stages_are_rounded_and_all_weights_come_back(loaded: Loaded, depth: int):
    found = stages(loaded.model)
    before = weights(found)
    whole = logits(loaded.model, TEXTS)
    with rounded(loaded, 4, GROUP, depth):
        now = weights(found)
        moved = distance(whole, logits(loaded.model, TEXTS))
    for at, (one, other) in enumerate(zip(before, now, strict=True)):
        assert [np.array_equal(*pair) for pair in zip(one, other, strict=True)] == [at >= depth] * len(one)
    assert (moved.kl > 0) == (depth > 0)
    assert all(all(map(np.array_equal, *pair)) for pair in zip(before, weights(found), strict=True))
    assert all(map(np.array_equal, whole, logits(loaded.model, TEXTS)))


def test_weights_come_back_also_after_an_error(loaded: Loaded):
    whole = logits(loaded.model, TEXTS)
    with pytest.raises(KeyboardInterrupt), rounded(loaded, 4, GROUP, 3):
        raise KeyboardInterrupt
    assert all(map(np.array_equal, whole, logits(loaded.model, TEXTS)))


def test_fewer_bits_stray_further(loaded: Loaded):
    whole = logits(loaded.model, TEXTS)
    found = []
    for bits in (8, 4, 2):
        with rounded(loaded, bits, GROUP, 3):
            found.append(distance(whole, logits(loaded.model, TEXTS)).kl)
    assert 0 < found[0] < found[1] < found[2]


@pytest.mark.skipif(mx.default_device() == mx.gpu, reason="packed weights stay packed on a GPU, with sums of their own")
def test_a_packed_copy_has_the_rounded_weights(loaded: Loaded, tmp_path: Path):
    folder = write_packed(lambda: lanes.load(lanes.tiny("llama")), tmp_path / "packed", 4, GROUP)
    with rounded(loaded, 4, GROUP, 3):
        here = logits(loaded.model, TEXTS)
    assert all(map(np.array_equal, here, logits(lanes.load(folder).model, TEXTS)))
    with lanes.Engine(folder, slots=2) as engine:
        assert engine.score("The sea", [" a", " b"]).result(WAIT).probabilities.sum() == pytest.approx(1.0)


def test_a_packed_model_is_no_reference(loaded: Loaded):
    nn.quantize(loaded.model, group_size=GROUP, bits=8)
    packed = Loaded(**{**vars(loaded), "quantization": "8 bits"})
    with pytest.raises(lanes.InvalidRequest, match="no reference"), rounded(packed, 4, GROUP, 1):
        raise AssertionError("nothing is rounded")
