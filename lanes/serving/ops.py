"""What an operator looks at: `/health`, `/slots`, `/metrics`, and `/v1/rounds` as they happen."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lanes.record import Round, Snapshot
from lanes.serving.context import context
from lanes.serving.errors import invalid
from lanes.serving.openapi import operation
from lanes.serving.streaming import Events, event

LOOK_S = 0.05
"""Seconds between two looks for new rounds."""
ALIVE_S = 15.0
"""Seconds of silence after which a stream of rounds shows that it is alive."""
MOST = 2**53


class Health(BaseModel):
    """`status` is "ok", or "closed" (with 503) once the engine takes no requests any more."""

    status: str
    model: str


class Asked(BaseModel):
    """What a stream in a slot or in the queue was asked, and what it wrote so far; both cut to their beginnings."""

    id: int
    state: str
    prompt: str
    text: str


class Slots(BaseModel):
    """The engine's snapshot; `prompts` is null where the server hides them (`show_prompts=False`)."""

    snapshot: Snapshot
    prompts: list[Asked] | None


@operation("Whether requests are taken", answer=Health, others={503: Health})
async def health(request: Request) -> JSONResponse:
    """200 while the engine takes requests, else 503."""
    engine = context(request).engine
    said = Health(status="closed" if engine.closed else "ok", model=engine.model)
    return JSONResponse(said.model_dump(), 503 if engine.closed else 200)


@operation("The slots, the queue and the totals", answer=Slots)
async def slots(request: Request) -> JSONResponse:
    """The engine's snapshot, as `engine.snapshot()`."""
    shared = context(request)
    prompts = None
    if shared.settings.show_prompts:
        views = (view for view in shared.engine.streams() if not view.done)
        prompts = [
            {"id": view.id, "state": view.state, "prompt": view.prompt, "text": view.text[:200]} for view in views
        ]
    return JSONResponse({"snapshot": shared.engine.snapshot().to_dict(), "prompts": prompts})


@operation("Figures for Prometheus", media="text/plain")
async def metrics(request: Request) -> Response:
    """The figures, in Prometheus' text form or, where it is asked for, in that of OpenMetrics."""
    text, kind = await run_in_threadpool(context(request).metrics.render, request.headers.get("accept", ""))
    return Response(text, headers={"content-type": kind})


@operation(
    "The rounds as they happen",
    events=True,
    query={
        "since": {"type": "integer", "minimum": 0, "maximum": MOST},
        "last": {"type": "integer", "minimum": 1, "maximum": MOST},
    },
)
async def rounds(request: Request) -> Response:
    """Server-sent events, one a round, its index as the id; `since`: from that index on (from now on), `last`: so many.

    A client that comes again with Last-Event-ID goes on behind it; one that saw another engine's rounds goes on from
    now. Rounds that were forgotten meanwhile are told in an event `lost`, the engine's end in an event `closed`.
    """
    start = _whole(request, "since", 0)
    seen = request.headers.get("last-event-id", "")
    if seen.isdecimal():
        start = min(int(seen[:16]) + 1, context(request).engine.rounds.next_index)
    return Events(request, _rounds(request, start, _whole(request, "last", 1)))


def _whole(request: Request, name: str, least: int) -> int | None:
    given = request.query_params.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdecimal()) or len(given) > 16 or not least <= int(given) <= MOST:
        raise invalid(f"{name} must be a whole number from {least} to {MOST}, not {given[:40]!r}", (name,))
    return int(given)


async def _rounds(request: Request, start: int | None, last: int | None) -> AsyncIterator[str]:
    engine = context(request).engine
    place = engine.rounds.next_index if start is None else start
    left = MOST if last is None else last
    quiet = 0.0
    yield ": rounds\n\n"
    while left:
        closed = engine.closed  # before looking: rounds that came until then are still given
        found = engine.rounds.since(place)
        place = max(place, found.next)
        if found.lost:
            yield event({"rounds": found.lost}, name="lost")
        for done in found.rounds[:left]:
            yield event(plain(done), id=done.index)
        left -= min(left, len(found.rounds))
        quiet = 0.0 if found.rounds else quiet + LOOK_S
        if closed and left:
            yield event({"reason": "the engine is closed"}, name="closed")
            return
        if quiet > ALIVE_S:
            yield ": alive\n\n"
            quiet = 0.0
        await asyncio.sleep(LOOK_S if left else 0)


def plain(done: Round) -> dict[str, Any]:
    """A round as JSON values, its parts by their names."""
    return _named(asdict(done))


def _named(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    return [_named(item) for item in value] if isinstance(value, list | tuple) else value


ROUTES = [
    Route("/health", health, methods=["GET"]),
    Route("/slots", slots, methods=["GET"]),
    Route("/metrics", metrics, methods=["GET"]),
    Route("/v1/rounds", rounds, methods=["GET"]),
]
