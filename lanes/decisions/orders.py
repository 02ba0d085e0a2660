"""Orders of a question's options: which to ask, and when enough of them agree.

A model likes some places in a list better than others. With log-probabilities `s_option + b_place`, the mean over all
rotations takes the places out; a few rotations, far from each other, take out most.
"""

import numpy as np

from lanes import checks
from lanes.errors import InvalidRequest

Order = tuple[int, ...]
"""The index of the option at each place of the list."""

MOST = 8
"""Orders that "auto" asks at most."""
FIRST = 2
"""Orders that "auto" begins with."""
STEADY = 2.0
"""Standard errors that the lead of the likeliest option must be above 0 before "auto" stops."""


def wanted(orders: int | str, count: int) -> tuple[int, int]:
    """(how many orders to ask first, how many at most) for `count` options. InvalidRequest for any other wish."""
    if orders == "auto":
        return min(FIRST, count), min(MOST, count)
    if isinstance(orders, str):
        raise InvalidRequest(f'orders must be "auto" or a number of orders from 1 on, not {orders!r}')
    number = min(checks.whole("orders", orders, 1), count)
    return number, number


def rotations(count: int) -> tuple[Order, ...]:
    """All rotations of `count` options: the caller's own order first, then by a half, by quarters, and so on."""
    shifts = sorted(range(count), key=lambda shift: (_mirrored(shift / count), shift))
    return tuple(tuple((place + shift) % count for place in range(count)) for shift in shifts)


def settled(logs: np.ndarray) -> bool:
    """Whether more orders would hardly change the choice; `logs` are log-probabilities, [orders, options].

    All orders so far choose the same, or the lead of the best option over the second, order by order, is more than
    two standard errors above 0.
    """
    if len(logs) > 1 and len(set(logs.argmax(axis=1).tolist())) == 1:
        return True
    if len(logs) < 3:
        return False
    first, second = np.argsort(-logs.mean(axis=0), kind="stable")[:2]
    leads = logs[:, first] - logs[:, second]
    return bool(leads.mean() > STEADY * leads.std(ddof=1) / np.sqrt(len(leads)))


def _mirrored(fraction: float) -> int:
    """The first binary digits of a fraction of 1 read backwards: sorting by them halves the circle again and again."""
    mirrored = 0
    for place in range(8):
        fraction *= 2
        mirrored += int(fraction) << place
        fraction -= int(fraction)
    return mirrored
