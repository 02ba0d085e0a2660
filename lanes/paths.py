"""Where Lanes keeps files between runs, and how it replaces one: whole, or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The cache folder: `LANES_CACHE` where it is set, else the user's cache folder. It may not exist yet."""
    own = os.environ.get("LANES_CACHE")
    return Path(own).expanduser() if own else Path(platformdirs.user_cache_dir("lanes"))


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A new file beside `path` to write, which takes its place at the end; after an error all is as it was."""
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
