"""The one name through which mlx-lm's models reach their attention, taught to know our caches.

Every model module imports `scaled_dot_product_attention` and calls it with the layer's cache. Calls with any other
cache than ours go on to the original.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from lanes.errors import ModelError
from lanes.forward.names import replace
from lanes.forward.views import View


def teach(model: nn.Module) -> bool:
    """Let the model's attention know our caches; False where it does not use that name."""
    return replace(model, "scaled_dot_product_attention", _dispatch)


def _dispatch(original: Callable[..., mx.array]) -> Callable[..., mx.array]:
    @wraps(original)
    def attention(queries: mx.array, keys: Any, values: Any, *args: Any, **options: Any) -> mx.array:
        cache = args[0] if args else options.get("cache")
        if isinstance(cache, View):
            mask = args[2] if len(args) > 2 else options.get("mask")
            if mask is not None and not isinstance(mask, str):
                raise ModelError("it masks keys by a rule of its own")
            return cache.attend(queries, options["scale"], options.get("sinks"))
        return original(queries, keys, values, *args, **options)

    return attention
