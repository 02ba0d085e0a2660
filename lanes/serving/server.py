"""A server in a background thread: it binds at once, answers until it is closed, and leaves no thread and no port."""

import asyncio
import contextlib
import socket
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette

from lanes.engine.notebook import watch
from lanes.errors import LanesError
from lanes.serving.app import application
from lanes.serving.context import Context
from lanes.serving.protocol import Protocol
from lanes.serving.settings import Settings

if TYPE_CHECKING:
    from lanes.engine import Engine

TICK_S = 0.05
"""Seconds between two looks at whether a stopped server has answered everybody."""
LAST_S = 5.0
"""Seconds for the last answers, once requests were told to end."""
JOIN_S = 30.0
"""Seconds to wait for the thread: it ends by itself long before."""


@dataclass
class _Run:
    """What the thread and whoever closes it share."""

    app: Starlette
    listener: socket.socket
    settings: Settings
    ready: "Future[None]" = field(default_factory=Future)
    loop: asyncio.AbstractEventLoop | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    thread: threading.Thread | None = None

    @property
    def context(self) -> Context:
        return self.app.state.context


class Server:
    """Answers HTTP for one engine until `close()`; a context manager. `url` is where it is.

    One that nobody holds any more closes itself. Closing it leaves the engine as it is.
    """

    def __init__(self, engine: "Engine", settings: Settings) -> None:
        self.settings = settings
        app = application(engine, settings)
        self._run = _Run(app, _bind(settings), settings)
        self._close = weakref.finalize(self, _shut, self._run)
        host, self.port = self._run.listener.getsockname()[:2]
        self.host = f"[{host}]" if ":" in host else host
        self._run.thread = threading.Thread(target=_serve, args=(self._run,), name="lanes-serve", daemon=True)
        self._run.thread.start()
        self._run.ready.result(JOIN_S)
        watch(self)

    @property
    def url(self) -> str:
        """Where it answers, such as "http://127.0.0.1:8000"; OpenAI's clients want "/v1" behind it."""
        return f"http://{self.host}:{self.port}"

    @property
    def engine(self) -> "Engine":
        """The engine that it serves."""
        return self._run.context.engine

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._close.alive

    def close(self) -> None:
        """Take no more requests, give open ones `grace` seconds, end the others with 503, and free the port."""
        self._close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "with decisions" if self.settings.decisions else "without decisions"
        return f"Server({self.url!r}, {self.engine.model!r}, {state})"


def serve(engine: "Engine", **settings: Any) -> Server:
    """Answer HTTP for this engine, from a background thread; returns at once."""
    return Server(engine, Settings.read(**settings))


def _bind(settings: Settings) -> socket.socket:
    """The listening socket: an address that cannot be had is refused on the caller's thread."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=512)
    except OSError as error:
        raise LanesError(
            f"cannot listen on {settings.host}:{settings.port}: {error}. Close what holds it, or use port=0"
        ) from error
    listener.setblocking(False)
    return listener


def _serve(run: _Run) -> None:
    """The thread: one event loop for everything."""
    try:
        asyncio.run(_answer(run))
    except BaseException as error:
        if not run.ready.done():
            run.ready.set_exception(LanesError(f"the server did not start: {error}"))
        else:
            raise
    finally:
        run.listener.close()


async def _answer(run: _Run) -> None:
    config = uvicorn.Config(
        run.app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=None,
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup([run.listener])
    run.loop = asyncio.get_running_loop()
    beat = asyncio.ensure_future(server.main_loop())
    run.ready.set_result(None)
    await run.stop.wait()
    server.should_exit = True
    await beat
    await _end(server, run)


async def _end(server: uvicorn.Server, run: _Run) -> None:
    """Close the door, let open requests finish for a while, then tell them to, then hang up."""
    for one in server.servers:
        one.close()
    state = server.server_state
    for connection in list(state.connections):
        connection.shutdown()
    await _emptied(state, run.settings.grace)
    run.context.stopping.set()
    await _emptied(state, LAST_S)
    for task in list(state.tasks):
        task.cancel()
    for connection in list(state.connections):
        connection.transport.abort()
    await _emptied(state, LAST_S)


async def _emptied(state: Any, seconds: float) -> None:
    """Wait until everybody was answered, at most so long."""
    end = asyncio.get_running_loop().time() + seconds
    while (state.connections or state.tasks) and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(TICK_S)


def _shut(run: _Run) -> None:
    """Stop the thread and wait for it; safe from any thread and at the interpreter's exit."""
    if run.loop is not None:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            run.loop.call_soon_threadsafe(run.stop.set)
    if run.thread is not None and run.thread is not threading.current_thread() and run.thread.ident is not None:
        run.thread.join(run.settings.grace + 2 * LAST_S + JOIN_S)
    run.listener.close()
