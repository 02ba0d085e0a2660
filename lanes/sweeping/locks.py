"""One process at a time: a lock beside a file, kept by the system where it can, so that it ends with its process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lanes.errors import InvalidRequest

try:
    import fcntl
except ImportError:  # a system without it
    fcntl = None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, named after it with `.lock` added. Raises InvalidRequest where somebody else has it."""
    beside = path.with_name(path.name + ".lock")
    handle = _take(beside)
    try:
        yield
    finally:
        beside.unlink(missing_ok=True)
        os.close(handle)


def _take(beside: Path) -> int:
    if fcntl is None:
        return _make(beside)
    while True:
        handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still(beside, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise InvalidRequest(
                f"another sweep works on this file (its lock is {beside}): wait for it, or pass another path"
            ) from None
        os.close(handle)  # its last holder took it away between our opening and locking it


def _still(beside: Path, handle: int) -> bool:
    """Whether the name stands for the file that was opened."""
    try:
        return os.path.samestat(os.stat(beside), os.fstat(handle))
    except FileNotFoundError:
        return False


def _make(beside: Path) -> int:
    try:
        return os.open(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise InvalidRequest(
            f"another sweep works on this file, or was killed: if none does, delete {beside} and go on"
        ) from None
