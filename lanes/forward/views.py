"""What a model of mlx-lm sees as its cache: one layer of one round, over the slots' own KV buffers.

A model calls `update_and_fetch`, reads `offset` for its rotary positions and asks for a mask; its attention then comes
to `attend` (see `lanes.forward.attention`), which knows which row belongs to which slot. With `overlap` a layer is
handed to the device as soon as its attention is built, so that it computes while Python builds the next one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import mlx.core as mx

from lanes.errors import ModelError
from lanes.forward.math import attend_piece, attend_rows
from lanes.forward.slots import SlotKV


class Run(NamedTuple):
    """Consecutive packed rows [first, last) of one slot, at positions from `position` on; slot None: dummies."""

    slot: SlotKV | None
    first: int
    last: int
    position: int


class View:
    """What rows and pieces share: keys and values go into the slots, masks are made where they are needed."""

    def __init__(self, layer: int, window: int | None) -> None:
        self.layer = layer
        self.window = window
        self.keys = self.values = mx.array(())

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Take the round's keys and values, [rows or 1, kv heads, 1 or tokens, head size]."""
        self.keys, self.values = keys, values
        return keys, values

    def make_mask(self, tokens: int, return_array: bool = False, window_size: int | None = None) -> None:
        """No mask: `attend` reads only the keys that a row may see. A window other than the cache's own is refused."""
        if window_size not in (None, self.window):
            raise ModelError(f"it asks for a window of {window_size} keys where its cache keeps {self.window or 'all'}")

    def attend(self, queries: mx.array, scale: float, sinks: mx.array | None = None) -> mx.array:
        """Attention of the round's queries; the output has their shape, with the values' head size."""
        raise NotImplementedError

    def _seen(self, slot: SlotKV, end: int) -> tuple[mx.array, mx.array]:
        """The keys and values that the row at position end - 1 may see, [1, kv heads, seen, head size]."""
        start = max(0, end - self.window) if self.window else 0
        return slot.keys[self.layer][:, :, start:end], slot.values[self.layer][:, :, start:end]


class RowsView(View):
    """One layer of a forward over R packed rows: [R, heads, 1, head size]."""

    def __init__(self, layer: int, window: int | None, runs: Sequence[Run], offset: mx.array, overlap: bool) -> None:
        super().__init__(layer, window)
        self.runs = runs
        self.offset = offset
        self.overlap = overlap

    def attend(self, queries: mx.array, scale: float, sinks: mx.array | None = None) -> mx.array:
        """Each row over its own slot's keys up to itself, so its bits know nothing of the others."""
        rows = queries.shape[0]
        keys, values = mx.split(self.keys, rows), mx.split(self.values, rows)
        seen = []
        for slot, first, last, position in self.runs:
            if slot is None:
                continue
            if last - first == 1:  # a row alone has its slot's layout already
                slot.write(self.layer, position, keys[first], values[first])
            else:
                slot.write(self.layer, position, _along(self.keys[first:last]), _along(self.values[first:last]))
            seen += [self._seen(slot, position + row + 1) for row in range(last - first)]
        out = attend_rows(queries[: len(seen)], seen, scale, sinks)
        if idle := rows - len(seen):
            out = mx.concatenate([out, mx.zeros((idle, *out.shape[1:]), out.dtype)])
        if self.overlap:
            mx.async_eval(out)
        return out


class PieceView(View):
    """One layer of a forward over one piece of one slot's prompt: [1, heads, tokens, head size]."""

    def __init__(self, layer: int, window: int | None, slot: SlotKV, start: int, overlap: bool) -> None:
        super().__init__(layer, window)
        self.out = mx.array(())
        self.slot = slot
        self.offset = start
        self.overlap = overlap

    def attend(self, queries: mx.array, scale: float, sinks: mx.array | None = None) -> mx.array:
        """Causal attention of the piece over the slot's keys, its own included."""
        tokens = queries.shape[2]
        self.slot.write(self.layer, self.offset, self.keys, self.values)
        end = self.offset + tokens
        start = max(0, self.offset + 1 - self.window) if self.window else 0
        keys = self.slot.keys[self.layer][:, :, start:end]
        values = self.slot.values[self.layer][:, :, start:end]
        self.out = attend_piece(queries, keys, values, scale, self.window, sinks)
        if self.overlap:
            mx.async_eval(self.out)
        return self.out


def _along(rows: mx.array) -> mx.array:
    """Rows of one slot, [tokens, kv heads, 1, head size], one after the other: [1, kv heads, tokens, head size]."""
    return rows.transpose(2, 1, 0, 3)
