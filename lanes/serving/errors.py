"""Errors as clients get them: one `Refusal`, rendered in the style of the endpoint that was asked.

Two styles are spoken. "openai": `{"error": {"message", "type", "param", "code"}}`. "detail", for System One and the
third dialect of decisions: a 422 with `{"detail": [{"loc", "msg", "type"}]}` for a body that is wrong, and otherwise
`{"detail": {"error_type", "message"}}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import JSONResponse

from lanes.errors import (
    Busy,
    Cancelled,
    DeadlineExceeded,
    DeviceStalled,
    EngineClosed,
    InvalidRequest,
    LanesError,
)

Style = Literal["openai", "detail"]
Where = tuple[str | int, ...]

INVALID = "invalid_request_error"
RETRY_S = 1
"""Seconds after which a client may come back to a busy server."""
OVERLOADED = 529


@dataclass
class Refusal(Exception):
    """An answer that is an error; `where` names the field of the body, from the outside in.

    `status` and `kind` are those of the OpenAI style. `code` says more exactly what is wrong.
    """

    status: int
    kind: str
    message: str
    where: Where = ()
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message


class Gone(Exception):
    """The client left: nobody is there to be answered."""


def invalid(message: str, where: Where = (), code: str | None = None) -> Refusal:
    """A body that cannot be served as it is written: 400, or 422 in the style of System One."""
    return Refusal(400, INVALID, message, where, code)


def missing(message: str) -> Refusal:
    """Something that is not here."""
    return Refusal(404, "not_found_error", message, code="not_found")


def busy(message: str) -> Refusal:
    """Too much to do: 429, or 529 in the style of System One."""
    return Refusal(429, "rate_limit_error", message, code="busy", headers={"Retry-After": str(RETRY_S)})


def late(message: str) -> Refusal:
    """The client's own deadline passed, or its body took too long: 408. SDKs are told not to try the same again."""
    return Refusal(408, "timeout_error", message, code="deadline_exceeded", headers={"x-should-retry": "false"})


def unavailable(message: str) -> Refusal:
    """There is no engine to serve this any more: 503."""
    return Refusal(503, "service_unavailable_error", message, code="unavailable")


def failed(message: str) -> Refusal:
    """The server's own fault: 500, without what led to it."""
    return Refusal(500, "server_error", message, code="server_error")


def refusal(error: Exception) -> Refusal:
    """What a client is told of an error."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, InvalidRequest):
        return invalid(str(error))
    if isinstance(error, Busy):
        return busy(str(error))
    if isinstance(error, DeadlineExceeded):
        return late(str(error))
    if isinstance(error, EngineClosed | DeviceStalled | Cancelled):
        return unavailable(str(error))
    if isinstance(error, LanesError):
        return failed(str(error))
    return failed("the server failed on this request; its log says why")


def speak(request: Request, style: Style) -> None:
    """Choose the style of this request's errors, where its path alone does not tell."""
    request.state.style = style


def style_of(scope: Mapping[str, Any]) -> Style:
    """The style that was chosen, or that the path has."""
    chosen = scope.get("state", {}).get("style")
    return chosen or ("detail" if scope.get("path", "").startswith("/v1/systemone") else "openai")


def render(error: Refusal, style: Style) -> JSONResponse:
    """The error as a response."""
    return JSONResponse(body(error, style), status(error, style), headers=dict(error.headers))


def status(error: Refusal, style: Style) -> int:
    """The status in this style."""
    return {400: 422, 429: OVERLOADED}.get(error.status, error.status) if style == "detail" else error.status


def body(error: Refusal, style: Style) -> dict[str, Any]:
    """The error as JSON values: the body of a response, or an event amid a stream."""
    if style == "openai":
        param = path(error.where) or None
        return {"error": {"message": error.message, "type": error.kind, "param": param, "code": error.code}}
    if error.status == 400:
        kind = error.code or "value_error"
        return {"detail": [{"loc": ["body", *error.where], "msg": error.message, "type": kind}]}
    return {"detail": {"error_type": error.kind, "message": error.message}}


def path(where: Where) -> str:
    """`("questions", 0, "name")` as `questions[0].name`; a field without a name as `[""]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" if part else '[""]' for part in where]
    return "".join(parts).removeprefix(".")


def phrase(code: int) -> str:
    """What a status says in words."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "Overloaded" if code == OVERLOADED else "Error"
