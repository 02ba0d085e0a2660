"""The packed route: one forward over exactly R rows of any slots, pieces of prompts one at a time beside it."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import mlx.core as mx

from lanes.errors import ModelError
from lanes.forward import gate
from lanes.forward.attention import teach
from lanes.forward.math import on_cpu
from lanes.forward.rope import share_tables
from lanes.forward.slots import SlotKV
from lanes.forward.views import PieceView, RowsView, Run
from lanes.models.loaded import Loaded


class Row(NamedTuple):
    """One token of one slot in a round's forward."""

    slot: int
    position: int
    token: int


class Packed:
    """Runs a model whose every layer keeps plain keys and values, in full or in a sliding window.

    `rows` gives logits whose bits depend on the row's own sequence alone; `fill` takes one piece. Both only build the
    graph: the caller evaluates what they return, and `state(slot)`. Raises ModelError for any other kind of model.
    """

    packed = True

    def __init__(self, loaded: Loaded, slots: int, width: int) -> None:
        self.model: Any = loaded.model
        self.width = width
        found = windows(self.model)
        if found is None or not teach(loaded.model):
            raise ModelError(f"{loaded.arch} keeps more than plain keys and values: its rows cannot be packed")
        self.windows = found
        self.slots = [SlotKV(len(self.windows)) for _ in range(slots)]
        self._overlap = on_cpu()
        self._tables = share_tables(loaded.model) if on_cpu() else None
        self._gate = gate.quick if on_cpu() and gate.teach(loaded.model) else nullcontext

    def open(self, slot: int, tokens: int, marks: Sequence[int] = ()) -> None:
        """Begin a sequence of at most `tokens` tokens in a slot. `marks` need nothing: positions address the state."""
        self.slots[slot].reserve(tokens)

    def clear(self, slot: int) -> None:
        """Drop a slot's state, buffers and all: after a failed forward nothing in it is to be trusted."""
        self.slots[slot].clear()

    def fill(self, slot: int, start: int, tokens: Sequence[int]) -> mx.array:
        """One piece of a prompt at [start, start + len(tokens)); returns its logits, [1, tokens, vocabulary], lazy."""
        return self.begin(slot, start, tokens)[0]

    def begin(
        self, slot: int, start: int, tokens: Sequence[int], parts: int = 1
    ) -> tuple[mx.array, Sequence[mx.array]]:
        """A piece to be computed in `parts` parts: its logits as of `fill`, and what to evaluate for all but the last.

        Where the evaluation pauses changes no bit: the graph is the same.
        """
        layers = len(self.windows)
        stops = [max(1, layers * part // parts) for part in range(1, parts)]
        soon = stops[0] if stops else layers  # what is not of the first part must not run ahead
        views = [
            PieceView(layer, window, self.slots[slot], start, self._overlap and layer < soon)
            for layer, window in enumerate(self.windows)
        ]
        with self._gate():
            logits = self.model(mx.array([tokens]), cache=views)
        return logits, [views[stop - 1].out for stop in stops]

    def rows(self, rows: Sequence[Row]) -> mx.array:
        """One forward over R packed rows, of which the first len(rows) are used; logits [R, vocabulary], lazy.

        The rows of one slot must follow each other in the order of their positions.
        """
        idle = self.width - len(rows)
        offset = mx.array([row.position for row in rows] + [0] * idle)
        if self._tables:
            self._tables.begin(offset)
        tokens = mx.array([[row.token] for row in rows] + [[0]] * idle)
        runs = self._runs(rows)
        views = [RowsView(layer, window, runs, offset, self._overlap) for layer, window in enumerate(self.windows)]
        with self._gate():
            return self.model(tokens, cache=views)[:, 0]

    def _runs(self, rows: Sequence[Row]) -> list[Run]:
        runs: list[Run] = []
        first = 0
        for at in range(1, len(rows) + 1):
            if at == len(rows) or rows[at].slot != rows[first].slot:
                runs.append(Run(self.slots[rows[first].slot], first, at, rows[first].position))
                first = at
        if len(rows) < self.width:
            runs.append(Run(None, len(rows), self.width, 0))
        return runs

    def state(self, slot: int) -> list[mx.array]:
        """The slot's arrays, to be evaluated after `fill`."""
        return self.slots[slot].arrays

    def save(self, slot: int, tokens: int) -> list[mx.array]:
        """A copy of the state after the first `tokens` tokens, lazy."""
        return self.slots[slot].copy(tokens)

    def load(self, slot: int, saved: list[mx.array], tokens: int) -> None:
        """Put the first `tokens` tokens of a saved state into an open slot."""
        self.slots[slot].paste(saved, tokens)


def windows(model: Any) -> list[int | None] | None:
    """The sliding window of each layer (None: none); None for a model that keeps more than keys and values."""
    from mlx_lm.models.cache import KVCache, RotatingKVCache, make_prompt_cache

    found: list[int | None] = []
    for layer in make_prompt_cache(model):
        if type(layer) is KVCache:
            found.append(None)
        elif type(layer) is RotatingKVCache and not layer.keep:
            found.append(layer.max_size)
        else:
            return None
    return found
