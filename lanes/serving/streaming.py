"""Server-sent events to one client, ended when it leaves or the server stops."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lanes.engine.handles import Handle
from lanes.serving.errors import Gone, body, refusal, style_of
from lanes.serving.waiting import watched

DONE = "[DONE]"


def event(data: Any, id: int | None = None, name: str | None = None) -> str:
    """One event: JSON values, or a text such as `[DONE]` as it is."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    head = ("" if name is None else f"event: {name}\n") + ("" if id is None else f"id: {id}\n")
    return f"{head}data: {text}\n\n"


class Events(Response):
    """The events that an async generator of texts gives (see `event`).

    As soon as the client has left or the server stops, `handle` is cancelled and the generator closed. An error amid
    the events is the last of them, as JSON in the style of the endpoint. A client that does not read holds the
    generator up until its connection is dropped (`Settings.patience`).
    """

    media_type = "text/event-stream"

    def __init__(self, request: Request, source: AsyncIterator[str], handle: Handle[Any] | None = None) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._request = request
        self._source: Any = source
        self._handle = handle

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":  # the head is all there is, and there may never be an end of the events
            return await super().__call__(scope, receive, send)
        try:
            async with watched(self._request) as ended, aclosing(self._source):
                await self._run(ended, send)
        finally:
            if self._handle is not None:  # a generator that never began has no `finally` to do it
                self._handle.cancel()

    async def _run(self, ended: "asyncio.Task[None]", send: Send) -> None:
        work = asyncio.ensure_future(self._write(send))
        try:
            done, _ = await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
            if work in done:
                return work.result()
        finally:
            work.cancel()
            with suppress(BaseException):
                await work
        await self._last(send, ended.exception())

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async for text in self._source:
                await send(_part(text))
        except Exception as error:
            return await self._last(send, error)
        await send(_part("", more=False))

    async def _last(self, send: Send, error: BaseException | None) -> None:
        """Tell the client why there is no more."""
        if isinstance(error, Gone) or not isinstance(error, Exception):
            raise Gone
        await send(_part(event(body(refusal(error), style_of(self._request.scope)))))
        await send(_part("", more=False))


def _part(text: str, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}
