"""Small models that are odd on purpose: what they do with their attention or their rows is not what others do."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.base import scaled_dot_product_attention
from mlx_lm.models.cache import KVCache

import lanes
from lanes.models.loaded import Loaded, named_arrays

HEADS, KV_HEADS, HEAD, HIDDEN = 4, 2, 16, 64
WINDOW = 100  # longer than anything that the probe compares with the model itself
Attend = Callable[[mx.array, mx.array, mx.array, Any, Any], mx.array]


def _causal(queries: mx.array, keys: mx.array) -> mx.array:
    """Which keys each query may see, by position alone: [queries, keys] bool."""
    seen, asked = keys.shape[2], queries.shape[2]
    return mx.arange(seen)[None] <= mx.arange(seen - asked, seen)[:, None]


def _distance(queries: mx.array, keys: mx.array) -> mx.array:
    seen, asked = keys.shape[2], queries.shape[2]
    return mx.arange(seen - asked, seen)[:, None] - mx.arange(seen)[None]


def usual(q: mx.array, k: mx.array, v: mx.array, cache: Any, mask: Any) -> mx.array:
    """As every model of mlx-lm does it."""
    return scaled_dot_product_attention(q, k, v, cache=cache, scale=HEAD**-0.5, mask=mask)


def capped(q: mx.array, k: mx.array, v: mx.array, cache: Any, mask: Any) -> mx.array:
    """Its own attention with a soft cap, past the name that all models use."""
    k, v = (mx.repeat(array, HEADS // KV_HEADS, axis=1) for array in (k, v))
    scores = 2.0 * mx.tanh((q * HEAD**-0.5) @ k.swapaxes(2, 3) / 2.0)
    return mx.softmax(mx.where(_causal(q, k), scores, -1e9), axis=-1) @ v


def biased(q: mx.array, k: mx.array, v: mx.array, cache: Any, mask: Any) -> mx.array:
    """A mask of its own that prefers near keys, as ALiBi does."""
    own = mx.where(_causal(q, k), -0.1 * _distance(q, k).astype(mx.float32), -1e9)
    return scaled_dot_product_attention(q, k, v, cache=cache, scale=HEAD**-0.5, mask=own)


def windowed(q: mx.array, k: mx.array, v: mx.array, cache: Any, mask: Any) -> mx.array:
    """A mask of its own that hides far keys, over a cache that keeps them all."""
    own = _causal(q, k) & (_distance(q, k) < WINDOW)
    return scaled_dot_product_attention(q, k, v, cache=cache, scale=HEAD**-0.5, mask=own)


class Layer(nn.Module):
    """One attention layer with a feed-forward part."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        self.q_proj = nn.Linear(HIDDEN, HEADS * HEAD, bias=False)
        self.k_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.v_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD, HIDDEN, bias=False)
        self.up = nn.Linear(HIDDEN, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)
        self.norm = nn.RMSNorm(HIDDEN)
        self.rope = nn.RoPE(HEAD)
        self._attend = attend

    def __call__(self, x: mx.array, mask: Any, cache: Any) -> mx.array:
        rows, tokens, _ = x.shape
        y = self.norm(x)
        q = self.q_proj(y).reshape(rows, tokens, HEADS, HEAD).transpose(0, 2, 1, 3)
        k = self.k_proj(y).reshape(rows, tokens, KV_HEADS, HEAD).transpose(0, 2, 1, 3)
        v = self.v_proj(y).reshape(rows, tokens, KV_HEADS, HEAD).transpose(0, 2, 1, 3)
        q, k = self.rope(q, offset=cache.offset), self.rope(k, offset=cache.offset)
        k, v = cache.update_and_fetch(k, v)
        x = x + self.o_proj(self._attend(q, k, v, cache, mask).transpose(0, 2, 1, 3).reshape(rows, tokens, -1))
        return x + self.down(nn.silu(self.up(x)))


class Model(nn.Module):
    """Two layers over an embedding, in the form that mlx-lm's models have."""

    def __init__(self, attend: Attend, window: int | None) -> None:
        super().__init__()
        self._window = window
        self.embed = nn.Embedding(512, HIDDEN)
        self.layers = [Layer(attend) for _ in range(2)]
        self.norm = nn.RMSNorm(HIDDEN)

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        cache = cache or [KVCache() for _ in self.layers]
        mask = cache[0].make_mask(tokens.shape[1], return_array=False, window_size=self._window)
        x = self.embed(tokens)
        for layer, kept in zip(self.layers, cache, strict=True):
            x = layer(x, mask, kept)
        return self.embed.as_linear(self.norm(x))


def odd(attend: Attend, window: int | None = None) -> Loaded:
    """A model with this attention, with seeded weights and the tiny tokenizer.

    window: what it asks its cache to mask by, though that cache keeps all keys.
    """
    model = Model(attend, window)
    shapes = [(name, array.shape) for name, array in named_arrays(model) if array.ndim == 2]
    keys = mx.random.split(mx.random.key(5), len(shapes))
    drawn = [
        (name, mx.random.normal(shape, scale=0.15, key=key)) for (name, shape), key in zip(shapes, keys, strict=True)
    ]
    model.load_weights(drawn, strict=False)
    mx.eval(model.parameters())
    return replace(lanes.load(lanes.tiny("llama")), model=model, arch=attend.__name__)


class Leak(nn.Module):
    """Stands for a part of a model and adds to its output something that is none of the row's business."""

    def __init__(self, inner: nn.Module, leak: Callable[[mx.array], mx.array]) -> None:
        super().__init__()
        self.inner = inner
        self._leak = leak

    def __call__(self, x: mx.array) -> mx.array:
        y = self.inner(x)
        return y + 1e-5 * self._leak(y)


def leaking(arch: str, leak: Callable[[mx.array], mx.array]) -> Loaded:
    """A tiny model whose first feed-forward part leaks, far below what its answers would show."""
    loaded = lanes.load(lanes.tiny(arch, seed=1))
    model: Any = loaded.model
    model.layers[0].mlp = Leak(model.layers[0].mlp, leak)
    return loaded
