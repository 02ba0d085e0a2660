"""Waiting for the engine while watching the client: whoever leaves, comes too late or is shut out frees its slot."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeVar

from starlette.requests import Request

from lanes.engine.handles import Handle
from lanes.serving.context import Context, context
from lanes.serving.errors import Gone, Refusal, invalid, late, unavailable

Result = TypeVar("Result")
Given_co = TypeVar("Given_co", covariant=True)
Held = TypeVar("Held", bound=Handle[Any])
DEADLINE = "x-deadline"
"""The header with the seconds that a client is ready to wait."""


class Work(Awaitable[Given_co], Protocol[Given_co]):
    """What can be awaited and given up: a handle, or what will get one."""

    def cancel(self) -> None:
        """Give it up; nothing happens to what has ended."""
        ...


def deadline(request: Request) -> float | None:
    """Seconds that this request may take: what its header says, at most what the settings allow; None: no limit."""
    given, most = request.headers.get(DEADLINE), context(request).settings.deadline
    if given is None:
        return most
    try:
        wanted = float(given)
    except ValueError:
        wanted = math.nan
    if not 0 < wanted < math.inf:
        raise invalid(f"the header {DEADLINE} must be a number of seconds above 0, not {given[:40]!r}", (DEADLINE,))
    return wanted if most is None else min(wanted, most)


async def begin(request: Request, start: Callable[[], Held], left: float | None = None) -> Held:
    """Call `start` (such as `lambda: engine.stream(...)`) beside the event loop; whatever it raises comes out.

    Tokenizing a long prompt takes a while. A request that ends meanwhile, as in `hold`, leaves nothing running behind.
    """
    work = asyncio.ensure_future(asyncio.to_thread(start))
    try:
        return await _unless_ended(request, work, left)
    except BaseException:
        work.add_done_callback(_drop)
        raise


def _drop(work: "asyncio.Future[Held]") -> None:
    """Nobody waits for this request any more."""
    if not work.cancelled() and not work.exception():
        work.result().cancel()


async def hold(request: Request, handle: Work[Result], left: float | None = None) -> Result:
    """The handle's result; it is cancelled where the client leaves, the server stops, or `left` seconds have passed.

    `left` is what is left of the request's deadline; None where it has none. Raises what the handle ended with, Gone
    for a client that left, and Refusal.
    """
    result = asyncio.ensure_future(handle)
    try:
        return await _unless_ended(request, result, left)
    finally:
        handle.cancel()
        result.cancel()
        with contextlib.suppress(BaseException):
            await result


async def _unless_ended(request: Request, work: "asyncio.Future[Result]", left: float | None) -> Result:
    async with watched(request) as ended:
        done, _ = await asyncio.wait({work, ended}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if work in done:
            return work.result()
        if ended in done:
            ended.result()  # raises why
        raise late(f"there was no answer within {deadline(request):g} s: allow more time")


@contextlib.asynccontextmanager
async def watched(request: Request) -> AsyncIterator["asyncio.Task[None]"]:
    """A task that fails with Gone when the client leaves, and with a Refusal when the server stops; it never returns.

    The body must have been read: from then on a client has nothing to say but good-bye.
    """
    task = asyncio.ensure_future(_end_of(request, context(request)))
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(BaseException):
            await task


async def _end_of(request: Request, shared: Context) -> None:
    gone = asyncio.ensure_future(_gone(request))
    stop = asyncio.ensure_future(shared.stopping.wait())
    try:
        done, _ = await asyncio.wait({gone, stop}, return_when=asyncio.FIRST_COMPLETED)
        if gone in done:
            raise Gone
        raise stopped()
    finally:
        gone.cancel()
        stop.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def stopped() -> Refusal:
    """The server was told to stop before the answer was there."""
    return unavailable("the server is stopping: the request was cancelled")
