"""A stream's parts: tokens, text and log-probabilities together, as they come, however slowly they are read."""

import asyncio
from typing import Any

import pytest
from company import held, words
from rigs import FOREVER, WAIT, stream, until

import lanes
from lanes.engine.channel import Part


def joined(parts: list[Part]) -> tuple[Any, ...]:
    """What parts say together."""
    return (
        tuple(token for part in parts for token in part.tokens),
        "".join(part.text for part in parts),
        tuple(each for part in parts for each in part.logprobs),
    )


async def read(request: lanes.Stream, pause: float = 0.0) -> list[Part]:
    found: list[Part] = []
    async for part in request.parts():
        found.append(part)
        await asyncio.sleep(pause)
    return found


@pytest.mark.parametrize("logprobs", [None, 3])
def test_together_they_are_the_stream(engine: lanes.Engine, logprobs: int | None):
    with held(engine):
        request = engine.stream("Tell me", max_tokens=30, ignore_eos=True, logprobs=logprobs)
        engine.resume()
        parts = asyncio.run(read(request))
    assert joined(parts) == (request.tokens, request.text, request.logprobs) and request.done
    assert len(parts) > 1 and all(part.text for part in parts[:-1])
    assert all(len(part.logprobs) == (len(part.tokens) if logprobs else 0) for part in parts)


def test_who_reads_slowly_gets_fewer_and_larger_ones(engine: lanes.Engine):
    request = engine.stream("Tell me", max_tokens=30, ignore_eos=True)

    async def late() -> list[Part]:
        parts = request.parts()
        found = [await anext(parts)]
        await asyncio.to_thread(request.wait, WAIT)
        return [*found, *[part async for part in parts]]

    parts = asyncio.run(late())
    assert len(parts) <= 3 and joined(parts)[:2] == (request.tokens, request.text)
    assert len(asyncio.run(read(request))) == 1, "all of it, once more"


def test_held_back_text_comes_with_a_later_part(engine: lanes.Engine):
    request = engine.stream("Tell me", max_tokens=12, ignore_eos=True)
    text = request.result(WAIT)
    again = engine.stream("Tell me", max_tokens=12, ignore_eos=True, stop=text[1:] + "?")
    parts = asyncio.run(read(again))
    assert joined(parts)[:2] == (again.tokens, text) and parts[-1].text.endswith(text[-1])


def test_leaving_early_cancels_the_stream(engine: lanes.Engine):
    async def main() -> lanes.Stream:
        request = stream(engine)
        parts = request.parts()
        await anext(parts)
        await parts.aclose()
        return request

    request = asyncio.run(main())
    assert request.wait(WAIT) and request.finish_reason == "cancelled"


def test_a_task_that_is_cancelled_gives_its_stream_up(engine: lanes.Engine):
    async def main() -> lanes.Stream:
        with held(engine):
            request = stream(engine)
            task = asyncio.ensure_future(read(request))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return request

    request = asyncio.run(main())
    assert request.wait(WAIT) and request.state == "cancelled"


def test_a_cancelled_stream_just_ends_and_another_error_is_raised(engine: lanes.Engine):
    with held(engine):
        cancelled, late = stream(engine), stream(engine, deadline=0.01)
        cancelled.cancel()
        assert asyncio.run(read(cancelled)) == []
        with pytest.raises(lanes.DeadlineExceeded):
            asyncio.run(read(late))


def test_what_was_kept_of_its_prompt_is_known_once_it_has_a_slot(engine: lanes.Engine):
    prompt = words(80, seed=9)
    engine.stream(prompt, max_tokens=1).result(WAIT)
    with held(engine) as index:
        request = engine.stream(prompt, max_tokens=FOREVER, ignore_eos=True)
        assert request.cached_tokens == 0
    until(lambda: request.tokens)
    admitted = [new.cached for done in engine.rounds.since(index).rounds for new in done.admitted]
    assert [request.cached_tokens] == admitted == [64]
    request.cancel()
