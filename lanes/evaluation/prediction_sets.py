"""Split-conformal prediction sets: the keys that cannot be ruled out, right as often as asked."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanes.evaluation.bootstrap import share
from lanes.evaluation.gold import labelled
from lanes.evaluation.origin import NEAR, Origin
from lanes.evaluation.report import html_lines
from lanes.evaluation.rows import AnswerLike, Source
from lanes.record.show import html_page


@dataclass(frozen=True, slots=True, repr=False)
class Conformal:
    """Sets of keys that hold the right one in a share `coverage` of new rows, if these are like the `rows` fitted on.

    A key belongs to an answer's set where `1 - p` is at most `limit`. `limit` is None where the rows are too few for
    this coverage: the sets are then all keys.
    """

    coverage: float
    limit: float | None
    rows: int
    origin: Origin

    def sets(self, answer: AnswerLike) -> tuple[str, ...]:
        """The keys that cannot be ruled out, in the answer's order; none where the answer is unlike all that were seen.

        Probabilities are read at the fit's own temperature. Raises InvalidRequest for an answer to another question or
        from another model.
        """
        probabilities = self.origin.probabilities(answer)
        limit = 1.0 if self.limit is None else self.limit
        return tuple(key for key, p in zip(answer, probabilities, strict=True) if 1 - p <= limit + NEAR)

    def __repr__(self) -> str:
        return f"Conformal: {self.words}"

    def _repr_html_(self) -> str:
        return html_page("Conformal", html_lines(self.words))

    @property
    def words(self) -> str:
        """What it is, in one line."""
        if self.limit is None:
            need = math.ceil(self.coverage / (1 - self.coverage) - NEAR)
            return f"{self.rows} rows are too few for {self._share()}: every set is all keys; label {need} or more"
        return f"sets hold the right key in {self._share()}: keys with a probability of {1 - self.limit:.4f} or more"

    def _share(self) -> str:
        return f"{100 * self.coverage:g} % of rows"


def conformal(
    answers: Source,
    gold: Any,
    *,
    coverage: float = 0.9,
    question: str | None = None,
    temperature: float | None = None,
) -> Conformal:
    """Split-conformal sets with the score `1 - p(gold)` on rows that nothing else was fitted on.

    The limit is the score of rank `ceil((rows + 1) * coverage)`, which gives at least this coverage over new rows that
    are exchangeable with these, whatever the model (Vovk et al. 2005; Lei et al. 2018). Over all rows alike: it need
    not hold for each key. answers, gold, question and temperature: see `threshold`. Raises InvalidRequest as it does,
    but any number of rows will do.
    """
    share("coverage", coverage, 0.9)
    known = labelled(answers, gold, question)
    origin = Origin.of(known.table, temperature)
    gold_logs = np.take_along_axis(known.table.log_probabilities(origin.temperature), known.gold[:, None], axis=1)
    scores = np.sort(1 - np.exp(gold_logs[:, 0]))
    rank = math.ceil((len(scores) + 1) * coverage - NEAR)
    limit = float(scores[rank - 1]) if rank <= len(scores) else None
    return Conformal(coverage, limit, len(scores), origin)
