"""Rotary positions of packed rows: sines and cosines once a round, not once a layer and tensor.

On a CPU `mx.fast.rope` is a dozen operations that work the tables out anew each time, a tenth of a decode round.
"""

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np


class Tables:
    """The round's positions ([R] int32), and the tables made from them; one for all layers of a model."""

    def __init__(self) -> None:
        self.offset: mx.array | None = None
        self._made: dict[tuple[int, float, float], tuple[mx.array, mx.array]] = {}

    def begin(self, offset: mx.array) -> None:
        """A new round, with these positions."""
        self.offset = offset
        self._made = {}

    def of(self, dims: int, base: float, scale: float) -> tuple[mx.array, mx.array]:
        """Cosines and sines for every row, [R, 1, 1, dims] float32, each half repeated."""
        key = (dims, base, scale)
        if key not in self._made:
            assert self.offset is not None
            speed = mx.array((scale * base ** -(np.arange(0, dims, 2) / dims)).astype(np.float32))
            angle = self.offset.astype(mx.float32)[:, None] * mx.concatenate([speed, speed])
            self._made[key] = (mx.cos(angle)[:, None, None], mx.sin(angle)[:, None, None])
        return self._made[key]


class RowsRope(nn.Module):
    """Stands for a model's `nn.RoPE`: rows of the current round use the tables, everything else the original."""

    def __init__(self, original: nn.RoPE, tables: Tables) -> None:
        super().__init__()
        self._original = original
        self.tables = tables
        half = original.dims // 2
        turn = np.zeros((original.dims, original.dims), np.float32)
        turn[range(half, 2 * half), range(half)] = -1.0
        turn[range(half), range(half, 2 * half)] = 1.0
        self._turn = mx.array(turn)  # x @ turn is (-second half, first half): exact, and one operation

    def __call__(self, x: mx.array, offset: Any = 0) -> mx.array:
        """x: [rows, heads, 1, head size]."""
        rope = self._original
        if offset is not self.tables.offset or x.shape[-1] != rope.dims:
            return rope(x, offset=offset)
        cos, sin = self.tables.of(rope.dims, rope.base, rope.scale)
        return (x * cos + (x @ self._turn) * sin).astype(x.dtype)


def share_tables(model: nn.Module) -> Tables:
    """Let all plain rotary embeddings of a model share one set of tables a round; a second time, the same set."""
    modules = [module for _, module in model.named_modules()]
    if known := next((module for module in modules if isinstance(module, RowsRope)), None):
        return known.tables
    tables = Tables()
    for module in modules:
        for name, child in module.children().items():
            if type(child) is nn.RoPE and not child.traditional:
                module[name] = RowsRope(child, tables)
    return tables
