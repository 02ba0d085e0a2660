"""The application: every endpoint behind one guard, every error in the style of its endpoint."""

import contextlib
import importlib
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from lanes.errors import LanesError
from lanes.serving import models, ops
from lanes.serving.context import Context
from lanes.serving.errors import Gone, Refusal, missing, phrase, refusal, render, style_of
from lanes.serving.guard import Guard
from lanes.serving.settings import Settings

if TYPE_CHECKING:
    from lanes.engine import Engine

GENERATE = ("lanes.serving.generate.endpoints",)
DECIDE = ("lanes.serving.decide.endpoints",)
NOBODY = 499
"""The status that is counted for a client that left; it is never sent."""


def application(engine: "Engine", settings: Settings) -> Starlette:
    """The ASGI application of one engine."""
    shared = Context(engine, settings)
    app = Starlette(
        routes=routes(settings),
        middleware=[Middleware(Guard, context=shared)],
        exception_handlers={
            Refusal: _refuse,
            LanesError: _refuse,
            Gone: _let_go,
            HTTPException: _rename,
        },
    )
    app.state.context = shared
    return app


def routes(settings: Settings) -> list[BaseRoute]:
    """All endpoints; those that decide only where that was asked for."""
    found: list[BaseRoute] = [*ops.ROUTES, *models.ROUTES]
    for name in (*GENERATE, *(DECIDE if settings.decisions else ())):
        with contextlib.suppress(ModuleNotFoundError):
            found += importlib.import_module(name).ROUTES
    return found


async def _refuse(request: Request, error: Exception) -> Response:
    return render(refusal(error), style_of(request.scope))


async def _let_go(request: Request, error: Exception) -> Response:
    return Response(status_code=NOBODY)


async def _rename(request: Request, error: Exception) -> Response:
    """Starlette's own errors, such as 404 and 405."""
    assert isinstance(error, HTTPException)
    said = Refusal(error.status_code, "invalid_request_error", phrase(error.status_code), headers=error.headers or {})
    if error.status_code == 404:
        said = missing(f"there is nothing at {request.url.path[:200]}: /openapi.json lists what there is")
    return render(said, style_of(request.scope))
