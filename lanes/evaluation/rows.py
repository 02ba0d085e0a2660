"""Answers to one question, read one by one: from a list of them, of sets of them, or from a frame that a sweep made."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from lanes.errors import InvalidRequest

if TYPE_CHECKING:
    from pandas import DataFrame

Source: TypeAlias = "Sequence[Any] | DataFrame"
"""Answers to one question, sets of answers (then `question` names one), or a sweep's frame."""


class AnswerLike(Protocol):
    """What is read of an answer; iterating it gives its keys. `lanes.ask` makes such answers."""

    @property
    def type(self) -> str: ...
    @property
    def logs(self) -> np.ndarray: ...
    @property
    def temperature(self) -> float: ...
    @property
    def orders(self) -> int: ...
    @property
    def flips(self) -> int: ...
    @property
    def label_mass(self) -> float: ...
    @property
    def abstain(self) -> float | None: ...
    @property
    def timing(self) -> Any: ...
    @property
    def model(self) -> str: ...
    def __iter__(self) -> Iterator[str]: ...


class Row(NamedTuple):
    """One answer, as it is read from either form; `logs` are its keys' log-probabilities at temperature 1."""

    type: str
    keys: tuple[str, ...]
    logs: Any
    temperature: float = 1.0
    orders: int = 1
    flips: int = 0
    label_mass: float | None = None
    abstain: float | None = None
    seconds: float | None = None
    model: str = ""


def rows(answers: Source, question: str | None) -> Iterator[Row | None]:
    """One row for each entry, None where it has no answer; InvalidRequest where `question` names none of them."""
    if is_frame(answers):
        return _frame_rows(answers, question)
    return map(_picker(question), answers)


def is_frame(answers: Any) -> bool:
    """Whether this is a pandas frame; says so without importing pandas."""
    return hasattr(answers, "columns") and hasattr(answers, "itertuples")


def answer_row(answer: AnswerLike) -> Row:
    """What is read of one answer."""
    timing = answer.timing
    return Row(
        type=answer.type,
        keys=tuple(answer),
        logs=answer.logs,
        temperature=answer.temperature,
        orders=answer.orders,
        flips=answer.flips,
        label_mass=answer.label_mass,
        abstain=answer.abstain,
        seconds=None if timing is None else timing.seconds,
        model=answer.model,
    )


def _picker(question: str | None) -> Callable[[Any], Row | None]:
    def pick(item: Any) -> Row | None:
        if item is None or hasattr(item, "logs"):
            return None if item is None else answer_row(item)
        if question is None or not hasattr(item, "keys") or question not in item:
            raise InvalidRequest(
                f"there is no answer to {question!r} in {type(item).__name__}: pass answers of one question, "
                "or sets of answers and question="
            )
        return answer_row(item[question])

    return pick


def _frame_rows(frame: Any, question: str | None) -> Iterator[Row | None]:
    name = _question(frame, question)
    own = ("type", "keys", "logs", "temperature", "orders", "flips", "label_mass", "abstain")
    columns = {**{field: f"{name}.{field}" for field in own}, "seconds": "seconds", "model": "model"}
    there = {field: frame[column].tolist() for field, column in columns.items() if column in frame.columns}
    lack = [columns[field] for field in ("type", "keys", "logs") if field not in there]
    if lack:
        raise InvalidRequest(f"the frame lacks the columns {lack}: pass a frame that lanes.sweep made")
    errors = frame["error"].tolist() if "error" in frame.columns else [None] * len(frame)
    for at, error in enumerate(errors):
        values = {field: column[at] for field, column in there.items()}
        if (isinstance(error, str) and error) or not isinstance(values["logs"], list | tuple | np.ndarray):
            yield None
        else:
            model = values.get("model")
            yield Row(**{**values, "keys": tuple(values["keys"]), "model": model if isinstance(model, str) else ""})


def _question(frame: Any, question: str | None) -> str:
    names = [str(column).removesuffix(".logs") for column in frame.columns if str(column).endswith(".logs")]
    if question is None and len(names) == 1:
        return names[0]
    if question not in names:
        raise InvalidRequest(f"question must be one of the frame's {names}, not {question!r}")
    return question
