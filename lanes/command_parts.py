"""What the commands of the command line share: options, the model by its name, errors as one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import lanes
from lanes.__main__ import INTERRUPTED
from lanes.errors import LanesError

TINY = "tiny:"

Model = Annotated[
    str,
    typer.Option(help='"default" (fetched once), a folder, a hub id, or "tiny:llama" (random weights, for a try).'),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to stdout.")]


def chosen(name: str) -> Any:
    """What the engine takes for a model's name on the command line."""
    return lanes.tiny(name.removeprefix(TINY)) if name.startswith(TINY) else name


@contextmanager
def reported(code: int = 1) -> Iterator[None]:
    """Errors that say what to do become one line on stderr and this exit code; Ctrl-C ends without a traceback."""
    try:
        yield
    except LanesError as error:
        typer.echo(f"lanes: {error}", err=True)
        raise typer.Exit(code) from error
    except KeyboardInterrupt:
        typer.echo("lanes: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
