"""The one name through which mlx-lm's models reach their attention, taught to know our caches.

Every model module imports `scaled_dot_product_attention` and calls it with the layer's cache. We replace that name in
the modules of the loaded model; calls with any other cache go on to the original.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import mlx.core as mx
import mlx.nn as nn

from lanes.errors import ModelError
from lanes.forward.views import View

NAME = "scaled_dot_product_attention"


def teach(model: nn.Module) -> bool:
    """Replace the name in every module that the model's classes live in; False where none of them has it."""
    homes = {type(part).__module__ for _, part in model.named_modules()}
    found = False
    for home in homes:
        module = sys.modules.get(home)
        original = getattr(module, NAME, None)
        if module is None or original is None:
            continue
        found = True
        if not hasattr(original, "knows_views"):
            setattr(module, NAME, _dispatch(original))
    return found


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

    attention.knows_views = True  # type: ignore[attr-defined]
    return attention
