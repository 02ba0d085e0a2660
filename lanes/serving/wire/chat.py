"""`POST /v1/chat/completions` on the wire: what may be asked, and what is answered."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from lanes.serving.wire.generation import MOST_LOGPROBS, Answered, Generation, Hint, Limit, Only, Strict

NO_TOOLS = "tools are not supported; say in words what the reply should be"
TEXT_ALONE = "the engine reads and writes text alone"


class TextPart(Strict):
    """A part of a message."""

    type: Literal["text", "input_text"]
    text: str


def _text_alone(part: Any) -> Any:
    """Refuse pictures, sounds and files by their names, before anything else is looked at."""
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind not in ("text", "input_text"):
        said = "content of type {kind} is not supported: {why}; describe it in words"
        raise PydanticCustomError("unsupported_content", said, {"kind": repr(kind[:40]), "why": TEXT_ALONE})
    return part


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise PydanticCustomError("content_type", "this must be a text, or a list of parts of type 'text'")
    return content


_PART = {
    "type": "object",
    "properties": {"type": {"enum": ["text", "input_text"]}, "text": {"type": "string"}},
    "required": ["type", "text"],
    "additionalProperties": False,
}
Content = Annotated[
    list[Annotated[TextPart, BeforeValidator(_text_alone)]],
    Field(min_length=1, fail_fast=True),
    BeforeValidator(_parts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": _PART, "minItems": 1}]}),
]


class ChatMessage(Strict):
    """One message; `developer` is what newer clients call `system`."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    name: str | None = None
    refusal: Annotated[Any, Only(why="a refusal is no text that was said")] = None
    audio: Annotated[Any, Only(why=TEXT_ALONE)] = None
    tool_calls: Annotated[Any, Only([], why=NO_TOOLS)] = None
    function_call: Annotated[Any, Only(why=NO_TOOLS)] = None

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(part.text for part in self.content)


class ChatRequest(Generation):
    """A chat to be gone on with by one reply; without a limit of tokens, it may be as long as the context allows."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, fail_fast=True)]
    max_completion_tokens: Limit | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_LOGPROBS)] | None = None
    parallel_tool_calls: Hint = None
    reasoning_effort: Hint = None
    verbosity: Hint = None
    service_tier: Hint = None
    metadata: Hint = None
    safety_identifier: Hint = None
    prompt_cache_key: Hint = None
    prompt_cache_options: Hint = None
    prompt_cache_retention: Hint = None

    response_format: Annotated[
        Any, Only({"type": "text"}, why="a reply is not held to a format; ask for it in words")
    ] = None
    tools: Annotated[Any, Only([], why=NO_TOOLS)] = None
    tool_choice: Annotated[Any, Only("none", "auto", why=NO_TOOLS)] = None
    functions: Annotated[Any, Only([], why=NO_TOOLS)] = None
    function_call: Annotated[Any, Only("none", "auto", why=NO_TOOLS)] = None
    modalities: Annotated[Any, Only(["text"], why=TEXT_ALONE)] = None
    audio: Annotated[Any, Only(why=TEXT_ALONE)] = None
    prediction: Annotated[Any, Only(why="predicted replies are not supported")] = None
    web_search_options: Annotated[Any, Only(why="there is no search here")] = None
    moderation: Annotated[Any, Only(why="there is no moderation here")] = None
    store: Annotated[Any, Only(False, why="replies are not stored")] = None


class TopLogprob(BaseModel):
    """A token and how likely it was: the natural logarithm of its probability at temperature 1."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TopLogprob):
    """A drawn token, and the likeliest ones at its place."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(BaseModel):
    """One entry for each token of `usage.completion_tokens`, the end token and those of a stop string included.

    The bytes of all entries join to the text, as it was before a stop string was cut off: an end token has none.
    """

    content: list[TokenLogprob]
    refusal: None = None


class Reply(BaseModel):
    """What the model said."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    """The one reply."""

    index: Literal[0] = 0
    message: Reply
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length"]


class ChatCompletion(Answered):
    """A whole reply."""

    object: Literal["chat.completion"] = "chat.completion"
    choices: Annotated[list[ChatChoice], Field(min_length=1, max_length=1)]
