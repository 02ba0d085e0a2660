"""What OpenAI's Decisions judge, on the wire: a text, or messages and calls of tools with what they gave."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from lanes.serving.wire.generation import Hint, Strict
from lanes.serving.wire.values import NO_PICTURES, Name


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
