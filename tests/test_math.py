"""The spelled-out attention against the same sums in float64."""

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lanes.forward.math import attend_piece, attend_rows, exp2

SIZE = 16


@given(st.lists(st.floats(-126, 0, width=32), min_size=1, max_size=50))
def test_exp2_is_a_power_of_two(powers: list[float]) -> None:
    found = np.array(exp2(mx.array(powers, mx.float32)), np.float64)
    # The smallest results round to multiples of the smallest float32.
    assert found == pytest.approx(2.0 ** np.array(powers, np.float32).astype(np.float64), rel=3e-7, abs=2e-38)


def test_exp2_at_its_ends() -> None:
    assert np.array(exp2(mx.array([0.0, -1.0, -100.0]))).tolist() == pytest.approx([1, 0.5, 2.0**-100], rel=3e-7)
    assert np.all(np.abs(np.array(exp2(mx.array([-126.0, -1e4, -1e30])))) < 2e-38)


def attention(
    queries: mx.array, keys: mx.array, values: mx.array, scale: float, window: int | None
) -> NDArray[np.float64]:
    """Query by query: softmax over the keys that it may see."""
    q, k, v = (np.array(one, np.float64) for one in (queries, keys, values))
    heads, tokens = q.shape[1:3]
    seen = k.shape[2]
    out = np.zeros_like(q)
    for head in range(heads):
        own = head * k.shape[1] // heads
        for row in range(tokens):
            last = seen - tokens + row + 1
            first = max(0, last - window) if window else 0
            scores = k[0, own, first:last] @ q[0, head, row] * scale
            weights = np.exp(scores - scores.max())
            out[0, head, row] = weights @ v[0, own, first:last] / weights.sum()
    return out


def draw(heads: int, tokens: int, seed: int, spread: float) -> mx.array:
    return mx.array(np.random.default_rng(seed).normal(0, spread, (1, heads, tokens, SIZE)).astype(np.float32))


@pytest.mark.parametrize("tokens", [1, 7, 32])
@pytest.mark.parametrize("seen", [32, 128, 129, 160, 301, 1024])
@pytest.mark.parametrize("window", [None, 40])
@pytest.mark.parametrize("spread", [1.0, 8.0])
def test_a_piece_attends_as_in_float64(tokens: int, seen: int, window: int | None, spread: float) -> None:
    q, k, v = draw(6, tokens, 1, spread), draw(2, seen, 2, spread), draw(2, seen, 3, 1.0)
    found = np.array(attend_piece(q, k, v, 0.25, window, None))
    wanted = attention(q, k, v, 0.25, window)
    assert found.shape == wanted.shape
    assert found == pytest.approx(wanted, rel=1e-4, abs=2e-5 * spread)


@pytest.mark.parametrize("seen", [[1], [31], [300], [1, 31, 300]])
def test_rows_attend_as_in_float64(seen: list[int]) -> None:
    rows = [(draw(6, 1, 1, 2.0), draw(2, keys, 2, 2.0), draw(2, keys, 3, 1.0)) for keys in seen]
    found = attend_rows(mx.concatenate([q for q, _, _ in rows]), [(k, v) for _, k, v in rows], 0.25, None)
    wanted = np.concatenate([attention(q, k, v, 0.25, None) for q, k, v in rows])
    assert np.array(found) == pytest.approx(wanted, rel=1e-4, abs=2e-5)
