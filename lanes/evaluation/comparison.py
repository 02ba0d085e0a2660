"""What moved between two runs of one question over the same rows: answers, accuracy, coverage, and the model."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import comb
from typing import Any

import numpy as np

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.evaluation.bootstrap import Figure, figures
from lanes.evaluation.gold import attach, entries
from lanes.evaluation.origin import NEAR
from lanes.evaluation.report import html_lines
from lanes.evaluation.rows import Source
from lanes.evaluation.scores import Term, means
from lanes.evaluation.table import Table, abstains, read
from lanes.evaluation.thresholds import Threshold
from lanes.record.show import html_page, html_table, text_table


@dataclass(frozen=True, slots=True)
class Change:
    """A share before and after, and the difference (after - before), on the same rows and resamples."""

    old: Figure
    new: Figure
    change: Figure

    @property
    def moved(self) -> bool:
        """Whether the interval of the difference leaves 0 out."""
        low, high = self.change.low, self.change.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True, slots=True, repr=False)
class Drift:
    """Two runs of one question, row by row; what cannot be had is None.

    `accuracy` needs gold, `coverage` (share of rows that pass the threshold) a threshold; `label_mass` is the mean
    share of the model's belief that the keys had; `flip_rate` the share of rows whose choice depended on the order of
    the options. `changed` is the share of rows with another choice, `variation` the mean total variation distance of
    the two distributions (0 to 1). `mcnemar` is the exact two-sided p-value of McNemar's test on who was right (1947).
    `old_models` and `new_models` are the fingerprints that the answers name.
    """

    type: str
    rows: int
    left_out: int
    changed: Figure
    variation: Figure
    accuracy: Change | None
    coverage: Change | None
    label_mass: Change | None
    flip_rate: Change | None
    mcnemar: float | None
    old_models: tuple[str, ...]
    new_models: tuple[str, ...]

    @property
    def model_changed(self) -> bool | None:
        """Whether the fingerprints differ; None where either run names none."""
        return self.old_models != self.new_models if self.old_models and self.new_models else None

    @property
    def changes(self) -> dict[str, Change]:
        """What can be compared before and after, by name."""
        every = {
            "accuracy": self.accuracy,
            "coverage": self.coverage,
            "label mass": self.label_mass,
            "rows with order flips": self.flip_rate,
        }
        return {name: change for name, change in every.items() if change is not None}

    @property
    def findings(self) -> tuple[str, ...]:
        """What moved, a sentence each."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[str]:
        count = round(self.changed.value * self.rows)
        yield f"{count} of {self.rows} rows changed their choice ({self.changed})."
        for name, change in self.changes.items():
            if change.moved:
                way = "rose" if change.change.value > 0 else "fell"
                yield f"{name.capitalize()} {way} from {change.old.value:.4f} to {change.new.value:.4f}."
        if not any(change.moved for change in self.changes.values()):
            yield "No figure moved beyond its interval."
        if self.model_changed is None:
            yield "Whether the model changed is unknown: the answers do not name it."
        else:
            yield "The model changed." if self.model_changed else "The model is the same."

    def __repr__(self) -> str:
        return "\n".join([f"Drift: {self._title()}", text_table(_HEAD, self._lines()), *self.findings])

    def _repr_html_(self) -> str:
        return html_page(f"Drift: {self._title()}", html_table(_HEAD, self._lines()), html_lines(*self.findings))

    def _title(self) -> str:
        return f"{self.type}, {self.rows} rows" + (f", {self.left_out} left out" if self.left_out else "")

    def _lines(self) -> Iterator[tuple[str, str, str, str]]:
        yield "rows with another choice", "", "", str(self.changed)
        yield "total variation", "", "", str(self.variation)
        for name, change in self.changes.items():
            yield name, f"{change.old.value:.4f}", f"{change.new.value:.4f}", str(change.change)
        if self.mcnemar is not None:
            yield "McNemar's p", "", "", f"{self.mcnemar:.4g}"


_HEAD = ("figure", "old", "new", "change")


def drift(
    old: Source,
    new: Source,
    gold: Any = None,
    *,
    question: str | None = None,
    threshold: Threshold | float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Drift:
    """What moved between two runs over the same rows, in the same order.

    old, new, gold and question: see `evaluate`. `threshold` is the one in use, or a plain probability: coverage is the
    share of rows at or above it. Distributions are compared at each answer's own temperature. Rows that failed in
    either run are left out, rows without gold only where gold is needed. Intervals are bootstrap percentiles over rows,
    paired. Raises InvalidRequest for runs of different lengths or keys, and as `evaluate` does.
    """
    whole = read(old, question)
    before, after = _paired(whole, read(new, question))
    place = None if gold is None else _gold(whole, entries(old, gold, whole), before)
    terms = _terms(before, after, place, threshold)
    found = figures(partial(means, terms), len(before), resamples=resamples, seed=seed, level=level)
    changed, variation = found["changed"], found["variation"]
    assert changed is not None and variation is not None  # means over all rows, of which there is one at least
    return Drift(
        type=before.type,
        rows=len(before),
        left_out=len(whole) + whole.failed - len(before),
        changed=changed,
        variation=variation,
        **{name: _change(found, name) for name in ("accuracy", "coverage", "label_mass", "flip_rate")},
        mcnemar=None if place is None else _mcnemar(before, after, place),
        old_models=before.models,
        new_models=after.models,
    )


def mcnemar(lost: int, won: int) -> float:
    """Exact two-sided p-value of so many rows that only one run had right, and so many that only the other had.

    Twice the smaller binomial tail at 1/2, at most 1. McNemar (1947), in the exact form.
    """
    apart = lost + won
    tail = sum(comb(apart, k) for k in range(min(lost, won) + 1))
    return min(1.0, 2 * tail / 2**apart)


def _paired(old: Table, new: Table) -> tuple[Table, Table]:
    """The rows that both runs answered, with the keys in the old order."""
    if len(old) + old.failed != len(new) + new.failed:
        raise InvalidRequest("the two runs have different numbers of rows: compare runs over the same rows, in order")
    if old.type != new.type or sorted(old.keys) != sorted(new.keys):
        raise InvalidRequest("the two runs asked different questions (types or keys differ): compare the same question")
    both, left, right = np.intersect1d(old.positions, new.positions, assume_unique=True, return_indices=True)
    if not len(both):
        raise InvalidRequest("no row was answered in both runs: there is nothing to compare")
    return old.take(left), new.take(right).ordered(old.keys)


def _gold(whole: Table, beside: list[Any], kept: Table) -> np.ndarray:
    """The place of each kept row's gold, -1 for none; int64 [rows]."""
    known = attach(whole, beside)
    place = np.full(whole.positions[-1] + 1, -1)
    place[known.table.positions] = known.gold
    return place[kept.positions]


def _terms(old: Table, new: Table, place: np.ndarray | None, threshold: Threshold | float | None) -> dict[str, Term]:
    chosen, chosen_now = old.logs.argmax(axis=1), new.logs.argmax(axis=1)
    p, q = np.exp(old.log_probabilities()), np.exp(new.log_probabilities())
    terms = {
        "changed": Term(chosen != chosen_now),
        "variation": Term(np.abs(p - q).sum(axis=1) / 2),
        **_pair("label_mass", old.label_mass, new.label_mass, ~np.isnan(old.label_mass + new.label_mass)),
        **_pair("flip_rate", old.flips > 0, new.flips > 0, (old.orders > 1) & (new.orders > 1)),
    }
    if place is not None:
        terms |= _pair("accuracy", chosen == place, chosen_now == place, place >= 0)
    if threshold is not None:
        terms |= _pair("coverage", _passing(old, threshold), _passing(new, threshold), np.ones(len(old)))
    return terms


def _mcnemar(old: Table, new: Table, place: np.ndarray) -> float:
    right, right_now = (table.logs.argmax(axis=1) == place for table in (old, new))
    return mcnemar(int((right & ~right_now).sum()), int((right_now & ~right).sum()))


def _pair(name: str, old: np.ndarray, new: np.ndarray, weight: np.ndarray) -> dict[str, Term]:
    before, after = np.asarray(old, dtype=np.float64), np.asarray(new, dtype=np.float64)
    values = {"old": before, "new": after, "change": after - before}
    return {f"{name}.{side}": Term(value, weight) for side, value in values.items()}


def _passing(table: Table, threshold: Threshold | float) -> np.ndarray:
    if isinstance(threshold, Threshold):
        value, temperature = threshold.value, threshold.origin.temperature
    else:
        value, temperature = checks.positive("threshold", threshold), None
    if value is None:
        return np.zeros(len(table), dtype=bool)
    likeliest = np.exp(table.log_probabilities(temperature)).max(axis=1)
    return (likeliest >= value - NEAR) & ~abstains(likeliest, table.abstain)


def _change(found: dict[str, Figure | None], name: str) -> Change | None:
    old, new, change = (found.get(f"{name}.{side}") for side in ("old", "new", "change"))
    return None if old is None or new is None or change is None else Change(old, new, change)
