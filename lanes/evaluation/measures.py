"""How good a question's answers are: every statistic with its interval, the reliability table, and pictures."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.evaluation import report
from lanes.evaluation.bootstrap import MOST, Figure, check_level, figures, interval
from lanes.evaluation.gold import labelled
from lanes.evaluation.rows import Source
from lanes.evaluation.scores import Scores, bin_of, ece_if_calibrated

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure as Plot


@dataclass(frozen=True, slots=True)
class Bin:
    """A line of the reliability table: the rows whose answer's probability is from `start` to below `end`.

    `confidence` is their mean probability, `accuracy` the share of them that is right, `low` to `high` its Wilson
    interval (Wilson 1927). All four are None in an empty bin.
    """

    start: float
    end: float
    rows: int
    confidence: float | None = None
    accuracy: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Risk against coverage, three arrays ([groups], float64): down to the probability `confidence`, the `coverage`
    (share of all rows) and the `risk` (share of those rows that is wrong)."""

    confidence: np.ndarray
    coverage: np.ndarray
    risk: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A question's answers against gold; figures are None where they cannot be had.

    Each `Figure` has a percentile bootstrap interval over rows at `level`; all of them saw the same resamples. Bins and
    ranks make `ece`, `aurc` and `coverage_at_5` biased in resamples, so their value may lie outside its interval.

    - `accuracy`: share of rows whose likeliest key is gold's (for gold distributions, their likeliest key).
    - `brier`: mean of `sum_k (p_k - g_k)^2` over all keys, from 0 to 2 (Brier 1950; twice the form that is used for yes
      or no). `nll`: mean of `-sum_k g_k log p_k`, in nats. `kl`: mean of `sum_k g_k log(g_k / p_k)`, in nats; None
      where all gold is plain keys, for then it equals `nll`.
    - `ece`: expected calibration error of the chosen answer's probability, in equal-width bins (Guo et al. 2017).
      `ece_floor`: what a perfectly calibrated model with the same probabilities would show on so many rows, the mean
      over simulated labels and their central range at `level` (Bröcker and Smith 2007). An ECE within it is no finding.
    - `aurc`: area under the risk-coverage curve. `coverage_at_5`: the largest share of rows, taken by falling
      probability, of which at most 5 % are wrong. Rows of equal probability are taken together.
    - `wrong_above_80`, `wrong_above_90`: share of all rows that are wrong at a probability above 0.8 and 0.9.
    - `rps`: ranked probability score, mean squared distance of the cumulative distributions (Epstein 1969; divided by
      levels - 1, so from 0 to 1). `mae`: mean distance of the expected level from gold's, in levels. Scores only.
    - `flip_rate`: of the rows asked in several orders, the share where an order alone chose something else.
      `flips_per_order`: the mean share of such orders. `abstained`: share of rows where none-of-these won, where it was
      offered.
    - `seconds_p50`, `seconds_p95`: quantiles of the seconds that an answer took.

    `bins` is the reliability table, `curve` risk against coverage, `confusion_counts` ([n, n], int64) counts rows by
    gold (first axis) and choice. `rows` were evaluated; `unlabelled` had no gold, `failed` no answer. `temperature` is
    None where each answer kept its own. `models` are the fingerprints that the answers name.
    """

    question: str | None
    type: str
    keys: tuple[str, ...]
    rows: int
    unlabelled: int
    failed: int
    temperature: float | None
    level: float
    models: tuple[str, ...]
    accuracy: Figure | None
    brier: Figure | None
    nll: Figure | None
    kl: Figure | None
    ece: Figure | None
    ece_floor: Figure | None
    aurc: Figure | None
    coverage_at_5: Figure | None
    wrong_above_80: Figure | None
    wrong_above_90: Figure | None
    rps: Figure | None
    mae: Figure | None
    flip_rate: Figure | None
    flips_per_order: Figure | None
    abstained: Figure | None
    seconds_p50: Figure | None
    seconds_p95: Figure | None
    bins: tuple[Bin, ...]
    curve: Curve
    confusion_counts: np.ndarray

    @property
    def figures(self) -> dict[str, Figure | None]:
        """All figures by name, in the order of the fields."""
        return {name: getattr(self, name) for name in _FIGURES}

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        plain = ("question", "type", "rows", "unlabelled", "failed", "temperature", "level")
        return {
            **{name: getattr(self, name) for name in plain},
            "keys": list(self.keys),
            "models": list(self.models),
            **{name: None if figure is None else asdict(figure) for name, figure in self.figures.items()},
            "bins": [asdict(line) for line in self.bins],
            "curve": {field.name: getattr(self.curve, field.name).tolist() for field in fields(Curve)},
            "confusion": self.confusion_counts.tolist(),
        }

    def to_frame(self) -> "DataFrame":
        """One row a figure that is there, by name; columns value, low, high (float64)."""
        import pandas as pd

        there = {name: asdict(figure) for name, figure in self.figures.items() if figure is not None}
        frame = pd.DataFrame.from_dict(there, orient="index", columns=["value", "low", "high"], dtype="float64")
        return frame.rename_axis("figure")

    def reliability(self) -> "Plot":
        """A plotly figure: how often answers are right against how likely they said they were, with intervals."""
        from lanes.evaluation import plots

        return plots.reliability(self)

    def risk_coverage(self) -> "Plot":
        """A plotly figure: the share that is wrong against the share of rows answered."""
        from lanes.evaluation import plots

        return plots.risk_coverage(self)

    def confusion(self) -> "Plot":
        """A plotly figure: rows by gold and choice."""
        from lanes.evaluation import plots

        return plots.confusion(self)

    def svg(self, kind: str) -> str:
        """A picture ("reliability", "risk_coverage", "confusion") as one static SVG element, without scripts."""
        from lanes.evaluation import svg

        if kind not in svg.KINDS:
            raise InvalidRequest(f"kind must be one of {list(svg.KINDS)}, not {kind!r}")
        return svg.KINDS[kind](self)

    def __repr__(self) -> str:
        return report.text(self)

    def _repr_html_(self) -> str:
        return report.html(self)


_FIGURES = tuple(field.name for field in fields(Evaluation) if field.type == Figure | None)


def evaluate(
    answers: Source,
    gold: Any,
    *,
    question: str | None = None,
    temperature: float | None = None,
    bins: int = 10,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Evaluation:
    """One question's answers against gold, with every figure that can be had; see `Evaluation` for their formulas.

    `answers` is a list of answers to one question, a list of sets of answers, or a sweep's frame; the last two need
    `question`, its name. `gold` has one entry for each: a key, a bool for yes or no, a level for a score, a mapping
    from keys to probabilities, or None (left out and counted); for a frame also the name of a column. `temperature`
    None keeps each answer's own; 1 is the model as it is. Raises InvalidRequest for no answers or no gold, for lengths
    that differ, gold that is not among the keys, answers to several questions, and options out of range.
    """
    checks.whole("bins", bins, 1, 1000)
    checks.whole("resamples", resamples, 1, MOST)
    check_level(level)
    known = labelled(answers, gold, question)
    scores = Scores(known, known.table.log_probabilities(temperature))
    statistics = partial(scores.statistics, bins)
    found = figures(statistics, len(known), resamples=resamples, seed=seed, level=level)
    floor = ece_if_calibrated(scores.confidence, bins, resamples, seed)
    n = len(known.table.keys)
    return Evaluation(
        question=question,
        type=known.table.type,
        keys=known.table.keys,
        rows=len(known),
        unlabelled=known.unlabelled,
        failed=known.table.failed,
        temperature=None if temperature is None else float(temperature),
        level=level,
        models=known.table.models,
        ece_floor=Figure(float(floor.mean()), *interval(floor, level)),
        **_ordered(found),
        bins=tuple(_bins(scores, bins, level)),
        curve=Curve(scores.ranking.confidence, *scores.ranking.curve()),
        confusion_counts=np.bincount(known.gold * n + scores.chosen, minlength=n * n).reshape(n, n),
    )


def wilson(right: int, rows: int, level: float) -> tuple[float, float]:
    """Wilson's score interval for a share; rows at least 1."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, spread = right / rows, z * z / rows
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / rows + spread / rows / 4) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def _ordered(found: Mapping[str, Figure | None]) -> dict[str, Any]:
    return {name: found[name] for name in _FIGURES if name != "ece_floor"}


def _bins(scores: Scores, bins: int, level: float) -> Iterator[Bin]:
    at = bin_of(scores.confidence, bins)
    for place in range(bins):
        start, end, here = place / bins, (place + 1) / bins, at == place
        rows, right = int(here.sum()), int(scores.correct[here].sum())
        if not rows:
            yield Bin(start, end, 0)
            continue
        yield Bin(start, end, rows, float(scores.confidence[here].mean()), right / rows, *wilson(right, rows, level))
