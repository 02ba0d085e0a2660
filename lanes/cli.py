"""The command line: `lanes demo`, `bench`, `doctor`, `lab`, `serve`, `verify` and `receipts`.

Results go to stdout, with --json as JSON and nothing else; progress and errors go to stderr. Exit codes: 0, 1 for an
error or something to mend, 2 for wrong usage or a file that is of no use, 130 for Ctrl-C.
"""

import atexit
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import lanes
from lanes import serve_command
from lanes.command_parts import Json, Model, chosen, reported
from lanes.doctor import Check
from lanes.errors import LanesError
from lanes.models import DEFAULT
from lanes.models.default import PARCEL, model_folder
from lanes.models.fetch import intact

LONG_PROMPT = 2000
UNUSABLE = 2
NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Quick = Annotated[bool, typer.Option("--quick", help="Measure less: faster, and noisier.")]


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mlx-lanes {lanes.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Text streams and decisions from one small language-model engine."""


@app.command()
def demo(
    model: Model = "default",
    slots: Annotated[int, typer.Option(help="How many requests run at once.", min=2)] = 8,
    quick: Quick = False,
    long: Annotated[
        bool, typer.Option("--long", help="Also fill a prompt of 2,000 tokens beside the streams.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run four live streams, ask decisions beside them, and print what that cost."""
    with reported():
        from lanes import demo as demo_

        sizes = demo_.QUICK if quick else demo_.FULL
        sizes = replace(sizes, long=LONG_PROMPT) if long else sizes
        with _watched():
            found = demo_.run(chosen(model), slots, sizes, _silent if as_json else typer.echo)
        _print(found, as_json)


@app.command()
def bench(
    model: Model = "default",
    piece: Annotated[int, typer.Option(help="Prompt tokens filled at once, on both sides.", min=1)] = 32,
    quick: Quick = False,
    as_json: Json = False,
) -> None:
    """Compare decoding and prompt filling with mlx-lm's own, in one run."""
    with reported():
        from lanes import bench as bench_

        with _watched():
            found = bench_.run(chosen(model), piece, bench_.QUICK if quick else bench_.FULL)
        _print(found, as_json)


@app.command()
def doctor(
    model: Model = "default",
    exactness: Annotated[bool, typer.Option(help="Start an engine to prove what is exact on this machine.")] = True,
    as_json: Json = False,
) -> None:
    """Look at this machine: device, BLAS, threads, versions, model, cache, exactness, and what to mend."""
    with reported():
        report = lanes.examine()
        if exactness:
            report = replace(report, checks=(*report.checks, _prove(model)))
        _print(report, as_json)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def lab(
    folder: Annotated[Path | None, typer.Argument(help="A folder; the project's notebooks, or this one.")] = None,
) -> None:
    """Open JupyterLab on the notebooks."""
    with reported():
        if importlib.util.find_spec("jupyterlab") is None:
            raise LanesError('JupyterLab is not installed: run `pip install "mlx-lanes[lab]"`')
        where = folder or (NOTEBOOKS if NOTEBOOKS.is_dir() else Path())
        if not where.is_dir():
            raise LanesError(f"there is no folder {where}: give one that holds notebooks, or leave it out")
        code = subprocess.call([sys.executable, "-m", "jupyterlab", str(where)])
    raise typer.Exit(code)


app.command()(serve_command.serve)


@app.command()
def verify(
    files: Annotated[list[Path], typer.Argument(help="Receipts: files named by their sha256.", show_default=False)],
    rerun: Annotated[bool, typer.Option("--rerun", help="Run their notebooks here, too, and compare.")] = False,
    any_commit: Annotated[
        bool, typer.Option("--any-commit", help="Take receipts that were made with other code than the one here.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds that a cell of a rerun may take.", min=1)] = 900.0,
    as_json: Json = False,
) -> None:
    """Hold receipts against themselves, the code here and their notebooks. Ends with 0 where all hold, else 1 or 2."""
    with reported(UNUSABLE):
        found = [_verified(file, rerun, any_commit, timeout, as_json) for file in files]
    if as_json:
        typer.echo(json.dumps([told for _, told in found], indent=2))
    raise typer.Exit(max(code for code, _ in found))


@app.command()
def receipts(
    folder: Annotated[Path, typer.Argument(help="A folder of receipts.", show_default=False)],
    html: Annotated[Path | None, typer.Option(help="Write the comparison to this file, as a page.")] = None,
    as_json: Json = False,
) -> None:
    """List the receipts of a folder and compare those of one claim, from several machines and commits."""
    with reported(UNUSABLE):
        from lanes import receipts as receipts_

        found = receipts_.compare(folder)
        if html is not None:
            found.save(html)
        _print(found, as_json)
    if not found.ok:
        raise typer.Exit(1)


def _verified(file: Path, rerun: bool, any_commit: bool, timeout: float, silent: bool) -> tuple[int, dict[str, Any]]:
    """One receipt's exit code and verdict, told as soon as it is there."""
    from lanes import receipts as receipts_

    try:
        verdict = receipts_.verify(file, any_commit=any_commit)
        if rerun:
            verdict = verdict.plus(receipts_.rerun(file, timeout=timeout))
    except LanesError as error:
        typer.echo(f"lanes: {error}", err=True)
        return UNUSABLE, {"name": file.name, "ok": False, "error": str(error)}
    if not silent:
        typer.echo(str(verdict))
    return int(not verdict.ok), verdict.to_dict()


def _prove(name: str) -> Check:
    """Start an engine and see what it finds out about itself. Nothing is fetched for this."""
    if name == DEFAULT and not intact(model_folder() / Path(PARCEL.member).name, PARCEL):
        return Check("exactness", "not loaded: the model is fetched at first use, for example by `lanes demo`")
    try:
        with lanes.Engine(chosen(name), progress=False) as engine:
            return Check("exactness", f"{engine.model}: {engine.exactness}")
    except (LanesError, ImportError) as error:
        return Check("exactness", "not known: no engine could start", False, str(error))


def _silent(line: str) -> None:
    """Tell no story: with --json, stdout is for the result alone."""


def _print(found: Any, as_json: bool) -> None:
    typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


@contextmanager
def _watched() -> Iterator[None]:
    """Say on stderr where other programs disturbed what was measured."""
    from lanes.measure.load import Load, complaint

    before = Load.now()
    yield
    if said := complaint(before.by_others(Load.now())):
        typer.echo(f"lanes: {said}", err=True)


@atexit.register
def _clear_streams() -> None:
    """A thread that keeps MLX's streams can crash the interpreter when it ends, and so can the main one."""
    if mlx := sys.modules.get("mlx.core"):
        mlx.clear_streams()
