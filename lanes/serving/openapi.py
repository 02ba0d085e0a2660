"""`GET /openapi.json`: the endpoints of this server in OpenAPI 3.1, made from their own schemas.

An endpoint says what it takes and gives with `@operation(...)`; the document is what they say together.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

import lanes
from lanes.serving.errors import OVERLOADED, phrase, style_of
from lanes.serving.guard import OPEN_TO_ALL
from lanes.serving.waiting import DEADLINE

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
EVENTS = "text/event-stream"
_TEXT: Mapping[str, Any] = {"type": "string"}
_EVENT: Mapping[str, Any] = {
    "type": "object",
    "properties": {"data": _TEXT, "event": _TEXT, "id": _TEXT},
    "required": ["data"],
}
"""One event of a stream: in OpenAPI 3.1 that is what the schema of such an answer describes."""
REFS = "#/components/schemas/{model}"
POST_ERRORS = (400, 401, 403, 408, 413, 415, 429, 503)
GET_ERRORS = (400, 401, 403)
BOTH = "/v1/decisions"
"""The path whose errors have the style of the body, so either."""
IN_DETAIL = {400: 422, 429: OVERLOADED}


class OpenAIFault(BaseModel):
    """What is wrong, in OpenAI's words."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIError(BaseModel):
    """An error in the style of OpenAI."""

    error: OpenAIFault


class Wrong(BaseModel):
    """One wrong field."""

    loc: list[str | int]
    msg: str
    type: str


class Fault(BaseModel):
    """What else is wrong."""

    error_type: str
    message: str


class DetailError(BaseModel):
    """An error in the style of System One: wrong fields, or what else is wrong."""

    detail: list[Wrong] | Fault


@dataclass(frozen=True)
class Operation:
    """What an endpoint takes and gives: types that pydantic knows, unions included.

    `media` is the media type of an answer that is no JSON; `events` says that it may be a stream of events.
    """

    summary: str
    body: Any = None
    answer: Any = None
    media: str | None = None
    events: bool = False
    query: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[int, ...] = ()
    others: Mapping[int, Any] = field(default_factory=dict)
    """Answers of other statuses that are no errors as the others are."""


def operation(
    summary: str,
    *,
    body: Any = None,
    answer: Any = None,
    media: str | None = None,
    events: bool = False,
    query: Mapping[str, Any] | None = None,
    errors: Sequence[int] = (),
    others: Mapping[int, Any] | None = None,
) -> Callable[[Endpoint], Endpoint]:
    """Say what an endpoint takes and gives; `query` has a JSON schema for each parameter."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.operation = Operation(summary, body, answer, media, events, query or {}, tuple(errors), others or {})  # type: ignore[attr-defined]
        return endpoint

    return mark


def document(routes: Iterable[BaseRoute], keys: bool) -> dict[str, Any]:
    """The document for these routes; `keys` says whether they want one."""
    found = [(route, _operation(route)) for route in routes if isinstance(route, Route)]
    known = _Schemas([own for _, own in found])
    paths: dict[str, Any] = {}
    for route, own in found:
        method = min((route.methods or {"GET"}) - {"HEAD"}).lower()
        paths.setdefault(route.path_format, {})[method] = _described(route, method, own, known)
    security = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}} if keys else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lanes", "version": lanes.__version__},
        "paths": paths,
        "components": {"schemas": known.shared, **security},
        **({"security": [{"key": []}]} if keys else {}),
    }


class _Schemas:
    """The JSON schemas of all bodies and answers, and the definitions that they share."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        bodies = [own.body for own in operations if own.body is not None]
        answers = [own.answer for own in operations if own.answer is not None]
        answers += [answer for own in operations for answer in own.others.values()]
        types = [*((type, "validation") for type in bodies), *((type, "serialization") for type in answers)]
        types += [(OpenAIError, "serialization"), (DetailError, "serialization")]
        inputs = [(str(place), mode, TypeAdapter(type)) for place, (type, mode) in enumerate(types)]
        schemas, shared = TypeAdapter.json_schemas(inputs, ref_template=REFS)  # pyright: ignore[reportArgumentType]
        self._known = {id(type): schemas[str(place), mode] for place, (type, mode) in enumerate(types)}  # pyright: ignore[reportArgumentType]
        self.shared: Mapping[str, Any] = shared["$defs"]

    def json(self, type: Any) -> dict[str, Any]:
        """What a body or an answer of this type is."""
        return {"application/json": {"schema": self._known[id(type)]}}

    def errors(self, path: str) -> dict[str, Any]:
        """What an error at this path is."""
        if path == BOTH:
            return {
                "application/json": {"schema": {"anyOf": [self._known[id(OpenAIError)], self._known[id(DetailError)]]}}
            }
        return self.json(DetailError if style_of({"path": path}) == "detail" else OpenAIError)


def _operation(route: Route) -> Operation:
    said = getattr(route.endpoint, "operation", None)
    assert said is not None, f"{route.path} does not say what it takes and gives: mark it with @operation(...)"
    return said


def _described(route: Route, method: str, own: Operation, known: _Schemas) -> dict[str, Any]:
    path = route.path_format
    said: dict[str, Any] = {
        "summary": own.summary,
        "operationId": f"{method}_{route.endpoint.__name__}",
        "parameters": _parameters(route, own),
        "responses": {"200": {"description": "The answer", "content": _content(own, known)}},
    }
    if own.body is not None:
        said["requestBody"] = {"required": True, "content": known.json(own.body)}
    if path in OPEN_TO_ALL:
        said["security"] = []
    for status in _statuses(path, own):
        said["responses"][str(status)] = {"description": phrase(status), "content": known.errors(path)}
    for status, answer in own.others.items():
        said["responses"][str(status)] = {"description": phrase(status), "content": known.json(answer)}
    return said


def _parameters(route: Route, own: Operation) -> list[dict[str, Any]]:
    """Those in the path, in the query, and the deadline of whatever the engine answers."""
    inside = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.param_convertors
    ]
    query = [{"name": name, "in": "query", "schema": schema} for name, schema in own.query.items()]
    limit = {"name": DEADLINE, "in": "header", "schema": {"type": "number", "exclusiveMinimum": 0}}
    return [*inside, *query, *([limit] if own.body is not None else [])]


def _content(own: Operation, known: _Schemas) -> dict[str, Any]:
    """The media types of a good answer."""
    found = {} if own.answer is None else known.json(own.answer)
    found |= {own.media: {"schema": _TEXT}} if own.media else {}
    return found | ({EVENTS: {"schema": _EVENT}} if own.events else {})


def _statuses(path: str, own: Operation) -> list[int]:
    """The errors that may come."""
    codes = {*(POST_ERRORS if own.body is not None else GET_ERRORS), *own.errors}
    detail = {IN_DETAIL.get(code, code) for code in codes}
    return sorted(codes | detail if path == BOTH else detail if style_of({"path": path}) == "detail" else codes)


@operation("This document", answer=dict[str, Any])
async def openapi(request: Request) -> JSONResponse:
    """The document of this server."""
    return JSONResponse(request.app.state.openapi)


ROUTES = [Route("/openapi.json", openapi, methods=["GET"])]
