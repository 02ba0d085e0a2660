"""The route for every other model: one forward a slot, over mlx-lm's own caches.

Recurrent state is kept per slot and sees exactly the tokens of its sequence, never a pad. Each forward has one
sequence, and its length follows from the request alone, so a row's bits cannot depend on company here either.
"""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map

from lanes.forward.packed import Row
from lanes.models.loaded import Loaded


class Single:
    """Runs any model of mlx-lm, one sequence at a time; a prompt's tail is one last, shorter piece."""

    packed = False
    width = 1

    def __init__(self, loaded: Loaded, slots: int) -> None:
        self.model: Any = loaded.model
        self._caches: list[list[Any]] = [[] for _ in range(slots)]
        self._at = [0] * slots
        self._marks: list[dict[int, list[Any] | None]] = [{} for _ in range(slots)]

    def open(self, slot: int, tokens: int, marks: Sequence[int] = ()) -> None:
        """Begin a sequence in a slot; its state is kept at the positions `marks`: a later `fill` may start there."""
        self.clear(slot)
        self._marks[slot] = dict.fromkeys(marks)
        self._reach(slot, 0)

    def _rewind(self, slot: int, position: int) -> None:
        if position == self._at[slot]:
            return
        saved = self._marks[slot].get(position)
        if saved is None:
            raise ValueError(f"slot {slot} keeps no state at position {position}: it was not named, or never reached")
        self._restore(slot, saved, position)

    def clear(self, slot: int) -> None:
        """Drop a slot's state."""
        from mlx_lm.models.cache import make_prompt_cache

        self._caches[slot] = make_prompt_cache(self.model)
        self._marks[slot] = {}
        self._at[slot] = 0

    def fill(self, slot: int, start: int, tokens: Sequence[int]) -> mx.array:
        """Tokens from `start` on: where the slot stands, or a mark; their logits, [1, tokens, vocabulary], lazy."""
        self._rewind(slot, start)
        logits = self.model(mx.array([tokens]), cache=self._caches[slot])
        self._reach(slot, start + len(tokens))
        return logits

    def begin(
        self, slot: int, start: int, tokens: Sequence[int], parts: int = 1
    ) -> tuple[mx.array, Sequence[mx.array]]:
        """A piece, whole: what its layers keep is mlx-lm's own, and no place in it is known to pause at."""
        if parts != 1:
            raise ValueError(f"a piece of this route cannot be computed in {parts} parts")
        return self.fill(slot, start, tokens), ()

    def rows(self, rows: Sequence[Row]) -> mx.array:
        """One forward a row, each the next token of its slot; logits [rows, vocabulary], lazy."""
        return mx.concatenate([self.fill(row.slot, row.position, [row.token])[:, -1] for row in rows])

    def state(self, slot: int) -> list[mx.array]:
        """The slot's arrays, to be evaluated after `fill`; marks included, so that none holds a graph."""
        kept = [saved for saved in self._marks[slot].values() if saved is not None]
        states = [[layer.state for layer in self._caches[slot]], kept]
        return arrays_in(states)

    def save(self, slot: int, tokens: int) -> list[Any]:
        """A copy of the state, which must stand at `tokens`."""
        if tokens != self._at[slot]:
            raise ValueError(f"slot {slot} stands at {self._at[slot]}, not at {tokens}")
        return [_copy(layer.state) for layer in self._caches[slot]]

    def load(self, slot: int, saved: list[Any], tokens: int) -> None:
        """Put a state saved at `tokens` into an open slot."""
        self._restore(slot, saved, tokens)
        self._reach(slot, tokens)

    def _reach(self, slot: int, position: int) -> None:
        self._at[slot] = position
        if position in self._marks[slot]:
            self._marks[slot][position] = self.save(slot, position)

    def _restore(self, slot: int, saved: list[Any], position: int) -> None:
        for layer, state in zip(self._caches[slot], saved, strict=True):
            layer.state = _copy(state)
        self._at[slot] = position


def arrays_in(state: Any) -> list[mx.array]:
    """All arrays of a state, however it is nested."""
    leaves: list[tuple[str, Any]] = tree_flatten(state)  # type: ignore[assignment]
    return [leaf for _, leaf in leaves if isinstance(leaf, mx.array)]


def _copy(state: Any) -> Any:
    """The same state on arrays of its own: an update in place must not reach a kept one."""
    return tree_map(lambda leaf: mx.array(leaf) if isinstance(leaf, mx.array) else leaf, state)
