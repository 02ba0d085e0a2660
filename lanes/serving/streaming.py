"""Server-sent events to one client: bounded when it reads slowly, ended when it leaves or the server stops."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lanes.serving.context import context
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

    The generator is closed, so that its `finally` runs, as soon as the client has left, takes nothing for `patience`
    seconds, or the server stops. An error amid the events is the last of them, as JSON in the style of the endpoint.
    """

    media_type = "text/event-stream"

    def __init__(self, request: Request, source: AsyncIterator[str], headers: dict[str, str] | None = None) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no", **(headers or {})})
        del self.headers["content-length"]
        self._request = request
        self._source: Any = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._patience = context(self._request).settings.patience
        async with watched(self._request) as ended, aclosing(self._source):
            work = asyncio.ensure_future(self._write(send))
            try:
                done, _ = await asyncio.wait({work, ended}, return_when=asyncio.FIRST_COMPLETED)
                if work in done:
                    return work.result()
                work.cancel()
                with suppress(BaseException):
                    await work
                with suppress(Gone):
                    await self._close_with(send, ended.exception())
            finally:
                work.cancel()
                with suppress(BaseException):
                    await work

    async def _write(self, send: Send) -> None:
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for text in self._source:
                await self._send(send, _part(text))
            await self._send(send, _part("", more=False))
        except (Gone, asyncio.CancelledError):
            raise
        except Exception as error:
            await self._close_with(send, error)

    async def _close_with(self, send: Send, error: BaseException | None) -> None:
        """Tell the client why there is no more."""
        if isinstance(error, Exception) and not isinstance(error, Gone):
            said = event(body(refusal(error), style_of(self._request.scope)), name=None)
            await self._send(send, _part(said))
            await self._send(send, _part("", more=False))

    async def _send(self, send: Send, message: dict[str, Any]) -> None:
        """Send one message to a client that must take it within `patience` seconds."""
        try:
            await asyncio.wait_for(send(message), self._patience)
        except asyncio.TimeoutError:
            raise Gone from None


def _part(text: str, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}
