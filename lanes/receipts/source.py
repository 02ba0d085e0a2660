"""The code behind a receipt: the package's sources, the git commit they come from, the notebook.

git is asked, never trusted to be there: whatever it cannot tell is None.
"""

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import lanes
from lanes.errors import InvalidRequest
from lanes.receipts.canonical import sha256
from lanes.receipts.circumstances import Project
from lanes.receipts.shapes import Notebook

PACKAGE = Path(__file__).resolve().parent.parent
"""The folder of the package `lanes`."""
NOTEBOOKS = Path("notebooks", "receipts")
"""Where the project keeps notebooks that make receipts."""
GIT_S = 30.0
_LEFT_OUT = re.compile(r"(^|/)(__pycache__|\..*)(/|$)|\.py[cod]$")


class Git:
    """A checkout that holds this package."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @classmethod
    def here(cls, package: Path = PACKAGE) -> "Git | None":
        """The checkout around the package; None where there is no git, or the package is not one of its files."""
        git = cls(package.parent)
        return git if git.ask("ls-files", "--error-unmatch", f"{package.name}/__init__.py") is not None else None

    def ask(self, *arguments: str) -> bytes | None:
        """What git says, or None where it says no."""
        try:
            done = subprocess.run(["git", *arguments], cwd=self._root, capture_output=True, timeout=GIT_S, check=False)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None

    def line(self, *arguments: str) -> str | None:
        """What git says on one line."""
        said = self.ask(*arguments)
        return None if said is None else said.decode(errors="replace").strip() or None

    def commit(self) -> str | None:
        """The commit that is checked out."""
        return self.line("rev-parse", "--verify", "HEAD^{commit}")

    def committed(self, commit: str) -> datetime | None:
        """When a commit was made; None for one that is not here."""
        seconds = self.line("show", "--no-patch", "--format=%ct", f"{commit}^{{commit}}")
        return None if seconds is None else datetime.fromtimestamp(int(seconds), timezone.utc)

    def knows(self, commit: str) -> bool:
        """Whether the commit is in this checkout."""
        return self.ask("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def shallow(self) -> bool:
        """Whether older commits were never fetched."""
        return self.line("rev-parse", "--is-shallow-repository") == "true"

    def tree(self, commit: str) -> str | None:
        """The hash of the package's tree in a commit."""
        return self.line("rev-parse", "--verify", f"{commit}:./{PACKAGE.name}")

    def dirty(self) -> bool:
        """Whether the package differs from the commit that is checked out, new files included."""
        return self.ask("status", "--porcelain", "--untracked-files=all", "--", PACKAGE.name) != b""

    def sources(self, commit: str) -> str | None:
        """The sha256 of the package's sources in a commit, as `sources` gives it for the files."""
        packed = self.ask("archive", "--format=tar", commit, PACKAGE.name)
        if packed is None:
            return None
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            members = [member for member in archive.getmembers() if member.isfile()]
            names = [member.name.partition("/")[2] for member in members]
            datas = [file.read() if (file := archive.extractfile(member)) else b"" for member in members]
        return listing(zip(names, datas, strict=True))

    def file(self, commit: str, path: Path) -> bytes | None:
        """A file of the project in a commit."""
        return self.ask("show", f"{commit}:./{path.as_posix()}")


def project(package: Path = PACKAGE) -> Project:
    """The code that runs here."""
    git = Git.here(package)
    commit = git.commit() if git else None
    dirty, tree = (git.dirty(), git.tree(commit)) if git and commit else (None, None)
    return Project(version=lanes.__version__, commit=commit, dirty=dirty, tree=tree, sources_sha256=sources(package))


def sources(package: Path = PACKAGE) -> str:
    """The sha256 of the package's files by path and content; caches and hidden files have no part in it."""
    paths = [path for path in package.rglob("*") if path.is_file()]
    return listing((path.relative_to(package).as_posix(), path.read_bytes()) for path in paths)


def listing(files: Iterable[tuple[str, bytes]]) -> str:
    """The sha256 over the files' paths and the sha256 of their contents, sorted by path."""
    lines = sorted(f"{path} {sha256(data)}" for path, data in files if not _LEFT_OUT.search(path))
    return sha256("\n".join(lines))


def notebook(name: str, folders: Sequence[Path] = ()) -> Notebook:
    """A notebook by its file's name; InvalidRequest where it is not found, or is none."""
    return Notebook(name=name, sha256=code_hash(find(name, folders).read_bytes()))


def find(name: str, folders: Sequence[Path] = ()) -> Path:
    """The notebook's file: in these folders, in the current one, or where the project keeps its notebooks."""
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".ipynb"):
        raise InvalidRequest(f"notebook must be the name of a file, such as 'load.ipynb', not {name!r}")
    looked = [*folders, Path(), NOTEBOOKS, PACKAGE.parent / NOTEBOOKS]
    found = next((folder / name for folder in looked if (folder / name).is_file()), None)
    if found is None:
        raise InvalidRequest(
            f"there is no notebook {name!r} in this folder or in {NOTEBOOKS.as_posix()}: start the kernel in the "
            "notebook's folder, or correct the name"
        )
    return found


def cells(data: bytes) -> list[str]:
    """The sources of a notebook's code cells. Raises InvalidRequest for what is no notebook."""
    try:
        found = json.loads(data)["cells"]
        own = ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]
        "".join(own).encode()  # half of a surrogate pair is no text
        return own
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"this is no notebook of format 4: {type(error).__name__}: {error}") from None


def code_hash(data: bytes) -> str:
    """The sha256 over the sources of the code cells, whatever their outputs: a NUL between two cells."""
    return sha256("\0".join(cells(data)))
