"""Verify a receipt: its file, its shapes, its own arithmetic, the code behind it, and the notebook that made it."""

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.receipts import origin
from lanes.receipts.audit import Finding, audit
from lanes.receipts.canonical import Malformed, decode, sha256
from lanes.receipts.receipt import load
from lanes.receipts.shapes import FORMAT, Record
from lanes.receipts.verdict import Verdict

ALWAYS = (
    "environment, made: machine, load and times are the author's word",
    "samples: how long each attempt took is the author's word; only a rerun measures again",
)


def verify(path: str | Path, *, any_commit: bool = False, notebooks: str | Path | None = None) -> Verdict:
    """Hold a receipt against itself, against the code here, and against its notebook.

    any_commit: take a receipt that was made with other code than the one here, too. notebooks: a folder to look for its
    notebook in first. Raises InvalidRequest where there is no file, or it is nothing of a receipt.
    """
    checks.flag("any_commit", any_commit)
    data, path = load(path), Path(path)
    if not data.lstrip().startswith(b"{"):
        raise InvalidRequest(f"{path.name} is no receipt: it holds no JSON object")
    findings = list(_file(path, data))
    record, wrong = _record(path, data)
    findings += wrong
    if record is None and not findings:  # such a file must never pass, whatever reads it in another way
        findings.append(Finding("file", "it cannot be read as a receipt"))
    words: list[str] = []
    if record is not None:
        findings += audit(record)
        folders = [] if notebooks is None else [Path(notebooks)]
        said = origin.examine(record, any_commit, folders)
        findings += said.findings
        words = [*ALWAYS, *_own_words(record), *said.words]
    return Verdict(path.name, tuple(findings), tuple(words))


def _file(path: Path, data: bytes) -> Iterator[Finding]:
    own = sha256(data)
    if path.name != f"{own}.json":
        yield Finding("file", f"its sha256 is {own}, its name says {path.name}")
    try:
        decode(data)
    except Malformed as error:
        yield Finding(error.field, str(error))


def _record(path: Path, data: bytes) -> tuple[Record | None, list[Finding]]:
    """The record, or why there is none. Raises InvalidRequest for a version that is not known here."""
    try:
        return Record.model_validate_json(data), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
    unknown = next((one for one in errors if one["loc"] == ("format",) and one["type"] == "literal_error"), None)
    if unknown:
        raise InvalidRequest(
            f"{path.name} has the format {unknown['input']!r}, this version reads {FORMAT!r}: "
            "verify it with the version that made it"
        )
    value = json.loads(data) if all(one["type"] != "json_invalid" for one in errors) else None
    found = {_field(value, one): _why(one) for one in reversed(errors) if one["type"] != "json_invalid"}
    return None, [Finding(field, why) for field, why in reversed(found.items())]


def _field(value: Any, error: Any) -> str:
    """A field's path in the file: what pydantic adds to it, such as a member of a union, is not there and left out."""
    parts: list[str] = []
    for step in error["loc"]:
        if (isinstance(value, dict) and step in value) or (isinstance(value, list) and isinstance(step, int)):
            value = value[step]
        elif error["type"] != "missing" or step != error["loc"][-1]:
            continue
        parts.append(str(step))
    return ".".join(parts) or "file"


def _why(error: Any) -> str:
    if error["type"] == "missing":
        return "it is missing: every receipt has it"
    if error["type"] == "extra_forbidden":
        return "it is unknown: no receipt has it"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, not {str(error['input'])[:60]!r}"


def _own_words(record: Record) -> Iterator[str]:
    """What the record states and cannot prove, and what a reader might misread."""
    if record.checks:
        yield "checks: what was observed is the author's word; that each outcome follows from its evidence was checked"
    if failed := sum(not sample.ok for sample in record.samples):
        yield f"samples: {failed} of {len(record.samples)} attempts failed; no figure counts them"
    if record.prompts or record.replies:
        yield "prompts, replies: their hashes and lengths are the author's word"
    yield from _look_alikes(record)
    if record.not_run:
        yield "not_run: that nothing else was left out is the author's word"


def _look_alikes(record: Record) -> Iterator[str]:
    """Names with letters of other scripts: some look like those of the Latin one, so two names can look the same."""
    for kind in ("checks", "arms", "ratios", "prompts", "replies"):
        for at, own in enumerate(getattr(record, kind)):
            letters = (one for one in own.name if one.isalpha() and not one.isascii())
            known = (unicodedata.name(one, "an unknown letter") for one in letters)
            if odd := next((name for name in known if not name.startswith(("LATIN", "MICRO"))), None):
                yield f"{kind}.{at}.name: it has {odd}, which may look like another letter"
