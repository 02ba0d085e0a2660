"""Servers on a free port over a tiny model, and what must hold once they are closed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from rigs import WAIT, threads, until

import lanes
from lanes.serving import Server

JSON = dict[str, Any]


@contextmanager
def serving(engine: lanes.Engine, **settings: Any) -> Iterator[Server]:
    """A server for this engine on a free port; closing it must end its threads and free its port."""
    before = set(threads("lanes-serve"))
    with lanes.serve(engine, **{"port": 0, "decisions": True, **settings}) as server:
        yield server
    until(lambda: not set(threads("lanes-serve")) - before)


def client(server: Server, **options: Any) -> httpx.Client:
    """A plain client of this server."""
    return httpx.Client(base_url=server.url, timeout=WAIT, **options)


def post(server: Server, path: str, body: Any, **options: Any) -> httpx.Response:
    """One POST of a JSON body."""
    with client(server) as one:
        return one.post(path, json=body, **options)
