"""`POST /v1/decisions` on the wire, as SGLang has it: questions with an id of their own, answers by id.

Unknown fields are refused everywhere, as this dialect wants.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lanes.decisions.questions import MOST_LEVELS, MOST_OPTIONS
from lanes.decisions.render import VERSION
from lanes.serving.wire.generation import Only, Strict, Usage
from lanes.serving.wire.values import NO_PICTURES, Asking, Extras, Name, Several, Value, ValueOrNull, check_distinct

DEFAULT_MODEL = "default"
"""What clients of this dialect call the model that there is."""
_THINKING = ("enable_thinking", "thinking")


def _no_thinking(value: Any) -> Any:
    """Chat templates are always used without thinking: a client may say so too, and nothing else."""
    fine = value is None or (isinstance(value, dict) and all(k in _THINKING and v is False for k, v in value.items()))
    if not fine:
        said = "this may only turn thinking off, which it is: {{'enable_thinking': false}}, or leave it out"
        raise PydanticCustomError("unsupported_value", said)
    return value


TemplateOptions = Annotated[
    Any,
    BeforeValidator(_no_thinking),
    WithJsonSchema(
        {
            "type": ["object", "null"],
            "properties": {name: {"const": False} for name in _THINKING},
            "additionalProperties": False,
        }
    ),
]


class _Question(Strict):
    id: Name
    question: Value


class ChoiceOption(Strict):
    """One option, and what it means."""

    name: Name
    description: ValueOrNull = None


def _distinct(options: list[ChoiceOption]) -> list[ChoiceOption]:
    check_distinct([one.name for one in options], "name", "leave one out")
    return options


class ChoiceQuestion(_Question):
    """One of several options."""

    type: Literal["choice"]
    options: Annotated[list[ChoiceOption], Field(min_length=2, max_length=MOST_OPTIONS), AfterValidator(_distinct)]


class ScoreQuestion(_Question):
    """A level, from the lowest to the highest."""

    type: Literal["score"]
    levels: Annotated[list[Value], Field(min_length=2, max_length=MOST_LEVELS)]


class YesNoQuestion(_Question):
    """Yes or no, and what each means."""

    type: Literal["yes_no"]
    yes: ValueOrNull = None
    no: ValueOrNull = None


Question = Annotated[ChoiceQuestion | ScoreQuestion | YesNoQuestion, Field(discriminator="type")]


def _own_ids(questions: list[Any]) -> list[Any]:
    check_distinct([one.id for one in questions], "id", "each question needs its own")
    return questions


class OptionsRequest(Strict, Asking):
    """Questions about one input. `temperature` divides the log-probabilities of the options, not the label mass."""

    model: str = DEFAULT_MODEL
    input: Value
    questions: Annotated[list[Question], Several, AfterValidator(_own_ids)]
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    prompt_format_version: Annotated[Any, Only(VERSION, why="it is the version of the wording here")] = None
    chat_template_kwargs: TemplateOptions = None
    return_prompt_token_ids: Annotated[Any, Only(False, why="token ids are not given")] = None
    images: Annotated[Any, Only([], why=NO_PICTURES)] = None


class _Answer(Extras):
    probabilities: dict[str, float]
    label_mass: float


class ChoiceAnswer(_Answer):
    """The likeliest option, and how likely each is."""

    type: Literal["choice"]
    choice: str
    x_confidence: float


class ScoreAnswer(_Answer):
    """The expected level, and how likely each is, by its number."""

    type: Literal["score"]
    score: float
    x_confidence: float


class YesNoAnswer(_Answer):
    """How likely yes and no are."""

    type: Literal["yes_no"]


class OptionsResponse(BaseModel):
    """Answers by the questions' ids."""

    object: Literal["decisions"]
    model: str
    prompt_format_version: int
    answers: dict[str, Annotated[ChoiceAnswer | ScoreAnswer | YesNoAnswer, Field(discriminator="type")]]
    usage: Usage
