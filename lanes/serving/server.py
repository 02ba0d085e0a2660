"""A server in a background thread: it binds at once, answers until it is closed, and leaves no thread and no port."""

import atexit
import os
import socket
from collections.abc import Sequence

from lanes.engine import Engine
from lanes.engine.notebook import watch
from lanes.errors import InvalidRequest, LanesError
from lanes.record.show import html_page, html_table
from lanes.serving.app import application
from lanes.serving.settings import MiB, Settings
from lanes.serving.thread import BACKLOG, Run

_running: "set[Server]" = set()
"""Servers that were not closed: they answer whether or not somebody holds them."""
_EVERYWHERE = ("0.0.0.0", "::")


class Server:
    """Answers HTTP for one engine, from a thread of its own, until `close()`; a context manager. See `lanes.serve`."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.settings = settings
        self._run = Run(application(engine, settings), settings)
        try:
            listener = _listen(settings)
            self._host, self.port = listener.getsockname()[:2]
            self._run.start(listener)
            _running.add(self)
            watch(self)
        except BaseException:  # an interrupt at any moment leaves neither a thread nor a taken port
            self.close()
            raise

    @property
    def url(self) -> str:
        """Where it answers, such as "http://127.0.0.1:8000"; OpenAI's clients want "/v1" behind it."""
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self.port}"

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._run.ended

    def close(self) -> None:
        """Take no more requests, give open ones `grace` seconds, end the others with 503, and free the port.

        The engine goes on. Closing twice is fine.
        """
        self._run.stop()
        _running.discard(self)

    def holds(self, host: str, port: int) -> bool:
        """Whether it keeps others from this address, which is given in numbers."""
        if self.port != port or (":" in self._host) != (":" in host):
            return False
        return host in (self._host, *_EVERYWHERE) or self._host in _EVERYWHERE

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _facts(self) -> list[tuple[str, str]]:
        own = self.settings
        return [
            ("model", self.engine.model),
            ("decisions", "on" if own.decisions else "off"),
            ("keys", "needed" if own.api_keys else "not needed"),
            ("deadline", "none" if own.deadline is None else f"{own.deadline:g} s"),
            ("largest body", f"{own.body_bytes / MiB:g} MiB"),
        ]

    def __repr__(self) -> str:
        state = "closed" if self.closed else ", ".join(f"{name} {value}" for name, value in self._facts()[1:3])
        return f"Server({self.url!r}, {self.engine.model!r}, {state})"

    def _repr_html_(self) -> str:
        return html_page(
            f"Server at {self.url}" + (" (closed)" if self.closed else ""), html_table(("", ""), self._facts())
        )


def serve(
    engine: Engine,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    decisions: bool = False,
    api_keys: str | Sequence[str] = (),
    hosts: str | Sequence[str] = (),
    origins: str | Sequence[str] = (),
    show_prompts: bool = False,
    deadline: float | None = None,
    body_bytes: int = 8 * MiB,
    requests: int = 256,
    patience: float = 30.0,
    grace: float = 5.0,
) -> Server:
    """Answer HTTP for this engine from a background thread; returns at once, with the `Server` that closes it.

    host, port: where to listen; port 0 takes a free one. A server of this process that holds the port already is closed
    first, so that a cell can be run again. decisions: also answer `/v1/systemone` and `/v1/decisions`, which are 404
    otherwise. api_keys: one of them must come with each request (but `/health`), as `Authorization: Bearer KEY`; a host
    that other machines can reach needs some. hosts: names beside its own and localhost that the server may be called
    by, "*" for any. origins: web pages, such as "https://example.org", whose scripts may use the server, "*" for any.
    show_prompts: show prompts and texts in `/slots`. deadline: the most seconds that a request may take, whatever its
    own header `x-deadline` says; None for no limit. body_bytes: the largest body, compressed or not. requests: how many
    are answered at once; more are told to come back. patience: seconds in which a client must send its request, and
    take what was written. grace: seconds that open requests get when the server is closed.

    Raises InvalidRequest for settings that cannot work, and LanesError where it cannot listen.
    """
    settings = Settings.read(
        host=host,
        port=port,
        decisions=decisions,
        api_keys=api_keys,
        hosts=hosts,
        origins=origins,
        show_prompts=show_prompts,
        deadline=deadline,
        body_bytes=body_bytes,
        requests=requests,
        patience=patience,
        grace=grace,
    )
    if not isinstance(engine, Engine):
        raise InvalidRequest(f"engine must be a lanes.Engine, not {engine!r:.80}")
    return Server(engine, settings)


def _listen(settings: Settings) -> socket.socket:
    """The listening socket; servers of this process let go of its address. Raises LanesError where it cannot be had."""
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        host, port = str(address[0]), int(address[1])
        for before in [one for one in _running if one.holds(host, port)]:
            before.close()
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # Connections inherit it; without, the end of an answer waits 40 ms for the client's delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        why = str(error.strerror).partition(" (")[0]  # Python says the address once more
        raise LanesError(f"cannot listen on {where} ({why}): close what does, or use port=0") from error


@atexit.register
def _close_all() -> None:
    for server in list(_running):
        server.close()


def _disown_all() -> None:
    """In a forked child, where no thread serves: let go of the ports, which belong to the parent."""
    for server in list(_running):
        server._run.disown()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
