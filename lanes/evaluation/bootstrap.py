"""Percentile intervals by the bootstrap over rows: every statistic of a set sees the same resampled rows.

A resample is a row of counts, how often each row was drawn, so a statistic is written once, for counts, and its plain
value is the one where every count is 1. Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lanes import checks
from lanes.errors import InvalidRequest

_CELLS = 200_000  # counts held at once: they stay in the processor's cache, whatever the number of resamples
MOST = 1_000_000
"""The most resamples that can be asked for."""

Statistics: TypeAlias = Callable[[np.ndarray], Mapping[str, np.ndarray]]
"""From counts ([b, rows], float64) to named values ([b], float64); NaN where a resample has none."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its interval; `low` and `high` are None where there is one row only, which shows no spread."""

    value: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.4f}" if self.low is None else f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def check_level(level: Any) -> float:
    """The level of an interval, between 0 and 1; InvalidRequest for anything else."""
    return share("level", level, 0.95)


def share(name: str, value: Any, example: float) -> float:
    """A number between 0 and 1, both left out; InvalidRequest for anything else, with an example that fits."""
    if not checks.is_number(value) or not 0 < value < 1:
        raise InvalidRequest(f"{name} must be a number between 0 and 1, such as {example}, not {value!r}")
    return float(value)


def resampled(rows: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Counts ([b, rows], float64) of `resamples` draws of `rows` rows with replacement, some at a time."""
    checks.whole("resamples", resamples, 1, MOST)
    draw = np.random.default_rng(checks.whole("seed", seed, 0))
    step = max(1, _CELLS // rows)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        places = draw.integers(0, rows, (size, rows)) + rows * np.arange(size)[:, None]
        yield np.bincount(places.ravel(), minlength=size * rows).reshape(size, rows).astype(np.float64)


def figures(statistics: Statistics, rows: int, *, resamples: int, seed: int, level: float) -> dict[str, Figure | None]:
    """Each statistic's value with its percentile interval; None where the rows have no such value."""
    check_level(level)
    values = statistics(np.ones((1, rows)))
    parts = [statistics(counts) for counts in resampled(rows, resamples, seed)]
    return {
        name: None
        if np.isnan(value[0])
        else Figure(float(value[0]), *interval(np.concatenate([part[name] for part in parts]), level, rows))
        for name, value in values.items()
    }


def interval(samples: np.ndarray, level: float, rows: int = 2) -> tuple[float | None, float | None]:
    """The percentile interval of samples, those that are NaN left out; (None, None) for less than two rows."""
    known = samples[~np.isnan(samples)]
    if rows < 2 or not len(known):
        return None, None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
