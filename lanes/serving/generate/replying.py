"""A reply from the engine's stream: whole, or event by event. Whoever leaves cancels it, wherever it is."""

import asyncio
import json
import secrets
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from lanes.engine import Stream
from lanes.engine.channel import Part
from lanes.engine.turn import Logprob
from lanes.errors import InvalidRequest
from lanes.serving.context import context
from lanes.serving.errors import invalid
from lanes.serving.generate.asked import Asked
from lanes.serving.generate.entries import Entries, Entry, tokens_of
from lanes.serving.generate.forms import Form, Head, Reason, usage
from lanes.serving.generate.spelling import Spelled, Speller
from lanes.serving.streaming import DONE, Events, event
from lanes.serving.waiting import begin, deadline, hold, late, watched

Written = TypeVar("Written")
MANY = 50
"""Tokens with log-probabilities that take some milliseconds to write."""
SEED_BITS = 53
"""Of a seed that nobody gave: it comes back in the reply, and JavaScript's numbers have no more."""


async def reply(request: Request, asked: Asked, form: Form) -> Response:
    """The answer to a request. Raises what the engine refuses it with, Refusal, and Gone."""
    limit = deadline(request)
    stream = await _begin(request, asked, limit)
    try:
        said = Said(request, stream, asked, form)
        if not asked.streamed:
            await hold(request, stream, limit)
            return await said.whole()
        parts = stream.parts()
        return Events(request, chunks(said, await _first(request, stream, parts, limit), parts), stream)
    except BaseException:
        stream.cancel()
        raise


async def _begin(request: Request, asked: Asked, limit: float | None) -> Stream:
    engine = context(request).engine
    options = {"seed": secrets.randbits(SEED_BITS), **asked.options}
    try:
        return await begin(request, lambda: engine.stream(asked.prompt, deadline=limit, **options))
    except InvalidRequest as error:  # everything else was checked before: it is about the prompt
        raise invalid(str(error), (asked.field,)) from None


async def _first(
    request: Request, stream: Stream, parts: AsyncGenerator[Part, None], limit: float | None
) -> Part | None:
    """The first part of a stream. What goes wrong before it is answered with a status of its own."""

    async def first() -> Part | None:
        part = await anext(parts, None)
        if part is None and stream.error:  # somebody else cancelled it
            raise stream.error.with_traceback(None)
        return part

    work = asyncio.ensure_future(first())
    try:
        async with watched(request) as ended:
            done, _ = await asyncio.wait({work, ended}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work in done:
                return work.result()
            if ended in done:
                ended.result()  # raises why
            raise late(f"there was no text within {limit:g} s: allow more time")
    finally:
        work.cancel()
        with suppress(BaseException):
            await work


class Said:
    """What one stream says, in one form."""

    def __init__(self, request: Request, stream: Stream, asked: Asked, form: Form) -> None:
        info = context(request).engine.info
        self.stream, self.asked, self.form = stream, asked, form
        self.head = Head(
            id=f"{form.prefix}-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=info.name,
            system_fingerprint=f"fp_{info.fingerprint[:12]}",
            stream=stream.id,
            seed=stream.seed,
        )
        self._speller = speller(request)
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
    def usage(self) -> Any:
        """Its tokens."""
        return usage(self.stream.prompt_tokens, self.stream.cached_tokens, len(self.stream.tokens))

    def chunk(self, choice: dict[str, Any] | None, **more: Any) -> str:
        """One event; without a choice, that of the usage."""
        said = {**self.head.common, "object": self.form.chunk, "choices": [choice] if choice else []}
        if self.asked.with_usage:
            said["usage"] = None
        # ASCII alone: some clients take U+2028 and its like for the end of a line.
        return event(json.dumps({**said, **more}, separators=(",", ":"), allow_nan=False))


async def chunks(said: Said, first: Part | None, parts: AsyncGenerator[Part, None]) -> AsyncIterator[str]:
    """The events of a streamed reply whose first part has come."""
    form, extra, part = said.form, said.head.extra, first
    async with aclosing(parts):
        if opening := form.first():
            yield said.chunk(opening, **extra)
            extra = {}
        while part is not None:
            if text := await said.part(part, **extra):
                yield text
                extra = {}
            part = await anext(parts, None)
    yield said.chunk(form.last(said.reason), **extra)
    if said.asked.with_usage:
        yield said.chunk(None, usage=said.usage.model_dump())
    yield event(DONE)


async def _aside(tokens: int, write: Callable[[], Written]) -> Written:
    """Write at once, but beside the event loop where it takes a while: log-probabilities of many tokens."""
    return write() if tokens < MANY else await asyncio.to_thread(write)


def speller(request: Request) -> Speller:
    """The one of this server."""
    state = request.app.state
    if not hasattr(state, "speller"):
        state.speller = Speller(context(request).engine)
    return state.speller
