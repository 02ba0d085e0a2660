"""The saved notebooks of receipts: each shows a whole receipt, which has the sha256 that stands there and holds."""

import ast
import importlib.util
import re
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lanes import receipts
from lanes.receipts.canonical import sha256
from lanes.receipts.source import code_hash

FOLDER = Path(__file__).resolve().parent.parent / "notebooks" / "receipts"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CHECK, IGNORE, PARAMETERS = "nbval-check-output", "nbval-ignore-output", "parameters"
Cells = list[nbformat.NotebookNode]

_spec = importlib.util.spec_from_file_location("seal", FOLDER.parent / "seal.py")
assert _spec and _spec.loader
seal = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(seal)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def code(path: Path) -> Cells:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


@pytest.fixture
def saved(code: Cells, tmp_path: Path) -> Path:
    """The file that the last cell shows, under the name that it shows."""
    shown = code[-1].outputs[-1].data["text/html"]
    file, name = re.search(r"<pre[^>]*>(.*?)</pre>", shown, re.DOTALL), re.search(r"sha256 ([0-9a-f]{64})", shown)
    assert file and name, "the last cell shows no sealed receipt with its file"
    path = tmp_path / f"{name[1]}.json"
    path.write_bytes(unescape(file[1]).encode())
    return path


def tagged(code: Cells, tag: str) -> Cells:
    return [cell for cell in code if tag in cell.metadata.get("tags", [])]


def assigned(source: str) -> dict[str, Any]:
    """What a cell sets, where it does nothing but give literals to names."""
    found = {}
    for line in ast.parse(source).body:
        assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name), ast.unparse(line)
        found[line.targets[0].id] = ast.literal_eval(line.value)
    return found


def test_there_are_notebooks_of_receipts():
    assert {path.stem for path in NOTEBOOKS} >= {
        "beside_or_behind",
        "bench_concurrent",
        "concurrent_equals_solo",
        "drafted_equals_plain",
        "fidelity",
        "labels",
        "profile_prompt",
        "trunk_and_branches",
    }


def test_the_first_code_cell_has_the_parameters_and_the_last_one_seals(code: Cells):
    assert tagged(code, PARAMETERS) == code[:1]
    assert assigned(code[0].source)["size"] == "quick", "what is saved and tested is small"
    assert ".close(" in code[-1].source and ".show(" in code[-1].source
    assert tagged(code, CHECK) and tagged(code, IGNORE)


def test_what_it_shows_has_the_sha256_that_it_shows(saved: Path, code: Cells):
    assert sha256(saved.read_bytes()) == saved.stem
    assert f"sha256 {saved.stem}" in code[-1].outputs[-1].data["text/plain"]


def test_one_changed_character_would_show(saved: Path):
    data = saved.read_bytes()
    saved.write_bytes(data.replace(b'"ok":true', b'"ok":True', 1) if b'"ok":true' in data else data + b" ")
    assert not receipts.verify(saved, any_commit=True, notebooks=FOLDER).ok


def test_it_holds_and_was_made_by_this_notebook(saved: Path, path: Path, code: Cells):
    verdict = receipts.verify(saved, any_commit=True, notebooks=FOLDER)
    assert verdict.ok, verdict
    record = receipts.read(saved).record
    assert record.topic == path.stem
    assert record.notebook is not None
    assert (record.notebook.name, record.notebook.sha256) == (path.name, code_hash(path.read_bytes()))
    assert record.parameters == assigned(code[0].source)
    assert record.not_run, "something is always left out: say what"


def test_its_checks_are_those_of_the_cell_that_nbval_compares(saved: Path, code: Cells):
    facts = receipts.read(saved).facts()
    assert any(facts in output.get("text", "") for cell in tagged(code, CHECK) for output in cell.outputs)
    assert "!!" not in facts


MADE = """
from lanes import receipts

assert level < 9, "too high"
receipt = receipts.begin("small", "It runs.", parameters={"size": size, "level": level}, notebook="small.ipynb")
receipt.check("it ran", expected=True, observed=True)
print(receipt.close())
"""


def test_a_notebook_is_sealed_with_other_parameters_and_stays_as_it_is(tmp_path: Path, capsys):
    cells = [nbformat.v4.new_code_cell('size = "quick"\nlevel = 1', metadata={"tags": [PARAMETERS]})]
    path = tmp_path / "small.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[*cells, nbformat.v4.new_code_cell(MADE)]), path)
    before = path.read_bytes()
    assert seal.main(["size=full", "level=2", str(path)]) == 0
    assert path.read_bytes() == before
    (made,) = (tmp_path / "receipts").glob("*.json")
    record = receipts.read(made).record
    assert record.parameters == {"size": "full", "level": 2}
    assert record.notebook and record.notebook.sha256 == code_hash(before)
    assert seal.main(["level=9", str(path)]) == 1
    assert "small.ipynb: rerun: a cell failed: AssertionError: too high" in capsys.readouterr().out
