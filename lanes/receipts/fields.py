"""What every shape of a receipt is made of: closed models, and texts and numbers that JSON can hold."""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Sha1: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Sentence: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Identifier: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
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
