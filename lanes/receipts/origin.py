"""Where a receipt says it comes from, held against what is here: commit, sources, notebook, model."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import lanes
from lanes.errors import InvalidRequest
from lanes.receipts import source
from lanes.receipts.audit import Finding, shown
from lanes.receipts.canonical import MISSING, same
from lanes.receipts.circumstances import Project
from lanes.receipts.promises import Promise, promises
from lanes.receipts.shapes import Record

SKEW = timedelta(days=1)
"""How far two clocks may lie apart."""


@dataclass
class Said:
    """What was found so far."""

    findings: list[Finding] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def refuse(self, name: str, says: str) -> None:
        """Something does not hold."""
        self.findings.append(Finding(name, says))

    def stale(self, allowed: bool, name: str, says: str, remedy: str) -> None:
        """Something is of another commit: it does not hold, unless any commit is allowed."""
        if allowed:
            self.words.append(f"{name}: {says}")
        else:
            self.refuse(name, f"{says}; {remedy}, or pass --any-commit")


def examine(record: Record, any_commit: bool, folders: Sequence[Path]) -> Said:
    """All that can be said here of a record's origin."""
    said = Said()
    git = source.Git.here(source.PACKAGE)
    _code(record.project, git, any_commit, said)
    _time(record, git, said)
    _notebook(record, git, any_commit, folders, said)
    _models(record, said)
    return said


def _code(there: Project, git: source.Git | None, any_commit: bool, said: Said) -> None:
    """The recorded commit has the recorded tree and sources, and they are those of the code here."""
    if len({there.commit is None, there.dirty is None, there.tree is None}) > 1:
        said.refuse("project", "commit, dirty and tree are known together, or none of them")
    elif there.commit is None:
        said.words.append("project.commit: it was made outside of a git checkout, so no commit is known")
    elif git is None:
        said.words.append("project.commit, tree, dirty: there is no git checkout here, so they are the author's word")
    elif not git.knows(there.commit):
        if git.shallow():
            said.words.append("project.commit, tree, dirty: this clone is shallow, so they are the author's word")
        else:
            said.refuse("project.commit", f"{there.commit[:12]} is not in this checkout: fetch it")
    else:
        _commit(there, there.commit, git, said)
    here = source.sources(source.PACKAGE)
    if here != there.sources_sha256:
        _stale(there, here, any_commit, said)
    elif there.version != lanes.__version__:
        said.refuse("project.version", f"recorded {there.version}, these sources are lanes {lanes.__version__}")


def _time(record: Record, git: source.Git | None, said: Said) -> None:
    """It was sealed after its commit was made, and not in days to come."""
    made = datetime.fromisoformat(record.made.at.replace("Z", "+00:00"))
    if made > datetime.now(timezone.utc) + SKEW:
        said.refuse("made.at", f"recorded {record.made.at}, which is in the future: set the clock that is wrong")
    committed = git.committed(record.project.commit) if git and record.project.commit else None
    if committed is not None and made < committed - SKEW:
        says = f"recorded {record.made.at}, but its commit was made on {committed:%Y-%m-%d}, later"
        said.refuse("made.at", f"{says}: set the clock that was wrong, and measure again")


def _stale(there: Project, here: str, any_commit: bool, said: Said) -> None:
    code = f"its sources are {there.sources_sha256[:12]}, those here are {here[:12]}"
    if there.commit is None:
        remedy = f"install the lanes {there.version} that it was made with"
        said.stale(any_commit, "project.sources_sha256", f"it was made with other code: {code}", remedy)
    elif there.dirty:
        says = (
            f"it was made with changes to {there.commit[:12]} that are in no commit, and not with the code here: {code}"
        )
        said.stale(any_commit, "project.commit", says, "measure again with code that is committed")
    else:
        says = f"it was made with the code of {there.commit[:12]}, which is not the code here: {code}"
        said.stale(any_commit, "project.commit", says, "check out that commit")


def _commit(there: Project, commit: str, git: source.Git, said: Said) -> None:
    tree = git.tree(commit)
    if tree != there.tree:
        said.refuse("project.tree", f"recorded {there.tree}, commit {commit[:12]} has {tree}")
    if there.dirty:
        said.words.append("project.dirty: lanes/ was changed from its commit; the sources' hash alone says how")
        return
    committed = git.sources(commit)
    if committed != there.sources_sha256:
        says = f"recorded {there.sources_sha256[:12]}, the files of commit {commit[:12]} give {(committed or '-')[:12]}"
        said.refuse("project.sources_sha256", says)


def _notebook(record: Record, git: source.Git | None, any_commit: bool, folders: Sequence[Path], said: Said) -> None:
    """The notebook here, or in the recorded commit, has the recorded code, and all that it promises is on record."""
    if record.notebook is None:
        said.words.append("notebook: none is named, so nobody can run it again")
        return
    name, wanted = record.notebook.name, record.notebook.sha256
    there = list(_notebooks(name, record.project.commit, git, folders))
    if not there:
        said.words.append(f"notebook: {name} is not here, so its code is the author's word")
        return
    hashes = [_code_hash(data) for data in there]
    if wanted not in hashes:
        first = hashes[0]
        has = f"the code of {name} here has {first[:12]}" if first else f"{name} here is no notebook"
        said.stale(any_commit, "notebook.sha256", f"recorded {wanted[:12]}, {has}", "check out the commit that has it")
        return
    cells = source.cells(there[hashes.index(wanted)])
    if not any("begin" in cell for cell in cells):
        said.refuse("notebook.name", f"{name} begins no receipt, so another one made this")
    whole = record.model_dump(mode="json")
    for promise in promises(cells, record.parameters):
        for field_, says in _broken(whole, promise, name):
            said.refuse(field_, says)


def _code_hash(data: bytes) -> str | None:
    """The hash of a notebook's code; None where the file is no notebook."""
    try:
        return source.code_hash(data)
    except InvalidRequest:
        return None


def _broken(record: dict[str, Any], promise: Promise, notebook: str) -> Iterator[tuple[str, str]]:
    """Where a record is not what its notebook's code says: a field, and what is wrong."""
    kind, name, facts = promise
    if kind == "":
        found: list[tuple[str, Any]] = [("", record)]
    elif isinstance(record[kind], dict):
        found = [(f"{kind}.{name}.", record[kind][name])] if name in record[kind] else []
    else:
        named = [(at, own, own if isinstance(own, str) else own["name"]) for at, own in enumerate(record[kind])]
        found = [(f"{kind}.{at}.", own) for at, own, its in named if name in (None, its)]
    if not found:
        yield kind, f"{notebook} puts {'arms' if name is None else repr(name)} on record, which is not there"
    for path, own in found:
        for step, value in facts.items():
            there = own
            for part in step.split("."):
                there = there.get(part, MISSING) if isinstance(there, dict) else MISSING
            if not same(there, value):
                yield f"{path}{step}", f"recorded {shown(there)}, the code of {notebook} says {shown(value)}"
                break


def _notebooks(name: str, commit: str | None, git: source.Git | None, folders: Sequence[Path]) -> Iterator[bytes]:
    """The notebook's file here, then as the recorded commit has it."""
    with suppress(InvalidRequest, OSError):
        yield source.find(name, folders).read_bytes()
    if git and commit and (data := git.file(commit, source.NOTEBOOKS / name)) is not None:
        yield data


def _models(record: Record, said: Said) -> None:
    """The embedded model's hash is known here; any other is the author's word."""
    from lanes.models.default import NAME, PARCEL

    for name, engine in record.engines.items():
        own = engine.model
        if own.name == NAME and PARCEL.requirement in own.source:
            if own.fingerprint != PARCEL.sha256:
                says = f"recorded {own.fingerprint[:12]}, {PARCEL.requirement} has {PARCEL.sha256[:12]}"
                said.refuse(f"engines.{name}.model.fingerprint", says)
            for file, own_sha256 in own.files.items():
                if own_sha256 != PARCEL.sha256:
                    says = f"recorded {own_sha256[:12]}, {PARCEL.requirement} has {PARCEL.sha256[:12]}"
                    said.refuse(f"engines.{name}.model.files.{file}", says)
        else:
            said.words.append(f"engines.{name}.model: its hashes are the author's word")
