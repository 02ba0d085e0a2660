"""What every shape of a receipt is made of: closed models, and texts and numbers that JSON can hold."""

from keyword import iskeyword
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints


def is_line(text: str) -> bool:
    """Whether a text is one line that is seen as it is: nothing in it breaks lines, hides or moves the cursor."""
    return text.isprintable() and bool(text.strip())


def one_line(text: str) -> str:
    """A text that may be anything, as one line: what cannot be printed is written out as in Python."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _line(text: str) -> str:
    if not is_line(text):
        raise ValueError("it should be one line of printable text")
    return text


def _no_keyword(text: str) -> str:
    if iskeyword(text):
        raise ValueError("it should be the name of a variable")
    return text


Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Sha1: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_line)]
Sentence: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=2000), AfterValidator(_line)]
Identifier: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100), AfterValidator(_no_keyword)
]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Amount: TypeAlias = Annotated[float, Field(ge=0)]
"""Seconds, a load, a share: never below 0."""
LARGEST = 10**100
"""The largest number: beyond it sums and ratios of floats would overflow."""
Number: TypeAlias = (
    Annotated[int, Field(ge=-LARGEST, le=LARGEST)] | Annotated[float, Field(ge=-float(LARGEST), le=float(LARGEST))]
)
Numbers: TypeAlias = Annotated[tuple[Number, ...], Field(min_length=1)]
"""What one attempt gave of a kind, one by one: the seconds of every decision in it, say."""


class Shape(BaseModel):
    """Strict, frozen, closed: no field has a default, so that none can be left out."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)
