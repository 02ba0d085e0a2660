"""What a dialect of decisions is: how its body is read, what that asks of `lanes.ask`, and how it tells the answers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from lanes.decisions.answers import Answer, Answers
from lanes.decisions.questions import Question, Value
from lanes.errors import InvalidRequest
from lanes.serving.errors import Style, Where, invalid
from lanes.serving.wire.values import Asking

Body = TypeVar("Body", bound=Asking)


@dataclass(frozen=True)
class Put:
    """One question, and where it is in the body."""

    question: Question
    where: Where


@dataclass(frozen=True)
class Asked:
    """What a body asks: a state, the name of its field, the questions in their order, and how to ask them."""

    state: Value
    field: str
    questions: tuple[Put, ...]
    manner: Asking


@dataclass(frozen=True)
class Dialect(Generic[Body]):
    """One dialect. `told` gets the body, the answers by the questions' places ("0", "1", ...), and the model's name.

    `tags`: whether the place of a wrong field has the type of its question in it, as pydantic says it.
    """

    style: Style
    body: type[Body]
    asked: Callable[[Body], Asked]
    told: Callable[[Body, Answers, str], BaseModel]
    tags: bool


@contextmanager
def at(where: Where) -> Iterator[None]:
    """Say of what is refused here that it is this field."""
    try:
        yield
    except InvalidRequest as error:
        raise invalid(str(error), where) from None


def extras(answer: Answer) -> dict[str, Any]:
    """What an answer has beside what its dialect has a place for: fields that begin with `x_`."""
    found: dict[str, Any] = {
        "x_entropy": answer.entropy,
        "x_temperature": answer.temperature,
        "x_method": answer.method,
        "x_prior": answer.prior,
        "x_orders": answer.orders,
    }
    if answer.orders > 1:
        found["x_order_flips"] = answer.flips
    if answer.abstain is not None:
        found["x_abstain"] = answer.abstain
    if answer.warnings:
        found["x_warnings"] = list(answer.warnings)
    return found


def shares(answer: Answer) -> dict[str, float]:
    """Probabilities by the options' keys."""
    return dict(zip(answer.options, answer.probabilities.tolist(), strict=True))


def field(body: Mapping[str, Any], where: Where, missing: bool) -> Where:
    """Where in a body an error is, without the names of types that a schema puts in between.

    `missing` says that the last part is a field that should be there.
    """
    found: list[str | int] = []
    inside: Any = dict(body)
    for place, part in enumerate(where):
        there = _has(inside, part)
        inside = inside[part] if there else inside
        if there or (missing and place == len(where) - 1):
            found.append(part)
    return tuple(found)


def _has(value: Any, part: str | int) -> bool:
    return part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int)
