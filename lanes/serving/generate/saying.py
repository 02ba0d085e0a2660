"""What one stream says, written in one form: as a whole reply, or part by part."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from lanes.engine import Stream
from lanes.engine.channel import Part
from lanes.engine.turn import Logprob
from lanes.serving.context import context
from lanes.serving.generate.asked import Asked
from lanes.serving.generate.entries import Entries, Entry, tokens_of
from lanes.serving.generate.forms import Form, Head, Reason, usage
from lanes.serving.generate.spelling import Spelled
from lanes.serving.streaming import event
from lanes.serving.wire.generation import Usage

Written = TypeVar("Written")
MANY = 50
"""Tokens with log-probabilities that take some milliseconds to write."""


class Said:
    """What one stream says, in one form."""

    def __init__(self, request: Request, stream: Stream, asked: Asked, form: Form) -> None:
        shared = context(request)
        info = shared.engine.info
        self.stream, self.asked, self.form = stream, asked, form
        self.head = Head(
            id=f"{form.prefix}-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=info.name,
            system_fingerprint=f"fp_{info.fingerprint[:12]}",
            stream=stream.id,
            seed=stream.seed,
        )
        self._speller = shared.speller
        self._made = Entries()

    async def whole(self) -> Response:
        """The reply, once its stream has ended well."""
        logprobs, reason = self.stream.logprobs, self.reason
        spelled = await self._spelled(logprobs)

        def write() -> str:
            entries = self._entries(logprobs, spelled)
            return self.form.whole(self.head, self.stream.text, entries, reason, self.usage).model_dump_json()

        return Response(await _aside(len(logprobs), write), media_type="application/json")

    async def part(self, part: Part, **more: Any) -> str | None:
        """The event with this part of the stream; None where it has nothing to show."""
        spelled = await self._spelled(part.logprobs)

        def write() -> str | None:
            entries = self._entries(part.logprobs, spelled)
            return self.chunk(self.form.part(part.text, entries), **more) if part.text or entries else None

        return await _aside(len(part.logprobs), write)

    async def _spelled(self, logprobs: Sequence[Logprob]) -> Mapping[int, Spelled]:
        return await self._speller.spell(tokens_of(logprobs))

    def _entries(self, logprobs: Sequence[Logprob], spelled: Mapping[int, Spelled]) -> tuple[Entry, ...] | None:
        """The next tokens' entries; None where nobody asked for them."""
        return self._made.make(logprobs, spelled) if "logprobs" in self.asked.options else None

    @property
    def reason(self) -> Reason:
        """Why the stream ended; raises the error that it ended with."""
        if error := self.stream.error:
            raise error.with_traceback(None)
        assert self.stream.finish_reason in ("stop", "length")
        return self.stream.finish_reason

    @property
    def usage(self) -> Usage:
        """Its tokens."""
        return usage(self.stream.prompt_tokens, self.stream.cached_tokens, len(self.stream.tokens))

    def chunk(self, choice: dict[str, Any] | None, **more: Any) -> str:
        """One event; without a choice, that of the usage."""
        said = {**self.head.common, "object": self.form.chunk, "choices": [choice] if choice else []}
        if self.asked.with_usage:
            said["usage"] = None
        # ASCII alone: some clients take U+2028 and its like for the end of a line.
        return event(json.dumps({**said, **more}, separators=(",", ":"), allow_nan=False))


async def _aside(tokens: int, write: Callable[[], Written]) -> Written:
    """Write at once, but beside the event loop where it takes a while: log-probabilities of many tokens."""
    return write() if tokens < MANY else await asyncio.to_thread(write)
