"""Receipts side by side, and the command line: which hold, and one claim's figures from machines and commits."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sealed import Checkout, checkout, drafted, edit, forged
from typer.testing import CliRunner

from lanes import cli, receipts
from lanes.errors import InvalidRequest
from lanes.receipts import picture


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return checkout(tmp_path / "project", monkeypatch)


@pytest.fixture
def folder(project: Checkout, tmp_path: Path) -> Path:
    """Three receipts of one claim: two commits, and another machine; one of another claim; one that does not hold."""
    folder = tmp_path / "receipts"
    first = drafted().close(folder)
    shutil.copy(forged(first, edit("environment", "cpu", to="Another <CPU>")), folder)
    other = {"claim": "Another sentence.", "notebook": None}  # the notebook says which claim it is about
    shutil.copy(forged(first, lambda value: value.update(other)), folder)
    shutil.copy(forged(first, edit("ratios", 0, "value", to=0.5)), folder)
    shutil.rmtree(folder / "forged")
    project.commit("second")
    drafted().close(folder)
    (folder / "notes.json").write_text("{}")
    return folder


def lanes(*arguments: object):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_receipts_are_compared_claim_by_claim(folder: Path):
    found = receipts.compare(folder)
    claims = [(claim, len(entries)) for claim, entries in found.claims()]
    given = '(with {"seed":3,"size":8})'
    assert claims == [(f"turns: Another sentence. {given}", 1), (f"turns: One sentence. {given}", 4)]
    assert not found.ok and len(found.entries) == 5
    frame = found.frame()
    own = frame[(frame["name"] == "beside over idle") & frame["claim"].str.contains("One sentence")]
    assert len(own) == 4 and len(set(own["commit"])) == 2 and len(set(own["cpu"])) == 2
    assert sorted(own["holds"]) == [False, True, True, True] and 0.5 in set(own["value"])
    assert set(frame["name"]) == {"beside over idle", "idle, median seconds", "beside, median seconds"}


def test_the_text_says_which_hold_and_where_they_come_from(folder: Path, project: Checkout):
    text = repr(receipts.compare(folder))
    assert text.count(" holds\n") == 4 and "does not hold: ratios.0.value" in text
    for commit in project.git("log", "--format=%H").split():
        assert commit[:8] in text
    assert len(re.findall(r"^beside over idle +\w{8}  Another <CPU> \(\w+\) ", text, re.MULTILINE)) == 1
    assert text == repr(receipts.compare(folder)), "the same folder always gives the same text"


class Balanced(HTMLParser):
    """Fails where an element is closed that was not opened last."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "path", "circle", "rect", "br") or tag == "circle":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing(folder: Path, tmp_path: Path):
    path = receipts.compare(folder).save(tmp_path / "page.html")
    page = path.read_text(encoding="utf-8")
    reader = Balanced()
    reader.feed(page)
    assert reader.open == [] and reader.seen.count("svg") == 3, "a picture for each figure that several receipts have"
    assert "<script" not in page and "Another &lt;CPU&gt;" in page and "Another <CPU>" not in page
    assert not re.findall(r"""(?:src|href)=["']?https?:""", page)
    with pytest.raises(InvalidRequest, match="cannot be written"):
        receipts.compare(folder).save(tmp_path / "nowhere" / "page.html")


def test_the_picture_of_attempts_says_what_its_marks_mean(project: Checkout):
    shown = drafted()._repr_html_()
    assert ">Seconds of every attempt; hollow: a warm-up, which counts for nothing; cross: it failed<" in shown
    record = drafted().record()
    plain = [sample for sample in record.samples if sample.ok and not sample.warmup]
    assert ">Seconds of every attempt<" in picture.samples(record.arms, plain), "nothing is explained that is not there"


def test_a_picture_of_figures_shows_each_with_its_spread():
    drawn = picture.dots("ratios", [("a", 2.0, 1.0, 4.0), ("b", 3.0, None, None), ("c", 0.0, 0.0, 0.0)])
    assert drawn.count("<circle") == 3 and drawn.count('stroke-width="2"') == 2
    at = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    assert picture.LEFT == at[2] < at[0] < at[1] < picture.WIDTH - picture.RIGHT


def test_files_that_are_no_receipts_are_told_and_not_compared(project: Checkout, tmp_path: Path):
    path = drafted().close(tmp_path / "receipts")
    other = forged(path, lambda value: value.pop("claim"))
    words = tmp_path / "words.json"
    words.write_text("words")
    found = receipts.compare([path, other, words])
    assert not found.ok and len(list(found.claims())) == 1
    assert f"{other.name}: does not hold: claim" in repr(found)
    assert "words.json: cannot be read: words.json is no receipt" in found._repr_html_()
    told = {own["name"]: own for own in found.to_dict()}
    assert told[path.name]["ok"] and told[words.name]["error"] and told[other.name]["findings"][0]["field"] == "claim"


def test_no_receipts_are_an_error(tmp_path: Path):
    for given in (tmp_path, [], tmp_path / "nowhere"):
        with pytest.raises(InvalidRequest, match=r"there (are no receipts|is no folder)"):
            receipts.compare(given)


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["verify", "receipts"])
def test_the_commands_have_help(command: str):
    result = lanes(command, "--help")
    assert result.exit_code == 0 and "Usage" in result.stdout and command in lanes("--help").stdout


def test_verify_ends_with_0_1_or_2(project: Checkout, tmp_path: Path):
    path = drafted().close(tmp_path / "receipts")
    bad = forged(path, edit("checks", 0, "passed", to=False))
    good = lanes("verify", path)
    assert (good.exit_code, good.stderr) == (0, "") and good.stdout.startswith(f"{path.name}: holds\n")
    assert "  -- environment, made: machine, load and times are the author's word" in good.stdout
    wrong = lanes("verify", path, bad)
    assert wrong.exit_code == 1 and "  !! checks.0.passed: recorded false" in wrong.stdout
    unread = lanes("verify", tmp_path / "nothing.json", path)
    assert unread.exit_code == 2 and unread.stderr == "lanes: nothing.json cannot be read: No such file or directory\n"
    assert f"{path.name}: holds" in unread.stdout, "the others are verified all the same"
    assert lanes("verify").exit_code == 2


def test_verify_takes_any_commit_where_it_is_told_to(project: Checkout, tmp_path: Path):
    path = drafted().close(tmp_path / "receipts")
    project.commit("second")
    assert lanes("verify", path).exit_code == 1
    assert lanes("verify", path, "--any-commit").exit_code == 0


def test_verify_prints_json_and_nothing_else(project: Checkout, tmp_path: Path):
    path = drafted().close(tmp_path / "receipts")
    result = lanes("verify", "--json", path, tmp_path / "nothing.json")
    good, unread = json.loads(result.stdout)
    assert result.exit_code == 2 and good["ok"] and good["words"] and "cannot be read" in unread["error"]


def test_verify_runs_notebooks_again(project: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = drafted().close(tmp_path / "receipts")
    asked = []

    def rerun(file: Path, *, timeout: float) -> receipts.Verdict:
        asked.append((file, timeout))
        return receipts.Verdict(file.name, (receipts.Finding("rerun", "a cell failed"),), ("rerun: something",))

    monkeypatch.setattr(receipts, "rerun", rerun)
    result = lanes("verify", path, "--rerun", "--timeout", "7")
    assert result.exit_code == 1 and asked == [(path, 7.0)]
    assert "  !! rerun: a cell failed" in result.stdout and "  -- rerun: something" in result.stdout


def test_receipts_lists_a_folder_and_writes_a_page(folder: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    result = lanes("receipts", folder, "--html", page)
    assert result.exit_code == 1 and result.stdout == f"{receipts.compare(folder)!r}\n"
    assert page.read_text().startswith("<!doctype html>")
    assert len(json.loads(lanes("receipts", folder, "--json").stdout)) == 5
    unread = lanes("receipts", tmp_path / "nowhere")
    assert unread.exit_code == 2 and unread.stderr.startswith("lanes: there is no folder nowhere")
    bad = next(entry.name for entry in receipts.compare(folder).entries if "does not hold" in entry.says)
    (folder / bad).unlink()
    assert lanes("receipts", folder).exit_code == 0
