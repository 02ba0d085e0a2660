"""A sweep's result as a pandas frame: the caller's columns, then those of every question, then `model` and the rest."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lanes.decisions.answers import Answer
from lanes.errors import InvalidRequest
from lanes.sweeping.lines import Line
from lanes.sweeping.rows import Source
from lanes.sweeping.terms import Terms

COLUMNS: dict[str, tuple[str, Callable[[Answer], Any]]] = {
    "": ("object", lambda answer: answer.choice),
    ".value": ("float64", lambda answer: answer.value),
    ".confidence": ("float64", lambda answer: _number(answer.confidence)),
    ".probabilities": ("object", lambda answer: answer.probabilities.tolist()),
    ".logs": ("object", lambda answer: answer.logs.tolist()),
    ".keys": ("object", lambda answer: list(answer.options)),
    ".type": ("object", lambda answer: answer.type),
    ".label_mass": ("float64", lambda answer: answer.label_mass),
    ".margin": ("float64", lambda answer: answer.margin),
    ".abstain": ("float64", lambda answer: _number(answer.abstain)),
    ".orders": ("Int64", lambda answer: answer.orders),
    ".flips": ("Int64", lambda answer: answer.flips),
    ".temperature": ("float64", lambda answer: answer.temperature),
    ".warnings": ("object", lambda answer: list(answer.warnings)),
}
"""The columns of a question, after its name: dtype, and what an answer has to give; missing where a row has none."""
SHARED = ("model", "seconds", "error")


def check_names(source: Source, terms: Terms) -> None:
    """Raise InvalidRequest where two columns of the result would have one name."""
    names = [*_names(terms), *SHARED]
    own = [] if source.frame is None else list(source.frame.columns)
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise InvalidRequest(f"two columns of the result would be named {twice}: rename a question")
    clash = [name for name in own if name in names]
    if clash:
        raise InvalidRequest(
            f"the frame's columns {clash} would be hidden by the result's: rename them, or the questions"
        )


def to_frame(source: Source, terms: Terms, model: str, lines: Sequence[Line]) -> pd.DataFrame:
    """The frame of all rows, in their order."""
    columns: dict[str, pd.Series] = {}
    for name in terms.questions:
        answers = [line.answers.get(name) for line in lines]
        for suffix, (dtype, read) in COLUMNS.items():
            columns[name + suffix] = _column(answers, dtype, read)
    columns["model"] = pd.Series([model] * len(lines), dtype="object")
    columns["seconds"] = pd.Series([line.seconds for line in lines], dtype="float64")
    columns["error"] = pd.Series([line.failure and line.failure.text for line in lines], dtype="object")
    found = pd.DataFrame(columns)
    if source.index is not None:
        found.index = source.index
    return found if source.frame is None else pd.concat([source.frame, found], axis=1)


def _column(answers: Sequence[Answer | None], dtype: str, read: Callable[[Answer], Any]) -> pd.Series:
    missing = np.nan if dtype == "float64" else None
    return pd.Series([missing if answer is None else read(answer) for answer in answers], dtype=dtype)


def _names(terms: Terms) -> list[str]:
    return [name + suffix for name in terms.questions for suffix in COLUMNS]


def _number(value: float | None) -> float:
    return np.nan if value is None else value
