"""`GET /v1/models`: the one model there is, for clients of OpenAI and of System One in one body."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lanes.serving.context import context


async def models(request: Request) -> JSONResponse:
    """The model."""
    engine = context(request).engine
    started = engine.rounds.started
    info = engine.info
    described = f"{info.arch}, {info.parameters:,} parameters, context {info.context} tokens"
    item: dict[str, Any] = {
        "id": info.name,
        "object": "model",
        "created": int(started),
        "owned_by": "lanes",
    }
    own = {"name": info.name, "description": described, "release_date": time.strftime("%Y-%m-%d", time.gmtime(started))}
    return JSONResponse({"object": "list", "data": [item], "models": [own]})


ROUTES = [Route("/v1/models", models, methods=["GET"])]
