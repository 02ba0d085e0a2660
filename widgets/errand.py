"""Work that the publisher's thread must not wait for: each errand on a short-lived thread of its own."""

from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lanes.errors import Cancelled
from lanes.prompts import Prompt

if TYPE_CHECKING:
    from lanes import Engine
    from lanes.decisions.labels import BoundLabels
    from lanes.engine.handles import Pending

Made = TypeVar("Made")
NAME = "lanes-errand"
"""Of every thread here."""


class Errand(Generic[Made]):
    """Something that is being done elsewhere: its result or its error once it is `done`."""

    def __init__(self, work: Callable[[], Made]) -> None:
        self.result: Made | None = None
        self.error: Exception | None = None
        self._over = Event()
        Thread(target=self._run, args=(work,), name=NAME, daemon=True).start()

    def _run(self, work: Callable[[], Made]) -> None:
        try:
            self.result = work()
        except Exception as error:  # whatever it is, it is what became of this errand
            self.error = error
        finally:
            self._over.set()

    @property
    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._over.is_set()

    @property
    def state(self) -> str:
        """As a handle's: running, then done."""
        return "done" if self.done else "running"


class Reins:
    """An engine as `lanes.inspect_labels` needs it, whose decisions can be given up from another thread."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._pending: Pending[Any] | None = None
        self._dropped = False
        self.info = engine.info
        self.use_tokenizer = engine.use_tokenizer

    def decide_bound(
        self, prompts: Sequence[Prompt], bound: "Sequence[BoundLabels]", top: int, deadline: float | None, wait: bool
    ) -> "Pending[Any]":
        """As `Engine.decide_bound`; raises Cancelled where nobody wants it any more."""
        if self._dropped:
            raise Cancelled("the inspection was cancelled")
        self._pending = self._engine.decide_bound(prompts, bound, top, deadline, wait)
        if self._dropped:
            self._pending.cancel()
        return self._pending

    def cancel(self) -> None:
        """Give up whatever is under way, and what would follow."""
        self._dropped = True
        if self._pending:
            self._pending.cancel()


class Latest:
    """Does the latest thing that was wanted under each key, and keeps what came of it; older wishes are skipped."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._lock = Lock()
        self._wanted: dict[str, Callable[[], Any]] = {}
        self._busy = False
        self.found: dict[str, Any] = {}
        """What came of it by key, the newest last; replaced, never changed."""

    def want(self, key: str, work: Callable[[], Any]) -> None:
        """Do this soon, in place of what is still wanted under this key; `work` raises nothing."""
        with self._lock:
            self._wanted[key] = work
            if self._busy:
                return
            self._busy = True
        Thread(target=self._run, name=NAME, daemon=True).start()

    def drop(self) -> None:
        """Want nothing any more."""
        with self._lock:
            self._wanted.clear()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._busy = False
                    return
                key = next(iter(self._wanted))
                work = self._wanted.pop(key)
            found = work()
            kept = {other: value for other, value in self.found.items() if other != key}
            self.found = dict([*kept.items(), (key, found)][-self._keep :])
