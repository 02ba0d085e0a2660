"""Made-up answers for the tests of the statistics: as `lanes.ask` gives them, and as a sweep's frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from lanes.decisions.answers import Answer
from lanes.record import Timing

KEYS = ("red", "green", "blue", "black", "white", "grey")


def answer(probabilities: Sequence[float] | np.ndarray, keys: Sequence[str] = KEYS, **fields: Any) -> Answer:
    """One answer with these probabilities at temperature 1; its type is a choice's unless it is given."""
    seconds = fields.pop("seconds", None)
    timing = None if seconds is None else Timing(submitted=1.0, finished=1.0 + seconds)
    p = np.asarray(probabilities, dtype=np.float64)
    values = {"type": "choice", "label_mass": 0.9, "timing": timing, "model": "a" * 64, **fields}
    return Answer(options=tuple(keys[: len(p)]), logs=np.log(p), **values)


def answers(probabilities: np.ndarray, keys: Sequence[str] = KEYS, **fields: Any) -> list[Answer]:
    """One answer for each row of probabilities."""
    return [answer(row, keys, **fields) for row in probabilities]


def frame(found: Sequence[Answer], question: str = "q", errors: Sequence[str | None] | None = None) -> pd.DataFrame:
    """The frame that a sweep over one question makes of these answers."""
    columns = {
        question: [one.choice for one in found],
        f"{question}.logs": [[float(value) for value in one.logs] for one in found],
        f"{question}.keys": [list(one.options) for one in found],
        f"{question}.type": [one.type for one in found],
        f"{question}.flips": [one.flips for one in found],
        f"{question}.orders": [one.orders for one in found],
        f"{question}.abstain": [one.abstain for one in found],
        f"{question}.label_mass": [one.label_mass for one in found],
        f"{question}.temperature": [one.temperature for one in found],
        "seconds": [None if one.timing is None else one.timing.seconds for one in found],
        "error": [None] * len(found) if errors is None else list(errors),
    }
    return pd.DataFrame(columns)


def simulate(
    rows: int, n: int = 4, spread: float = 2.0, temperature: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, list[str]]:
    """Probabilities ([rows, n]) that were tempered, and gold drawn from them before: honest at that temperature."""
    draw = np.random.default_rng(seed)
    logits = draw.normal(size=(rows, n)) * spread
    honest = softmax(logits)
    gold = (draw.random((rows, 1)) > honest.cumsum(axis=1)).sum(axis=1).clip(max=n - 1)
    return softmax(logits * temperature), [KEYS[place] for place in gold]


def softmax(logits: np.ndarray) -> np.ndarray:
    """The softmax over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
