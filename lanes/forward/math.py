"""Attention of one row and of one piece; on a CPU with an exp of our own where arrays are large.

MLX's exp on a Linux CPU is scalar code: about 10 ns a number, three times what the same polynomial takes as array
operations; in a piece's softmax it is most of the work. See docs/performance.md for the figures.
"""

from functools import cache
from math import factorial

import mlx.core as mx

SHORT = 128
"""Keys up to which MLX's own attention is faster for a piece."""
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
# 2**f on [-0.5, 0.5] as its series up to f**6: what is left out stays below 1.2e-7 of the value.
SERIES = tuple(LN2**power / factorial(power) for power in range(6, -1, -1))


@cache
def on_cpu() -> bool:
    """Whether the default device is a CPU: there attention is spelled out, elsewhere MLX's kernels are used."""
    return mx.default_device() == mx.Device(mx.cpu)


def exp(x: mx.array) -> mx.array:
    """e**x for float32 x <= 0, relative error below 3e-7; below -87 the result is about 1e-38 instead of 0."""
    t = mx.maximum(x * LOG2E, -126.0)
    n = mx.round(t)
    f = t - n
    p = f * SERIES[0] + SERIES[1]
    for coefficient in SERIES[2:]:
        p = p * f + coefficient
    return p * ((n.astype(mx.int32) + 127) << 23).view(mx.float32)


def attend_row(q: mx.array, k: mx.array, v: mx.array, scale: float, sinks: mx.array | None) -> mx.array:
    """One query row, [1, heads, 1, head size], over all given keys, [1, kv heads, seen, head size]."""
    if sinks is not None or not on_cpu():
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, sinks=sinks)
    # The query heads of one KV head become rows of one product: the same bits, a third less time.
    folded = (q * scale).reshape(1, k.shape[1], -1, q.shape[3])
    weights = mx.softmax(folded @ k.swapaxes(2, 3), axis=-1)
    return (weights @ v).reshape(1, q.shape[1], 1, v.shape[3])


def attend_piece(
    q: mx.array, k: mx.array, v: mx.array, scale: float, window: int | None, sinks: mx.array | None
) -> mx.array:
    """The last queries of a sequence, [1, heads, tokens, head size], causally over [1, kv heads, seen, head size]."""
    tokens, seen = q.shape[2], k.shape[2]
    if sinks is not None or not on_cpu() or q.dtype != mx.float32 or seen <= SHORT:
        mask = _visible(tokens, seen, window) if window else "causal"
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask, sinks=sinks)
    folded = (q * scale).reshape(1, k.shape[1], -1, q.shape[3])
    scores = (folded @ k.swapaxes(2, 3)).reshape(1, q.shape[1], tokens, seen)
    scores = mx.where(_visible(tokens, seen, window), scores, -1e30)
    weights = exp(scores - scores.max(axis=-1, keepdims=True))
    total = weights.sum(axis=-1, keepdims=True)
    out = (weights.reshape(1, k.shape[1], -1, seen) @ v).reshape(1, q.shape[1], tokens, v.shape[3])
    return out / total


def _visible(tokens: int, seen: int, window: int | None) -> mx.array:
    """Which of the `seen` keys each of the last `tokens` rows may see, [tokens, seen] bool."""
    row = mx.arange(seen - tokens, seen)[:, None]
    key = mx.arange(seen)[None]
    visible = key <= row
    return visible & (key > row - window) if window else visible
