"""A caller's deadline for work of several requests: when it ends, and what is left for the next request."""

import time
from typing import Any

from lanes import checks

LEAST = 1e-6
"""Seconds that are left at least: what is over runs into its deadline in the engine, which says so."""


def end_of(deadline: Any) -> float | None:
    """The end, on the monotonic clock, of a deadline in seconds from now; None for none. InvalidRequest for others."""
    return None if deadline is None else time.monotonic() + checks.seconds("deadline", deadline)


def left_until(end: float | None) -> float | None:
    """Seconds until an end; None where there is none."""
    return None if end is None else max(LEAST, end - time.monotonic())
