"""One thread an engine, which alone writes what its widgets show.

A front end drops what comes too fast, and widgets lose changes that two threads make at once. So nothing is written as
it happens: at most `hz` times a second each widget is asked to catch up, and the last change is never left out.
"""

import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lanes import Engine

HZ = 10.0
"""Frames a second, where a widget does not ask for fewer."""


class Shown(Protocol):
    """A widget, as its publisher sees it."""

    due: float
    """When it may be written next (time.monotonic)."""

    def publish(self, now: float) -> None:
        """Do what people asked for, and write what is new."""

    def settle(self) -> None:
        """Write the engine's end, and leave once all that was under way has ended with it."""


logger = logging.getLogger(__name__)
_lock = threading.Lock()
_publishers: "weakref.WeakKeyDictionary[Engine, Publisher]" = weakref.WeakKeyDictionary()


def join(view: Shown, engine: "Engine") -> "Publisher":
    """Let the engine's publisher, made where there is none, write this widget from now on."""
    with _lock:
        publisher = _publishers.get(engine)
        if publisher is None or not publisher.enter(view):
            publisher = _publishers[engine] = Publisher(engine, view)
        return publisher


class Publisher:
    """The thread, and the widgets that it writes. It holds neither them nor the engine."""

    def __init__(self, engine: "Engine", first: Shown) -> None:
        self._engine = weakref.ref(engine)
        self._views: weakref.WeakSet[Shown] = weakref.WeakSet([first])
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._ended = False
        threading.Thread(target=self._run, name="lanes-publisher", daemon=True).start()

    def enter(self, view: Shown) -> bool:
        """Write this widget too; False where the thread has ended."""
        with self._lock:
            if not self._ended:
                self._views.add(view)
            return not self._ended

    def leave(self, view: Shown) -> None:
        """Write this widget no more; the thread ends with its last one."""
        with self._lock:
            self._views.discard(view)
        self._bell.set()

    def ring(self) -> None:
        """Somebody did something in a widget: look at once. Safe on any thread."""
        self._bell.set()

    def _run(self) -> None:
        while not self._over():
            self._bell.clear()
            closed = self._closed()
            for view in self._all():
                self._write(view, closed)
            self._bell.wait(self._patience())

    def _write(self, view: Shown, closed: bool) -> None:
        """Let one widget catch up; one that cannot be written loses its own place and no other's."""
        try:
            view.publish(time.monotonic())
            if closed:
                view.settle()
        except Exception:
            logger.exception("a widget cannot be written any more: make it again")
            self.leave(view)

    def _all(self) -> list[Shown]:
        with self._lock:
            return list(self._views)

    def _closed(self) -> bool:
        engine = self._engine()
        return engine is None or engine.closed

    def _patience(self) -> float:
        """Seconds until the next widget may be written."""
        now = time.monotonic()
        return max(0.0, min((view.due - now for view in self._all()), default=0.0))

    def _over(self) -> bool:
        with self._lock:
            self._ended = not self._views
            return self._ended
