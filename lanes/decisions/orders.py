"""Orders of a question's options: which to ask, and when enough of them agree.

A model likes some places in a list better than others, and is swayed by what stands before what. With log-probabilities
`s_option + b_place` the mean over all rotations takes the places out; an order and its reverse together put each option
before every other one as often as behind it.
"""

import numpy as np

from lanes import checks
from lanes.errors import InvalidRequest

Order = tuple[int, ...]
"""The index of the option at each place of the list."""

MOST = 12
"""Orders that "auto" asks at most."""
STEP = 2
"""Orders that "auto" asks at a time: one and its reverse."""
STEADY = 3.0
"""Standard errors that the lead of the likeliest option must be above 0 before "auto" stops while orders disagree."""


def wanted(orders: int | str, count: int) -> tuple[int, int]:
    """(how many orders to ask first, how many at most) for `count` options. InvalidRequest for any other wish."""
    most = 2 * count if count > 2 else count
    if orders == "auto":
        return STEP, min(MOST, most)
    if isinstance(orders, str):
        raise InvalidRequest(f'orders must be "auto" or a number of orders from 1 on, not {orders!r}')
    number = min(checks.whole("orders", orders, 1), most)
    return number, number


def sequence(count: int) -> tuple[Order, ...]:
    """All rotations of `count` options, each followed by its reverse: the caller's own order first, then that turned by
    a half, by quarters, and so on. No order comes twice."""
    shifts = sorted(range(count), key=lambda shift: (_mirrored(shift / count), shift))
    rotations = (tuple((place + shift) % count for place in range(count)) for shift in shifts)
    return tuple(dict.fromkeys(order for rotation in rotations for order in (rotation, rotation[::-1])))


def settled(logs: np.ndarray) -> bool:
    """Whether more orders would hardly change the choice; `logs` are log-probabilities, [orders, options].

    All orders so far choose the same. Or, from six on, the lead of the best option over the second, the mean of each
    order and its reverse, is more than three standard errors above 0.
    """
    if len(logs) > 1 and len(set(logs.argmax(axis=1).tolist())) == 1:
        return True
    if len(logs) < 3 * STEP or len(logs) % STEP:
        return False
    first, second = np.argsort(-logs.mean(axis=0), kind="stable")[:2]
    leads = (logs[:, first] - logs[:, second]).reshape(-1, STEP).mean(axis=1)
    return bool(leads.mean() > STEADY * leads.std(ddof=1) / np.sqrt(len(leads)))


def _mirrored(fraction: float) -> int:
    """The first binary digits of a fraction of 1 read backwards: sorting by them halves the circle again and again."""
    mirrored = 0
    for place in range(8):
        fraction *= 2
        mirrored += int(fraction) << place
        fraction -= int(fraction)
    return mirrored
