"""What a person sees: JupyterLab in a real browser, every notebook and every widget."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browser as chromium
import nbformat
import pytest
from nbconvert import HTMLExporter
from rigs import WAIT, until

import lanes
from lanes_widgets import front
from lanes_widgets.board import BoardPanel
from lanes_widgets.desk import DeskPanel
from lanes_widgets.panel import Panel
from lanes_widgets.streams import SHOWN, StreamsPanel
from lanes_widgets.timeline import TimelinePanel

pytest.importorskip("playwright")

from lab import ROOT, Bare, Lab
from lab import chromium as start
from lab import server as serve

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
OPENED = [path for path in NOTEBOOKS if path.parent.name != "receipts"]
# What shows no widget runs once, under nbval: here it is opened as it was saved.
LIVE = [path for path in OPENED if "lanes_widgets" in path.read_text(encoding="utf-8")]
SAVED = [path for path in OPENED if path not in LIVE]
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("notebooks")
    for path in OPENED:
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


@pytest.fixture
def bare() -> Iterator[Bare]:
    path = chromium.find()
    if path is None:
        pytest.skip(chromium.MISSING)
    with start(path) as browser:
        yield Bare(browser)


@pytest.mark.parametrize("name", [path.name for path in LIVE])
def test_every_notebook_with_widgets_runs_and_asks_nobody_outside(lab: Lab, name: str) -> None:
    lab.open(name)
    lab.run_all()
    assert not lab.failures()
    assert not lab.errors and not lab.outside


SHOWN_AS_SAVED = """([outputs, plots]) => {
  const found = [...document.querySelectorAll('.jp-OutputArea-output')];
  const drawn = document.querySelectorAll('.js-plotly-plot:has(.main-svg)').length;
  const seen = found.filter(one => one.innerText.trim() || one.querySelector('svg')).length;
  return found.length === outputs && seen === outputs && drawn === plots;
}"""


@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_every_other_notebook_is_shown_as_it_was_saved_and_asks_nobody_outside(lab: Lab, path: Path) -> None:
    outputs = [one for cell in nbformat.read(path, as_version=4).cells for one in cell.get("outputs", ())]
    plots = sum("application/vnd.plotly.v1+json" in one.get("data", ()) for one in outputs)
    lab.open(path.name)
    lab.page.wait_for_function(SHOWN_AS_SAVED, arg=[len(outputs), plots])
    assert not lab.failures()
    assert not lab.errors and not lab.outside


BENCH = (
    "import lanes, lanes_widgets\nengine = lanes.Engine(lanes.tiny('llama'), slots=6)\nengine.pace(25)",
    "bench = lanes_widgets.Workbench(engine)\nbench",
    "bench",
    "streams = [engine.stream(f'Stream {n}', max_tokens=3900, ignore_eos=True, logprobs=0) for n in range(4)]",
    "await engine.drain()",
)
STREAMS = "count => document.querySelector('.lanes-panel')?.querySelectorAll('.lanes-live').length === count"


@pytest.fixture
def bench(lab: Lab) -> Lab:
    """A workbench in two views, while a cell awaits four streams that go on for minutes."""
    lab.open("bench.ipynb", *BENCH)
    lab.run_all(wait=False)
    lab.page.wait_for_function(STREAMS, arg=4)
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
    assert bench.page.evaluate(f"({STREAMS})(4)"), "a stream ended meanwhile"
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
    bench.page.wait_for_function(STREAMS, arg=3)
    assert "cancelled" in board.locator("tbody tr").first.inner_text()
    assert not bench.errors and not bench.outside and not bench.failures()


def test_a_reloaded_page_shows_all_there_is(bench: Lab) -> None:
    page = bench.page
    page.wait_for_function("() => document.querySelectorAll('.lanes-tok').length > 200")
    page.keyboard.press("Control+s")
    page.locator(".jp-mod-dirty").first.wait_for(state="detached")
    page.reload()
    page.wait_for_function(STREAMS, arg=4)
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


WIDTHS = (400, 700, 1600)
THEMES = {"JupyterLab Light": "true", "JupyterLab Dark": "false"}
SQUEEZE = """width => [...document.querySelectorAll('.jp-OutputArea-output:has(.lanes)')].map(area => {
  const more = width - area.getBoundingClientRect().width, child = area.closest('.jp-OutputArea-child');
  if (Math.abs(more) < 0.5) return true;
  child.style.width = `${child.getBoundingClientRect().width + more}px`;
  return false;
}).every(Boolean)"""
"""Gives the output areas of widgets a width, in pixels, whatever the window's is; true once they have it."""
TOO_WIDE = """() => {
  const found = [];
  for (const panel of document.querySelectorAll('.lanes-panel')) {
    const name = panel.getAttribute('aria-label').split(':')[0], area = panel.closest('.jp-OutputArea-output');
    const edge = area.getBoundingClientRect();
    for (const one of [area, panel])
      if (one.scrollWidth > one.clientWidth) found.push(`${name}: ${one.className} needs ${one.scrollWidth}`);
    for (const one of panel.querySelectorAll('button, input, select, textarea, canvas')) {
      const { left, right, width } = one.getBoundingClientRect();
      const out = left < edge.left - 0.5 || right > edge.right + 0.5;
      if (width && out) found.push(`${name}: ${one.textContent || one.tagName} lies at ${left} to ${right}`);
    }
  }
  return found;
}"""


BESIDE = """() => {
  const [board, timeline, streams, desk] =
    [...document.querySelectorAll('.lanes-panel')].map(one => one.getBoundingClientRect());
  return streams.top === board.top && streams.bottom === timeline.bottom && desk.top > timeline.bottom;
}"""
"""Whether the first workbench has its streams beside its board and timeline, and the desk below them."""


def fill(bench: Lab) -> None:
    """Show all that a workbench can: an answer, two compared, the inspector's report, a story, two runs."""
    desk = bench.page.locator(".lanes-desk").first
    rows = desk.locator(".desk-history tbody tr")
    for number, prompt in enumerate([f"Is this one word? {'long' * 60}", "Is the sea blue?"]):
        desk.get_by_label("Prompt", exact=True).fill(prompt)
        desk.get_by_role("button", name="Ask", exact=True).click()
        rows.filter(has_text="answered").nth(number).wait_for()
    for number in (1, 2):
        desk.get_by_label(f"Select decision {number}").check()
    desk.get_by_role("button", name="More about these labels").click()
    desk.get_by_role("region", name="Label inspector").get_by_role("button", name="Close").wait_for()
    bench.page.get_by_role("button", name="Compare with this").first.click()
    bench.page.get_by_role("button", name="Stop comparing").nth(1).wait_for()
    bench.page.get_by_label("Tell the story of").first.select_option(index=1)
    bench.page.get_by_text("It is answered").first.wait_for()


def test_everything_fits_from_narrow_to_wide_in_light_and_dark(bench: Lab) -> None:
    page = bench.page
    page.set_viewport_size({"width": 2200, "height": 1200})
    fill(bench)
    for theme, light in THEMES.items():
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.locator(f"body[data-jp-theme-light={light}]").wait_for(state="attached")
        for composer in ("Raw", "Typed"):
            for view in range(2):
                page.locator(".lanes-desk").nth(view).get_by_role("button", name=composer, exact=True).click()
            for width in WIDTHS:
                page.wait_for_function(SQUEEZE, arg=width)
                assert page.evaluate(TOO_WIDE) == [], f"{theme}, {composer}, {width} pixels"
                assert page.evaluate(BESIDE) == (width == 1600)
    assert not bench.errors and not bench.outside and not bench.failures()


KEEP = "globalThis.kept = new WeakRef(model.get('frame').streams.streams[0].tape.items[0])"


def frame(seq: int, *panels: Panel) -> dict[str, Any]:
    return {"seq": seq, "closed": False, "trouble": "", "acts": [], **{one.name: one.picture() for one in panels}}


def test_what_was_done_is_told_where_it_was_done(bare: Bare) -> None:
    with lanes.Engine(lanes.tiny("llama")) as engine:
        bare.show(front.module("board", "streams"), frame(1, BoardPanel(engine), StreamsPanel(engine)))
        board, streams = bare.page.get_by_label("Board:"), bare.page.get_by_label("Streams")
        bare.page.get_by_role("button", name="Pause").click()
        board.get_by_text("pending: the kernel is busy with a cell").wait_for()
        assert not streams.get_by_text("pending").count()
        bare.page.get_by_role("button", name="Start").click()
        streams.get_by_text("pending: the kernel is busy with a cell").wait_for()
        assert bare.sent() == ["pause", "start"]


def test_an_accepted_draft_is_marked_and_told(bare: Bare) -> None:
    with lanes.Engine(lanes.tiny("llama")) as engine:
        engine.stream("The first", max_tokens=4, ignore_eos=True).result(WAIT)
        shown = frame(1, StreamsPanel(engine))
        [stream] = shown["streams"]["streams"]
        stream["tape"]["items"][1][4:] = [{"draft": 1, "own": "x"}]
        bare.show(front.module("streams"), shown)
        marked = bare.page.locator(".lanes-drafted")
        assert marked.count() == 1
        bare.page.get_by_label("Text of stream").focus()
        for _ in range(2):
            bare.page.keyboard.press("ArrowRight")
        bare.page.get_by_text("an accepted draft").wait_for()


HIDE = """async () => {
  const canvas = document.querySelector('canvas'), frame = () => new Promise(requestAnimationFrame);
  while (!canvas.style.height) await frame();
  document.body.style.display = 'none';
  document.body.dataset.jpThemeName = 'another';
  for (let k = 0; k < 3; k++) await frame();
  const { width } = canvas;
  document.body.style.display = '';
  return width;
}"""


def test_a_timeline_keeps_its_picture_while_it_is_hidden(bare: Bare) -> None:
    with lanes.Engine(lanes.tiny("llama")) as engine:
        engine.stream("The first", max_tokens=4, ignore_eos=True).result(WAIT)
        bare.show(front.module("timeline"), frame(1, TimelinePanel(engine)))
        assert bare.page.evaluate(HIDE) > 0


def test_a_page_forgets_a_stream_that_left_the_picture(bare: Bare) -> None:
    with lanes.Engine(lanes.tiny("llama")) as engine:
        panel = StreamsPanel(engine)
        engine.stream("The first", max_tokens=4, ignore_eos=True).result(WAIT)
        bare.show(front.module("streams"), frame(1, panel))
        bare.page.evaluate(KEEP)
        assert bare.page.locator(".lanes-tok").count() == 4
        assert bare.holds("kept"), "it is shown: its tokens are needed"
        for stream in [engine.stream(f"Number {n}", max_tokens=4, ignore_eos=True) for n in range(SHOWN)]:
            stream.result(WAIT)
        bare.put(frame(2, panel))
        assert bare.page.locator(".lanes-stream").count() == SHOWN
        assert bare.page.locator(".lanes-tok").count() == 4 * SHOWN
        assert bare.drops("kept")
        bare.put(frame(3, panel))
        assert not bare.sent(), "nothing was asked for again"


def test_a_page_forgets_answers_that_left_the_history(bare: Bare) -> None:
    with lanes.Engine(lanes.tiny("llama")) as engine:
        panel = DeskPanel(engine)
        panel.ask("Is it so?", [" yes", " no"])
        until(lambda: panel.picture()["done"]["items"])
        bare.show(front.module("desk"), frame(1, panel))
        bare.page.evaluate("globalThis.kept = new WeakRef(model.get('frame').desk.done.items[0])")
        assert bare.page.locator(".desk-history tbody tr").count() == 1
        assert bare.holds("kept"), "it is shown"
        panel.forget()
        bare.put(frame(2, panel))
        assert bare.page.locator(".desk-history tbody tr").count() == 0
        panel.ask("And this?", [" yes", " no"])  # the last answer stays until there is another
        until(lambda: panel.picture()["done"]["items"])
        bare.put(frame(3, panel))
        assert bare.page.locator(".desk-history tbody tr").count() == 1
        assert bare.drops("kept")
        panel.close()


def test_a_view_that_is_left_leaves_nothing_in_the_page(bare: Bare) -> None:
    with lanes.Engine(lanes.tiny("llama")) as engine:
        engine.stream("The first", max_tokens=4, ignore_eos=True).result(WAIT)
        panels = [make(engine) for make in (BoardPanel, TimelinePanel, StreamsPanel, DeskPanel)]
        bare.show(front.module(*(one.name for one in panels)), frame(1, *panels))
        for at, one in enumerate(panels):
            bare.page.evaluate(
                "at => { globalThis[`panel${at}`] = new WeakRef(document.querySelectorAll('.lanes-panel')[at]) }", at
            )
            assert bare.holds(f"panel{at}"), f"{one.name} is shown"
        bare.leave()
        for at, one in enumerate(panels):
            assert bare.drops(f"panel{at}"), f"{one.name} is still there"
            one.close()


READER = """() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth} wide`);
  for (const area of document.querySelectorAll('.jp-OutputArea-output')) {
    const name = area.closest('.jp-Cell').id, pictures = [...area.querySelectorAll('svg, table, img')];
    if (!area.innerText.trim() && !pictures.length) found.push(`${name}: an output with nothing to be seen`);
    if (area.scrollWidth > area.clientWidth + 1 && !['auto', 'scroll'].includes(getComputedStyle(area).overflowX))
      found.push(`${name}: cut off at ${area.clientWidth} of ${area.scrollWidth}`);
    const empty = pictures.filter(one => one.getBoundingClientRect().height < 10 || one.naturalWidth === 0);
    for (const one of empty) found.push(`${name}: an empty ${one.tagName}`);
  }
  return found;
}"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:Your element with mimetype")
def test_a_saved_notebook_is_read_without_kernel_network_and_script(path: Path, tmp_path: Path) -> None:
    if (browser := chromium.find()) is None:
        pytest.skip(chromium.MISSING)
    page = tmp_path / "page.html"
    page.write_text(HTMLExporter().from_filename(str(path))[0], encoding="utf-8")
    with start(browser) as started:
        context = started.new_context(offline=True, java_script_enabled=False)
        reader = context.new_page()
        reader.goto(page.as_uri())
        assert reader.locator(".jp-OutputArea-output").count()
        for width in (480, 1100):
            reader.set_viewport_size({"width": width, "height": 900})
            assert reader.evaluate(READER) == [], f"{width} pixels"
