"""`POST /v1/decisions` on the wire, as OpenAI's clients speak it: a list of questions, and their answers in order."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lanes.decisions.questions import MOST_LEVELS, MOST_OPTIONS
from lanes.serving.wire.generation import Hint, Strict
from lanes.serving.wire.items import Content, Input
from lanes.serving.wire.values import Asking, Mass, Name, Several, check_distinct


class _Question(Strict):
    name: str | None = None
    instructions: Content


class PredicateQuestion(_Question):
    """Whether a statement about the input is true."""

    type: Literal["predicate"]


def _typed(value: Any) -> Any:
    if not isinstance(value, str | bool) or value == "":
        raise PydanticCustomError("value_type", "this must be true, false, or a text of at least one character")
    return value


Typed = Annotated[
    Any, AfterValidator(_typed), WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "boolean"}]})
]
"""What a choice may be: `"true"` is not `true`."""


class ChoiceOption(Strict):
    """One option, and what it means."""

    value: Typed
    description: str | None = None


def _distinct(choices: list[ChoiceOption]) -> list[ChoiceOption]:
    check_distinct([(type(one.value), one.value) for one in choices], "value", "leave one out")
    return choices


class ChoiceQuestion(_Question):
    """One of several options."""

    type: Literal["choice"]
    choices: Annotated[list[ChoiceOption], Field(min_length=2, max_length=MOST_OPTIONS), AfterValidator(_distinct)]


class Level(Strict):
    """One level, and what it means."""

    label: Name
    description: str | None = None


class ScoreQuestion(_Question):
    """A level, from the lowest to the highest."""

    type: Literal["score"]
    levels: Annotated[list[Level], Field(min_length=2, max_length=MOST_LEVELS)]


Question = Annotated[PredicateQuestion | ChoiceQuestion | ScoreQuestion, Field(discriminator="type")]


class DecisionRequest(Strict, Asking):
    """Questions about one input."""

    input: Input
    questions: Annotated[list[Question], Several]
    prompt_cache_key: Hint = None
    prompt_cache_options: Hint = None
    safety_identifier: Hint = None


class _Answer(Mass):
    name: str | None


class PredicateAnswer(_Answer):
    """How likely the statement is true."""

    type: Literal["predicate"]
    probability: float


class ChoiceProbability(BaseModel):
    """How likely one option is."""

    value: Typed
    probability: float


class ChoiceAnswer(_Answer):
    """The likeliest option, and how likely each is, in the order of the question."""

    type: Literal["choice"]
    choice: Typed
    confidence: float
    probabilities: list[ChoiceProbability]


class LevelProbability(BaseModel):
    """How likely one level is; `value` counts from 0."""

    value: int
    label: str
    probability: float


class ScoreAnswer(_Answer):
    """The expected level, and how likely each is."""

    type: Literal["score"]
    score: float
    confidence: float
    probabilities: list[LevelProbability]


class InputTokens(BaseModel):
    """Where the input's tokens came from; keeping a beginning is no extra work here, so none is counted as written."""

    cached_tokens: int
    cache_write_tokens: int


class OutputTokens(BaseModel):
    """What drawn tokens were for: there are none."""

    reasoning_tokens: int


class Usage(BaseModel):
    """Tokens of one request; what several questions share counts once. No token is ever drawn."""

    input_tokens: int
    input_tokens_details: InputTokens
    output_tokens: int
    output_tokens_details: OutputTokens
    total_tokens: int


class Decision(BaseModel):
    """Answers in the order of the questions."""

    model: str
    answers: list[Annotated[PredicateAnswer | ChoiceAnswer | ScoreAnswer, Field(discriminator="type")]]
    usage: Usage
