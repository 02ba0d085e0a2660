"""What requests for text have in common on the wire, and how what is not supported is refused, field by field.

Every field may be null, which is as if it were left out. An unknown field is refused: a reply that silently lacks what
was asked for is worse than none.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

MOST_LOGPROBS = 20
MOST_STOPS = 16
LONGEST_STOP = 1000
"""Characters. The engine's thread looks for every stop string in every token's text."""
MOST_STOP_TOKENS = 1000


class Only:
    """For `Annotated`: a field of the API that must be one of these values here, or null; `why` says what to do."""

    def __init__(self, *allowed: Any, why: str) -> None:
        self._allowed = allowed
        self._shown = " or ".join(json.dumps(value) for value in allowed if value not in ([], {}, "")) or "left out"
        self._why = why

    def check(self, value: Any) -> Any:
        """The value itself."""
        if value is not None and not any(value == one and _kind(value) is _kind(one) for one in self._allowed):
            said = {"shown": self._shown, "why": self._why}
            raise PydanticCustomError("unsupported_value", "this must be {shown} here: {why}", said)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_plain_validator_function(self.check)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"enum": [*self._allowed, None], "description": self._why}


def _kind(value: Any) -> type:
    """The type in JSON: 1 and 1.0 are of one, true of another."""
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


class Strict(BaseModel):
    """A part of a request: exact JSON types, no unknown field."""

    model_config = ConfigDict(strict=True, extra="forbid")


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_STOP = {"type": "string", "minLength": 1, "maxLength": LONGEST_STOP}
Stops = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=LONGEST_STOP)]],
    Field(max_length=MOST_STOPS),
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [_STOP, {"type": "array", "maxItems": MOST_STOPS, "items": _STOP}]}),
]
Token = Annotated[int, Field(ge=0, le=2**31 - 1)]
Limit = Annotated[int, Field(ge=1, le=2**53)]
"""How many tokens to draw at most."""
Hint = Annotated[Any, Field(description="Accepted, and without effect.")]
NO_PENALTY = "penalties are not supported"


class StreamOptions(Strict):
    """How a streamed reply comes."""

    include_usage: bool | None = None
    include_obfuscation: Hint = None


class Generation(Strict):
    """What may be said of any text to be written. What is left out is as in `Engine.stream`: temperature 0."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=2**53, description="-1 and 0 are off.")] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**64 - 1)] | None = None
    stop: Stops | None = None
    stop_token_ids: Annotated[list[Token], Field(max_length=MOST_STOP_TOKENS)] | None = None
    ignore_eos: bool | None = None
    user: Hint = None

    n: Annotated[Any, Only(1, why="a request gets one reply; send several, they are served side by side")] = None
    best_of: Annotated[Any, Only(1, why="a request gets one reply, and none is chosen among several")] = None
    presence_penalty: Annotated[Any, Only(0, why=NO_PENALTY)] = None
    frequency_penalty: Annotated[Any, Only(0, why=NO_PENALTY)] = None
    repetition_penalty: Annotated[Any, Only(1, why=NO_PENALTY)] = None
    logit_bias: Annotated[Any, Only({}, why="biases are not supported")] = None
    min_tokens: Annotated[Any, Only(0, why="ignore_eos goes on until max_tokens, which is all there is")] = None


class PromptTokens(BaseModel):
    """How many of the prompt's tokens were kept from an earlier prompt."""

    cached_tokens: int


class CompletionTokens(BaseModel):
    """What the reply's tokens were for."""

    reasoning_tokens: int = 0


class Usage(BaseModel):
    """Tokens of one request; the reply's include its end token."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokens
    completion_tokens_details: CompletionTokens = CompletionTokens()


class Answered(BaseModel):
    """What every whole reply says. `x_stream` is its number in the engine's record, `x_seed` what draws depended on."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    usage: Usage
    x_stream: int
    x_seed: int
