"""The saved notebooks: run once in order, clean, readable without a kernel, and the same after they are tidied again.

What their cells say is checked by `make notebooks` (nbval); this looks at the files alone.
"""

import ast
import importlib.util
import re
from base64 import b64encode
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup, Tag
from nbconvert import HTMLExporter

import lanes_widgets

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
CHECK, IGNORE = "nbval-check-output", "nbval-ignore-output"
SHOWN = {"text/plain", "text/html", "image/svg+xml", "image/png"}
PLOTLY = "application/vnd.plotly.v1+json"
LARGEST = 300_000
pytestmark = pytest.mark.filterwarnings("ignore:Your element with mimetype")  # plotly's own form of a figure

_spec = importlib.util.spec_from_file_location("refresh", ROOT / "notebooks" / "refresh.py")
assert _spec and _spec.loader
refresh = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(refresh)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def code(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def outputs(code: list[nbformat.NotebookNode]) -> str:
    """Everything that a notebook shows, as one text."""
    texts = []
    for output in (output for cell in code for output in cell.outputs):
        texts += [output.text] if output.output_type == "stream" else map(str, output.get("data", {}).values())
    return "\n".join(texts)


def test_there_are_notebooks():
    assert ROOT / "notebooks" / "01_first_steps.ipynb" in NOTEBOOKS


def test_a_saved_notebook_is_tidy(path: Path):
    saved = path.read_text(encoding="utf-8")
    assert saved == refresh.text(refresh.tidy(nbformat.reads(saved, as_version=4)))
    assert len(saved.encode()) < LARGEST
    assert "widgets" not in nbformat.reads(saved, as_version=4).metadata


def test_every_cell_ran_once_in_order_and_none_failed(code):
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [cell.id for cell in code for output in cell.outputs if output.output_type == "error"]


def test_cells_have_names_that_stay(path: Path):
    ids = [cell.id for cell in nbformat.read(path, as_version=4).cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", id) for id in ids), "a random id changes with every edit"


def test_outputs_are_readable_without_a_kernel(code):
    for cell in code:
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        assert refresh.LIVE not in kinds, f"{cell.id}: a live widget without its still form beside it"
        assert kinds <= SHOWN | {PLOTLY}
        assert PLOTLY not in kinds or "text/html" in kinds, f"{cell.id}: a figure without its static form beside it"
    shown = outputs(code)
    assert "<script" not in shown
    assert not re.findall(r"""(?:src|href)=["']?https?:""", shown)


@pytest.fixture
def page(path: Path) -> BeautifulSoup:
    """The notebook as nbconvert's HTML, without the page's own scripts: those need the network, a reader must not."""
    page = BeautifulSoup(HTMLExporter().from_filename(str(path))[0], "html.parser")
    for script in page("script"):
        script.decompose()
    return page


def words(html: str | Tag) -> str:
    """What is to be read in a piece of HTML."""
    return " ".join((BeautifulSoup(html, "html.parser") if isinstance(html, str) else html).get_text(" ").split())


def test_a_page_made_of_it_shows_every_output_without_a_script(page: BeautifulSoup, code):
    for cell in code:
        shown = page.find(id=f"cell-id={cell.id}")
        assert isinstance(shown, Tag), cell.id
        pictures = {str(one["src"]).partition("base64,")[2] for one in shown("img")}
        for output in cell.outputs:
            data = output.get("data", {"text/plain": output.get("text")})
            if "text/html" in data:
                assert words(data["text/html"]) in words(shown), cell.id
                assert len(shown("svg")) >= data["text/html"].count("<svg"), cell.id
            elif "image/svg+xml" in data:
                assert b64encode(data["image/svg+xml"].encode()).decode() in pictures, cell.id
            elif PLOTLY not in data:  # beside such a figure stands its static form, as is tested above
                assert " ".join(data["text/plain"].split()) in words(shown), cell.id


def test_a_page_made_of_it_shows_each_widget_as_its_record(page: BeautifulSoup, code):
    names = "|".join(lanes_widgets.__all__)
    made, shown = re.compile(rf"lanes_widgets\.({names})\("), re.compile(rf"({names})\(")
    for cell in code:
        forms = [output.get("data", {}) for output in cell.outputs]
        if made.search(cell.source) or any(shown.match(data.get("text/plain", "")) for data in forms):
            place = page.find(id=f"cell-id={cell.id}")
            assert isinstance(place, Tag) and place.select("table, svg"), f"{cell.id}: a widget, and nothing to be seen"
    assert not page.select(".jupyter-widgets"), "the place of a live widget, which stays empty"


def test_a_page_made_of_it_asks_for_nothing_outside(page: BeautifulSoup, path: Path):
    assert not [one["src"] for one in page.select("[src]") if not str(one["src"]).startswith("data:")]
    assert not page.select("link, iframe, object, embed")
    assert not re.search(r"""@import|url\(\s*['"]?https?:""", str(page)), "a style from outside"
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"\$[^$\n]+\$|\\\(|\\begin\{|```mermaid", cell.source), f"{cell.id}: it needs a script"


def test_outputs_hold_nothing_of_the_machine_that_made_them(code):
    shown = outputs(code)
    assert not re.findall(r"\bat 0x[0-9a-f]+", shown), "the address of an object"
    assert not re.findall(r"/(?:home|root|tmp|Users|work)/", shown), "a path"
    assert not [cell.id for cell in code for output in cell.outputs if output.get("name") == "stderr"]


def test_checked_cells_say_something_and_ignored_ones_assert(code):
    tags = {cell.id: set(cell.metadata.get("tags", [])) for cell in code}
    assert set().union(*tags.values()) <= {CHECK, IGNORE, "parameters"}
    checked = [cell for cell in code if CHECK in tags[cell.id]]
    assert checked
    assert all(cell.outputs for cell in checked)
    for cell in (cell for cell in code if IGNORE in tags[cell.id]):
        last = compile(cell.source, cell.id, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).body[-1]
        assert isinstance(last, ast.Assert), f"{cell.id}: its output is not compared, so it has to end in an assert"


def test_tidying_drops_what_is_no_result():
    notebook = nbformat.v4.new_notebook(metadata={"widgets": {}, "kernelspec": {"name": "odd", "display_name": "Odd"}})
    cell = nbformat.v4.new_code_cell("1", id="one", metadata={"tags": [CHECK], "execution": {"iopub": "12:00"}})
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="a"),
        nbformat.v4.new_output("stream", name="stdout", text="b"),
        nbformat.v4.new_output("stream", name="stderr", text="c"),
        nbformat.v4.new_output("display_data", data={"text/plain": "d"}, metadata={"needs": "background"}),
    ]
    notebook.cells = [cell]
    tidied = refresh.tidy(notebook)
    assert tidied.metadata == refresh.METADATA
    assert tidied.cells[0].metadata == {"tags": [CHECK]}
    assert [output.get("text") for output in tidied.cells[0].outputs] == ["ab", "c", None]
    assert tidied.cells[0].outputs[2].metadata == {}


def test_tidying_keeps_a_widget_as_its_still_form_and_drops_no_widget_without_one():
    view = {refresh.LIVE: {"model_id": "0"}, "text/plain": "Board"}
    cell = nbformat.v4.new_code_cell("board", id="board")
    cell.outputs = [
        nbformat.v4.new_output("display_data", data={**view, "text/html": "<table></table>"}),
        nbformat.v4.new_output("display_data", data=dict(view)),
    ]
    still, live = refresh.tidy(nbformat.v4.new_notebook(cells=[cell])).cells[0].outputs
    assert still.data == {"text/plain": "Board", "text/html": "<table></table>"}
    assert live.data == view
