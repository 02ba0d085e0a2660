"""The thread of a server: one event loop, from the first connection to the last good-bye."""

import asyncio
import socket
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread, current_thread

import uvicorn
from starlette.applications import Starlette

from lanes.errors import LanesError
from lanes.serving.context import Context
from lanes.serving.protocol import patient
from lanes.serving.settings import Settings

try:
    import resource
except ModuleNotFoundError:  # Windows knows no such limit
    resource = None

START_S = 30.0
"""Seconds to wait for the event loop to begin."""
LAST_S = 2.0
"""Seconds for last answers, once open requests were told to end."""
IDLE_S = 5.0
"""Seconds that a connection may be idle between two requests."""
HEAD_BYTES = 1 << 16
"""The largest head of a request."""
BACKLOG = 128
"""Connections that may wait to be accepted; so many are, before the first of them is looked at."""


class Run:
    """One server's thread. `start` returns once it answers, `stop` once it is gone."""

    def __init__(self, app: Starlette, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._listeners: list[socket.socket] = []
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._server = _Uvicorn(_config(app, settings), self._ready)
        self._thread = Thread(target=self._serve, name="lanes-serve", daemon=True)
        self.ended = False

    @property
    def context(self) -> Context:
        """What the endpoints share."""
        return self._app.state.context

    def start(self, listener: socket.socket) -> None:
        """Begin to answer. Raises LanesError where the event loop does not begin; `stop` ends what began by then."""
        self._listeners.append(listener)
        self._thread.start()
        try:
            self._ready.result(START_S)
        except Exception as error:
            raise LanesError(f"the server did not start: {error}") from error

    def stop(self) -> None:
        """End, however far it came, and wait for it; safe on any thread, and twice."""
        self.ended = True
        self._server.should_exit = True  # before `_ready` is looked at: the loop looks at this one once it is ready
        if self._ready.done() and not self._ready.exception():
            with suppress(RuntimeError):  # the loop is closed: it has ended already
                self._ready.result().call_soon_threadsafe(self._leave)
        if not self._thread.is_alive():
            self._close_listeners()  # it may never have begun
        elif self._thread is not current_thread():
            self._thread.join(self._settings.grace + 2 * LAST_S + START_S)

    def disown(self) -> None:
        """Forget the thread, which is another process's, and let go of the port."""
        self.ended = True
        self._close_listeners()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()

    def _leave(self) -> None:
        """On the loop: after some grace, tell open requests to end."""
        asyncio.get_running_loop().call_later(self._settings.grace, self.context.stopping.set)

    def _serve(self) -> None:
        try:
            asyncio.run(self._answer())
        except BaseException as error:  # whoever started it waits for it, or nobody does any more
            if self._ready.done():
                raise
            self._ready.set_exception(error)
        finally:
            self.ended = True
            self._close_listeners()

    async def _answer(self) -> None:
        await self._server.serve(self._listeners)
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()  # what it does not take now is lost
        await asyncio.sleep(0)


class _Uvicorn(uvicorn.Server):
    """It says when it has begun."""

    def __init__(self, config: uvicorn.Config, ready: "Future[asyncio.AbstractEventLoop]") -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set_result(asyncio.get_running_loop())


def most_connections(requests: int) -> int:
    """Twice as many as requests, but no more than half of the files that this process may open: others need some."""
    if resource is None:
        return 2 * requests
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * requests if files == resource.RLIM_INFINITY else min(2 * requests, files // 2)


def _config(app: Starlette, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=patient(settings.patience, most_connections(settings.requests)),
        ws="none",
        loop="none",
        lifespan="off",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(IDLE_S),
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_graceful_shutdown=settings.grace + LAST_S,  # pyright: ignore[reportArgumentType]
    )
