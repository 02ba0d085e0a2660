"""What each row scores: plain arrays, one value a row, and the statistics of any resample of the rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lanes.evaluation.gold import Labelled
from lanes.evaluation.ranking import Ranking, area, coverage, quantile


class Term(NamedTuple):
    """A mean over the rows with a weight: sum(weight * value) / sum(weight)."""

    value: np.ndarray
    weight: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Scores:
    """Labelled rows at one temperature: `logs` ([rows, n], float64) are log-probabilities, normalised."""

    labelled: Labelled
    logs: np.ndarray

    @cached_property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.logs)

    @cached_property
    def chosen(self) -> np.ndarray:
        """The place of the likeliest key, the first of equals; [rows]. Tempering may round unequals to equals."""
        return self.labelled.table.logs.argmax(axis=1)

    @cached_property
    def confidence(self) -> np.ndarray:
        """The probability of the chosen key; [rows]."""
        return self.probabilities.max(axis=1)

    @cached_property
    def correct(self) -> np.ndarray:
        return self.chosen == self.labelled.gold

    @cached_property
    def ranking(self) -> Ranking:
        return Ranking.of(self.confidence, ~self.correct)

    @cached_property
    def terms(self) -> dict[str, Term]:
        """The statistics that are means over rows."""
        table, shares, wrong = self.labelled.table, self.labelled.shares, ~self.correct
        cross = -(shares * self.logs).sum(axis=1)
        unknown = Term(np.full(len(wrong), np.nan))
        return {
            "accuracy": Term(self.correct),
            "brier": Term(((self.probabilities - shares) ** 2).sum(axis=1)),
            "nll": Term(cross),
            "kl": Term(cross - _entropy(shares)) if self.labelled.soft else unknown,
            "wrong_above_80": Term(wrong & (self.confidence > 0.8)),
            "wrong_above_90": Term(wrong & (self.confidence > 0.9)),
            "rps": Term(self._rps()) if table.type == "score" else unknown,
            "mae": Term(self._level_error()) if table.type == "score" else unknown,
            "flip_rate": Term(table.flips > 0, table.orders > 1),
            "flips_per_order": Term(table.flips / table.orders, table.orders > 1),
            "abstained": Term(table.abstained, ~np.isnan(table.abstain)),
        }

    def statistics(self, bins: int, counts: np.ndarray) -> Mapping[str, np.ndarray]:
        """All statistics of resamples, given as counts ([b, rows]); NaN where there is none."""
        seconds = self.labelled.table.seconds
        sizes, errors = self.ranking.groups(counts)
        return {
            **means(self.terms, counts),
            "ece": ece(self.confidence, self.correct, bins, counts),
            "aurc": area(sizes, errors),
            "coverage_at_5": coverage(sizes, errors, 0.05),
            "seconds_p50": quantile(seconds, 0.5, counts),
            "seconds_p95": quantile(seconds, 0.95, counts),
        }

    def _rps(self) -> np.ndarray:
        away = (self.probabilities - self.labelled.shares).cumsum(axis=1)[:, :-1]
        return (away**2).mean(axis=1)

    def _level_error(self) -> np.ndarray:
        levels = np.arange(self.logs.shape[1])
        return np.abs((self.probabilities - self.labelled.shares) @ levels)


def means(terms: Mapping[str, Term], counts: np.ndarray) -> dict[str, np.ndarray]:
    """Weighted means under counts ([b, rows]); NaN where no row with weight was drawn."""
    ones = np.ones(counts.shape[1])
    weights = np.stack([ones if term.weight is None else term.weight for term in terms.values()], axis=1)
    values = np.stack(
        [np.where(w > 0, term.value, 0) for term, w in zip(terms.values(), weights.T, strict=True)], axis=1
    )
    with np.errstate(invalid="ignore"):
        found = (counts @ (weights * values)) / (counts @ weights)
    return dict(zip(terms, found.T, strict=True))


def bin_of(confidence: np.ndarray, bins: int) -> np.ndarray:
    """The equal-width bin of each probability, [rows]: bin i of m holds i/m <= p < (i+1)/m, the last one p = 1 too."""
    return np.minimum((confidence * bins).astype(np.int64), bins - 1)


def ece(confidence: np.ndarray, correct: np.ndarray, bins: int, counts: np.ndarray) -> np.ndarray:
    """Expected calibration error under counts: sum over bins of |sum of (confidence - correct)| / rows; [b].

    Guo et al., On Calibration of Modern Neural Networks (2017), equation 3.
    """
    member = np.eye(bins)[bin_of(confidence, bins)]
    return np.abs(counts @ (member * (confidence - correct)[:, None])).sum(axis=1) / counts.sum(axis=1)


def ece_if_calibrated(confidence: np.ndarray, bins: int, draws: int, seed: int) -> np.ndarray:
    """The ECE of `draws` data sets on which a model with these confidences is perfectly calibrated; [draws].

    Each row's answer is right with the probability that it claims: the labels of consistency resampling (Bröcker and
    Smith, Increasing the Reliability of Reliability Diagrams, 2007), with the confidences held as they are.
    """
    draw = np.random.default_rng([seed, 1])  # a stream of its own, apart from the bootstrap's
    at = bin_of(confidence, bins)
    order = np.argsort(at, kind="stable")
    sizes = np.bincount(at, minlength=bins)
    starts = (np.cumsum(sizes) - sizes)[sizes > 0]
    sorted_confidence = confidence[order]
    found = np.empty(draws)
    for start in range(0, draws, 64):
        size = min(64, draws - start)
        away = sorted_confidence - (draw.random((size, len(confidence))) < sorted_confidence)
        found[start : start + size] = np.abs(np.add.reduceat(away, starts, axis=1)).sum(axis=1) / len(confidence)
    return found


def _entropy(shares: np.ndarray) -> np.ndarray:
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(axis=1)
