"""How many threads the BLAS gets: fixed once, because another count gives other bits."""

import ctypes
import os

import psutil

# The prefix is PyPI's, the suffix that of the 64-bit interface (numpy's own, behind the shim).
SETTERS = ("scipy_openblas_set_num_threads", "openblas_set_num_threads", "scipy_openblas_set_num_threads64_")
GETTERS = ("scipy_openblas_get_num_threads", "openblas_get_num_threads", "scipy_openblas_get_num_threads64_")
CORE_NAMES = ("scipy_openblas_get_corename", "openblas_get_corename", "scipy_openblas_get_corename64_")


def wanted_threads() -> tuple[int, str | None]:
    """The thread count and, where a variable holds no positive whole number, what to do about it."""
    complaint = None
    for name in ("LANES_THREADS", "OPENBLAS_NUM_THREADS"):
        text = os.environ.get(name, "").strip()
        if not text:
            continue
        if text.isdecimal() and int(text) > 0:
            return int(text), complaint
        complaint = f"{name}={text!r} is not a positive whole number and is ignored: correct or unset it"
    return usable_cores(), complaint


def usable_cores() -> int:
    """The physical cores that this process may run on (hyper-threads share one core's arithmetic)."""
    logical = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else logical
    return max(1, min(psutil.cpu_count(logical=False) or logical, allowed))


def set_threads(library: ctypes.CDLL, threads: int) -> int | None:
    """Fix the count and return what the library says it is, or None where it has no such function."""
    setter, getter = _first(library, SETTERS), _first(library, GETTERS)
    if setter is None:
        return None
    setter(ctypes.c_int(threads))
    return int(getter()) if getter is not None else threads


def core_name(library: ctypes.CDLL) -> str | None:
    """The name of the processor core whose kernels the library picked."""
    getter = _first(library, CORE_NAMES)
    if getter is None:
        return None
    getter.restype = ctypes.c_char_p
    return getter().decode()


def _first(library: ctypes.CDLL, names: tuple[str, ...]):
    return next((f for f in (getattr(library, name, None) for name in names) if f is not None), None)
