"""How replies are written: as a chat's message, and as a completion's text, whole or chunk by chunk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from lanes.serving.generate.entries import Entry
from lanes.serving.wire import chat, completions
from lanes.serving.wire.generation import Answered, PromptTokens, Usage

Reason = Literal["stop", "length"]
Entried = Sequence[Entry] | None
"""Entries of tokens, or None where no log-probabilities were asked for."""


@dataclass(frozen=True)
class Head:
    """What every chunk of one reply says: its id, when it began (s, Unix), the model; and what only one needs to."""

    id: str
    created: int
    model: str
    system_fingerprint: str
    stream: int
    seed: int

    @property
    def common(self) -> dict[str, Any]:
        """For every chunk, and for a whole reply."""
        return {
            "id": self.id,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
        }

    @property
    def extra(self) -> dict[str, Any]:
        """For the first chunk, and for a whole reply."""
        return {"x_stream": self.stream, "x_seed": self.seed}


class Form(Protocol):
    """One way of writing; a chunk has one of its choices."""

    prefix: str
    """What ids begin with."""
    chunk: str
    """What a chunk is called."""

    def whole(self, head: Head, text: str, entries: Entried, reason: Reason, usage: Usage) -> Answered: ...

    def first(self) -> dict[str, Any] | None:
        """The choice before any text; None for nothing."""
        ...

    def part(self, text: str, entries: Entried) -> dict[str, Any]:
        """The choice with more text."""
        ...

    def last(self, reason: Reason) -> dict[str, Any]:
        """The choice that says why there is no more."""
        ...


class ChatForm:
    """A chat's message."""

    prefix = "chatcmpl"
    chunk = "chat.completion.chunk"

    def whole(self, head: Head, text: str, entries: Entried, reason: Reason, usage: Usage) -> chat.ChatCompletion:
        choice = chat.ChatChoice(
            message=chat.Reply(content=text), logprobs=chat_logprobs(entries), finish_reason=reason
        )
        return chat.ChatCompletion(choices=[choice], usage=usage, **head.common, **head.extra)

    def first(self) -> dict[str, Any]:
        return self._choice({"role": "assistant", "content": "", "refusal": None})

    def part(self, text: str, entries: Entried) -> dict[str, Any]:
        return self._choice({"content": text}, chat_logprobs(entries))

    def last(self, reason: Reason) -> dict[str, Any]:
        return self._choice({}, reason=reason)

    def _choice(
        self, delta: dict[str, Any], logprobs: chat.ChatLogprobs | None = None, reason: Reason | None = None
    ) -> dict[str, Any]:
        return {"index": 0, "delta": delta, "logprobs": logprobs and logprobs.model_dump(), "finish_reason": reason}


class CompletionForm:
    """A completion's text."""

    prefix = "cmpl"
    chunk = "text_completion"

    def whole(self, head: Head, text: str, entries: Entried, reason: Reason, usage: Usage) -> completions.Completion:
        choice = completions.CompletionChoice(text=text, logprobs=completion_logprobs(entries), finish_reason=reason)
        return completions.Completion(choices=[choice], usage=usage, **head.common, **head.extra)

    def first(self) -> None:
        return None

    def part(self, text: str, entries: Entried) -> dict[str, Any]:
        return self._choice(text, completion_logprobs(entries))

    def last(self, reason: Reason) -> dict[str, Any]:
        return self._choice("", reason=reason)

    def _choice(
        self, text: str, logprobs: completions.CompletionLogprobs | None = None, reason: Reason | None = None
    ) -> dict[str, Any]:
        return {"index": 0, "text": text, "logprobs": logprobs and logprobs.model_dump(), "finish_reason": reason}


CHAT: Form = ChatForm()
COMPLETION: Form = CompletionForm()


def chat_logprobs(entries: Entried) -> chat.ChatLogprobs | None:
    """Entries in the shape of a chat."""
    if entries is None:
        return None
    content = [
        chat.TokenLogprob(
            token=one.token.escaped,
            logprob=one.logprob,
            bytes=list(one.token.raw),
            top_logprobs=[
                chat.TopLogprob(token=token.escaped, logprob=value, bytes=list(token.raw)) for token, value in one.top
            ],
        )
        for one in entries
    ]
    return chat.ChatLogprobs(content=content)


def completion_logprobs(entries: Entried) -> completions.CompletionLogprobs | None:
    """Entries in the shape of a completion."""
    if entries is None:
        return None
    return completions.CompletionLogprobs(
        tokens=[one.token.named for one in entries],
        token_logprobs=[one.logprob for one in entries],
        top_logprobs=[_by_name(one) for one in entries],
        text_offset=[one.offset for one in entries],
    )


def _by_name(entry: Entry) -> dict[str, float]:
    """The likeliest tokens and the drawn one; of several that are written alike, the likeliest."""
    found: dict[str, float] = {}
    for token, value in (*entry.top, (entry.token, entry.logprob)):
        found.setdefault(token.named, value)
    return found


def usage(prompt: int, cached: int, reply: int) -> Usage:
    """The tokens of a request."""
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=reply,
        total_tokens=prompt + reply,
        prompt_tokens_details=PromptTokens(cached_tokens=cached),
    )
