"""Rows taken by falling confidence: risk against coverage, under any resample of the rows.

Rows of equal confidence cannot be told apart, so they are taken together; where a statistic needs an order among them,
it is the mean over all their orders. So no result depends on the order of the rows.
"""

from dataclasses import dataclass

import numpy as np

SLACK = 1e-9
"""Rows by which errors may pass an allowance, so that one in twenty is 5 % however that is rounded."""


@dataclass(frozen=True, eq=False)
class Ranking:
    """`order` ([rows]) sorts rows by falling confidence, `starts` ([groups]) are where groups of equals begin in it.

    `wrong` ([rows], bool) and `confidence` ([groups], float64) are in that order.
    """

    order: np.ndarray
    starts: np.ndarray
    wrong: np.ndarray
    confidence: np.ndarray

    @classmethod
    def of(cls, confidence: np.ndarray, wrong: np.ndarray) -> "Ranking":
        order = np.argsort(-confidence, kind="stable")
        falling = confidence[order]
        starts = np.flatnonzero(np.r_[True, falling[1:] != falling[:-1]])
        return cls(order, starts, wrong[order], falling[starts])

    def groups(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and wrong rows in each group under counts ([b, rows]); two of [b, groups]."""
        falling = counts[:, self.order]
        if len(self.starts) == len(self.order):
            return falling, falling * self.wrong
        return np.add.reduceat(falling, self.starts, axis=1), np.add.reduceat(falling * self.wrong, self.starts, axis=1)

    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Coverage and risk (shares of rows) after each group, of the rows as they are; two of [groups]."""
        sizes, errors = (part[0].cumsum() for part in self.groups(np.ones((1, len(self.order)))))
        return sizes / len(self.order), errors / sizes


def area(sizes: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """AURC from groups' rows and wrong rows ([b, groups]): the mean, over k, of the error among the k first rows; [b].

    Geifman, Uziel and El-Yaniv, Bias-Reduced Uncertainty Estimation (2019), with the mean over orders of equals.
    """
    ends, wrong = sizes.cumsum(axis=1), errors.cumsum(axis=1)
    # Within a group the expected errors grow evenly: the sum over k of (w + e (k - b) / s) / k has a closed form.
    slope = np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes > 0)
    harmonic = np.r_[0.0, np.cumsum(1 / np.arange(1, int(ends[:, -1].max()) + 1))]
    steps = np.diff(harmonic[ends.astype(np.int64)], axis=1, prepend=0)
    return ((wrong - errors - slope * (ends - sizes)) * steps + errors).sum(axis=1) / ends[:, -1]


def coverage(sizes: np.ndarray, errors: np.ndarray, error: float) -> np.ndarray:
    """The largest share of rows, whole groups from the first on, whose error is at most `error`; 0 for none; [b]."""
    ends, wrong = sizes.cumsum(axis=1), errors.cumsum(axis=1)
    return np.where(wrong <= error * ends + SLACK, ends, 0).max(axis=1) / ends[:, -1]


def quantile(values: np.ndarray, share: float, counts: np.ndarray) -> np.ndarray:
    """The quantile of the values that are not NaN under counts, linear between ranks as numpy has it; NaN for none."""
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    if not len(order):
        return np.full(len(counts), np.nan)
    ends = counts[:, order].cumsum(axis=1)
    rank = np.maximum(share * (ends[:, -1] - 1), 0)
    places = ((ends <= place[:, None]).sum(axis=1) for place in (np.floor(rank), np.ceil(rank)))
    low, high = (values[order[place.clip(max=len(order) - 1)]] for place in places)
    return np.where(ends[:, -1] > 0, low + (high - low) * (rank - np.floor(rank)), np.nan)
