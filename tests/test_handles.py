"""Streams and pending decisions: iterated, awaited, waited for, cancelled from anywhere, dropped."""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from company import held, step_until, words
from rigs import FOREVER, WAIT, check_record, decision, rig, stream, until

import lanes
from lanes.engine.channel import Channel, End
from lanes.record import Timing


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(lanes.tiny("llama"), slots=4, keep_rounds=200_000) as engine:
        yield engine
        assert engine.wait(WAIT)
        check_record(engine)


def short(engine: lanes.Engine, tokens: int = 12) -> lanes.Stream:
    return engine.stream("Tell me", max_tokens=tokens, ignore_eos=True)


# Waiting.


def test_a_stream_gives_the_same_text_however_it_is_read(engine: lanes.Engine) -> None:
    async def gather() -> str:
        return "".join([piece async for piece in short(engine)])

    async def whole() -> str:
        return await short(engine)

    text = short(engine).result(WAIT)
    assert text and "".join(short(engine)) == asyncio.run(gather()) == asyncio.run(whole()) == text


def test_an_ended_stream_can_be_read_again_and_again(engine: lanes.Engine) -> None:
    request = short(engine)
    text = request.result(WAIT)
    assert ["".join(request) for _ in range(3)] == [text] * 3
    assert (request.text, request.finish_reason, request.state, request.done) == (text, "length", "length", True)
    assert len(request.tokens) == 12 and request.error is None


def test_several_readers_each_get_all_of_it(engine: lanes.Engine) -> None:
    with held(engine):
        request = short(engine, 40)
        with ThreadPoolExecutor(6) as pool:
            readers = [pool.submit(lambda: "".join(request)) for _ in range(3)]
            readers += [pool.submit(request.result, WAIT) for _ in range(3)]
            engine.resume()
            assert {reader.result(WAIT) for reader in readers} == {request.result(WAIT)}


def test_what_waits_in_an_event_loop_does_not_hold_it_up(engine: lanes.Engine) -> None:
    async def main() -> None:
        assert engine.pause(WAIT)
        asked = asyncio.ensure_future(arrive(decision(engine)))
        text = asyncio.ensure_future(arrive(short(engine)))
        await asyncio.sleep(0)
        assert not asked.done() and not text.done()
        engine.resume()
        found, said = await asyncio.wait_for(asyncio.gather(asked, text), WAIT)
        assert found.choice in (" yes", " no") and said

    asyncio.run(main())


async def arrive(request: lanes.Pending | lanes.Stream) -> Any:
    return await request


def test_a_time_out_leaves_the_request_going(engine: lanes.Engine) -> None:
    for make in (short, decision):
        with held(engine):
            request = make(engine)
            assert not request.wait(0) and not request.wait(0.01)
            with pytest.raises(TimeoutError, match="goes on") as caught:
                request.result(0.01)
            assert not isinstance(caught.value, lanes.LanesError), "its own deadline is another thing"
            assert not request.done and request.state == "queued" and request.error is None
        assert request.result(WAIT) and request.result(0)


def test_forever_may_be_said_as_none_or_as_infinity(engine: lanes.Engine) -> None:
    assert short(engine).result(None) and short(engine).result(float("inf"))
    assert decision(engine).wait(None) and decision(engine).wait(1e300)


@pytest.mark.parametrize("bad", [-1, float("nan"), "5", True, [], b"1"])
def test_a_time_out_that_makes_no_sense_is_refused_and_changes_nothing(engine: lanes.Engine, bad: object) -> None:
    with held(engine):
        request = decision(engine)
        for wait in (request.result, request.wait, engine.wait, engine.pause, lambda time: engine.step(1, time)):
            with pytest.raises(lanes.InvalidRequest, match="timeout must be None or"):
                wait(bad)  # pyright: ignore[reportArgumentType]
    assert request.result(WAIT).choice
    assert not engine.snapshot().paused, "a refused pause does not pause"


def test_states_follow_the_way_of_a_request_and_never_go_back() -> None:
    with rig(slots=2, piece=8, prefix_bytes=0) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        order = ["queued", "filling", "branch", "live", "answered", "length"]
        requests = [
            engine.stream(words(20), max_tokens=3, ignore_eos=True),
            engine.decide(words(20), [" is it", " was it"], [" yes", " no"]),
        ]
        seen: list[list[str]] = [[request.state] for request in requests]
        for _ in range(30):
            engine.step(1, WAIT)
            for request, states in zip(requests, seen, strict=True):
                states.append(request.state)
        for states in seen:
            places = [order.index(state) for state in states]
            assert places == sorted(places), states
        assert set(seen[0]) == {"queued", "filling", "live", "length"}
        assert set(seen[1]) == {"queued", "filling", "branch", "answered"}


def test_a_state_read_while_a_request_ends_is_never_queued_again(engine: lanes.Engine) -> None:
    for _ in range(20):
        request = short(engine, 3)
        left = False
        while not request.done:
            time.sleep(0)
            state = request.state
            assert not (left and state == "queued")
            left = left or state != "queued"
        assert request.state == "length"


def test_a_timing_has_its_stations_in_order(engine: lanes.Engine) -> None:
    said, asked = short(engine), decision(engine)
    assert said.result(WAIT) and asked.result(WAIT)
    timing = said.timing
    assert timing and timing.admitted is not None and timing.first_token is not None and timing.finished is not None
    assert 0 <= timing.submitted <= timing.admitted <= timing.first_token <= timing.finished <= engine.rounds.now()
    assert asked.timing and asked.timing.first_token is None and asked.timing.finished is not None


# Errors.


def test_the_first_end_of_a_request_counts() -> None:
    channel, told = Channel(), []
    channel.on_end = lambda: told.append("once")
    first, second = (End("cancelled", Timing(0.0), error=lanes.Cancelled(text)) for text in "ab")
    assert channel.finish(first, "rest") and not channel.finish(second, "more")
    channel.push(5, "late", Timing(0.0))
    assert (channel.end, channel.pieces, channel.tokens, told) == (first, ["rest"], [], ["once"])


def test_each_waiter_is_told_the_reason_and_a_later_one_too() -> None:
    with rig() as one, ThreadPoolExecutor(4) as pool:
        one.fail("rows", RuntimeError("the device said no"))
        assert one.engine.pause(WAIT)
        request = stream(one.engine)
        waiters = [pool.submit(request.result, WAIT) for _ in range(3)] + [pool.submit(lambda: "".join(request))]
        one.engine.resume()
        for waiter in waiters:
            with pytest.raises(lanes.EngineFailed, match="RuntimeError: the device said no"):
                waiter.result(WAIT)
        for wait in (request.result, lambda: list(request), lambda: asyncio.run(arrive(request))):
            with pytest.raises(lanes.EngineFailed, match="the device said no"):
                wait()
        assert isinstance(request.error, lanes.EngineFailed) and request.finish_reason == "error"


def test_an_error_raised_again_and_again_does_not_grow(engine: lanes.Engine) -> None:
    request = stream(engine)
    request.cancel()
    lengths = []
    for _ in range(5):
        with pytest.raises(lanes.Cancelled) as caught:
            request.result(WAIT)
        lengths.append(len(caught.traceback))
    assert len(set(lengths[1:])) == 1


# Cancel.


def test_cancel_ends_a_request_wherever_it_is() -> None:
    with rig(slots=1, piece=8) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        for wanted, prompt, rounds in (("live", words(3), 2), ("filling", words(300), 2), ("queued", words(3), 0)):
            request = stream(engine, prompt)
            engine.step(rounds, WAIT) if rounds else None
            assert request.state == wanted
            drawn = request.tokens
            request.cancel()
            request.cancel()
            with pytest.raises(lanes.Cancelled, match="cancelled"):
                request.result(WAIT)
            assert request.finish_reason == "cancelled" and request.tokens == drawn
        branching = engine.decide(words(20), [words(5, 1), words(5, 2)], [" yes", " no"])
        step_until(engine, lambda: branching.state == "branch")
        branching.cancel()
        with pytest.raises(lanes.Cancelled):
            branching.result(WAIT)
        assert engine.snapshot().count("free") == 1
        check_record(engine)


def test_cancel_after_the_end_changes_nothing(engine: lanes.Engine) -> None:
    said, asked = short(engine), decision(engine)
    text, found = said.result(WAIT), asked.result(WAIT)
    said.cancel()
    asked.cancel()
    assert (said.result(0), asked.result(0)) == (text, found)
    assert (said.state, asked.state) == ("length", "answered")


def test_cancel_from_many_threads_at_once_counts_once(engine: lanes.Engine) -> None:
    before = engine.rounds.totals.streams.cancelled
    request = stream(engine)
    until(lambda: request.tokens)
    together = threading.Barrier(8)

    def cancel() -> None:
        together.wait(WAIT)
        request.cancel()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(cancel) for _ in range(8)]:
            done.result(WAIT)
    assert request.wait(WAIT) and engine.wait(WAIT)
    assert engine.rounds.totals.streams.cancelled == before + 1


def test_cancelling_a_task_that_awaits_cancels_the_request(engine: lanes.Engine) -> None:
    async def main(request: lanes.Pending | lanes.Stream) -> None:
        task = asyncio.ensure_future(arrive(request))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with held(engine):
        for request in (stream(engine), decision(engine)):
            asyncio.run(main(request))
            assert request.wait(WAIT) and request.state == "cancelled"


def test_a_time_out_of_asyncio_cancels_the_request(engine: lanes.Engine) -> None:
    with held(engine):
        request = decision(engine)
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(asyncio.wait_for(arrive(request), 0.01))
        assert request.wait(WAIT) and request.state == "cancelled"


def test_cancelling_a_task_that_iterates_cancels_the_stream(engine: lanes.Engine) -> None:
    async def main() -> None:
        first = asyncio.Event()

        async def read() -> None:
            async for _ in request:
                first.set()

        task = asyncio.ensure_future(read())
        await asyncio.wait_for(first.wait(), WAIT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    request = stream(engine)
    asyncio.run(main())
    assert request.wait(WAIT) and request.state == "cancelled"


def test_cancel_from_a_task_ends_an_iteration_in_another_thread(engine: lanes.Engine) -> None:
    request = stream(engine)

    async def main() -> None:
        request.cancel()

    with ThreadPoolExecutor() as pool:
        reader = pool.submit(lambda: "".join(request))
        until(lambda: request.tokens)
        asyncio.run(main())
        assert reader.result(WAIT) == request.text, "a cancelled stream's iteration ends without an error"


# Dropped.


def test_an_iteration_that_is_left_cancels_the_stream(engine: lanes.Engine) -> None:
    request = stream(engine)
    for _ in request:
        break
    assert request.wait(WAIT) and request.state == "cancelled"


def test_an_iteration_that_is_left_by_an_error_cancels_the_stream(engine: lanes.Engine) -> None:
    request = stream(engine)
    with pytest.raises(ZeroDivisionError):
        for _ in request:
            raise ZeroDivisionError
    assert request.wait(WAIT) and request.state == "cancelled"


def test_a_dropped_iterator_cancels_the_stream(engine: lanes.Engine) -> None:
    request = stream(engine)
    pieces = iter(request)
    assert next(pieces)
    del pieces
    gc.collect()
    assert request.wait(WAIT) and request.state == "cancelled"


def test_an_async_iteration_that_is_left_cancels_the_stream(engine: lanes.Engine) -> None:
    async def main() -> None:
        async for _ in request:
            break
        await asyncio.get_running_loop().run_in_executor(None, request.wait, WAIT)
        assert request.state == "cancelled"

    request = stream(engine)
    asyncio.run(main())


def test_a_loop_that_ends_with_readers_in_it_cancels_their_streams(engine: lanes.Engine) -> None:
    requests = []

    async def read(request: lanes.Stream) -> None:
        async for _ in request:
            pass

    async def main() -> None:
        requests.append(stream(engine))
        requests.append(stream(engine))
        tasks = [asyncio.ensure_future(read(requests[0])), asyncio.ensure_future(arrive(requests[1]))]
        await asyncio.wait(tasks, timeout=0.05)

    asyncio.run(main())
    for request in requests:
        assert request.wait(WAIT) and request.state == "cancelled"


def test_a_dropped_handle_that_nobody_iterates_goes_on_and_frees_its_slot(engine: lanes.Engine) -> None:
    assert engine.wait(WAIT)
    before = engine.rounds.totals.streams.length
    short(engine)
    gc.collect()
    assert engine.wait(WAIT)
    assert engine.rounds.totals.streams.length == before + 1


def test_an_iterator_in_a_cycle_may_be_collected_while_a_channel_is_locked() -> None:
    """The collector can run anywhere: also in a thread that holds what the engine's thread waits for."""
    with rig() as one:
        waited, dropped = stream(one.engine), stream(one.engine)
        cycle: list[object] = [iter(dropped)]
        next(cycle[0])  # pyright: ignore[reportCallIssue, reportArgumentType]
        cycle.append(cycle)
        until(lambda: waited.tokens)
        gc.disable()
        try:
            del cycle
            with waited._channel._changed:
                drawn = one.engine.rounds.next_index
                until(lambda: one.engine.rounds.next_index > drawn)
                gc.collect()
        finally:
            gc.enable()
        assert dropped.wait(WAIT) and dropped.state == "cancelled"
        seen = len(waited.tokens)
        until(lambda: len(waited.tokens) > seen)


# What a handle says.


def test_reprs_are_one_line_without_addresses(engine: lanes.Engine) -> None:
    with held(engine):
        said, asked = short(engine, 3), decision(engine)
        assert repr(said) == f"Stream({said.id}, queued, 0 tokens: '')"
        assert repr(asked) == f"Pending({asked.id}, queued, {asked.prompt_tokens} prompt tokens)"
    assert said.wait(WAIT) and asked.wait(WAIT)
    assert repr(said) == f"Stream({said.id}, length, 3 tokens: {said.text!r})"
    assert repr(asked).startswith(f"Pending({asked.id}, answered")


def test_ids_are_those_of_the_record_and_seeds_can_be_used_again(engine: lanes.Engine) -> None:
    first = engine.stream("Once", max_tokens=9, temperature=1.0, ignore_eos=True)
    text = first.result(WAIT)
    second = engine.stream("Once", max_tokens=9, temperature=1.0, seed=first.seed, ignore_eos=True)
    assert second.result(WAIT) == text and second.seed == first.seed and second.tokens == first.tokens
    assert engine.wait(WAIT)
    assert {first.id, second.id} <= {end.id for done in engine.rounds for end in done.finished}
    assert engine.locate(first.id) is None and engine.locate(10**9) is None
    engine.cancel(10**9)


def test_a_stream_ends_at_the_end_of_the_context() -> None:
    with lanes.Engine(lanes.tiny("llama", max_position_embeddings=40)) as engine:
        request = engine.stream(words(30), max_tokens=FOREVER, ignore_eos=True)
        assert request.result(WAIT) is not None
        assert (request.finish_reason, len(request.tokens)) == ("length", 10)
