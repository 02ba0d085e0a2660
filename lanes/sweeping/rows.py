"""What a sweep's row is: its number and the text of its state, read one after the other from whatever holds rows."""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pandas as pd

from lanes.decisions.questions import Value, shown
from lanes.errors import InvalidRequest

Rows: TypeAlias = pd.DataFrame | pd.Series | Iterable[Value]
StateOf: TypeAlias = Hashable | Callable[[Any], Value] | None
"""Which column or key of a row is its state, or what makes the state from the row; None: see `read_rows`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its number from 0 on, and its state as the model is shown it, or why there is none."""

    number: int
    state: str | None
    error: str = ""

    @property
    def digest(self) -> str | None:
        """The sha256 (hex) of the state; None for a row without one."""
        return None if self.state is None else hashlib.sha256(self.state.encode()).hexdigest()


@dataclass(frozen=True)
class Source:
    """Rows to come, and the frame that they came from, if they did; `index` is that of the result.

    It is read once. `total` is None where nobody knows it yet.
    """

    values: Iterable[Any]
    state_of: Callable[[Any], Any]
    total: int | None
    frame: pd.DataFrame | None = None
    index: pd.Index | None = None

    def __iter__(self) -> Iterator[Row]:
        for number, value in enumerate(self.values):
            yield self._row(number, value)

    def _row(self, number: int, value: Any) -> Row:
        try:
            return Row(number, shown(self.state_of(value), "the state"))
        except InvalidRequest as error:
            return Row(number, None, str(error))
        except Exception as error:  # the caller's function met a row that it cannot read
            return Row(number, None, f"no state could be made of this row: {type(error).__name__}: {error}")


def read_rows(rows: Any, state: StateOf) -> Source:
    """The rows of a frame, a series, or an iterable of texts or mappings. Raises InvalidRequest for anything else.

    Without `state` a frame of one column gives its cells, any other frame its rows as objects, and the rest is its own
    state. A callable gets a frame's row as a dict. A row that has no state is no error here: `Row.error` says why.
    """
    if isinstance(rows, pd.DataFrame):
        return _of_frame(rows, state)
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise InvalidRequest(
            f"rows must be a frame, or a list of texts or objects, not one {type(rows).__name__}: put it in a list"
        )
    index = rows.index if isinstance(rows, pd.Series) else None
    total = len(rows) if hasattr(rows, "__len__") else None  # pyright: ignore[reportArgumentType]
    return Source(rows, _reader(state), total, index=index)


def _of_frame(frame: pd.DataFrame, state: StateOf) -> Source:
    columns = list(frame.columns)
    if frame.columns.nlevels > 1 or len(set(columns)) < len(columns):
        raise InvalidRequest("the frame's columns must have one level and different names: rename them")
    if state is None and len(columns) == 1:
        state = columns[0]
    if state is not None and not callable(state) and state not in columns:
        raise InvalidRequest(f"state names the column {state!r}, but the frame has {columns}")
    values = (dict(zip(columns, cells, strict=True)) for cells in frame.itertuples(index=False, name=None))
    whole = state is None
    return Source(values, _object if whole else _reader(state), len(frame), frame, frame.index)


def _reader(state: StateOf) -> Callable[[Any], Any]:
    if state is None:
        return lambda row: row
    if callable(state):
        return state

    def named(row: Any) -> Any:
        if not isinstance(row, Mapping) or state not in row:
            raise InvalidRequest(f"this row has no {state!r}: leave state= out, or give objects that have it")
        return row[state]

    return named


def _object(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """A frame's row as JSON can hold it: missing cells are null, times are texts."""
    return {name: _cell(value) for name, value in row.items()}


def _cell(value: Any) -> Any:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else value
