"""Servers on a free port over a tiny model, and what must hold once they are closed."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def talk(server: Server, said: bytes) -> bytes:
    """Say this on a bare connection, and hear what comes until the other side hangs up."""
    heard = b""
    with socket.create_connection(("127.0.0.1", server.port), WAIT) as one, suppress(ConnectionError, TimeoutError):
        with suppress(OSError):  # it may be refused, and hung up, before all of it was said
            one.sendall(said)
            one.shutdown(socket.SHUT_WR)
        while part := one.recv(1 << 16):
            heard += part
    return heard


GOOD: dict[str, JSON] = {
    "/v1/systemone": {
        "model": "jev-latest",
        "state": {"message": "I was charged twice."},
        "questions": {
            "billing": {"type": "noul", "instructions": "About billing?"},
            "team": {
                "type": "choice",
                "instructions": "Which team?",
                "criteria": {"billing": "Payments", "other": None},
            },
            "urgency": {"type": "score", "instructions": "How urgent?", "criteria": ["low", "high"]},
        },
    },
    "/v1/decisions": {
        "model": "default",
        "input": "I was charged twice.",
        "questions": [{"type": "predicate", "name": "refund", "instructions": "The customer wants a refund."}],
    },
    "/v1/chat/completions": {
        "model": "default",
        "messages": [{"role": "user", "content": "Tell me"}],
        "max_tokens": 4,
        "temperature": 0,
    },
    "/v1/completions": {"model": "default", "prompt": "Tell me", "max_tokens": 4, "temperature": 0},
}
"""A good body for each endpoint that takes one."""
