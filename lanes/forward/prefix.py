"""Beginnings of prompts that were filled before: copies of their state, found by their tokens, bounded in bytes.

Only whole pieces are kept. A prompt that starts with them would fill the very same pieces, so a hit has the same bits
as a fill. The least recently used beginning goes first.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanes.forward.single import arrays_in

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A state after `tokens`, and its size in bytes."""

    tokens: Tokens
    state: list[Any]
    nbytes: int


class PrefixCache:
    """Saved states of at most `limit` bytes in all; `piece` is the number of tokens of a piece.

    cuttable: whether a state also serves a prompt that shares only its first pieces (keys and values do, recurrent
    state does not). Used by the engine's thread alone.
    """

    def __init__(self, limit: int, piece: int, cuttable: bool) -> None:
        self.limit = limit
        self.piece = piece
        self.cuttable = cuttable
        self.nbytes = 0
        self._kept: OrderedDict[Tokens, Kept] = OrderedDict()

    def find(self, prompt: Sequence[int], body: int) -> tuple[int, list[Any]]:
        """The longest beginning of the prompt's first `body` tokens that is kept: its length, 0 for none, and state."""
        wanted = tuple(prompt[:body])
        best, found = 0, None
        for kept in self._kept.values():
            same = _common(kept.tokens, wanted) // self.piece * self.piece
            if not self.cuttable and same < len(kept.tokens):
                continue
            if same > best:
                best, found = same, kept
        if found is None:
            return 0, []
        self._kept.move_to_end(found.tokens)
        return best, found.state

    def wants(self, tokens: Sequence[int]) -> bool:
        """Whether a state after these tokens would add anything."""
        return self.limit > 0 and len(tokens) >= self.piece and self.find(tokens, len(tokens))[0] < len(tokens)

    def keep(self, tokens: Sequence[int], state: list[Any]) -> None:
        """Keep a copy of a state, already evaluated; one that is larger than the limit is not kept."""
        key = tuple(tokens)
        nbytes = sum(array.nbytes for array in arrays_in(state))
        if nbytes > self.limit:
            return
        if self.cuttable:
            for shorter in [known for known in self._kept if key[: len(known)] == known]:
                self._drop(shorter)
        self._kept[key] = Kept(key, state, nbytes)
        self.nbytes += nbytes
        while self.nbytes > self.limit:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget everything: after a failed forward no state is to be trusted."""
        self._kept.clear()
        self.nbytes = 0

    def _drop(self, tokens: Tokens) -> None:
        self.nbytes -= self._kept.pop(tokens).nbytes

    def __len__(self) -> int:
        return len(self._kept)


def _common(left: Tokens, right: Tokens) -> int:
    """How many tokens both begin with."""
    length = min(len(left), len(right))
    if left[:length] == right[:length]:
        return length
    return next(index for index in range(length) if left[index] != right[index])
