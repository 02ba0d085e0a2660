"""At the door of every request, before any endpoint: names it, checks where it is from, its key and its size.

Plain ASGI, so that nothing of a stream is held up. The last resort is here too: an error that nobody expected becomes
a 500 without its trace, which goes to the log.
"""

import hmac
import logging
import re
import secrets
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lanes.serving.context import Context
from lanes.serving.errors import Gone, Refusal, busy, failed, render, style_of
from lanes.serving.reading import too_large
from lanes.serving.settings import ANY

logger = logging.getLogger("lanes.serving")
REQUEST_ID = "x-request-id"
TYPESAFE_ID = "x-typesafe-request-id"
"""What TypeSafe's clients call it."""
OPEN_TO_ALL = frozenset({"/health"})
"""Paths that need no key: a supervisor asks them."""
_PORT = re.compile(r":\d+$")
_ID = re.compile(r"[\w.:+/=-]{1,128}", re.ASCII)


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, context: Context) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        await self._serve(scope, receive, _Answer(scope, send, self._context))

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        counters = self._context.counters
        counters.open += 1
        try:
            check(Headers(scope=scope), scope, self._context)
            await self._app(scope, receive, answer.send)
        except Gone:
            counters.gone += 1
        except Refusal as error:
            await answer.refuse(error, receive)
        except Exception:
            logger.exception("request %s failed", answer.id)
            if not answer.begun:
                said = f"the server failed on this request; its log says why, under {answer.id}"
                await answer.refuse(failed(said), receive)
        finally:
            counters.open -= 1


class _Answer:
    """What goes back to one client: every answer carries the request's name and is counted."""

    def __init__(self, scope: Scope, send: Send, context: Context) -> None:
        given = Headers(scope=scope).get(REQUEST_ID, "")
        self.id = given if _ID.fullmatch(given) else secrets.token_hex(16)
        self.begun = False
        self._scope, self._send, self._counters = scope, send, context.counters

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            names = (REQUEST_ID, TYPESAFE_ID) if style_of(self._scope) == "detail" else (REQUEST_ID,)
            own = [(b"x-content-type-options", b"nosniff"), *((name.encode(), self.id.encode()) for name in names)]
            message = {**message, "headers": [*message.get("headers", ()), *own]}
            route: Any = self._scope.get("route")
            self._counters.answered(getattr(route, "path", "other"), message["status"])
        await self._send(message)

    async def refuse(self, error: Refusal, receive: Receive) -> None:
        await render(error, style_of(self._scope))(self._scope, receive, self.send)


def check(headers: Headers, scope: Scope, context: Context) -> None:
    """Raise a Refusal for a request that may not come in."""
    settings = context.settings
    _check_host(headers, settings.known_hosts)
    _check_origin(headers, settings.origins)
    if settings.api_keys and scope["path"] not in OPEN_TO_ALL:
        _check_key(headers.get("authorization", ""), settings.api_keys)
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > settings.body_bytes:
        raise too_large(settings.body_bytes)
    if scope["path"] not in OPEN_TO_ALL and context.counters.open > settings.requests:
        raise busy(f"{settings.requests} requests are being answered, which is the limit here: try again later")


def _check_host(headers: Headers, known: frozenset[str]) -> None:
    """A page that had its own name point here (DNS rebinding) still asks for its own name."""
    host = headers.get("host", "")
    if ANY not in known and _PORT.sub("", host).lower() not in known:
        said = f"this server is not called {host[:80]!r}: use its own address, or name that host in hosts="
        raise Refusal(403, "permission_error", said, code="host_not_allowed")


def _check_origin(headers: Headers, allowed: tuple[str, ...]) -> None:
    """A browser says which page asks; only this server's own pages may, and those that were named."""
    origin = headers.get("origin")
    own = (f"http://{headers.get('host', '')}", f"https://{headers.get('host', '')}")
    if origin is not None and origin not in (*own, *allowed) and ANY not in allowed:
        said = f"pages of {origin[:80]!r} may not use this server: name that origin in origins="
        raise Refusal(403, "permission_error", said, code="origin_not_allowed")


def _check_key(given: str, keys: tuple[str, ...]) -> None:
    """Compare with every key, in time that says nothing about them."""
    scheme, _, key = given.partition(" ")
    right = [hmac.compare_digest(key.strip().encode(), known.encode()) for known in keys]
    if scheme.lower() != "bearer" or not any(right):
        said = "a key is needed: send the header Authorization: Bearer KEY" if not given else "this key is not known"
        raise Refusal(401, "authentication_error", said, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
