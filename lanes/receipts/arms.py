"""Arms that take turns: the order in which they run, what an attempt gives, and the running itself.

Whatever drifts while a machine is measured drifts for all arms alike, as the order rotates with every repeat.
"""

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.receipts import door
from lanes.receipts.fields import LARGEST, Number, Numbers, one_line
from lanes.receipts.shapes import Arm, Sample

Work: TypeAlias = Callable[[], Awaitable[Any]]
"""What an arm does once. It gives a mapping of names to numbers (or to lists of them), or nothing."""
RATE = "_per_s"
"""How the name of a rate ends: "tokens_per_s" are the "tokens" over the "seconds"."""
TOLERANCE = 1e-6
"""How far a rate may lie from its count over its seconds, relatively."""
LONGEST_ERROR = 300


class Turn(NamedTuple):
    """One attempt that is planned."""

    arm: str
    repeat: int
    warmup: bool


def schedule(arms: Sequence[Arm]) -> Iterator[Turn]:
    """The turns of all arms, group by group: every repeat begins with the arm after the one that began the last."""
    for _, members in groupby(arms, key=lambda arm: arm.group):
        own = list(members)
        for repeat in range(own[0].warmups + own[0].repeats):
            first = repeat % len(own)
            for arm in own[first:] + own[:first]:
                yield Turn(arm.name, repeat, repeat < arm.warmups)


async def run(arms: Sequence[Arm], works: Mapping[str, Work], position: int, timeout: float) -> AsyncIterator[Sample]:
    """Run the turns of one group, each sample as it comes; positions count on from `position`.

    An attempt that raises, takes longer than `timeout` seconds or gives what is no value is kept with its error.
    """
    for at, turn in enumerate(schedule(arms), start=position):
        values, error = await attempt(works[turn.arm], timeout)
        yield Sample(
            position=at,
            arm=turn.arm,
            repeat=turn.repeat,
            warmup=turn.warmup,
            ok=error is None,
            error=error,
            values=values,
        )


async def attempt(work: Work, timeout: float) -> tuple[dict[str, Number | Numbers], str | None]:
    """What one attempt gave, and why it failed."""
    start = time.perf_counter()
    try:
        task = asyncio.ensure_future(work())
    except Exception as error:
        return {}, _told(error)
    try:
        await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:  # a measurement that is cancelled takes its attempt with it
        await _ended(task, timeout)
        raise
    seconds = time.perf_counter() - start
    if not task.done():
        await _ended(task, timeout)
        return {}, f"TimeoutError: no result after {timeout:g} s"
    try:
        return values(task.result(), seconds), None
    except asyncio.CancelledError as error:  # the arm's own: a cancelled measurement does not come here
        return {}, _told(error)
    except Exception as error:
        return {}, _told(error)


async def _ended(task: "asyncio.Future[Any]", timeout: float) -> None:
    """Cancel a task, and wait until it has ended; one that does not is left to itself."""
    task.cancel()
    await asyncio.wait({task}, timeout=timeout)
    if task.done() and not task.cancelled():
        task.exception()  # else asyncio complains that nobody asked


def values(found: Any, seconds: float) -> dict[str, Number | Numbers]:
    """The values of a sample: what the arm gave, its seconds where it gave none, the rate of its tokens.

    Raises InvalidRequest for what are no names and numbers, and for a rate that is not its count over the seconds.
    """
    if found is not None and not isinstance(found, Mapping):
        raise InvalidRequest(f"an arm gives a mapping of names to numbers, not {type(found).__name__}")
    named = {**(found or {})}
    own = {_name(name): _value(name, value) for name, value in {"seconds": seconds, **named}.items()}
    whole, tokens = own["seconds"], own.get("tokens", ())
    if isinstance(whole, tuple) or whole <= 0:
        raise InvalidRequest(f"seconds must be one number above 0, not {whole}")
    if not isinstance(tokens, tuple):
        own.setdefault(f"tokens{RATE}", _number("tokens over seconds", tokens / whole))
    if wrong := next(unlike(own), None):
        raise InvalidRequest(f"{wrong[0]} {wrong[1]}")
    return own


def unlike(values: Mapping[str, Number | Numbers]) -> Iterator[tuple[str, str]]:
    """The rates among values that do not follow from the counts and the seconds beside them, each with a reason."""
    for name, rate in values.items():
        if not name.endswith(RATE):
            continue
        counted = name.removesuffix(RATE)
        count, seconds = values.get(counted, ()), values.get("seconds", ())
        if isinstance(rate, tuple) or isinstance(count, tuple) or isinstance(seconds, tuple):
            yield name, f"has no {counted!r} and 'seconds' beside it to follow from, one number each"
            continue
        expected = count / seconds
        if not math.isclose(rate, expected, rel_tol=TOLERANCE):
            yield name, f"is {rate:.9g}, but {counted} over seconds is {expected:.9g}"


def _name(name: Any) -> str:
    return door.line("a value's name", name)


def _value(name: str, value: Any) -> Number | Numbers:
    """One number, or many in the order given; numpy's arrays too."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, list | tuple):
        return _number(name, value)
    if not value:
        raise InvalidRequest(f"{name} is an empty list: leave it out, or give numbers")
    return tuple(_number(f"{name}.{at}", one) for at, one in enumerate(value))


def _number(name: str, value: Any) -> Number:
    """The value as a plain number; numpy's too."""
    if not checks.is_number(value) or not abs(value) <= LARGEST:
        raise InvalidRequest(f"{name} must be a finite number of at most {float(LARGEST):g}, not {value!r}")
    return int(value) if isinstance(value, Integral) else float(value)


def _told(error: BaseException) -> str:
    """An error on one line, without the folders of this machine."""
    try:
        said = str(error)
    except Exception as wrong:
        said = f"its words cannot be had ({type(wrong).__name__})"
    line = one_line(" ".join(f"{type(error).__name__}: {said}".split()))
    return re.sub(r"(?:[A-Za-z]:)?(?:[\\/][\w.@~+-]+)+[\\/]", ".../", line)[:LONGEST_ERROR]
