"""From a request's body to what `Engine.stream` takes."""

from dataclasses import dataclass
from typing import Any

from lanes.prompts import Text
from lanes.serving.errors import invalid
from lanes.serving.wire.chat import ChatMessage, ChatRequest
from lanes.serving.wire.completions import MAX_TOKENS, CompletionRequest
from lanes.serving.wire.generation import Generation

SEEDS = 1 << 64


@dataclass(frozen=True)
class Asked:
    """What is wanted: a prompt, the field it came from, the options of `Engine.stream`, and how the reply comes."""

    prompt: Text
    field: str
    options: dict[str, Any]
    streamed: bool
    with_usage: bool


def chat(body: ChatRequest, context: int) -> Asked:
    """What a chat asks for; `context` (tokens) is its limit where it gives none. Raises Refusal."""
    if body.top_logprobs and not body.logprobs:
        raise invalid("top_logprobs needs logprobs: true", ("top_logprobs",))
    if None not in (body.max_tokens, body.max_completion_tokens) and body.max_tokens != body.max_completion_tokens:
        raise invalid("max_tokens is the older name of max_completion_tokens: give one of them", ("max_tokens",))
    limit = body.max_completion_tokens or body.max_tokens or context
    logprobs = (body.top_logprobs or 0) if body.logprobs else None
    return _asked(body, [_message(message) for message in body.messages], "messages", limit, logprobs)


def completion(body: CompletionRequest) -> Asked:
    """What a completion asks for. Raises Refusal."""
    return _asked(body, body.prompt, "prompt", body.max_tokens or MAX_TOKENS, body.logprobs)


def _message(message: ChatMessage) -> dict[str, Any]:
    """As the model's template takes it."""
    role = "system" if message.role == "developer" else message.role
    named = {} if message.name is None else {"name": message.name}
    return {"role": role, "content": message.text, **named}


def _asked(body: Generation, prompt: Text, field: str, limit: int, logprobs: int | None) -> Asked:
    if body.stream_options and not body.stream:
        raise invalid(
            "stream_options are for streamed replies: set stream: true, or leave them out", ("stream_options",)
        )
    given = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_k": None if body.top_k is None else max(0, body.top_k),
        "min_p": body.min_p,
        "seed": None if body.seed is None else body.seed % SEEDS,
        "stop": body.stop,
        "stop_tokens": body.stop_token_ids,
        "ignore_eos": body.ignore_eos,
        "logprobs": logprobs,
    }
    options = {"max_tokens": limit, **{name: value for name, value in given.items() if value is not None}}
    usage = bool(body.stream_options and body.stream_options.include_usage)
    return Asked(prompt, field, options, bool(body.stream), usage)
