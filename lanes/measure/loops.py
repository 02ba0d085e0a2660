"""Streams, and decisions beside them that come by a clock (open loop) or in turns (closed loop); all of it awaited.

A notebook's cell that awaits leaves the event loop free, so nothing but the engine computes while it is measured.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lanes.measure.figures import Asked
from lanes.measure.prompts import Question
from lanes.measure.workload import Run, Sent, send

if TYPE_CHECKING:
    from lanes.engine import Engine

LOOK_S = 0.005
Arrivals: TypeAlias = Callable[[], Awaitable[tuple[Asked, ...]]]
"""Asks some decisions, and returns when all are answered."""


async def by_clock(engine: "Engine", questions: Sequence[Question], times: Sequence[float]) -> tuple[Asked, ...]:
    """An open loop: a decision at each of `times`, in seconds from now, whoever still waits; the questions in turn.

    A decision's time runs from when it was due: what it loses because its caller comes late is part of it.
    """
    begin = engine.rounds.now()
    sent: list[Sent] = []
    try:
        for number, time in enumerate(times):
            await asyncio.sleep(max(0.0, begin + time - engine.rounds.now()))
            at = number % len(questions)
            sent.append(send(engine, at, questions[at], begin + time))
        for one in sent:
            await one.pending
    except BaseException:
        for one in sent:
            one.pending.cancel()
        raise
    return tuple(one.arrived() for one in sent)


async def by_turns(engine: "Engine", questions: Sequence[Question], clients: int, each: int) -> tuple[Asked, ...]:
    """A closed loop: so many clients at once, each asks `each` decisions, the next when the last is answered.

    A client that waits asks nothing meanwhile, so a long wait is seen once, however many it would have hit.
    """

    async def client(number: int) -> list[Asked]:
        answers: list[Asked] = []
        for turn in range(each):
            at = (number * each + turn) % len(questions)
            sent = send(engine, at, questions[at])
            await sent.pending
            answers.append(sent.arrived())
        return answers

    tasks = [asyncio.ensure_future(client(number)) for number in range(clients)]
    try:
        return tuple(asked for answers in await asyncio.gather(*tasks) for asked in answers)
    finally:
        for task in tasks:
            task.cancel()


async def among(engine: "Engine", prompts: Sequence[str], tokens: int, arrivals: Arrivals) -> Run:
    """A stream of `tokens` tokens for each prompt, and `arrivals` from when as many streams write as have a slot.

    Returns when all is done. Raises what a stream or a decision raises; then the other streams are cancelled.
    """
    first = engine.rounds.next_index
    room = engine.rounds.slots - engine.options["reserved"]
    streams = [
        engine.stream(prompt, max_tokens=tokens, ignore_eos=True, digests=number == 0)
        for number, prompt in enumerate(prompts)
    ]
    try:
        while sum(bool(stream.tokens) or stream.done for stream in streams) < min(room, len(streams)):
            await asyncio.sleep(LOOK_S)
        asked = await arrivals()
        for stream in streams:
            await stream
    except BaseException:
        for stream in streams:
            stream.cancel()
        raise
    return Run(engine.rounds.since(first).rounds, asked, streams[0].digests)
