"""Draws from logits, keyed by seed and absolute position alone: a stream draws the same tokens in any company.

Everything here builds lazy arrays: no draw waits for the device, and none reads or moves MLX's global random state.
mlx-lm's own filters are not used: they are compiled once for each distinct value and carry that global state.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import mlx.core as mx

from lanes.checks import is_number
from lanes.errors import InvalidRequest

_MASK = (1 << 64) - 1
_COLDEST = 1e30  # the largest 1 / temperature: zero times it must stay zero in float32


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Temperature 0 takes the likeliest token and ignores the rest.

    Otherwise a token must pass every filter that is on: `top_k` (among the k likeliest; 0: off), `top_p` (the likelier
    tokens together hold less than p of the probability; 1: off), `min_p` (at least this share of the likeliest token's
    probability; 0: off). The filters look at the probabilities before the temperature, as in mlx-lm; each keeps the
    likeliest tokens, so their order does not matter. `seed` is an integer from 0 to 2**64 - 1; None: not chosen yet.
    Raises InvalidRequest for any other value.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        _number("temperature", self.temperature, "0 or more; 0 takes the likeliest token", lambda x: x >= 0)
        _number("top_p", self.top_p, "above 0 and at most 1; 1 is off", lambda x: 0 < x <= 1)
        _number("min_p", self.min_p, "from 0 to 1; 0 is off", lambda x: 0 <= x <= 1)
        _integer("top_k", self.top_k, "0 or more; 0 is off", lambda x: x >= 0)
        if self.seed is not None:
            _integer("seed", self.seed, "from 0 to 2**64 - 1, or None", lambda x: 0 <= x <= _MASK)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken, without a draw."""
        return self.temperature == 0


def draw(logits: mx.array, sampling: Sampling, position: int) -> mx.array:
    """One token (uint32 scalar, lazy) from a row of logits ([V], float32), for this absolute position of its stream.

    Among equal logits a greedy draw takes the lowest id. Otherwise the draw is the argmax of log-probabilities over the
    temperature plus Gumbel noise, which follows the softmax exactly. Raises ValueError where a seed is needed but None.
    """
    if sampling.greedy:
        return mx.argmax(logits, axis=-1)
    if sampling.seed is None:
        raise ValueError("a draw above temperature 0 needs a seed")
    below = logits - mx.max(logits, axis=-1, keepdims=True)
    scaled = below * min(1 / sampling.temperature, _COLDEST)
    kept = _kept(below, sampling)
    if kept is not None:
        scaled = mx.where(kept, scaled, -math.inf)
    return mx.random.categorical(scaled, key=key(sampling.seed, position))


def draw_rows(logits: mx.array, picks: Sequence[tuple[int, Sampling, int]]) -> mx.array:
    """Tokens ([k], int32, lazy) for k picks (row, sampling, position) from logits [R, V], float32.

    All greedy picks share one argmax; each of the others is drawn on its own: its bits depend on its row alone.
    """
    likeliest = mx.argmax(logits, axis=-1) if any(sampling.greedy for _, sampling, _ in picks) else None
    if likeliest is not None and all(sampling.greedy for _, sampling, _ in picks):
        return likeliest[mx.array([row for row, _, _ in picks])].astype(mx.int32)
    tokens = [
        likeliest[row] if likeliest is not None and sampling.greedy else draw(logits[row], sampling, position)
        for row, sampling, position in picks
    ]
    return mx.stack(tokens).astype(mx.int32)


def key(seed: int, position: int) -> mx.array:
    """The key of the draw at a position ([2], uint32): `mix(mix(seed) + position)`, all modulo 2**64.

    For one seed no two positions share a key, and for one position no two seeds do; `mix` also keeps neighbouring seeds
    from sharing shifted sequences of keys.
    """
    return mx.random.key(_mix(_mix(int(seed)) + position))


def _mix(value: int) -> int:
    """The output function of SplitMix64 (Steele, Lea and Flood 2014), a bijection of 64-bit integers."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


def _kept(below: mx.array, sampling: Sampling) -> mx.array | None:
    """Which tokens pass the filters ([V], bool), None for all; `below` is the logits minus their maximum."""
    size = below.shape[-1]
    top_k = min(sampling.top_k, size) or size
    if sampling.top_p == 1 and top_k == size:
        return None if sampling.min_p == 0 else below >= math.log(sampling.min_p)
    order = mx.argsort(-below) if top_k == size else mx.argpartition(-below, kth=top_k - 1)[:top_k]
    passed = mx.ones(order.shape, dtype=mx.bool_)
    if sampling.top_p < 1:
        order = order if top_k == size else order[mx.argsort(-below[order])]
        probabilities = mx.softmax(below, axis=-1, precise=True)[order]
        passed = mx.cumsum(probabilities, inclusive=False) < sampling.top_p
    if sampling.min_p > 0:
        passed = mx.logical_and(passed, below[order] >= math.log(sampling.min_p))
    return mx.put_along_axis(mx.zeros((size,), dtype=mx.bool_), order, passed, axis=-1)


def _number(name: str, value: Any, what: str, holds: Callable[[Any], bool]) -> None:
    if not is_number(value) or not -math.inf < value < math.inf or not holds(value):
        raise InvalidRequest(f"{name} must be a number {what}; got {value!r}")


def _integer(name: str, value: Any, what: str, holds: Callable[[Any], bool]) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or not holds(value):
        raise InvalidRequest(f"{name} must be an integer {what}; got {value!r}")
