"""What a caller gives, checked at the door: whole numbers, seconds, time-outs, yes or no."""

import math
import sys
from numbers import Integral, Real
from typing import Any

import numpy as np

from lanes.errors import InvalidRequest

LONGEST = 1e6
"""Seconds (11 days) that any wait is cut to: the system's clocks overflow beyond some hundred years."""


MOST = sys.float_info.max


def whole(name: str, value: Any, least: int, most: int = 2**53) -> int:
    """The whole number itself, as an int; InvalidRequest where it is none, or outside least..most."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise InvalidRequest(f"{name} must be a whole number from {least} to {most}, not {_shown(value)}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """The number itself, as a float; InvalidRequest where it is no finite number above 0."""
    if not is_number(value) or not 0 < value <= MOST:
        raise InvalidRequest(f"{name} must be a finite number above 0, not {_shown(value)}")
    return float(value)


def seconds(name: str, value: Any) -> float:
    """A finite length of time above 0, cut to LONGEST; InvalidRequest where it is none."""
    if not is_number(value) or not 0 < value < math.inf:
        raise InvalidRequest(f"{name} must be a finite number of seconds above 0, not {_shown(value)}")
    return LONGEST if value > LONGEST else float(value)


def timeout(value: Any) -> float | None:
    """How long a caller waits: None (or infinity) for ever, or seconds from 0 on; InvalidRequest for anything else."""
    if value is None:
        return None
    if not is_number(value) or not value >= 0:
        raise InvalidRequest(f"timeout must be None or a number of seconds from 0 on, not {_shown(value)}")
    return None if value >= LONGEST else float(value)


def flag(name: str, value: Any) -> bool:
    """The bool itself; InvalidRequest for anything else, such as "no", which Python would take for True."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidRequest(f"{name} must be True or False, not {_shown(value)}")
    return bool(value)


def is_number(value: Any) -> bool:
    """Whether this is a real number and no bool; NaN and infinities are numbers, huge ints too."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
