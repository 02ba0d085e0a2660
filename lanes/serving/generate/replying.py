"""A reply from the engine's stream: whole, or event by event. Whoever leaves cancels it, wherever it is."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from lanes.deadlines import end_of, left_until
from lanes.engine import Stream
from lanes.engine.channel import Part
from lanes.errors import InvalidRequest
from lanes.serving.context import Context, context
from lanes.serving.errors import invalid
from lanes.serving.fitting import characters, check_length, code_of
from lanes.serving.generate.asked import Asked
from lanes.serving.generate.forms import Form
from lanes.serving.generate.saying import Said
from lanes.serving.streaming import DONE, Events, event
from lanes.serving.waiting import begin, deadline, hold

SEED_BITS = 53
"""Of a seed that nobody gave: it comes back in the reply, and JavaScript's numbers have no more."""


async def reply(request: Request, asked: Asked, form: Form) -> Response:
    """The answer to a request. Raises what the engine refuses it with, Refusal, and Gone."""
    end = end_of(deadline(request))
    stream = await begin(request, lambda: _begin(context(request), asked, end), left_until(end))
    try:
        said = Said(request, stream, asked, form)
        if not asked.streamed:
            await hold(request, stream, left_until(end))
            return await said.whole()
        parts = stream.parts()
        first = await hold(request, First(stream, parts), left_until(end))
        return Events(request, chunks(said, first, parts), stream)
    except BaseException:
        stream.cancel()
        raise


def _begin(shared: Context, asked: Asked, end: float | None) -> Stream:
    """The stream, once the tokenizer has read its prompt: not for the event loop."""
    check_length(characters(asked.prompt), shared.most_characters, (asked.field,))
    options = {"seed": secrets.randbits(SEED_BITS), **asked.options}
    try:
        return shared.engine.stream(asked.prompt, deadline=left_until(end), **options)
    except InvalidRequest as error:  # everything else was checked before: it is about the prompt
        raise invalid(str(error), (asked.field,), code_of(error)) from None


@dataclass(frozen=True)
class First:
    """Awaits the first part of a stream: what goes wrong before it is answered with a status of its own."""

    stream: Stream
    parts: AsyncGenerator[Part, None]

    def __await__(self) -> Generator[Any, None, Part | None]:
        return self._come().__await__()

    async def _come(self) -> Part | None:
        part = await anext(self.parts, None)
        if part is None and self.stream.error:  # somebody else cancelled it
            raise self.stream.error.with_traceback(None)
        return part

    def cancel(self) -> None:
        """The stream goes on: it is given up by whoever answers with it."""


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
