"""`POST /v1/decisions` on the wire, as OpenAI's clients speak it: a list of questions, and their answers in order."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from lanes.decisions.questions import MOST_LEVELS, MOST_OPTIONS
from lanes.serving.wire.generation import Hint, Strict
from lanes.serving.wire.values import NO_PICTURES, Asking, Mass, Name, Several


def _no_picture(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "input_image":
        raise PydanticCustomError("unsupported_content", NO_PICTURES)
    return part


def _text_or(name: str) -> Any:
    """Tells a text from a list, and both from anything else."""

    def kind(value: Any) -> str | None:
        return "text" if isinstance(value, str) else name if isinstance(value, list) else None

    said = f"this must be a text or a list of {name}"
    return Discriminator(kind, custom_error_type="value_type", custom_error_message=said)


class TextPart(Strict):
    """A part that is text."""

    type: Literal["input_text", "output_text"]
    text: str
    prompt_cache_breakpoint: Hint = None


class JsonPart(Strict):
    """A part that is an object, or a list of objects; it is read as JSON."""

    type: Literal["input_json"]
    data: dict[str, Any] | list[dict[str, Any]]


class RefusalPart(Strict):
    """What an assistant said in place of an answer."""

    type: Literal["refusal"]
    refusal: str


Part = Annotated[
    Annotated[TextPart | JsonPart | RefusalPart, Field(discriminator="type")], BeforeValidator(_no_picture)
]
Parts = Annotated[list[Part], Field(min_length=1, fail_fast=True), Tag("parts")]
Content = Annotated[Annotated[Name, Tag("text")] | Parts, _text_or("parts")]


class Message(Strict):
    """Somebody said something."""

    type: Literal["message"] = "message"
    role: Literal["user", "developer", "system", "assistant"]
    content: Content
    phase: Hint = None


class _Called(Strict):
    call_id: str
    id: Hint = None
    status: Hint = None


class FunctionCall(_Called):
    """An assistant called a function."""

    type: Literal["function_call"]
    name: str
    arguments: str
    namespace: Hint = None


class CustomToolCall(_Called):
    """An assistant called a tool."""

    type: Literal["custom_tool_call"]
    name: str
    input: str
    namespace: Hint = None


class CallOutput(_Called):
    """What a call gave; it names the call."""

    type: Literal["function_call_output", "custom_tool_call_output"]
    output: Content


def _kind(item: Any) -> str | None:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) and kind in _KINDS else None


_KINDS = ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
Item = Annotated[
    Annotated[Message, Tag("message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[CustomToolCall, Tag("custom_tool_call")]
    | Annotated[CallOutput, Tag("function_call_output")]
    | Annotated[CallOutput, Tag("custom_tool_call_output")],
    Discriminator(
        _kind, custom_error_type="item_type", custom_error_message=f"this must be an object of type {', '.join(_KINDS)}"
    ),
]


def _answered(items: list[Any]) -> list[Any]:
    """Every output is that of a call before it."""
    calls: set[tuple[str, str]] = set()
    for place, item in enumerate(items):
        if isinstance(item, FunctionCall | CustomToolCall):
            calls.add((item.type, item.call_id))
        elif isinstance(item, CallOutput) and (item.type.removesuffix("_output"), item.call_id) not in calls:
            said = "item {place} is the output of a call that is not before it: send the call with this call_id too"
            raise PydanticCustomError("call_missing", said, {"place": place})
    return items


Items = Annotated[list[Item], Field(min_length=1, fail_fast=True), AfterValidator(_answered), Tag("items")]
Input = Annotated[Annotated[Name, Tag("text")] | Items, _text_or("items")]


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
    values = [(type(one.value), one.value) for one in choices]
    twice = next((place for place, value in enumerate(values) if value in values[:place]), None)
    if twice is not None:
        said = "the value of item {place} was there before: leave one out"
        raise PydanticCustomError("not_distinct", said, {"place": twice})
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
