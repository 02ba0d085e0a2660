"""A threshold on the chosen answer's probability that keeps the error low on rows it was not fitted on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanes.errors import InvalidRequest
from lanes.evaluation.bootstrap import Figure, check_level, interval, resampled, share
from lanes.evaluation.gold import labelled
from lanes.evaluation.origin import NEAR, Origin
from lanes.evaluation.ranking import SLACK, Ranking
from lanes.evaluation.report import html_lines
from lanes.evaluation.rows import AnswerLike, Source
from lanes.evaluation.scores import Scores
from lanes.evaluation.table import abstains
from lanes.record.show import html_page

LEAST, FIRM = 50, 200
"""Rows below which no threshold is set, and below which it is provisional."""

_STEPS = 20  # how finely stricter targets are tried


@dataclass(frozen=True, slots=True, repr=False)
class Threshold:
    """Answers at or above the probability `value` are wrong in at most a share `error`; None: no such value was found.

    `out_of_bag` is the error that rows left out of the fit had, with its interval over resamples; `coverage` the share
    of the `rows` that passes. `origin` says which question, model and temperature it belongs to.
    """

    value: float | None
    error: float
    out_of_bag: Figure | None
    coverage: float
    rows: int
    origin: Origin

    @property
    def provisional(self) -> bool:
        """Whether it rests on fewer than 200 rows."""
        return self.rows < FIRM

    def passes(self, answer: AnswerLike) -> bool:
        """Whether the answer may be taken; never without a threshold, and never where none-of-these won.

        The probability is read at the threshold's own temperature. Raises InvalidRequest for an answer to another
        question or from another model.
        """
        likeliest = float(self.origin.probabilities(answer).max())
        outside = 0.0 if answer.abstain is None else answer.abstain
        return self.value is not None and not abstains(likeliest, outside) and likeliest >= self.value - NEAR

    def __repr__(self) -> str:
        return f"Threshold: {self.words}"

    def _repr_html_(self) -> str:
        return html_page("Threshold", html_lines(self.words))

    @property
    def words(self) -> str:
        """What it is, in one line."""
        if self.value is None:
            return f"no threshold keeps the error at {100 * self.error:g} % ({self.rows} rows): nothing passes"
        state = "provisional, " if self.provisional else ""
        return (
            f"probability {self.value:.4f} or more: {100 * self.coverage:.1f} % of rows pass, "
            f"error out of bag {self.out_of_bag} ({state}{self.rows} rows)"
        )


def threshold(
    answers: Source,
    gold: Any,
    *,
    error: float = 0.05,
    question: str | None = None,
    temperature: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Threshold:
    """The smallest probability of the chosen answer at or above which at most a share `error` is wrong.

    A value fitted on all rows would be too low: it takes what luck there is in them. So it is fitted on every bag (a
    bootstrap resample) and checked on the rows left out of it, for targets from `error` down to 0. The largest target
    whose error out of bag, over all bags, is at most `error`, and that half of the bags or more can meet, is then
    fitted on all rows. Where there is none, the value is None. This holds the error on average over data sets, not on
    each: the interval says how far one may be off.

    answers, gold and question: see `evaluate`; a gold distribution counts as its likeliest key. `temperature` None
    takes the one that all answers have. Rows where none-of-these won never pass, and take no part in the fit.

    Raises InvalidRequest for fewer than 50 other rows, for answers of several models or temperatures, and for options
    out of range.
    """
    share("error", error, 0.05)
    check_level(level)
    known = labelled(answers, gold, question)
    origin = Origin.of(known.table, temperature)
    scores = Scores(known, known.table.log_probabilities(origin.temperature))
    kept = ~abstains(scores.confidence, known.table.abstain)
    if kept.sum() < LEAST:
        raise InvalidRequest(
            f"a threshold needs {LEAST} rows with an answer and gold, there are {kept.sum()}: label more"
        )
    ranking = Ranking.of(scores.confidence[kept], ~scores.correct[kept])
    for target in error * np.arange(_STEPS, -1, -1) / _STEPS:
        value, passing = _fit(ranking, target)
        if value is None:
            break
        outside = _out_of_bag(ranking, target, resamples, seed, level)
        if outside is not None and outside.value <= error:
            return Threshold(value, error, outside, passing / len(known), len(known), origin)
    return Threshold(None, error, None, 0.0, len(known), origin)


def _fit(ranking: Ranking, target: float) -> tuple[float | None, int]:
    """The smallest confidence at or above which at most `target` of the rows are wrong, and how many rows that are."""
    ones = np.ones((1, len(ranking.order)))
    end = int(_ends(ranking, ones, target)[0])
    if end < 0:
        return None, 0
    return float(ranking.confidence[end]), int(ranking.groups(ones)[0][0, : end + 1].sum())


def _ends(ranking: Ranking, counts: np.ndarray, target: float) -> np.ndarray:
    """The last group, drawn in the resample, down to which at most `target` is wrong; -1 for none; [b]."""
    sizes, errors = ranking.groups(counts)
    holds = (errors.cumsum(axis=1) <= target * sizes.cumsum(axis=1) + SLACK) & (sizes > 0)
    last = holds.shape[1] - 1 - holds[:, ::-1].argmax(axis=1)
    return np.where(holds.any(axis=1), last, -1)


def _out_of_bag(ranking: Ranking, target: float, resamples: int, seed: int, level: float) -> Figure | None:
    """The error of the rows left out, over all bags, where each bag's own fit lets them pass; None for too few bags."""
    met, passing, wrong = map(np.concatenate, zip(*_bags(ranking, target, resamples, seed), strict=True))
    if 2 * met.sum() < resamples or not passing.sum():
        return None
    each = np.divide(wrong, passing, out=np.full(len(wrong), np.nan), where=passing > 0)
    return Figure(float(wrong.sum() / passing.sum()), *interval(each, level))


def _bags(ranking: Ranking, target: float, resamples: int, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """For each bag whether it met the target, and of the rows left out, how many pass and are wrong."""
    for counts in resampled(len(ranking.order), resamples, seed):
        ends = _ends(ranking, counts, target)
        taken = np.arange(len(ranking.starts)) <= ends[:, None]
        sizes, errors = ranking.groups((counts == 0).astype(np.float64))
        yield ends >= 0, (sizes * taken).sum(axis=1), (errors * taken).sum(axis=1)
