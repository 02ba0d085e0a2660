"""What an operator looks at: `/health` and `/slots`."""

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lanes.serving.context import context


async def health(request: Request) -> JSONResponse:
    """Whether the engine takes requests: 200, or 503."""
    engine = context(request).engine
    if engine.closed:
        return JSONResponse({"status": "closed", "model": engine.model}, 503)
    return JSONResponse({"status": "ok", "model": engine.model})


async def slots(request: Request) -> JSONResponse:
    """The engine's snapshot."""
    return JSONResponse(context(request).engine.snapshot().to_dict())


ROUTES = [Route("/health", health, methods=["GET"]), Route("/slots", slots, methods=["GET"])]
