"""A reply from the engine's stream: whole, or event by event. Whoever leaves cancels it, wherever it is."""

import asyncio
import json
import secrets
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

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
from lanes.serving.generate.spelling import Speller
from lanes.serving.streaming import DONE, Events, event
from lanes.serving.waiting import begin, deadline, hold, late, watched

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
        return Events(request, Chunks(said, await _first(request, parts, limit), parts))
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


async def _first(request: Request, parts: AsyncIterator[Part], limit: float | None) -> Part | None:
    """The first part of a stream, None where there is none: what fails before it is answered with a status."""

    async def first() -> Part | None:
        return await anext(parts, None)

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
        self._entries = Entries()

    async def whole(self) -> Response:
        """The reply, once its stream has ended well."""
        entries = await self.entries(self.stream.logprobs)
        made = partial(self.form.whole, self.head, self.stream.text, entries, self.reason, self.usage)
        # A long one with all of its log-probabilities takes a while: nobody else has to wait for it.
        return await asyncio.to_thread(lambda: Response(made().model_dump_json(), media_type="application/json"))

    async def entries(self, logprobs: tuple[Logprob, ...]) -> tuple[Entry, ...] | None:
        """The next tokens' entries; None where nobody asked for them."""
        if "logprobs" not in self.asked.options:
            return None
        return self._entries.make(logprobs, await self._speller.spell(tokens_of(logprobs)))

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


class Chunks:
    """The events of a streamed reply, after its first part has come. Closing them cancels the stream."""

    def __init__(self, said: Said, first: Part | None, parts: AsyncIterator[Part]) -> None:
        self._said = said
        self._parts: Any = parts
        self._events: Any = self._write(first)

    def __aiter__(self) -> "Chunks":
        return self

    async def __anext__(self) -> str:
        return await anext(self._events)

    async def aclose(self) -> None:
        """Give up what has not been read. A generator that never began would not do it by itself."""
        self._said.stream.cancel()
        await self._events.aclose()
        await self._parts.aclose()

    async def _write(self, first: Part | None) -> AsyncIterator[str]:
        said, form, extra = self._said, self._said.form, self._said.head.extra
        if opening := form.first():
            yield said.chunk(opening, **extra)
            extra = {}
        part = first
        while part is not None:
            entries = await said.entries(part.logprobs)
            if part.text or entries:
                yield said.chunk(form.part(part.text, entries), **extra)
                extra = {}
            part = await anext(self._parts, None)
        yield said.chunk(form.last(said.reason), **extra)
        if said.asked.with_usage:
            yield said.chunk(None, usage=said.usage.model_dump())
        yield event(DONE)


def speller(request: Request) -> Speller:
    """The one of this server."""
    state = request.app.state
    if not hasattr(state, "speller"):
        state.speller = Speller(context(request).engine)
    return state.speller
