"""What README and docs say is so: commands, options, links, paths and names exist, and the example runs."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer

import lanes
from lanes.cli import app
from lanes.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(ROOT.glob("docs/*.md"))]


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    return request.param


def code(page: Path) -> str:
    """All that a page shows as code: its blocks and its spans, one a line."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return "\n".join([*blocks, *spans])


def read(name: str) -> str:
    """A file of the project, by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_links_lead_somewhere(page: Path):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: no such file"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), f"{link}: no such heading"


def test_make_targets_exist(page: Path):
    rules = re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE)
    for line in code(page).splitlines():
        if words := re.match(r"make ((?:[A-Z]+=\S+ )*)([a-z]+)", line):
            assert words[2] in rules, line


def test_commands_and_their_options_exist(page: Path):
    commands: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
    for line in code(page).splitlines():
        if words := re.match(r"lanes ([a-z]+)((?: +--[a-z-]+)*)", line):
            options = {name for parameter in commands[words[1]].params for name in parameter.opts}
            assert set(words[2].split()) <= options, line


def test_extras_exist(page: Path):
    declared = re.search(r"\[project.optional-dependencies\]\n(.*?)\n\[", read("pyproject.toml"), re.DOTALL)
    assert declared
    extras = set(re.findall(r"^(\w+) = ", declared[1], re.MULTILINE))
    for asked in re.findall(r"(?:\.|mlx-lanes)\[([\w,]+)\]", code(page)):
        assert set(asked.split(",")) <= extras


def test_names_exist(page: Path):
    text = code(page)
    for name in re.findall(r"\blanes\.(\w+)", text):
        assert hasattr(lanes, name), f"lanes.{name}"
    made = {"rounds", "exactness", "info"}  # set when an engine is made
    for name in re.findall(r"\bengine\.(\w+)", text):
        assert name in made or hasattr(Engine, name) or name in ("md", "py"), f"engine.{name}"


def test_paths_exist():
    for page in PAGES:
        for path in re.findall(r"^(?:lanes|docs|notebooks|tests|widgets)/[\w./*]*$", code(page), re.MULTILINE):
            assert list(ROOT.glob(path)), f"{page.name}: {path}"


def examples(name: str) -> list[str]:
    """The blocks of Python on a page."""
    return re.findall(r"^```python\n(.*?)^```", read(name), re.DOTALL | re.MULTILINE)


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str]):
    example = examples("README.md")[0]
    assert len(example.splitlines()) == 10
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].startswith((" positive ", " negative "))
    assert names["stream"].tokens
    assert names["stream"].text in shown
    assert "Timeline: " in shown
    assert names["engine"].closed


@pytest.mark.parametrize(
    "example", [examples("README.md")[1], examples("docs/decisions.md")[0]], ids=["README", "docs"]
)
def test_the_examples_of_typed_questions_run(example: str, capsys: pytest.CaptureFixture[str]):
    names: dict[str, Any] = {}
    exec(compile(example, "example", "exec"), names)
    answers = names["answers"]
    assert answers["team"].choice in ("billing", "other")
    assert f"{answers['team'].choice} " in capsys.readouterr().out
    assert names["engine"].closed


def test_the_example_of_the_widgets_runs(capsys: pytest.CaptureFixture[str]):
    names: dict[str, Any] = {}
    exec(compile(examples("docs/widgets.md")[0], "widgets.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "Snapshot" in shown and "Timeline" in shown
    assert names["engine"].closed


@pytest.mark.parametrize("example", examples("docs/serving.md"), ids=lambda text: text.splitlines()[-1][:30])
def test_the_examples_of_serving_run(example: str, capsys: pytest.CaptureFixture[str]):
    names: dict[str, Any] = {}
    exec(compile(example, "serving.md", "exec"), names)
    assert capsys.readouterr().out.strip()
    assert names["server"].closed and names["engine"].closed


def test_the_picture_shows_streams_and_decisions():
    root = ElementTree.parse(ROOT / "docs" / "images" / "timeline.svg").getroot()
    story = root.findtext("{http://www.w3.org/2000/svg}desc") or ""
    assert (story.count("stream"), story.count("decision")) == (4, 2)
