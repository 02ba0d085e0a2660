"""`POST /v1/systemone` and `POST /v1/decisions`: typed questions about one state, answered by `lanes.ask`."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lanes.deadlines import end_of, left_until
from lanes.errors import InvalidRequest
from lanes.serving.context import context
from lanes.serving.decide.asking import Asking, blame, check_lengths, check_served, dialect_of, read
from lanes.serving.decide.dialect import Dialect
from lanes.serving.decide.systemone import SYSTEM_ONE
from lanes.serving.errors import speak
from lanes.serving.openapi import operation
from lanes.serving.reading import load
from lanes.serving.waiting import deadline, hold
from lanes.serving.wire import decisions as openai
from lanes.serving.wire import options, systemone


@operation(
    "Typed questions about one state",
    body=systemone.SystemOneRequest,
    answer=systemone.SystemOneResponse,
    errors=(404,),
)
async def system_one(request: Request) -> Response:
    """Answer in the dialect of System One."""
    return await _answer(request, SYSTEM_ONE, await load(request))


@operation(
    "Typed questions about one input, in any of three dialects",
    body=openai.DecisionRequest | systemone.SystemOneRequest | options.OptionsRequest,
    answer=openai.Decision | systemone.SystemOneResponse | options.OptionsResponse,
    errors=(404,),
)
async def decisions(request: Request) -> Response:
    """Answer in the dialect of the body."""
    raw = await load(request)
    dialect = dialect_of(raw)
    speak(request, dialect.style)
    return await _answer(request, dialect, raw)


async def _answer(request: Request, dialect: Dialect[Any], raw: dict[str, Any]) -> Response:
    """Read, ask, wait and tell; what takes long in a large body is done beside the event loop."""
    shared, end = context(request), end_of(deadline(request))
    engine = shared.engine
    body, asked = await asyncio.to_thread(read, dialect, raw)
    check_served(engine, body.model)
    await asyncio.to_thread(lambda: check_lengths(engine, asked, shared.most_characters))
    try:
        left = left_until(end)
        answers = await hold(request, await asyncio.to_thread(Asking, engine, asked, left), left)
    except InvalidRequest as error:
        raise await asyncio.to_thread(blame, engine, asked, error) from None
    said = await asyncio.to_thread(
        lambda: dialect.told(body, answers, engine.model).model_dump_json(exclude_unset=True)
    )
    return Response(said, media_type="application/json")


ROUTES = [
    Route("/v1/systemone", system_one, methods=["POST"]),
    Route("/v1/decisions", decisions, methods=["POST"]),
]
