"""Names that a model's code looks up in its own modules, replaced there: how mlx-lm's classes are taught to know us."""

import sys
from collections.abc import Callable
from typing import Any

import mlx.nn as nn


def replace(model: nn.Module, name: str, dispatch: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Put dispatch(original) for `name` in every module that the model's classes live in; False where none has it.

    What was replaced once stays so, for every model of these classes: dispatch must leave other callers what they had.
    """
    found = False
    for home in {type(part).__module__ for _, part in model.named_modules()}:
        module = sys.modules.get(home)
        original = getattr(module, name, None)
        if module is None or original is None:
            continue
        found = True
        if not hasattr(original, "knows_us"):
            ours = dispatch(original)
            ours.knows_us = True  # type: ignore[attr-defined]
            setattr(module, name, ours)
    return found
