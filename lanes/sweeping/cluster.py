"""A sweep on the workers of a `dask.distributed` client: rows go out in chunks, lines come back as chunks are done."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from distributed import Client, Future, KilledWorker, Worker, WorkerPlugin, wait
from distributed.core import Status

from lanes.engine import Engine
from lanes.errors import EngineFailed, InvalidRequest
from lanes.sweeping import workers
from lanes.sweeping.lines import Line
from lanes.sweeping.rows import Row
from lanes.sweeping.terms import Maker, Terms

CHUNK = 32
"""Rows of a task: what is asked again when a worker dies."""
AHEAD = 2
"""Tasks on their way for each thread of the workers: one that runs, one that is there when it ends."""
RETRIES = 3
"""How often a task is tried again after an engine was closed or stalled under it."""


class _CloseEngine(WorkerPlugin):
    """Closes the engine of a worker that goes."""

    name = "lanes-engine"
    idempotent = True

    def teardown(self, worker: Worker) -> None:
        if worker.status is not Status.running:  # not where the plugin alone is replaced
            workers.shared.close()


@dataclass(frozen=True)
class Cluster:
    """The workers of a client, and what they are to do; `maker` is whom all of their engines must equal."""

    client: Any
    options: Mapping[str, Any]
    terms: Terms
    size: int | None
    maker: Maker

    @classmethod
    def of(cls, client: Any, engine: Any, terms: Terms, size: int | None) -> "Cluster":
        """The cluster of this client, with engines as the given one, or with these arguments."""
        if not isinstance(client, Client) or client.asynchronous:
            raise InvalidRequest("client must be a dask.distributed.Client that is not asynchronous")
        client.register_plugin(_CloseEngine())
        if not isinstance(engine, Engine):
            options = _options(engine)
            return cls(client, options, terms, size, _run(client, workers.introduce, options, terms))
        terms.check(engine)
        maker = Maker.of(engine)
        # The width that was found here, so that no worker picks another one.
        pinned = {"width": maker.width} if maker.route == "packed" else {}
        return cls(client, {**_options(engine.options), **pinned}, terms, size, maker)

    def lines(self, rows: Iterable[Row]) -> Generator[Line, None, None]:
        """The rows' lines as they come, in any order; closing this cancels what no worker has begun.

        A worker that dies costs only time: its chunks go to others. Raises what ended a chunk otherwise.
        """
        coming = iter(rows)
        waiting: set[Future] = set()
        try:
            while True:
                while len(waiting) < self._room() and (chunk := list(islice(coming, CHUNK))):
                    waiting.add(self._submit(chunk))
                if not waiting:
                    return
                done, waiting = cast(Any, wait(waiting, return_when="FIRST_COMPLETED"))
                for future in done:
                    yield from _result(future)
        finally:
            self.client.cancel(list(waiting))

    def _room(self) -> int:
        return AHEAD * max(1, sum(self.client.nthreads().values()))

    def _submit(self, chunk: list[Row]) -> Future:
        return self.client.submit(
            workers.answer, self.options, self.terms, self.maker, self.size, chunk, pure=False, retries=RETRIES
        )


def _options(engine: Any) -> dict[str, Any]:
    if not isinstance(engine, Mapping):
        raise InvalidRequest(f"engine must be a lanes.Engine or a dict of its arguments, not {type(engine).__name__}")
    return {**engine, "progress": False}


def _run(client: Client, work: Any, *args: Any) -> Any:
    return _result(client.submit(work, *args, pure=False, retries=RETRIES))


def _result(future: Future) -> Any:
    try:
        return future.result()
    except KilledWorker as error:
        raise EngineFailed(
            f"every worker that took these rows died, so they were given up: {error}. "
            "Look at the workers' logs; a sweep with a path goes on where it was"
        ) from error
