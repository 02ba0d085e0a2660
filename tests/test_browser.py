"""What a person sees: JupyterLab in a real browser, every notebook and every widget."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import browser as chromium
import pytest

pytest.importorskip("playwright")

from lab import ROOT, Lab
from lab import chromium as start
from lab import server as serve

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("notebooks")
    for path in NOTEBOOKS:
        shutil.copy(path, folder)
    with serve(folder, tmp_path_factory.mktemp("home")) as address:
        yield address, folder


@pytest.fixture
def lab(lab_server: tuple[str, Path]) -> Iterator[Lab]:
    path = chromium.find()
    if path is None:
        pytest.skip(chromium.MISSING)
    with start(path) as browser:
        page = Lab(browser, *lab_server)
        yield page
        page.shut()


@pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])
def test_every_notebook_runs_and_asks_nobody_outside(lab: Lab, name: str) -> None:
    lab.open(name)
    lab.run_all()
    assert not lab.failures()
    assert not lab.errors and not lab.outside
