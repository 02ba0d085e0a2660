"""Where a receipt says it comes from, held against what is here: commit, sources, notebook, model."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lanes.errors import InvalidRequest
from lanes.receipts import source
from lanes.receipts.audit import Finding
from lanes.receipts.circumstances import Project
from lanes.receipts.shapes import Record

MADE_BY = {"check": "checks", "equal": "checks", "within": "checks", "ratio": "ratios", "reply": "replies"}
"""The methods that put something with a name on record, and where it goes."""


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
    data = next((data for data in there if source.code_hash(data) == wanted), None)
    if data is None:
        says = f"recorded {wanted[:12]}, the code of {name} here has {source.code_hash(there[0])[:12]}"
        said.stale(any_commit, "notebook.sha256", says, "check out the commit that has it")
        return
    for kind, promised in promises(source.cells(data)):
        if all(own.name != promised for own in getattr(record, kind)):
            said.refuse(kind, f"{name} puts {promised!r} on record, which is not there")


def _notebooks(name: str, commit: str | None, git: source.Git | None, folders: Sequence[Path]) -> Iterator[bytes]:
    """The notebook's file here, then as the recorded commit has it."""
    with suppress(InvalidRequest, OSError):
        yield source.find(name, folders).read_bytes()
    if git and commit and (data := git.file(commit, source.NOTEBOOKS / name)) is not None:
        yield data


def promises(cells: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a notebook puts on record whatever happens: calls at the top of a cell with a name written out.

    Calls inside of loops, functions and conditions are left alone, as they may not run; a notebook that begins more
    than one receipt promises nothing that belongs to one of them.
    """
    bodies = [body for cell in cells for body in _statements(cell)]
    every = [call for body in bodies for call in _calls(body)]
    if sum(method == "begin" for method, _ in every) != 1:
        return
    plain = [body for body in bodies if isinstance(body, ast.Expr | ast.Assign | ast.AnnAssign | ast.Assert)]
    for method, name in (call for body in plain for call in _calls(body)):
        if method in MADE_BY and name is not None:
            yield MADE_BY[method], name


def _statements(cell: str) -> list[ast.stmt]:
    """The statements at the top of a cell; none of one in IPython's own syntax."""
    try:
        return compile(cell, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT).body
    except SyntaxError:
        return []


def _calls(body: ast.stmt) -> Iterator[tuple[str, str | None]]:
    """The methods that a statement calls, each with its first argument where that is a text written out."""
    for node in ast.walk(body):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
            yield node.func.attr, text


def _models(record: Record, said: Said) -> None:
    """The embedded model's hash is known here; any other is the author's word."""
    from lanes.models.default import NAME, PARCEL

    for name, engine in record.engines.items():
        own = engine.model
        if own.name == NAME and PARCEL.requirement in own.source:
            if own.fingerprint != PARCEL.sha256:
                says = f"recorded {own.fingerprint[:12]}, {PARCEL.requirement} has {PARCEL.sha256[:12]}"
                said.refuse(f"engines.{name}.model.fingerprint", says)
        else:
            said.words.append(f"engines.{name}.model: its hashes are the author's word")
