"""The gate of an MLP, silu(gate) * x, with an exponential of our own: on a Linux CPU MLX's takes 9 ns a number.

That is a sixth of a piece of the embedded model, where the whole gate then takes a sixth of what it took. Model modules
look `swiglu` up by name; it is ours while one of our forwards is built, and mlx-lm's own at any other time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

import mlx.core as mx
import mlx.nn as nn

from lanes.forward.math import LOG2E, exp2
from lanes.forward.names import replace

_ours: ContextVar[bool] = ContextVar("gate is ours", default=False)


@mx.compile
def swiglu(gate: mx.array, x: mx.array) -> mx.array:
    """silu(gate) * x for float32 arrays of one shape, within 1e-6 of its size or 1e-8 of x.

    Each number's bits depend on nothing but its own two.
    """
    e = exp2(mx.abs(gate) * -LOG2E)
    return gate * (mx.where(gate < 0, e, 1.0) / (1 + e)) * x


def teach(model: nn.Module) -> bool:
    """Let the model's MLPs know our gate; False where none of them uses that name."""
    return replace(model, "swiglu", _dispatch)


@contextmanager
def quick() -> Iterator[None]:
    """What is built in here, on this thread, has our gate where it can."""
    before = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(before)


def _dispatch(original: Callable[..., mx.array]) -> Callable[..., mx.array]:
    @wraps(original)
    def gated(gate: mx.array, x: mx.array) -> mx.array:
        plain = gate.dtype == x.dtype == mx.float32 and gate.shape == x.shape
        return swiglu(gate, x) if plain and _ours.get() else original(gate, x)

    return gated
