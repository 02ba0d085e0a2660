"""Temperatures fitted on held-out rows: one for each question type and number of options, bound to one model."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lanes.errors import InvalidRequest
from lanes.evaluation import store
from lanes.evaluation.gold import Labelled, labelled
from lanes.evaluation.report import html_lines
from lanes.evaluation.rows import Source
from lanes.evaluation.table import tempered
from lanes.record.show import html_page, html_table, text_table

LOWEST, HIGHEST = 0.05, 20.0
"""The temperatures between which one is sought."""
LEAST = 20
"""Rows below which none is fitted."""

_HEAD = ("type", "options", "temperature", "rows", "NLL before", "after")
_HALVINGS = 48  # of log(400), so that the last bit of a temperature is near


@dataclass(frozen=True, slots=True)
class Fit:
    """One temperature: for questions of this type with so many options, from so many rows.

    `before` and `after` are the mean NLL (nats) of these rows at temperature 1 and at the fitted one: what was gained
    where it was fitted, not what new rows will gain.
    """

    type: str
    options: int
    temperature: float
    rows: int
    before: float
    after: float


@dataclass(frozen=True, slots=True, repr=False)
class Calibration:
    """Temperatures for the answers of the model with the fingerprint `model`; `warnings` say what to mistrust."""

    model: str
    fits: tuple[Fit, ...]
    warnings: tuple[str, ...] = ()

    @property
    def temperatures(self) -> dict[tuple[str, int], float]:
        """The temperatures by question type and number of options."""
        return {(fit.type, fit.options): fit.temperature for fit in self.fits}

    def for_(self, type: str, options: int) -> float | None:
        """The temperature for a question type and its number of options; None where none was fitted."""
        return self.temperatures.get((type, options))

    def check(self, fingerprint: str) -> None:
        """Raise InvalidRequest unless this is the model that the temperatures were fitted for."""
        if fingerprint != self.model:
            raise InvalidRequest(
                f"this calibration was fitted for the model {self.model[:12]}, not for {fingerprint[:12]!r}: "
                "calibrate on answers of this model, or leave calibration out"
            )

    def save(self, path: str | Path) -> Path:
        """Write it to a JSON file, all or nothing; returns the path."""
        return store.write(Path(path), self.model, self.fits, self.warnings)

    @classmethod
    def load(cls, path: str | Path) -> "Calibration":
        """Read what `save` wrote. Raises InvalidRequest for anything else, OSError for a file that cannot be read."""
        model, fits, said = store.load(Path(path))
        return cls(model, tuple(Fit(**fit) for fit in fits), said)

    def __repr__(self) -> str:
        return "\n".join([f"Calibration: model {self.model[:12]}", text_table(_HEAD, self._lines()), *self.warnings])

    def _repr_html_(self) -> str:
        table = html_table(_HEAD, self._lines())
        return html_page(f"Calibration: model {self.model[:12]}", table, html_lines(*self.warnings))

    def _lines(self) -> list[tuple[str, ...]]:
        return [
            (
                fit.type,
                str(fit.options),
                f"{fit.temperature:.4f}",
                str(fit.rows),
                f"{fit.before:.4f}",
                f"{fit.after:.4f}",
            )
            for fit in self.fits
        ]


def calibrate(
    answers: "Source | Mapping[str, Source]", gold: Any, *, question: str | None = None, model: str | None = None
) -> Calibration:
    """One temperature for each question type and number of options, the one with the least NLL on these rows.

    Guo et al., On Calibration of Modern Neural Networks (2017). Use rows that are held out: neither shown in a prompt
    nor used to evaluate afterwards. answers, gold and question: see `evaluate`; for several questions `gold` maps their
    names to gold, and `answers` is such a mapping too, or a sweep's frame, or a list of sets of answers. `model` is the
    fingerprint, where the answers do not name it themselves. Temperatures that the answers had are ignored.

    Raises InvalidRequest for fewer than 20 rows with gold for a type and number of options, for answers of two models
    or of none that is named. Warns where the best temperature is at a bound (0.05, 20), as when all answers are right.
    """
    groups: dict[tuple[str, int], list[Labelled]] = {}
    for known in _questions(answers, gold, question):
        groups.setdefault((known.table.type, len(known.table.keys)), []).append(known)
    fingerprint = _model(groups.values(), model)
    fits = tuple(_fit(type, n, parts) for (type, n), parts in sorted(groups.items()))
    said = tuple(
        f"the temperature of {fit.type} with {fit.options} options is at its bound {fit.temperature:g}: "
        "the rows do not determine it; take more or harder ones"
        for fit in fits
        if fit.temperature in (LOWEST, HIGHEST)
    )
    for words in said:
        warnings.warn(words, stacklevel=2)
    return Calibration(fingerprint, fits, said)


def best_temperature(logs: np.ndarray, shares: np.ndarray) -> float:
    """The temperature from 0.05 to 20 with the least mean NLL of gold `shares`; both [rows, n], float64.

    The NLL is convex in 1/T. Its slope there, mean(E_p[logs] - E_g[logs]), grows with 1/T, so halving finds its zero.
    1 where every temperature is as good.
    """
    wanted = (shares * logs).sum(axis=1).mean()

    def slope(temperature: float) -> float:
        return float((np.exp(tempered(logs, temperature)) * logs).sum(axis=1).mean() - wanted)

    if slope(1.0) == 0:
        return 1.0
    if slope(HIGHEST) >= 0:
        return HIGHEST
    if slope(LOWEST) <= 0:
        return LOWEST
    low, high = np.log(LOWEST), np.log(HIGHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(float(np.exp(middle))) > 0 else (low, middle)
    return float(np.exp((low + high) / 2))


def _questions(answers: Any, gold: Any, question: str | None) -> list[Labelled]:
    if not isinstance(gold, Mapping):
        if isinstance(answers, Mapping):
            raise InvalidRequest("answers are named by question, gold is not: map the same names to gold")
        return [labelled(answers, gold, question)]
    if question is not None:
        raise InvalidRequest("gold names its questions already: leave question= out, or pass one question's gold")
    if not gold:
        raise InvalidRequest("gold names no question: pass gold for one at least")
    if not isinstance(answers, Mapping):
        return [labelled(answers, own, name) for name, own in gold.items()]
    if answers.keys() != gold.keys():
        raise InvalidRequest(
            f"answers are there for {sorted(answers)}, gold for {sorted(gold)}: name the same questions"
        )
    return [labelled(answers[name], own, name) for name, own in gold.items()]


def _model(groups: Any, model: str | None) -> str:
    named = {known for parts in groups for part in parts for known in part.table.models}
    found = named | ({model} if model else set())
    if len(found) > 1:
        shown = ", ".join(sorted(one[:12] for one in found))
        raise InvalidRequest(f"a calibration belongs to one model, these answers to {len(found)} ({shown}): split them")
    if not found:
        raise InvalidRequest("the answers do not name the model that gave them: pass model=engine.info.fingerprint")
    return found.pop()


def _fit(type: str, options: int, parts: list[Labelled]) -> Fit:
    logs = np.concatenate([part.table.logs for part in parts])
    shares = np.concatenate([part.shares for part in parts])
    if len(logs) < LEAST:
        raise InvalidRequest(
            f"a temperature needs {LEAST} rows with gold, a {type} with {options} options has {len(logs)}: label more"
        )
    temperature = best_temperature(logs, shares)
    before, after = (float(-(shares * tempered(logs, t)).sum(axis=1).mean()) for t in (1.0, temperature))
    return Fit(type, options, temperature, len(logs), before, after)
