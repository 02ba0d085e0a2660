"""Run a receipt's notebook again, here, with its parameters, and compare what comes out."""

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanes import checks
from lanes.errors import InvalidRequest, LanesError
from lanes.receipts import door, source
from lanes.receipts.audit import Finding
from lanes.receipts.receipt import Receipt, read
from lanes.receipts.repeat import differing, remarks
from lanes.receipts.verdict import Verdict
from lanes.receipts.verify import verify

if TYPE_CHECKING:
    from nbformat import NotebookNode

PARAMETERS = "parameters"
"""The tag of the cell after which the recorded parameters are set."""
CELL_S = 900.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def rerun(path: str | Path, *, timeout: float = CELL_S, notebooks: str | Path | None = None) -> Verdict:
    """Run the notebook of a receipt in a folder of its own and compare both receipts.

    timeout: seconds that a cell may take. notebooks: a folder to look for the notebook in first. What must be equal and
    is not are findings; what may differ, such as times, is told in words. Raises InvalidRequest for what is no receipt,
    LanesError where notebooks cannot be run here.
    """
    limit = checks.seconds("timeout", timeout)
    there, name = read(path), door.path(path).name
    if there.record.notebook is None:
        return Verdict(name, (Finding("notebook", "none is named, so there is nothing to run"),), ())
    try:
        found = source.find(there.record.notebook.name, [] if notebooks is None else [Path(notebooks)])
    except InvalidRequest as error:
        return Verdict(name, (Finding("notebook.name", str(error)),), ())
    data = found.read_bytes()
    if (own := source.code_hash(data)) != there.record.notebook.sha256:
        says = f"recorded {there.record.notebook.sha256[:12]}, the code of {found.name} here has {own[:12]}"
        return Verdict(name, (Finding("notebook.sha256", f"{says}: check out the commit that it was made with"),), ())
    with tempfile.TemporaryDirectory(prefix="lanes-rerun-") as folder:
        Path(folder, found.name).write_bytes(data)
        wrong = run(data, there.record.parameters, Path(folder), limit)
        return Verdict(name, (wrong,), ()) if wrong else _compared(name, there, Path(folder))


def run(data: bytes, parameters: Mapping[str, Any], folder: Path, timeout: float) -> Finding | None:
    """Run a notebook in a folder with these parameters; what went wrong, if anything did."""
    try:
        import nbformat
        from jupyter_client.kernelspec import NoSuchKernel
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError as error:
        raise LanesError(f'notebooks cannot be run here ({error}): run `pip install "mlx-lanes[lab]"`') from error
    notebook = with_parameters(nbformat.reads(data.decode(), as_version=4), parameters)
    place = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=max(1, int(timeout)), kernel_name="python3", resources=place)
    # The kernel has to run this very code, installed or not.
    paths = [str(source.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    try:
        client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))})
    except NoSuchKernel as error:
        raise LanesError(f'there is no Python kernel here ({error}): run `pip install "mlx-lanes[lab]"`') from error
    except CellTimeoutError:
        return Finding("rerun", f"a cell took longer than {timeout:g} s: give it more (--timeout)")
    except DeadKernelError as error:
        return Finding("rerun", f"the kernel died: {error}")
    except CellExecutionError as error:
        return Finding("rerun", f"a cell failed: {error.ename}: {_COLOURS.sub('', str(error.evalue))[:300]}")
    return None


def with_parameters(notebook: "NotebookNode", parameters: Mapping[str, Any]) -> "NotebookNode":
    """The notebook with a cell more, after its cell of parameters, that sets them; unchanged where it has none."""
    import nbformat

    tagged = (at for at, cell in enumerate(notebook.cells) if PARAMETERS in cell.metadata.get("tags", []))
    if (at := next(tagged, None)) is None or not parameters:
        return notebook
    lines = [f"{name} = {value!r}" for name, value in parameters.items()]
    cell = nbformat.v4.new_code_cell("\n".join(lines), id="recorded-parameters")
    notebook.cells.insert(at + 1, cell)
    return notebook


def _compared(name: str, there: Receipt, folder: Path) -> Verdict:
    """The receipt that a run left in a folder, beside the one that it should repeat."""
    paths = [path for path in folder.rglob("*.json") if re.fullmatch(r"[0-9a-f]{64}", path.stem)]
    made = {path: read(path) for path in sorted(paths, key=lambda path: path.stat().st_mtime)}
    own = [(path, receipt) for path, receipt in made.items() if receipt.record.topic == there.record.topic]
    if not own:
        says = f"the notebook sealed no receipt of {there.record.topic!r} in its folder"
        return Verdict(name, (Finding("rerun", says),), ())
    path, here = own[-1]
    wrong = [
        Finding(f"rerun.{finding.field}", finding.says)
        for finding in verify(path, any_commit=True, notebooks=folder).findings
    ]
    if here.record.project.sources_sha256 != source.sources(source.PACKAGE):
        wrong.append(Finding("rerun.project.sources_sha256", "the kernel ran other code than this command"))
    findings = (*differing(there.record, here.record), *wrong)
    return Verdict(name, findings, tuple(remarks(there.record, here.record)))
