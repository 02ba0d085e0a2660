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


BENCH = (
    "import lanes, lanes_widgets\nengine = lanes.Engine(lanes.tiny('llama'), slots=6)\nengine.pace(25)",
    "bench = lanes_widgets.Workbench(engine)\nbench",
    "bench",
    "streams = [engine.stream(f'Stream {n}', max_tokens=3900, ignore_eos=True, logprobs=0) for n in range(4)]",
    "await engine.drain()",
)
LIVE = "count => document.querySelector('.lanes-panel')?.querySelectorAll('.lanes-live').length === count"


@pytest.fixture
def bench(lab: Lab) -> Lab:
    """A workbench in two views, while a cell awaits four streams that go on for minutes."""
    lab.open("bench.ipynb", *BENCH)
    lab.run_all(wait=False)
    lab.page.wait_for_function(LIVE, arg=4)
    return lab


def test_a_decision_by_mouse_and_by_keyboard_while_four_streams_run(bench: Lab) -> None:
    desk = bench.page.locator(".lanes-desk").first
    prompt, labels = desk.get_by_label("Prompt", exact=True), desk.get_by_label("Labels, one a line")
    prompt.fill("Is the sea blue?")
    labels.fill(" yes\n no\n true")
    desk.get_by_role("button", name="Ask", exact=True).click()
    rows = desk.locator(".desk-history tbody tr")
    rows.filter(has_text="answered").wait_for()
    labels.fill("yes\nno")
    prompt.press("End")
    prompt.press_sequentially(" Or green? ")
    desk.get_by_text("the label 'yes' merges into the prompt").wait_for()  # told while one types
    prompt.press("Backspace")
    labels.fill(" yes\n no")
    prompt.press("Control+Enter")
    rows.filter(has_text="Or green?").filter(has_text="answered").wait_for()
    assert rows.count() == 2
    assert bench.page.evaluate(f"({LIVE})(4)"), "a stream ended meanwhile"
    other = bench.page.locator(".lanes-desk").nth(1)
    assert other.locator(".desk-history tbody tr").count() == 2, "the other view shows the same history"
    assert not bench.errors and not bench.outside and not bench.failures()


def test_pause_one_round_resume_and_cancel(bench: Lab) -> None:
    board = bench.page.locator(".lanes-panel").first
    said = board.locator(".lanes-said")
    board.get_by_role("button", name="Pause").click()
    bench.page.get_by_role("button", name="Resume").nth(1).wait_for()  # in both views
    before = said.inner_text()
    board.get_by_role("button", name="One round").click()
    bench.page.wait_for_function("before => document.querySelector('.lanes-said').innerText !== before", arg=before)
    before = said.inner_text()
    board.focus()
    bench.page.keyboard.press(".")
    bench.page.wait_for_function("before => document.querySelector('.lanes-said').innerText !== before", arg=before)
    board.get_by_role("button", name="Cancel stream 0").click()
    bench.page.keyboard.press("Tab")
    board.get_by_role("button", name="Resume").click()
    bench.page.wait_for_function(LIVE, arg=3)
    assert "cancelled" in board.locator("tbody tr").first.inner_text()
    assert not bench.errors and not bench.outside and not bench.failures()


def test_a_reloaded_page_shows_all_there_is(bench: Lab) -> None:
    page = bench.page
    page.wait_for_function("() => document.querySelectorAll('.lanes-tok').length > 200")
    page.keyboard.press("Control+s")
    page.locator(".jp-mod-dirty").first.wait_for(state="detached")
    page.reload()
    page.wait_for_function(LIVE, arg=4)
    page.locator(".lanes-panel").first.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").first.wait_for()
    # Every stream shows as many tokens as its head says, those from before the reload too.
    page.wait_for_function(
        """() => {
          const streams = [...document.querySelectorAll('.lanes-stream')];
          const told = stream => Number(stream.textContent.match(/ (\\d+) tokens? ·/)?.[1]);
          return streams.length === 8 && streams.every(one => one.querySelectorAll('.lanes-tok').length === told(one));
        }"""
    )
    assert page.locator(".lanes-tok").count() > 200
    assert not bench.errors and not bench.outside


def test_the_story_of_a_decision_is_told_by_keyboard(bench: Lab) -> None:
    page = bench.page
    desk = page.locator(".lanes-desk").first
    desk.get_by_role("button", name="Ask", exact=True).click()
    desk.locator(".desk-history tbody tr").filter(has_text="answered").wait_for()
    select = page.locator("select").filter(has_text="Story of").first
    select.focus()
    select.select_option(index=1)
    page.get_by_text("It took slot 4").first.wait_for()
    page.get_by_text("It is answered").first.wait_for()
    assert not bench.errors and not bench.outside
