"""Receipts whose notebooks are run again: what must be equal is compared, what may differ is told."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import NoSuchKernel
from nbclient import NotebookClient, exceptions
from sealed import Checkout, checkout, drafted, edit, forged, write_notebook

from lanes import receipts
from lanes.errors import InvalidRequest, LanesError
from lanes.receipts import source
from lanes.receipts.repeat import differing, remarks
from lanes.receipts.rerun import run, with_parameters
from lanes.receipts.shapes import Record

CELLS = [
    "size = 2\nseed = 0",
    "import asyncio\nfrom lanes import receipts\n\n\nasync def nap():\n    await asyncio.sleep(0.001 * size)\n"
    "    return {'naps': size}",
    'given = {"size": size, "seed": seed}\n'
    'receipt = receipts.begin("naps", "Naps are counted.", parameters=given, notebook="naps.ipynb")',
    'await receipt.measure({"first": nap, "second": nap}, repeats=2)\n'
    'receipt.ratio("second over first", ("second", "seconds"), ("first", "seconds"))\n'
    'receipt.within("naps", ("first", "naps"), low=size, high=size)',
    "path = receipt.close()",
]
"""A notebook that measures with the very package under test, and needs no model."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return checkout(tmp_path / "project", monkeypatch)


@pytest.fixture
def path(project: Checkout, tmp_path: Path) -> Path:
    return drafted().close(tmp_path / "receipts")


def again(path: Path, **changes: Any) -> Record:
    """The record of a receipt, with changes."""
    return receipts.read(path).record.model_copy(update=changes)


def fields(there: Record, here: Record) -> list[str]:
    return [finding.field for finding in differing(there, here)]


# --- two records ------------------------------------------------------------------------------------------------------


def test_another_run_of_the_same_may_have_other_times(project: Checkout, tmp_path: Path):
    there, here = drafted().record(), drafted().record()
    assert fields(there, here) == []
    told = list(remarks(there, here))
    assert told[0].startswith("rerun: digests are equal bit for bit")
    assert re.fullmatch(r"rerun: beside over idle: \d\.\d+ there, \d\.\d+ here \(stated at most 3\)", told[1])
    assert told[2].startswith("rerun: idle, median seconds: 0.5")


DIFFERENT: list[tuple[Callable[[Any], object], str]] = [
    (edit("parameters", "size", to=9), "parameters.size"),
    (edit("claim", to="Another."), "claim"),
    (edit("notebook", "sha256", to="0" * 64), "notebook.sha256"),
    (edit("arms", 0, "repeats", to=9), "arms"),
    (edit("prompts", 0, "sha256", to="0" * 64), "prompts"),
    (edit("checks", 0, "name", to="another"), "checks.name"),
    (edit("ratios", 0, "name", to="another"), "ratios.name"),
    (edit("checks", 0, "passed", to=False), "checks.0.passed"),
    (edit("checks", 1, "evidence", "first", to=["aa", "cc"]), "checks.1.evidence.first"),
    (edit("checks", 2, "expected", "high", to=9.0), "checks.2.expected.high"),
    (edit("engines", "engine", "model", "fingerprint", to="2" * 64), "engines.fingerprint.engine"),
    (edit("replies", 0, "token_sha", to="2" * 12), "replies.0.token_sha"),
    (edit("replies", 0, "tokens", to=3), "replies.0.tokens"),
    (edit("replies", 0, "logits_sha256", to="2" * 64), "replies.0.logits_sha256"),
    (edit("replies", to=[]), "replies.name"),
]


def full(path: Path) -> Path:
    """The receipt with an engine and a reply, of which the comparison reads the hashes alone."""
    model = dict.fromkeys(("name", "arch", "source", "dtype"), "x") | {
        "quantization": None, "files": {}, "tokenizer_sha256": "1" * 64, "fingerprint": "1" * 64,
    }  # fmt: skip
    reply = {
        "name": "first", "prompt_sha256": "1" * 64, "prompt_tokens": 2, "tokens": 2, "finish_reason": "length",
        "token_sha": "1" * 12, "logits_sha256": "1" * 64, "text": None,
    }  # fmt: skip

    def add(value: dict[str, Any]) -> None:
        value["engines"] = {"engine": {"model": model, "settings": {}, "exactness": {}}}
        value["replies"] = [reply]

    return forged(path, add)


@pytest.mark.parametrize("at", range(len(DIFFERENT)), ids=[field for _, field in DIFFERENT])
def test_what_must_be_equal_is_compared(path: Path, at: int):
    change, field = DIFFERENT[at]
    whole = full(path)
    assert fields(again(whole), again(whole)) == []
    assert fields(again(whole), again(forged(whole, change))) == [field]


def test_bits_are_compared_on_machines_of_one_class_alone_and_tokens_everywhere(path: Path):
    whole = full(path)
    other = forged(whole, edit("environment", "cpu", to="another"))
    for place, field in (
        (("checks", 1, "evidence", "first", 0), "checks.1.evidence.first"),
        (("replies", 0, "logits_sha256"), "replies.0.logits_sha256"),
    ):
        value = "3" * 64
        assert fields(again(whole), again(forged(whole, edit(*place, to=value)))) == [field]
        assert fields(again(whole), again(forged(other, edit(*place, to=value)))) == []
    assert fields(again(whole), again(forged(other, edit("replies", 0, "token_sha", to="3" * 12)))) != []
    assert fields(again(whole), again(forged(other, edit("checks", 1, "passed", to=False)))) == ["checks.1.passed"]
    (told, *_) = remarks(again(whole), again(other))
    assert "bits were not compared" in told and "there, another here" in told


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        (("environment", "device"), "gpu", "device"),
        (("environment", "blas", "threads"), 77, "BLAS"),
        (("environment", "versions", "mlx"), "9.9", "versions"),
        (("project", "sources_sha256"), "4" * 64, "code"),
    ],
)
def test_what_can_change_bits_is_named(path: Path, place: tuple[str, ...], value: Any, named: str):
    (told, *_) = remarks(again(path), again(forged(path, edit(*place, to=value))))
    assert "bits were not compared" in told and f"{named}: " in told
    there, here = again(path), again(forged(path, edit("environment", "versions", "ipykernel", to="9.9")))
    assert next(remarks(there, here)).startswith("rerun: digests are equal"), "the kernel's version changes no bits"


# --- notebooks --------------------------------------------------------------------------------------------------------


def test_a_receipt_without_a_notebook_cannot_be_run_again(project: Checkout, tmp_path: Path):
    verdict = receipts.rerun(drafted(notebook=None).close(tmp_path / "receipts"))
    assert [str(finding) for finding in verdict.findings] == ["notebook: none is named, so there is nothing to run"]


def test_a_notebook_with_other_code_is_not_run(path: Path, project: Checkout):
    write_notebook(project.notebook, ["raise SystemExit('never run')"])
    (finding,) = receipts.rerun(path).findings
    assert finding.field == "notebook.sha256" and "check out the commit" in finding.says
    project.notebook.unlink()
    (finding,) = receipts.rerun(path).findings
    assert finding.field == "notebook.name" and "there is no notebook 'turns.ipynb'" in finding.says


def test_without_nbclient_it_is_said_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    with pytest.raises(LanesError, match=r'pip install "mlx-lanes\[lab\]"'):
        receipts.rerun(path)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "9"])
def test_a_wrong_timeout_is_refused(path: Path, timeout: Any):
    with pytest.raises(InvalidRequest, match="timeout must be a finite number of seconds"):
        receipts.rerun(path, timeout=timeout)


def test_recorded_parameters_come_after_the_cell_that_is_tagged(tmp_path: Path):
    import nbformat

    notebook = nbformat.read(write_notebook(tmp_path / "naps.ipynb", CELLS), as_version=4)
    given = {"size": 3, "seed": None, "names": ["a", {"b": True}]}
    cells = with_parameters(notebook, given).cells
    assert [cell.source for cell in cells] == [CELLS[0], cells[1].source, *CELLS[1:]]
    names: dict[str, Any] = {}
    exec(cells[1].source, names)
    assert {name: names[name] for name in given} == given
    plain = nbformat.read(write_notebook(tmp_path / "plain.ipynb", CELLS[1:]), as_version=4)
    assert len(with_parameters(plain, given).cells) == len(CELLS) - 1


@pytest.fixture
def naps(tmp_path: Path) -> Path:
    return write_notebook(tmp_path / "notebooks" / "naps.ipynb", CELLS)


def test_a_receipt_is_repeated_with_its_parameters_in_a_folder_of_its_own(
    naps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert run(naps.read_bytes(), {"size": 5, "seed": 7}, naps.parent, 120.0) is None
    (path,) = (naps.parent / "receipts").glob("*.json")
    record = receipts.read(path).record
    assert record.parameters == {"size": 5, "seed": 7} and record.aggregates["first"]["naps"].max == 5
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    verdict = receipts.rerun(path, notebooks=naps.parent, timeout=120)
    # Others may write to the project's files meanwhile: then it is the code that has changed, and nothing else.
    assert {finding.field for finding in verdict.findings} <= {"rerun.project.sources_sha256"}
    assert any(word.startswith("rerun: second over first: ") for word in verdict.words)
    assert list(here.iterdir()) == [] and len(list((naps.parent / "receipts").iterdir())) == 1


def test_what_a_notebook_does_wrong_is_told(tmp_path: Path):
    notebook = write_notebook(tmp_path / "bad.ipynb", ["import time", "1 / 0"])
    found = run(notebook.read_bytes(), {}, tmp_path, 120.0)
    assert found is not None and str(found) == "rerun: a cell failed: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (exceptions.CellTimeoutError("slow"), "rerun: a cell took longer than 3 s: give it more (--timeout)"),
        (exceptions.DeadKernelError("Kernel died"), "rerun: the kernel died: Kernel died"),
    ],
)
def test_a_kernel_that_does_not_answer_is_told(
    naps: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
):
    def execute(self: NotebookClient, **_: Any) -> None:
        raise error

    monkeypatch.setattr(NotebookClient, "execute", execute)
    assert str(run(naps.read_bytes(), {}, naps.parent, 3.0)) == said


def test_no_kernel_is_an_error_that_says_how_to_get_one(naps: Path, monkeypatch: pytest.MonkeyPatch):
    def execute(self: NotebookClient, **_: Any) -> None:
        raise NoSuchKernel("python3")

    monkeypatch.setattr(NotebookClient, "execute", execute)
    with pytest.raises(LanesError, match=r'no Python kernel here .*pip install "mlx-lanes\[lab\]"'):
        run(naps.read_bytes(), {}, naps.parent, 3.0)


class Run:
    """Stands in for the run of a notebook: leaves files in its folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *files: Path) -> None:
        self.folders: list[Path] = []
        self.given: dict[str, Any] = {}

        def run(data: bytes, parameters: Any, folder: Path, timeout: float) -> None:
            self.folders.append(folder)
            self.given = parameters
            (folder / "receipts").mkdir()
            for file in files:
                (folder / "receipts" / file.name).write_bytes(file.read_bytes())

        monkeypatch.setattr(sys.modules["lanes.receipts.rerun"], "run", run)


def test_a_rerun_that_seals_nothing_proves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch):
    Run(monkeypatch)
    (finding,) = receipts.rerun(path).findings
    assert finding.says == "the notebook sealed no receipt of 'turns' in its folder"


def test_a_rerun_is_compared_and_verified_itself(path: Path, monkeypatch: pytest.MonkeyPatch, project: Checkout):
    other = drafted().close(path.parent)
    ran = Run(monkeypatch, other)
    verdict = receipts.rerun(path)
    assert verdict.ok and ran.given == {"size": 8, "seed": 3} and not ran.folders[0].exists()
    bad = forged(other, edit("checks", 1, "evidence", "second", 1, to="cc"))
    Run(monkeypatch, bad)
    found = [finding.field for finding in receipts.rerun(path).findings]
    assert "checks.1.evidence.second" in found and "rerun.checks.1.passed" in found


def test_a_kernel_that_runs_other_code_is_found(path: Path, monkeypatch: pytest.MonkeyPatch, project: Checkout):
    Run(monkeypatch, drafted().close(path.parent))
    (project.package / "code.py").write_text("another\n")
    assert "rerun.project.sources_sha256" in [finding.field for finding in receipts.rerun(path).findings]
    assert source.sources(project.package) != receipts.read(path).record.project.sources_sha256
