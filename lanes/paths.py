"""Where Lanes keeps files between runs: one cache folder for the embedded model and the prepared BLAS."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The cache folder: `LANES_CACHE` where it is set, else the user's cache folder. It may not exist yet."""
    own = os.environ.get("LANES_CACHE")
    return Path(own).expanduser() if own else Path(platformdirs.user_cache_dir("lanes"))
