"""Memory that was freed goes back to the system."""

import ctypes


def give_back() -> None:
    """Return what is free to the system. glibc keeps it in arenas, one for each thread; elsewhere nothing is to do."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
