"""Answers to one question as one frozen table, however they came: a list, or a frame that a sweep made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from lanes import checks
from lanes.decisions.answers import abstains
from lanes.decisions.trie import log_softmax
from lanes.errors import InvalidRequest
from lanes.evaluation.rows import Row, Source, rows


@dataclass(frozen=True, eq=False)
class Table:
    """Answers to one question; arrays have one entry for each answer that is there.

    `logs` ([rows, n], float64) are the keys' log-probabilities at temperature 1, `temperatures` what the answers were
    given at. `label_mass`, `abstain` and `seconds` (float64) are NaN where unknown. `positions` (int64) are the places
    in the caller's list or frame, of which `failed` had no answer. `models` are the fingerprints that were named.
    """

    type: str
    keys: tuple[str, ...]
    logs: np.ndarray
    temperatures: np.ndarray
    orders: np.ndarray
    flips: np.ndarray
    label_mass: np.ndarray
    abstain: np.ndarray
    seconds: np.ndarray
    positions: np.ndarray
    models: tuple[str, ...]
    failed: int = 0

    def __len__(self) -> int:
        return len(self.logs)

    @property
    def model(self) -> str:
        """The one model's fingerprint; "" where none is named. Raises InvalidRequest where there are several."""
        if len(self.models) > 1:
            named = ", ".join(model[:12] for model in self.models)
            raise InvalidRequest(
                f"the answers come from {len(self.models)} models ({named}): take one model's at a time"
            )
        return self.models[0] if self.models else ""

    def take(self, rows: np.ndarray) -> "Table":
        """The same table with these rows alone, by index or mask."""
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.type is np.ndarray}
        return replace(self, **arrays)

    def ordered(self, keys: tuple[str, ...]) -> "Table":
        """The same answers with the same keys in another order."""
        return replace(self, keys=keys, logs=self.logs[:, [self.keys.index(key) for key in keys]])

    def log_probabilities(self, temperature: float | None = None) -> np.ndarray:
        """`log softmax(logs / temperature)`, [rows, n], float64; None takes each answer's own temperature."""
        if temperature is None:
            return tempered(self.logs, self.temperatures[:, None])
        return tempered(self.logs, checks.positive("temperature", temperature))

    def shared_temperature(self, temperature: float | None) -> float:
        """The given temperature, or the one that all answers have; InvalidRequest where they differ."""
        if temperature is not None:
            return checks.positive("temperature", temperature)
        own = np.unique(self.temperatures)
        if len(own) > 1:
            raise InvalidRequest(f"the answers have {len(own)} different temperatures: say which to use (temperature=)")
        return float(own[0])

    @property
    def abstained(self) -> np.ndarray:
        """Where none-of-these is likelier than the likeliest key, at the answer's own temperature; bool [rows]."""
        return abstains(np.exp(self.log_probabilities()).max(axis=1), self.abstain)


def tempered(logs: np.ndarray, temperature: float | np.ndarray) -> np.ndarray:
    """`log softmax(logs / temperature)` over the last axis, float64; InvalidRequest where that is not finite."""
    found = log_softmax(logs, temperature)
    if not np.all(np.isfinite(found)):
        raise InvalidRequest(f"log-probabilities over the temperature {np.min(temperature):g} overflow: raise it")
    return found


def read(answers: Source, question: str | None = None) -> Table:
    """One question's answers as a table.

    `answers` is a list of answers (None where one failed), a list of sets of answers by name, or a sweep's frame, whose
    rows with an error are left out; the last two need `question` where there are several. Raises InvalidRequest for no
    answers, for answers whose types or keys differ, and for log-probabilities that are not finite.
    """
    every = list(rows(answers, question))
    found = [row for row in every if row is not None]
    if not found:
        raise InvalidRequest(f"there are no answers among the {len(every)} rows: ask first, and look at the errors")
    kinds = {(row.type, row.keys) for row in found}
    if len(kinds) > 1:
        raise InvalidRequest(
            f"the answers belong to {len(kinds)} different questions (types or keys differ): evaluate one at a time"
        )
    return Table(
        type=found[0].type,
        keys=found[0].keys,
        logs=_logs(found),
        temperatures=np.array([checks.positive("temperature", row.temperature) for row in found]),
        orders=np.array([row.orders for row in found], dtype=np.int64),
        flips=np.array([row.flips for row in found], dtype=np.int64),
        label_mass=_floats(row.label_mass for row in found),
        abstain=_floats(row.abstain for row in found),
        seconds=_floats(row.seconds for row in found),
        positions=np.array([at for at, row in enumerate(every) if row is not None], dtype=np.int64),
        models=tuple(sorted({row.model for row in found if row.model})),
        failed=len(every) - len(found),
    )


def _logs(found: Sequence[Row]) -> np.ndarray:
    n = len(found[0].keys)
    if any(len(row.logs) != n for row in found):
        raise InvalidRequest(
            f"an answer has another number of log-probabilities than its {n} keys: its data are broken"
        )
    logs = np.array([row.logs for row in found], dtype=np.float64)
    if not np.all(np.isfinite(logs)):
        raise InvalidRequest("an answer has log-probabilities that are not finite: leave it out, it is no answer")
    return logs


def _floats(values: Iterable[float | None]) -> np.ndarray:
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
