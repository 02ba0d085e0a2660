"""What runs in a worker's process: one engine, made when it is first needed and kept for the sweeps to come."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Any

from lanes.engine import Engine
from lanes.sweeping.lines import Line
from lanes.sweeping.rows import Row
from lanes.sweeping.terms import Maker, Terms
from lanes.sweeping.window import PER_SLOT, Window


class Shared:
    """One engine for all tasks of a process; one with other options takes its place once no task uses it."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._engine: Engine | None = None
        self._options: Mapping[str, Any] = {}
        self._users = 0

    @contextmanager
    def use(self, options: Mapping[str, Any]) -> Iterator[Engine]:
        """The engine with these options, made where there is none, or none that still serves."""
        with self._changed:
            self._changed.wait_for(lambda: not self._users or self._options == options)
            engine = self._take(options)
            self._users += 1
        try:
            yield engine
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Close the engine; the next task makes another. Takes no lock: tasks that run end with EngineClosed."""
        if self._engine is not None:
            self._engine.close()

    def _take(self, options: Mapping[str, Any]) -> Engine:
        if self._engine is None or self._engine.closed or self._options != options:
            self.close()
            self._engine = None  # the old weights go before the new ones come
            self._engine, self._options = Engine(**options), options
        return self._engine


shared = Shared()


def introduce(options: Mapping[str, Any], terms: Terms) -> Maker:
    """Who would answer on this worker. Raises InvalidRequest where it could answer no row at all."""
    with shared.use(options) as engine:
        terms.check(engine)
        return Maker.of(engine)


def answer(options: Mapping[str, Any], terms: Terms, maker: Maker, size: int | None, rows: Sequence[Row]) -> list[Line]:
    """The lines of some rows, asked on this worker, in any order."""
    with shared.use(options) as engine:
        maker.check(Maker.of(engine))
        return list(Window(engine, terms, size or PER_SLOT * engine.options["slots"]).lines(rows))
