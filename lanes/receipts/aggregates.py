"""From samples to figures and ratios: pure functions, the same when a receipt is made and when it is verified.

Warm-ups and failed attempts have no part in a figure; failed attempts are counted beside it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, TypeAlias

from lanes.errors import InvalidRequest
from lanes.receipts.fields import LARGEST, Number
from lanes.receipts.shapes import Arm, Figures, Ratio, Sample

Aggregates: TypeAlias = Mapping[str, Mapping[str, Figures]]
Value: TypeAlias = tuple[str, str]
"""An arm, and a value of its samples."""
FIGURES = ("median", "p50", "p95", "p99", "min", "max", "n", "failed")


def aggregates(arms: Sequence[Arm], samples: Sequence[Sample]) -> dict[str, dict[str, Figures]]:
    """Figures by arm and value. An arm whose attempts all failed has none."""
    found: dict[str, dict[str, Figures]] = {}
    for arm in arms:
        own = [sample for sample in samples if sample.arm == arm.name and not sample.warmup]
        failed = sum(not sample.ok for sample in own)
        names = sorted({name for sample in own if sample.ok for name in sample.values})
        found[arm.name] = {name: figures(_values(own, name), failed) for name in names}
    return found


def numbers(samples: Sequence[Sample], arm: str, value: str) -> tuple[Number, ...]:
    """Every number of an arm's value that has a part in its figures, in the order in which they came."""
    return tuple(_values([sample for sample in samples if sample.arm == arm and not sample.warmup], value))


def figures(values: Sequence[Number], failed: int = 0) -> Figures:
    """The figures of at least one value."""
    ranked = sorted(values)
    return Figures(
        n=len(ranked),
        failed=failed,
        median=median(ranked),
        p50=rank(ranked, 50),
        p95=rank(ranked, 95),
        p99=rank(ranked, 99),
        min=ranked[0],
        max=ranked[-1],
    )


def rank(ranked: Sequence[Number], percent: int) -> Number:
    """The nearest rank: the least of the sorted values that at least `percent` percent of them do not exceed."""
    return ranked[math.ceil(percent * len(ranked) / 100) - 1]


def ratio(
    name: str,
    numerator: Value,
    denominator: Value,
    kind: Literal["pairs", "medians"],
    arms: Sequence[Arm],
    samples: Sequence[Sample],
) -> Ratio:
    """One value over another; where an attempt gave many numbers, their median stands for it.

    pairs: median, least and greatest of the ratios within a repeat, over the repeats in which neither attempt failed.
    medians: one median over the other. Raises InvalidRequest where there is nothing to divide, or a zero to divide by.
    """
    top, bottom = _by_repeat(samples, *numerator), _by_repeat(samples, *denominator)
    for what, own in ((numerator, top), (denominator, bottom)):
        if not own:
            raise InvalidRequest(f"no sample of the arm {what[0]!r} has {what[1]!r}: measure it, or look at its errors")
    groups = {arm.name: arm.group for arm in arms}
    if kind == "medians":
        n, parts = min(len(top), len(bottom)), [(median(top.values()), median(bottom.values()))]
    elif groups.get(numerator[0]) != groups.get(denominator[0]):
        raise InvalidRequest(f"{numerator[0]!r} and {denominator[0]!r} took no turns: use kind='medians'")
    else:
        parts = [(top[repeat], bottom[repeat]) for repeat in sorted(top.keys() & bottom.keys())]
        n = len(parts)
        if not parts:
            raise InvalidRequest(f"{numerator[0]!r} and {denominator[0]!r} share no repeat: use kind='medians'")
    ratios = [over / under if under else math.inf for over, under in parts]
    if any(abs(own) > LARGEST for own in ratios):
        raise InvalidRequest(f"{denominator[1]!r} of the arm {denominator[0]!r} is 0, or too near it, to divide by")
    ends = (min(ratios), max(ratios)) if kind == "pairs" else (None, None)
    return Ratio(
        name=name,
        kind=kind,
        numerator=numerator,
        denominator=denominator,
        n=n,
        value=median(ratios),
        min=ends[0],
        max=ends[1],
    )


def figure(path: Sequence[str], found: Aggregates, ratios: Sequence[Ratio]) -> Number:
    """A figure by its path: the name of a ratio, or arm, value and figure. Raises InvalidRequest for an unknown one."""
    if len(path) == 1:
        by_name = {own.name: own.value for own in ratios}
        if path[0] not in by_name:
            raise InvalidRequest(f"there is no ratio {path[0]!r}: there are {_listed(by_name)}")
        return by_name[path[0]]
    if len(path) != 3:
        raise InvalidRequest(f"a figure is the name of a ratio, or (arm, value, figure), not {tuple(path)!r}")
    arm, value, name = path
    if arm not in found:
        raise InvalidRequest(f"there is no arm {arm!r}: there are {_listed(found)}")
    if value not in found[arm]:
        raise InvalidRequest(f"no sample of the arm {arm!r} has {value!r}: they have {_listed(found[arm])}")
    if name not in FIGURES:
        raise InvalidRequest(f"there is no figure {name!r}: there are {_listed(FIGURES)}")
    return getattr(found[arm][value], name)


def _values(samples: Sequence[Sample], name: str) -> list[Number]:
    own = [sample.values[name] for sample in samples if sample.ok and name in sample.values]
    return [number for value in own for number in (value if isinstance(value, tuple) else (value,))]


def _by_repeat(samples: Sequence[Sample], arm: str, value: str) -> dict[int, Number]:
    return {
        sample.repeat: median(_values([sample], value))
        for sample in samples
        if sample.arm == arm and not sample.warmup and sample.ok and value in sample.values
    }


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
