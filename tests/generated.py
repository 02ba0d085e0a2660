"""What tests of generated text over HTTP share: clients, scripted models, what a streamed reply says in all."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import mlx.core as mx
import openai
from rigs import WAIT, Rig

import lanes
from lanes.prompts import encode
from lanes.serving import Server

MESSAGES: list[Any] = [{"role": "user", "content": "Tell me"}]
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
ASKED: dict[str, dict[str, Any]] = {CHAT: {"messages": MESSAGES}, COMPLETIONS: {"prompt": "Tell me"}}
"""What is asked of each endpoint, where it does not matter."""
PROMPT: dict[str, Any] = {CHAT: MESSAGES, COMPLETIONS: "Tell me"}
"""The same for `Engine.stream`."""


def openai_client(server: Server, **options: Any) -> openai.OpenAI:
    """OpenAI's client, which tries nothing twice."""
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=WAIT, **options)


def async_client(server: Server, **options: Any) -> openai.AsyncOpenAI:
    """The same for an event loop."""
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=WAIT, **options)


def create(client: Any, path: str) -> Callable[..., Any]:
    """The client's way to an endpoint."""
    made = client.chat.completions.create if path == CHAT else client.completions.create
    return lambda **given: made(**{"model": "default", **ASKED[path], **given})


@dataclass
class Heard:
    """What the chunks of a streamed reply say together."""

    chunks: list[Any] = field(default_factory=list)

    @property
    def choices(self) -> list[Any]:
        return [choice for chunk in self.chunks for choice in chunk.choices]

    @property
    def pieces(self) -> list[str]:
        """The text, chunk by chunk."""
        said = (choice.delta.content if hasattr(choice, "delta") else choice.text for choice in self.choices)
        return [text for text in said if text]

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def reason(self) -> str:
        """The one reason why it ended, which comes last."""
        reasons = [choice.finish_reason for choice in self.choices]
        assert reasons[:-1] == [None] * (len(reasons) - 1)
        return reasons[-1]


def heard(chunks: Iterable[Any]) -> Heard:
    """All chunks."""
    return Heard(list(chunks))


def events(response: httpx.Response) -> list[Any]:
    """The data of a response's events, read from JSON but for the text that ends them."""
    return [datum(line) for line in response.iter_lines() if line]


def datum(line: str) -> Any:
    """The data of one line of an event."""
    assert line.startswith("data: ")
    said = line.removeprefix("data: ")
    return said if said == "[DONE]" else json.loads(said)


def dictate(one: Rig, prompt: Any, tokens: Sequence[int]) -> None:
    """Let the model say these tokens after this prompt, whose rows are all packed ones."""
    first = one.engine.use_tokenizer(lambda tokenizer: len(encode(tokenizer, prompt))) - 1

    def around(original: Callable[..., Any], rows: Any) -> Any:
        logits = original(rows)
        wished = [row.position - first for row in rows]
        said = [tokens[at] if 0 <= at < len(tokens) else tokens[-1] for at in wished] + [0] * (len(logits) - len(rows))
        return mx.where(mx.arange(logits.shape[-1]) == mx.array(said)[:, None], 20.0, mx.tanh(logits))

    one.wrap("rows", around)


def spelled(one: Rig, text: str) -> list[int]:
    """The tokens of a text."""
    return one.engine.use_tokenizer(lambda tokenizer: tokenizer.encode(text, add_special_tokens=False))


@contextmanager
def tokenizer_taken(engine: lanes.Engine) -> Iterator[None]:
    """Nobody else gets at the engine's tokenizer meanwhile, as if it read a long prompt."""
    taken, free = threading.Event(), threading.Event()
    reader = threading.Thread(target=engine.use_tokenizer, args=(lambda _: (taken.set(), free.wait(WAIT)),))
    reader.start()
    assert taken.wait(WAIT)
    try:
        yield
    finally:
        free.set()
        reader.join(WAIT)
