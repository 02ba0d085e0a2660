"""Receipts of a made-up project, for tests: a package in a checkout of its own, a notebook, files to tamper with."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanes import receipts
from lanes.receipts import source
from lanes.receipts.canonical import encode, sha256

Change = Callable[[dict[str, Any]], object]
NOTEBOOK = "turns.ipynb"
CELLS = [
    "size = 8",
    "from lanes import receipts",
    "REPEATS, WORDS = {8: (4, 1), 9: (40, 2)}[size]",
    'receipt = receipts.begin("turns", "One sentence.")',
    'receipt.check("nothing is left", 0, 0)\nreceipt.equal("bits", ["a"], ["a"])',
    'ratio = receipt.ratio("beside over idle", ("beside", "seconds"), ("idle", "seconds"))\n'
    'assert receipt.within("beside is cheap", "beside over idle", high=3.0)',
    'await receipt.measure({"idle": idle, "beside": beside}, repeats=REPEATS)',
    'if size == 8:\n    receipt.not_run("on a GPU: there is none")\nelse:\n    receipt.not_run("on a CPU")',
    'receipt.prompt("question", "Is it so?")',
    'for word in "ab":\n    receipt.check("may not run", 1, 1)',
    'later = [lambda: receipt.check("nor this", 1, 1) for _ in "ab"]\nyes = later and receipt.check("nor that", 1, 1)',
    "%matplotlib inline",
]
"""The notebook of `drafted`: it promises two checks, a ratio, a range, four repeats, a prompt, and what was not run."""


def write_notebook(path: Path, cells: list[str]) -> Path:
    """A notebook with these code cells; one that begins with `size =` is tagged as its parameters."""
    empty = {"cell_type": "code", "outputs": [], "execution_count": None}
    tags = [{"tags": ["parameters"]} if text.startswith("size =") else {} for text in cells]
    made = [
        {**empty, "id": f"cell-{at}", "metadata": tag, "source": text}
        for at, (tag, text) in enumerate(zip(tags, cells, strict=True))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


class Checkout:
    """A git checkout with a package `lanes` and a notebook; `source.PACKAGE` is that package."""

    def __init__(self, root: Path) -> None:
        self.root, self.package = root, root / "lanes"
        (self.package / "__pycache__").mkdir(parents=True)
        (self.package / "__init__.py").write_text("first = 1\n")
        (self.package / "__pycache__" / "__init__.pyc").write_bytes(b"no source")
        self.notebook = write_notebook(root / source.NOTEBOOKS / NOTEBOOK, CELLS)
        self.git("init", "--quiet")
        self.commit("first")

    def git(self, *arguments: str) -> str:
        """Run git here; what it says."""
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", *who, *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self, code: str) -> str:
        """Commit the package with other code; the commit."""
        (self.package / "code.py").write_text(f"{code!r}\n")
        (self.root / ".gitignore").write_text("__pycache__/\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", code)
        return self.git("rev-parse", "HEAD")


def checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A checkout of its own, which receipts that are made and verified from now on come from."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    made = Checkout(folder)
    monkeypatch.setattr(source, "PACKAGE", made.package)
    monkeypatch.setattr("lanes.receipts.draft.project", lambda: source.project(made.package))
    return made


async def fill(draft: receipts.Draft) -> None:
    """Two arms in turns; the third attempt of one fails."""
    tries = iter(range(100))

    async def idle() -> dict[str, Any]:
        return {"seconds": 0.5 + next(tries) / 64, "tokens": 8}

    async def beside() -> dict[str, Any]:
        at = next(tries)
        if at == 5:
            raise ValueError("the soup is cold")
        return {"seconds": 1.0 + at / 64, "tokens": 8}

    await draft.measure({"idle": idle, "beside": beside}, repeats=4, warmups=1)


def drafted(notebook: str | None = NOTEBOOK) -> receipts.Draft:
    """A receipt with something of everything that needs no engine."""
    draft = receipts.begin("turns", "One sentence.", parameters={"size": 8, "seed": 3}, notebook=notebook)
    draft.check("nothing is left", 0, 0)
    draft.equal("bits", ["aa", "bb"], ["aa", "bb"])
    asyncio.run(fill(draft))
    draft.ratio("beside over idle", ("beside", "seconds"), ("idle", "seconds"))
    draft.within("beside is cheap", "beside over idle", high=3.0)
    draft.within("idle p95", ("idle", "seconds", "p95"), low=0.1, high=9.0)
    draft.prompt("question", "Is it so?")
    draft.not_run("on a GPU: there is none")
    return draft


def forged(path: Path, change: Change) -> Path:
    """The receipt with a change, canonical and named by its hash again: only what it says gives it away."""
    value = json.loads(path.read_bytes())
    change(value)
    return written(path.parent / "forged", encode(value))


def written(folder: Path, data: bytes) -> Path:
    """A file named by its sha256."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{sha256(data)}.json"
    path.write_bytes(data)
    return path


def edit(*place: str | int, to: Any) -> Change:
    """Another value at a place."""

    def change(value: Any) -> None:
        for step in place[:-1]:
            value = value[step]
        value[place[-1]] = to

    return change


def remove(*place: str | int) -> Change:
    """Nothing at a place."""

    def change(value: Any) -> None:
        for step in place[:-1]:
            value = value[step]
        del value[place[-1]]

    return change
