"""Attention of rows and of one piece; on a CPU with a softmax of our own where arrays are large.

MLX's exp on a Linux CPU is scalar code, 9 ns a number, and its reductions along the last axis are slow; in a piece's
softmax they are most of the work. The same as array operations takes a quarter. See docs/performance.md.
"""

from collections.abc import Sequence
from functools import cache

import mlx.core as mx

SHORT = 128
"""Keys up to which MLX's own attention is faster for a piece."""
FOLD = 32
"""Keys side by side in a maximum: columns reduce several times faster than a row does."""
BLOCK = 256
"""Numbers that are summed at once: the square root of a usual vocabulary, so that errors stay small at both levels."""
LOG2E = 1.4426950408889634
# 2**f on [-0.5, 0.5], interpolated at Chebyshev points, from f**5 down: within 2e-7 of the value.
SERIES = (0.001339086336, 0.009676031918, 0.05550357114, 0.2402210749, 0.6931471880, 1.0000000755)
ROUNDER = 1.5 * 2.0**23
"""Adding it to a float32 rounds that to a whole number, which then stands in the lowest bits."""


@cache
def on_cpu() -> bool:
    """Whether the default device is a CPU: there attention is spelled out, elsewhere MLX's kernels are used."""
    return mx.default_device() == mx.Device(mx.cpu)


def exp2(x: mx.array) -> mx.array:
    """2**x for float32 x <= 0, relative error below 3e-7; below -126 the result is about 1e-38 instead of 0."""
    x = mx.maximum(x, -126.0)
    rounded = x + ROUNDER
    f = x - (rounded - ROUNDER)
    p = f * SERIES[0] + SERIES[1]
    for coefficient in SERIES[2:]:
        p = p * f + coefficient
    # The whole part goes straight into the exponent's bits.
    return (p.view(mx.int32) + (rounded.view(mx.int32) << 23)).view(mx.float32)


def logsumexp(row: mx.array) -> mx.array:
    """The logsumexp of a row of logits ([V], float32), within 1e-6 of its size; on a CPU in half of MLX's time."""
    if not on_cpu():
        return mx.logsumexp(row)
    top = row.max()
    return top + mx.log(_sum(exp2((row - top) * LOG2E)))


def _sum(row: mx.array) -> mx.array:
    """The sum of a long row, in blocks: in one go MLX's sum, and some BLAS's products with ones, are off by 5e-5."""
    blocks = mx.pad(row, (0, -row.size % BLOCK)).reshape(-1, BLOCK) @ mx.ones((BLOCK,))
    return blocks @ mx.ones((blocks.size,))


def attend_rows(
    q: mx.array, seen: Sequence[tuple[mx.array, mx.array]], scale: float, sinks: mx.array | None
) -> mx.array:
    """Each query row, [rows, heads, 1, head size], over its own keys and values, [1, kv heads, seen, head size]."""
    count, heads = q.shape[:2]
    if sinks is not None or not on_cpu():
        fast = mx.fast.scaled_dot_product_attention
        rows = zip(mx.split(q, count), seen, strict=True)
        return _stacked([fast(row, k, v, scale=scale, sinks=sinks) for row, (k, v) in rows])
    # The query heads of one KV head become rows of one product: the same bits, a third less time. What can be done
    # for all rows at once is: on a CPU every operation costs the host as much as a small product.
    folded = (q * scale).reshape(count, seen[0][0].shape[1], -1, q.shape[3])
    rows = zip(mx.split(folded, count), seen, strict=True)
    out = _stacked([mx.softmax(row @ k.swapaxes(2, 3), axis=-1) @ v for row, (k, v) in rows])
    return out.reshape(count, heads, 1, out.shape[3])


def _stacked(rows: list[mx.array]) -> mx.array:
    return rows[0] if len(rows) == 1 else mx.concatenate(rows)


def attend_piece(
    q: mx.array, k: mx.array, v: mx.array, scale: float, window: int | None, sinks: mx.array | None
) -> mx.array:
    """The last queries of a sequence, [1, heads, tokens, head size], causally over [1, kv heads, seen, head size]."""
    tokens, seen = q.shape[2], k.shape[2]
    if sinks is not None or not on_cpu() or q.dtype != mx.float32 or seen <= SHORT:
        mask = _visible(tokens, seen, window) if window else "causal"
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask, sinks=sinks)
    folded = (q * (scale * LOG2E)).reshape(1, k.shape[1], -1, q.shape[3])
    scores = (folded @ k.swapaxes(2, 3)).reshape(1, q.shape[1], tokens, seen)
    scores = scores + mx.where(_visible(tokens, seen, window), 0.0, -1e30)
    weights = exp2(scores - _maximum(scores)).reshape(1, k.shape[1], -1, seen)
    out = (weights @ v) / (weights @ mx.ones((seen, 1)))
    return out.reshape(1, q.shape[1], tokens, v.shape[3])


def _maximum(scores: mx.array) -> mx.array:
    """The largest along the last axis, which stays, with one number in it."""
    if scores.shape[-1] % FOLD == 0:
        scores = scores.reshape(*scores.shape[:-1], -1, FOLD).max(axis=-2)
    return scores.max(axis=-1, keepdims=True)


def _visible(tokens: int, seen: int, window: int | None) -> mx.array:
    """Which of the `seen` keys each of the last `tokens` rows may see, [tokens, seen] bool."""
    row = mx.arange(seen - tokens, seen)[:, None]
    key = mx.arange(seen)[None]
    visible = key <= row
    return visible & (key > row - window) if window else visible
