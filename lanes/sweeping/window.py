"""The window: so many rows are asked at a time, the next one as soon as one has its answers."""

from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING

from lanes.decisions.answers import Answers
from lanes.engine.handles import Pending
from lanes.errors import Busy, DeadlineExceeded, DeviceStalled, EngineClosed, LanesError
from lanes.sweeping.lines import Line
from lanes.sweeping.rows import Row
from lanes.sweeping.terms import Terms

if TYPE_CHECKING:
    from lanes.engine import Engine

PER_SLOT = 2
"""Rows in flight for each slot: one that runs, one that waits to follow it."""
PATIENCE = 0.02
"""Seconds until a row is asked again where the engine's queue was full."""


class Window:
    """Asks rows of one engine, at most `size` at a time."""

    def __init__(self, engine: "Engine", terms: Terms, size: int) -> None:
        self._engine = engine
        self._terms = terms
        self._size = size
        self._pending: set[Pending[Answers]] = set()
        self._stopped = Event()

    def lines(self, rows: Iterable[Row]) -> Generator[Line, None, None]:
        """The rows' lines as they come, in any order; closing this cancels what is asked.

        Raises EngineClosed and DeviceStalled, after which no row can be answered; other errors are a line's own.
        """
        coming = iter(rows)
        waiting: set[Future[Line]] = set()
        pool = ThreadPoolExecutor(self._size, "lanes-sweep")
        try:
            while True:
                waiting |= {pool.submit(self._line, row) for row in islice(coming, self._size - len(waiting))}
                if not waiting:
                    return
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            self._stop()
            pool.shutdown(cancel_futures=True)

    def _stop(self) -> None:
        self._stopped.set()
        for pending in self._pending.copy():
            pending.cancel()

    def _line(self, row: Row) -> Line:
        if row.state is None:
            return Line.failed(row, row.error)
        try:
            return Line.answered(row, self._answers(row.state))
        except (EngineClosed, DeviceStalled):
            raise
        except DeadlineExceeded:  # in words of our own, as the engine's name a request's number
            late = DeadlineExceeded(f"not answered within its deadline of {self._terms.deadline:g} s: allow more")
            return Line.failed(row, late)
        except LanesError as error:
            return Line.failed(row, error)

    def _answers(self, state: str) -> Answers:
        while True:
            try:
                return self._wait(self._terms.ask(self._engine, state))
            except Busy:  # others fill the queue
                if self._stopped.wait(PATIENCE):
                    raise

    def _wait(self, pending: Pending[Answers]) -> Answers:
        self._pending.add(pending)
        if self._stopped.is_set():  # after the others were cancelled
            pending.cancel()
        try:
            return pending.result()
        finally:
            self._pending.discard(pending)
