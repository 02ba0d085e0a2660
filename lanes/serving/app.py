"""The application: every endpoint behind one guard, every error in the style of its endpoint."""

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from lanes.errors import LanesError
from lanes.serving import models, openapi, ops
from lanes.serving.context import Context
from lanes.serving.decide import endpoints as decide
from lanes.serving.errors import INVALID, Refusal, missing, phrase, refusal, render, style_of
from lanes.serving.generate import endpoints as generate
from lanes.serving.guard import Guard
from lanes.serving.settings import Settings

if TYPE_CHECKING:
    from lanes.engine import Engine


def application(engine: "Engine", settings: Settings) -> Starlette:
    """The ASGI application of one engine."""
    shared = Context(engine, settings)
    app = Starlette(
        routes=routes(settings),
        middleware=[*_pages(settings), Middleware(Guard, context=shared)],
        exception_handlers={
            Refusal: _refuse,
            LanesError: _refuse,
            HTTPException: _rename,
        },
    )
    app.state.context = shared
    app.state.openapi = openapi.document(app.routes, bool(settings.api_keys))
    return app


def _pages(settings: Settings) -> list[Middleware]:
    """What browsers ask before they let a page of another origin in."""
    if not settings.origins:
        return []
    shown = ["x-request-id", "retry-after"]
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=shown,
        )
    ]


def routes(settings: Settings) -> list[BaseRoute]:
    """All endpoints; those that decide only where that was asked for."""
    own = [*ops.ROUTES, *models.ROUTES, *openapi.ROUTES, *generate.ROUTES]
    return [*own, *decide.ROUTES] if settings.decisions else [*own]


async def _refuse(request: Request, error: Exception) -> Response:
    return render(refusal(error), style_of(request.scope))


async def _rename(request: Request, error: Exception) -> Response:
    """Starlette's own errors, such as 404 and 405."""
    assert isinstance(error, HTTPException)
    said = Refusal(error.status_code, INVALID, phrase(error.status_code), headers=error.headers or {})
    if error.status_code == 404:
        said = missing(f"there is nothing at {request.url.path[:200]}: /openapi.json lists what there is")
    return render(said, style_of(request.scope))
