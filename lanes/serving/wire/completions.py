"""`POST /v1/completions` on the wire: what may be asked, and what is answered."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lanes.serving.wire.generation import MOST_LOGPROBS, Answered, Generation, Only

MAX_TOKENS = 16
"""Tokens of a reply where the request does not say, as in OpenAI's API."""


def _one_text(value: Any) -> Any:
    """A text, also as the only one of a list."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    if isinstance(value, list):
        tokens = any(not isinstance(item, str) for item in value)
        said = "token ids are not read, send the text" if tokens else "send one request for each, they run side by side"
        raise PydanticCustomError("unsupported_value", "this must be one text: {said}", {"said": said})
    return value


_TEXT = {"type": "string", "minLength": 1}
OneText = Annotated[
    str,
    Field(min_length=1),
    BeforeValidator(_one_text),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 1}]}),
]


class CompletionRequest(Generation):
    """A text to be gone on with, taken as it is, without a template; by 16 tokens, where no number is given."""

    prompt: OneText
    logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = None

    echo: Annotated[Any, Only(False, why="the prompt is not part of the reply")] = None
    suffix: Annotated[Any, Only("", why="text is written at the end alone, not between two texts")] = None


class CompletionLogprobs(BaseModel):
    """In each list one item for each token of `usage.completion_tokens`, the end token included.

    A token that is a part of a character is written as its bytes, `bytes:\\xe2\\x82`. `top_logprobs` has the likeliest
    tokens and the drawn one. `text_offset` is where a token's text begins, in characters of `text`.
    """

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """The one reply."""

    index: Literal[0] = 0
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length"]


class Completion(Answered):
    """A whole reply."""

    object: Literal["text_completion"] = "text_completion"
    choices: Annotated[list[CompletionChoice], Field(min_length=1, max_length=1)]
