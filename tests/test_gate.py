"""The gate of an MLP with our own exponential: its numbers, its bits, and who gets it."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.models import llama

import lanes
from lanes.forward import Packed, Row, gate

CODE: Any = llama
"""A module of mlx-lm that looks the gate up by its name."""


def bits(array: mx.array) -> np.ndarray:
    return np.array(array).view(np.uint32)


def draw(*shape: int, seed: int = 0, spread: float = 3.0) -> mx.array:
    return mx.array(np.random.default_rng(seed).normal(0, spread, shape).astype(np.float32))


@given(st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=50))
def test_it_is_silu_times_x_as_in_float64(numbers: list[float]) -> None:
    x = np.array(numbers, np.float32).astype(np.float64)
    found = np.array(gate.swiglu(mx.array(numbers, mx.float32), mx.full(len(numbers), 0.5)), np.float64)
    assert found == pytest.approx(x / (1 + np.exp(-x)) * 0.5, rel=1e-6, abs=1e-8)


def test_far_from_zero_it_is_x_or_nothing_and_nan_stays() -> None:
    found = np.array(gate.swiglu(mx.array([-1e4, -200.0, 0.0, 200.0, 1e30, np.nan]), mx.ones(6)))
    assert found[:5] == pytest.approx([0, 0, 0, 200, 1e30], abs=1e-33)
    assert np.isnan(found[5])


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 31, 32])
def test_the_bits_of_a_number_are_its_own(rows: int) -> None:
    one, other = draw(32, 1, 193), draw(32, 1, 193, seed=1)
    whole = bits(gate.swiglu(one, other))
    for start in range(0, 32 - rows + 1, 5):
        part = bits(gate.swiglu(one[start : start + rows], other[start : start + rows]))
        assert np.array_equal(part, whole[start : start + rows])


def test_only_what_we_build_has_it() -> None:
    assert gate.teach(lanes.load(lanes.tiny("llama")).model)
    one, other = draw(8, 1, 512), draw(8, 1, 512, seed=1)
    ours, own = bits(gate.swiglu(one, other)), bits(CODE.swiglu(one, other))
    assert not np.array_equal(ours, own), "nothing to tell them apart by"
    with pytest.raises(ZeroDivisionError), gate.quick():
        assert np.array_equal(bits(CODE.swiglu(one, other)), ours)
        half = CODE.swiglu(one.astype(mx.bfloat16), other.astype(mx.bfloat16))
        assert half.dtype == mx.bfloat16
        raise ZeroDivisionError
    assert np.array_equal(bits(CODE.swiglu(one, other)), own)


def test_rows_and_pieces_have_it_and_the_model_alone_does_not() -> None:
    loaded = lanes.load(lanes.tiny("llama"))
    forward = Packed(loaded, 1, 8)
    calls: list[tuple[int, ...]] = []

    def counted(one: mx.array, other: mx.array) -> mx.array:
        calls.append(one.shape)
        return one * other

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "swiglu", counted)
        loaded.model(mx.array([[1, 2, 3]]))
        assert not calls
        forward.open(0, 40)
        forward.fill(0, 0, list(range(32)))
        assert {shape[:2] for shape in calls} == {(1, 32)}
        calls.clear()
        forward.rows([Row(0, 32, 5)])
        assert {shape[:2] for shape in calls} == {(8, 1)}
