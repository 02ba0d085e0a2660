"""`lanes serve`: an engine and a server until somebody ends them."""

import json
import signal
from importlib.util import find_spec
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

import lanes
from lanes.command_parts import Json, Model, chosen, reported
from lanes.errors import LanesError

if TYPE_CHECKING:
    from lanes.serving import Server

NEEDED = ("starlette", "uvicorn", "zstandard", "prometheus_client")
LOOK_S = 0.5
"""Seconds between two looks at whether the engine is still there."""


def serve(
    model: Model = "default",
    slots: Annotated[int, typer.Option(help="How many requests run at once.", min=1)] = 8,
    host: Annotated[str, typer.Option(help="Where to listen; one that others can reach needs a key.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 8000,
    decisions: Annotated[bool, typer.Option("--decisions", help="Also answer typed questions.")] = False,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="A key that requests must carry; may be given again.", envvar="LANES_API_KEYS"),
    ] = None,
    host_name: Annotated[
        list[str] | None, typer.Option(help="A name that it may be called by, beside its own.")
    ] = None,
    origin: Annotated[list[str] | None, typer.Option(help="A web page, by its origin, that may use it.")] = None,
    show_prompts: Annotated[bool, typer.Option("--show-prompts", help="Show prompts in /slots.")] = False,
    deadline: Annotated[float | None, typer.Option(help="The most seconds that a request may take.")] = None,
    as_json: Json = False,
) -> None:
    """Answer clients of OpenAI and of System One over HTTP, until Ctrl-C."""
    with reported():
        _check_installed()
        stop = Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            with (
                lanes.Engine(chosen(model), slots, progress=not as_json) as engine,
                lanes.serve(
                    engine,
                    host=host,
                    port=port,
                    decisions=decisions,
                    api_keys=api_key or (),
                    hosts=host_name or (),
                    origins=origin or (),
                    show_prompts=show_prompts,
                    deadline=deadline,
                ) as server,
            ):
                _tell(server, as_json)
                while not stop.wait(LOOK_S):
                    if engine.closed:
                        raise LanesError("the engine ended by itself, so the server does too: start it again")
        finally:
            signal.signal(signal.SIGTERM, before)


def _check_installed() -> None:
    if lacking := [name for name in NEEDED if find_spec(name) is None]:
        raise LanesError(f'{", ".join(lacking)} not installed: run `pip install "mlx-lanes[serve]"`')


def _tell(server: "Server", as_json: bool) -> None:
    """Where it is; at once, also into a pipe."""
    if as_json:
        own = server.settings
        facts = {
            "url": server.url,
            "model": server.engine.model,
            "decisions": own.decisions,
            "keys": bool(own.api_keys),
        }
        return typer.echo(json.dumps(facts))
    typer.echo(f"{server.engine.model} answers at {server.url} (OpenAI clients: {server.url}/v1). Ctrl-C ends it.")
