"""Where a fast cblas may come from, best first: each source is tried only when those before it did not load."""

import ctypes
import importlib.metadata
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lanes.blas.build import numpy_shim, renamed_openblas


@dataclass(frozen=True)
class Candidate:
    """A source and how to get its library.

    locate returns what `dlopen` takes and raises OSError or RuntimeError, with the reason, where there is none.
    """

    source: str
    locate: Callable[[], str]


def candidates(choice: str = "") -> list[Candidate]:
    """The sources in the order in which they are tried; choice is a library of the user's own, tried first."""
    own = [Candidate("LANES_BLAS", lambda: _existing(Path(choice).expanduser()))] if choice else []
    return [
        *own,
        Candidate("scipy-openblas32", renamed_openblas),
        Candidate("conda", _conda),
        Candidate("system", _system),
        Candidate("numpy", numpy_shim),
    ]


def gpu_backend() -> bool:
    """Whether MLX will run on an NVIDIA GPU: its CUDA back end is installed and a device is there."""
    return _installed("mlx-cuda-12", "mlx-cuda-13") and any(
        Path(device).exists() for device in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg")
    )


def _installed(*names: str) -> bool:
    for name in names:
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        return True
    return False


def _existing(path: Path) -> str:
    if not path.is_file():
        raise FileNotFoundError(f"LANES_BLAS={path} is not a file: unset it, or give the path of a library")
    return str(path)


def _conda() -> str:
    prefixes = dict.fromkeys([os.environ.get("CONDA_PREFIX", ""), sys.prefix])
    for prefix in filter(None, prefixes):
        for name in ("libopenblas.so.0", "libopenblas.so"):
            path = Path(prefix, "lib", name)
            if path.is_file():
                return str(path)
    raise FileNotFoundError("no libopenblas in the environment")


def _system() -> str:
    for name in ("libopenblas.so.0", "libopenblas.so"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    raise FileNotFoundError("no libopenblas among the system's libraries")
