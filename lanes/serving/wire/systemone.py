"""`POST /v1/systemone` on the wire: named questions about one state, and their answers by name.

Unknown fields beside `state` and `questions` are ignored, as this dialect wants; unknown ones in a question are not.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from lanes.decisions.questions import MOST_LEVELS, MOST_OPTIONS
from lanes.serving.wire.generation import Only, Strict
from lanes.serving.wire.values import NO_PICTURES, Asking, Mass, Name, Several, Value, ValueOrNull


class NoulCriteria(Strict):
    """What counts as yes and as no; either may be left out."""

    true: ValueOrNull = None
    false: ValueOrNull = None


class NoulQuestion(Strict):
    """Yes or no; it has instructions, or says what one of them means."""

    type: Literal["noul"]
    instructions: ValueOrNull = None
    criteria: NoulCriteria | None = None

    @model_validator(mode="after")
    def _asks(self) -> "NoulQuestion":
        said = self.criteria and (self.criteria.true is not None or self.criteria.false is not None)
        if self.instructions is None and not said:
            raise PydanticCustomError("missing", "a noul needs instructions, or criteria for true or false")
        return self


class ChoiceQuestion(Strict):
    """One of several options, each with what it means, or null where its name says it all."""

    type: Literal["choice"]
    instructions: ValueOrNull = None
    criteria: Annotated[dict[Name, ValueOrNull], Field(min_length=2, max_length=MOST_OPTIONS)]


class ScoreQuestion(Strict):
    """A level, from the lowest to the highest."""

    type: Literal["score"]
    instructions: ValueOrNull = None
    criteria: Annotated[list[Value], Field(min_length=2, max_length=MOST_LEVELS)]


def _no_box(question: Any) -> Any:
    if isinstance(question, dict) and question.get("type") == "box":
        raise PydanticCustomError("unsupported", "a box is a place in a picture, and " + NO_PICTURES)
    return question


Typed = Annotated[NoulQuestion | ChoiceQuestion | ScoreQuestion, Field(discriminator="type")]
Question = Annotated[Typed, BeforeValidator(_no_box)]


class SystemOneRequest(Asking):
    """Questions about one state."""

    model_config = ConfigDict(strict=True, extra="ignore")

    state: Value
    questions: Annotated[dict[Name, Question], Several]
    assets: Annotated[Any, Only({}, why=NO_PICTURES)] = None


class NoulAnswer(Mass):
    """How likely yes is."""

    type: Literal["noul"]
    noul: float


class ChoiceAnswer(Mass):
    """The likeliest option, and how likely each is."""

    type: Literal["choice"]
    choice: str
    confidence: float
    probabilities: dict[str, float]


class ScoreAnswer(Mass):
    """The expected level, and how likely each is."""

    type: Literal["score"]
    score: float
    confidence: float
    legend: dict[str, Value]
    probabilities: dict[str, float]


class Usage(BaseModel):
    """Tokens that were computed; what several questions share counts once. No token is ever drawn."""

    input_tokens: int
    output_tokens: int
    x_cached_tokens: int


class SystemOneResponse(BaseModel):
    """Answers by the questions' names."""

    model: str
    answers: dict[str, Annotated[NoulAnswer | ChoiceAnswer | ScoreAnswer, Field(discriminator="type")]]
    usage: Usage
