"""`GET /v1/models`: the one model there is, for clients of OpenAI and of System One in one body."""

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lanes.serving.context import context
from lanes.serving.errors import Refusal, missing
from lanes.serving.openapi import operation

if TYPE_CHECKING:
    from lanes.engine import Engine


WHATEVER = ("default", "lanes")
"""Names for the model that is served, whatever it is."""


def check_model(asked: str | None, served: str) -> None:
    """Raise a Refusal for a model that is not served; none is whatever is, and so are "default" and "lanes"."""
    if asked is not None and asked not in (served, *WHATEVER):
        said = f"the model {asked[:80]!r} is not served here: ask for {served!r}, or leave the model out"
        raise Refusal(404, "not_found_error", said, ("model",), "model_not_found")


class OpenAIModel(BaseModel):
    """A model as OpenAI's clients read it; `created` is when the engine started, in seconds since 1970."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "lanes"


class SystemOneModel(BaseModel):
    """A model as System One's clients read it; `release_date` is the day on which the engine started."""

    name: str
    description: str
    release_date: str


class ModelList(BaseModel):
    """Both lists: each client reads its own."""

    object: Literal["list"] = "list"
    data: list[OpenAIModel]
    models: list[SystemOneModel]


@operation("The model that answers", answer=ModelList)
async def models(request: Request) -> JSONResponse:
    """The one model."""
    engine = context(request).engine
    info = engine.info
    described = f"{info.arch}, {info.parameters:,} parameters, {info.context} tokens of context"
    day = datetime.fromtimestamp(engine.rounds.started, timezone.utc).date().isoformat()
    own = SystemOneModel(name=info.name, description=described, release_date=day)
    return JSONResponse(ModelList(data=[_openai(engine)], models=[own]).model_dump())


@operation("One model by its name", answer=OpenAIModel, errors=(404,))
async def model(request: Request) -> JSONResponse:
    """The one model, where it is asked for by its name."""
    engine, name = context(request).engine, request.path_params["name"]
    if name != engine.model:
        raise missing(f"there is no model {name[:200]!r} here, only {engine.model!r}")
    return JSONResponse(_openai(engine).model_dump())


def _openai(engine: "Engine") -> OpenAIModel:
    return OpenAIModel(id=engine.model, created=int(engine.rounds.started))


ROUTES = [
    Route("/v1/models", models, methods=["GET"]),
    Route("/v1/models/{name:path}", model, methods=["GET"]),
]
