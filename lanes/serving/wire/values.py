"""What the three dialects of decisions have in common on the wire."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, SerializerFunctionWrapHandler, WithJsonSchema, model_serializer
from pydantic_core import PydanticCustomError

from lanes.decisions.orders import MOST
from lanes.decisions.questions import MOST_QUESTIONS

NO_PICTURES = "pictures are not looked at here: put into words what they show"
"""What is said of a picture, wherever it is."""
_TEXTS: list[dict[str, Any]] = [{"type": "string", "minLength": 1}, {"type": "object"}, {"type": "array"}]
_ORDERS: dict[str, Any] = {"anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": MOST}]}


def _value(value: Any) -> Any:
    if not isinstance(value, str | dict | list):
        raise PydanticCustomError("value_type", "this must be a text, an object or an array")
    if value == "":
        raise PydanticCustomError("string_too_short", "this must have at least one character")
    return value


def _value_or_null(value: Any) -> Any:
    return None if value is None else _value(value)


def _orders(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():  # 2.0 is a whole number in JSON
        value = int(value)
    if value != "auto" and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST):
        raise PydanticCustomError("orders", 'this must be "auto" or a whole number from 1 to {most}', {"most": MOST})
    return value


def check_distinct(values: Sequence[Any], what: str, remedy: str) -> None:
    """Raise where one of these was there before; `what` they are, and what to do."""
    twice = next((place for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        said = "the {what} of item {place} was there before: {remedy}"
        raise PydanticCustomError("not_distinct", said, {"what": what, "place": twice, "remedy": remedy})


Name = Annotated[str, Field(min_length=1)]
Value = Annotated[Any, AfterValidator(_value), WithJsonSchema({"anyOf": _TEXTS})]
"""A text of at least one character, an object or an array."""
ValueOrNull = Annotated[Any, AfterValidator(_value_or_null), WithJsonSchema({"anyOf": [*_TEXTS, {"type": "null"}]})]
Orders = Annotated[Any, AfterValidator(_orders), WithJsonSchema(_ORDERS)]
Several = Field(min_length=1, max_length=MOST_QUESTIONS)
"""How many questions one request may ask."""


class Asking(BaseModel):
    """What a request says beside its questions: for which model they are, and how they are asked.

    The fields that begin with `x_` are arguments of `lanes.ask`, with its defaults.
    """

    model: str
    x_method: Literal["codes", "labels"] = "codes"
    x_orders: Orders = 1
    x_prior: Literal["none", "contextual"] = "none"
    x_abstain: bool = False


class Extras(BaseModel):
    """What is known of an answer beside what its dialect has a place for; see `lanes.Answer`.

    `x_order_flips` is there where the question was asked in several orders, `x_abstain` where none-of-these was
    offered, `x_warnings` where there is something to be warned of.
    """

    x_entropy: float
    x_temperature: float
    x_method: str
    x_prior: str
    x_orders: int
    x_order_flips: int = 0
    x_abstain: float = 0.0
    x_warnings: list[str] = []

    @model_serializer(mode="wrap")
    def _behind(self, plain: SerializerFunctionWrapHandler):  # a return type would stand for the fields in the schema
        """What it is comes first, the extras come last."""
        return dict(sorted(plain(self).items(), key=lambda item: (item[0].startswith("x_"), item[0] != "type")))


class Mass(Extras):
    """The extras, and the label mass where the dialect has no place for it."""

    x_label_mass: float
