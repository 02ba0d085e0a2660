"""A list that only grows, sent piece by piece: a frame carries what is new, and what was missed is asked for again."""

from collections.abc import Sequence
from typing import Any

LIMIT = 256
"""Items in one frame at most, so that a frame stays some 16 kB; the rest follow in the next ones."""


class Tape:
    """What the front ends have of a list. A new view, a reloaded page or a lost message is made good by `rewind`.

    For the publisher's thread alone.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._sent = 0
        self._last: dict[str, Any] = {"from": 0, "items": [], "gone": 0}

    @property
    def sent(self) -> int:
        """How many items front ends were given: the next cut begins here."""
        return self._sent

    def cut(self, items: Sequence[Any], gone: int = 0) -> dict[str, Any]:
        """The next items, {"from": the number of the first, "items", "gone"}; the last cut again where none are new.

        `items` are numbered from `gone` on: those before are not to be had any more.
        """
        start = max(self._sent, gone)
        fresh = list(items[start - gone : start - gone + self._limit])
        if fresh:
            self._sent = start + len(fresh)
            self._last = {"from": start, "items": fresh, "gone": gone}
        return self._last

    def rewind(self, have: int) -> None:
        """Somebody has only the first `have` items: send from there."""
        self._sent = max(0, min(self._sent, have))
