"""The shapes of the golden files: a topic holds cases, a case what is asked and what it gave."""

from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

Does: TypeAlias = Literal["stream", "score", "decide", "ask", "engine", "script"]
Values: TypeAlias = dict[str, Any]
"""Plain values, as JSON has them."""


class Shape(BaseModel):
    """Frozen; unknown and missing keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Case(Shape):
    """Something to ask, and what came of it; `gave` is None before it was frozen.

    `does` names the method that is called with `given`: one of the engine's, `lanes.ask`, or the making of an engine.
    A script is a list of steps on an engine that is paused between them.
    """

    name: str
    does: Does
    given: Values
    gave: Values | None = None


class Machine(Shape):
    """Whatever the bits of a result may hang on, as far as it is known: the machine class."""

    processor: str
    system: str
    device: str
    blas: str
    threads: int | None
    versions: dict[str, str]
    rounds: str


class Topic(Shape):
    """One file: cases that belong together, the model (sha256) and the machine that they were frozen with."""

    says: str
    model: str | None = None
    machine: Machine | None = None
    cases: tuple[Case, ...]
