"""Gold answers beside a table: keys, truth values, levels or distributions, read into one frozen shape."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.evaluation.rows import Source, is_frame
from lanes.evaluation.table import Table, read

_NEAR = 1e-6  # how far a distribution's sum may be from 1


@dataclass(frozen=True, eq=False)
class Labelled:
    """A table's answers that have gold.

    `shares` ([rows, n], float64) is the gold distribution over the keys, one-hot for a plain key; `gold` ([rows],
    int64) the place of its likeliest key, the first of equals. `soft` says whether any row's gold was a distribution,
    `unlabelled` how many answers had no gold.
    """

    table: Table
    gold: np.ndarray
    shares: np.ndarray
    soft: bool
    unlabelled: int

    def __len__(self) -> int:
        return len(self.gold)


def labelled(answers: Source, gold: Any, question: str | None = None) -> Labelled:
    """The answers that have gold, with it.

    `gold` has one entry for each answer or row, in order; for a frame it may be the name of a column. An entry is a
    key, a bool (or 0 and 1) for yes or no, a level for a score, a mapping from keys to probabilities, or None or NaN
    for no gold. Raises InvalidRequest for other entries, for lengths that differ, and where nothing has gold.
    """
    table = read(answers, question)
    return attach(table, entries(answers, gold, table))


def entries(answers: Any, gold: Any, table: Table) -> list[Any]:
    """The gold entries beside the table's rows, as they were given; InvalidRequest for another number of entries."""
    if isinstance(gold, str) and is_frame(answers) and gold in answers.columns:
        gold = answers[gold].tolist()
    if isinstance(gold, str | bytes | Mapping) or not isinstance(gold, Iterable):
        raise InvalidRequest(f"gold must be a sequence with one entry an answer, not {gold!r}")
    given = list(gold)
    if len(given) != len(table) + table.failed:
        raise InvalidRequest(
            f"there are {len(table) + table.failed} answers and {len(given)} gold entries: pass one entry an answer, "
            "None where there is no gold"
        )
    return [given[at] for at in table.positions]


def attach(table: Table, beside: list[Any]) -> Labelled:
    """A table's rows that have gold, with it; one entry a row of the table."""
    has = np.array([not _missing(entry) for entry in beside], dtype=bool)
    if not has.any():
        raise InvalidRequest("no answer has gold: every entry is None")
    given = [entry for entry in beside if not _missing(entry)]
    shares = np.array([_shares(entry, table.type, table.keys) for entry in given], dtype=np.float64)
    return Labelled(
        table=table.take(has),
        gold=shares.argmax(axis=1),
        shares=shares,
        soft=any(isinstance(entry, Mapping) for entry in given),
        unlabelled=int(len(beside) - has.sum()),
    )


def _missing(entry: Any) -> bool:
    """None, NaN, and pandas' own mark."""
    return entry is None or type(entry).__name__ == "NAType" or (isinstance(entry, Real) and bool(entry != entry))


def _shares(entry: Any, type: str, keys: tuple[str, ...]) -> np.ndarray:
    if isinstance(entry, Mapping):
        return _distribution(entry, type, keys)
    shares = np.zeros(len(keys))
    shares[_place(entry, type, keys)] = 1.0
    return shares


def _distribution(entry: Mapping[Any, Any], type: str, keys: tuple[str, ...]) -> np.ndarray:
    shares = np.zeros(len(keys))
    for key, share in entry.items():
        if not checks.is_number(share) or not 0 <= share <= 1 + _NEAR:
            raise InvalidRequest(f"the gold probability of {key!r} must be a number from 0 to 1, not {share!r}")
        shares[_place(key, type, keys)] += float(share)
    if abs(shares.sum() - 1) > _NEAR:
        raise InvalidRequest(f"gold probabilities must sum to 1, these sum to {shares.sum():g}: {dict(entry)!r}")
    return shares / shares.sum()


def _place(entry: Any, type: str, keys: tuple[str, ...]) -> int:
    key = _key(entry, type)
    if key not in keys:
        shown = ", ".join(map(repr, keys[:10])) + (", ..." if len(keys) > 10 else "")
        raise InvalidRequest(f"the gold {entry!r} is not among the keys {shown}: correct it, or use None for no gold")
    return keys.index(key)


def _key(entry: Any, type: str) -> Any:
    """A truth value or a level as the key that it stands for; whole floats count, since pandas makes them of ints."""
    if isinstance(entry, bool | np.bool_):
        return str(bool(entry)).lower() if type == "noul" else entry
    if not isinstance(entry, Real) or entry != entry // 1:
        return entry
    if type == "score":
        return str(int(float(entry)))
    return str(bool(entry)).lower() if type == "noul" and entry in (0, 1) else entry
