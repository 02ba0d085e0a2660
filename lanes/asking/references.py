"""What the reference states of priors answered: asked once, and kept as long as the engine is."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lanes.engine import Engine

LOOK_S = 0.05
"""Seconds between two looks at whether a call that waits for another one is still wanted."""

_all: "weakref.WeakKeyDictionary[Engine, References]" = weakref.WeakKeyDictionary()
_making = Lock()


class References:
    """Log-probabilities by state, question, manner and order. One call at a time asks for what is missing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[tuple[object, ...], np.ndarray] = {}

    @classmethod
    def of(cls, engine: "Engine") -> "References":
        """Those of this engine."""
        with _making:
            return _all.setdefault(engine, cls())

    @contextmanager
    def held(self, check: Callable[[], None]) -> Iterator[dict[tuple[object, ...], np.ndarray]]:
        """What is known, for one call alone; `check` raises where a call that waits for it is not wanted any more."""
        while not self._lock.acquire(timeout=LOOK_S):
            check()
        try:
            yield self._known
        finally:
            self._lock.release()
