"""Clients that leave, read slowly, come too late or are too many; engines and servers that end: nobody keeps a slot."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import openai
import pytest
from company import held, words
from generated import (
    ASKED,
    CHAT,
    COMPLETIONS,
    PROMPT,
    async_client,
    create,
    datum,
    heard,
    openai_client,
    tokenizer_taken,
)
from rigs import FOREVER, WAIT, check_record, rig, until
from serving import client, post, serving

import lanes
from lanes.serving import Server

BOTH = pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
HOW = pytest.mark.parametrize("streamed", [True, False])
LONG: dict[str, Any] = {"max_tokens": FOREVER, "ignore_eos": True}


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(lanes.tiny("llama"), slots=2, piece=8, prefix_bytes=0, keep_rounds=200_000) as engine:
        yield engine
        assert engine.wait(WAIT)
        check_record(engine)


def call(server: Server, path: str, body: dict[str, Any], buffer: int | None = None) -> socket.socket:
    """A request on a connection of its own, whose `buffer` (bytes) takes what is not read."""
    one = socket.socket()
    one.settimeout(WAIT)
    if buffer:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    one.connect(("127.0.0.1", server.port))
    text = json.dumps({**ASKED[path], **body}).encode()
    head = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(text)}",
    ]
    one.sendall("\r\n".join([*head, "", ""]).encode() + text)
    return one


def reset(one: socket.socket) -> None:
    """Break the connection: the other side finds a broken pipe."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


LEAVING = pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["close", "reset"])


def hear(one: socket.socket, word: bytes, times: int = 1) -> bytes:
    """What is said until a word was said so many times."""
    said = b""
    while said.count(word) < times:
        part = one.recv(1 << 16)
        assert part, said
        said += part
    return said


def newest(engine: lanes.Engine) -> Any:
    """The latest stream."""
    return engine.streams()[-1]


def newest_id(engine: lanes.Engine) -> int:
    """Its number, -1 before there is one."""
    return max((view.id for view in engine.streams()), default=-1)


@contextmanager
def a_new_one(engine: lanes.Engine) -> Iterator[Callable[[], Any]]:
    """Gives what waits for the stream that is asked for meanwhile, and returns how it is."""
    before = newest_id(engine)

    def arrived() -> Any:
        until(lambda: any(view.id > before for view in engine.streams()))
        return newest(engine)

    yield arrived


def idle(server: Server) -> None:
    """Wait until nobody is served, by the server or by the engine."""
    until(lambda: server.engine.wait(0) and server._run.context.counters.open == 0)
    assert all(slot.state == "free" for slot in server.engine.snapshot().slots)


# Clients that leave.


@BOTH
@HOW
@LEAVING
def test_who_leaves_the_queue_is_taken_out_of_it(
    server: Server, path: str, streamed: bool, leave: Callable[[socket.socket], None]
):
    engine = server.engine
    with held(engine), a_new_one(engine) as arrived:
        one = call(server, path, {**LONG, "stream": streamed})
        assert arrived().state == "queued"
        leave(one)
        until(lambda: newest(engine).done)
        assert newest(engine).state == "cancelled" and newest(engine).timing.admitted is None
        idle(server)


@BOTH
@HOW
@LEAVING
def test_who_leaves_while_its_prompt_is_filled_frees_its_slot(
    server: Server, path: str, streamed: bool, leave: Callable[[socket.socket], None]
):
    engine = server.engine
    prompt = {CHAT: {"messages": [{"role": "user", "content": words(200)}]}, COMPLETIONS: {"prompt": words(200)}}[path]
    with held(engine), a_new_one(engine) as arrived:
        one = call(server, path, {**LONG, **prompt, "stream": streamed})
        arrived()
        until(lambda: engine.step(1, WAIT))
        assert newest(engine).state == "filling"
        leave(one)
        until(lambda: newest(engine).done)
        assert newest(engine).state == "cancelled" and not newest(engine).tokens
        idle(server)


@BOTH
@HOW
@LEAVING
def test_who_leaves_amid_a_reply_frees_its_slot_and_disturbs_nobody(
    server: Server, path: str, streamed: bool, leave: Callable[[socket.socket], None]
):
    engine = server.engine
    alone = engine.stream(PROMPT[path], max_tokens=60, ignore_eos=True, digests=True)
    alone.result(WAIT)
    with a_new_one(engine) as arrived:
        one = call(server, path, {**LONG, "stream": streamed})
        if streamed:
            hear(one, b"data: ", 3)
        left = arrived().id
        until(lambda: newest(engine).state == "live")
        beside = engine.stream(PROMPT[path], max_tokens=60, ignore_eos=True, digests=True)
        until(lambda: beside.tokens)
        leave(one)
        until(lambda: next(view for view in engine.streams() if view.id == left).done)
    beside.result(WAIT)
    gone = next(view for view in engine.streams() if view.id == left)
    assert gone.state == "cancelled" and len(gone.tokens) < FOREVER
    assert (beside.tokens, beside.digests) == (alone.tokens, alone.digests)
    idle(server)


@BOTH
@HOW
def test_who_leaves_before_its_prompt_was_read_leaves_no_orphan(server: Server, path: str, streamed: bool):
    engine = server.engine
    with a_new_one(engine) as arrived:
        with tokenizer_taken(engine):
            one = call(server, path, {**LONG, "stream": streamed})
            until(lambda: server._run.context.counters.open == 1)
            reset(one)
        arrived()
    until(lambda: newest(engine).done)
    assert newest(engine).state == "cancelled"
    idle(server)


def test_leaving_in_the_ways_of_the_client(server: Server):
    before = newest_id(server.engine)
    with openai_client(server) as one:
        for path in (CHAT, COMPLETIONS):
            with create(one, path)(max_tokens=FOREVER, stream=True, extra_body={"ignore_eos": True}) as chunks:
                for _, _ in zip(range(3), chunks, strict=False):
                    pass
            idle(server)
        with held(server.engine), pytest.raises(openai.APITimeoutError):
            create(one.with_options(timeout=0.2), CHAT)(max_tokens=FOREVER)
        idle(server)
    assert {view.state for view in server.engine.streams() if view.id > before} == {"cancelled"}


def test_leaving_in_an_event_loop(server: Server):
    async def main() -> None:
        async with async_client(server) as one:
            chunks = await create(one, CHAT)(max_tokens=FOREVER, stream=True, extra_body={"ignore_eos": True})
            async for _ in chunks:
                break
            await chunks.close()
            for path in (CHAT, COMPLETIONS):
                with a_new_one(server.engine) as arrived:
                    make = create(one, path)(max_tokens=FOREVER, extra_body={"ignore_eos": True})
                    task = asyncio.ensure_future(make)
                    await asyncio.to_thread(arrived)
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task

    asyncio.run(main())
    idle(server)
    assert [view.state for view in server.engine.streams()[-3:]] == ["cancelled"] * 3


def test_many_who_come_and_leave_at_any_moment_leave_nothing_behind(server: Server):
    engine, random = server.engine, Random(3)
    want = engine.stream(PROMPT[CHAT], max_tokens=30, ignore_eos=True).result(WAIT)
    wrong: list[str] = []

    def stay() -> None:
        for streamed in (True, False) * 4:
            with openai_client(server) as one:
                got = create(one, CHAT)(max_tokens=30, stream=streamed, extra_body={"ignore_eos": True})
                text = heard(got).text if streamed else got.choices[0].message.content
                wrong.extend([] if text == want else [text])

    staying = [threading.Thread(target=stay) for _ in range(3)]
    for thread in staying:
        thread.start()
    for _ in range(40):
        one = call(server, random.choice([CHAT, COMPLETIONS]), {**LONG, "stream": random.random() < 0.7})
        threading.Event().wait(random.choice([0, 0.001, 0.02]))
        random.choice([socket.socket.close, reset])(one)
    for thread in staying:
        thread.join(WAIT)
        assert not thread.is_alive()
    assert wrong == []
    idle(server)


# Clients that read slowly.


@contextmanager
def slow_reader(**settings: Any) -> Iterator[tuple[Server, socket.socket]]:
    """A client that has a reply of megabytes coming and reads none of it, on a server with small buffers."""
    asked = {"max_tokens": 1000, "ignore_eos": True, "stream": True, "logprobs": True, "top_logprobs": 20}
    with lanes.Engine(lanes.tiny("llama"), slots=2) as engine, serving(engine, **settings) as server:
        server._run._listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 13)
        one = call(server, CHAT, asked, buffer=1 << 13)
        try:
            until(lambda: engine.streams() and newest(engine).done)
            yield server, one
        finally:
            one.close()


def test_a_slow_reader_holds_up_nobody_and_gets_all_of_it():
    with slow_reader() as (server, slow):
        assert newest(server.engine).state == "length", "the engine waits for no reader"
        assert server._run.context.counters.open == 1, "the reply is still being written"
        with openai_client(server) as one:
            fast = create(one, CHAT)(max_tokens=5)
            assert fast.choices[0].message.content
        said = hear(slow, b"\r\n0\r\n\r\n")
        idle(server)
        chunks = [datum(line.strip()) for line in said.decode().split("\r\n") if line.startswith("data: ")]
        choices = [chunk["choices"][0] for chunk in chunks[:-1]]
        text = server.engine.stream(PROMPT[CHAT], max_tokens=1000, ignore_eos=True).result(WAIT)
        assert chunks[-1] == "[DONE]" and "".join(choice["delta"].get("content", "") for choice in choices) == text
        assert sum(len(choice["logprobs"]["content"]) for choice in choices if choice["logprobs"]) == 1000
        assert len(chunks) < 900, "what waited came together"


def test_a_broken_pipe_amid_a_write_harms_nobody():
    with slow_reader() as (server, slow):
        assert server._run.context.counters.open == 1
        reset(slow)
        idle(server)
        assert post(server, CHAT, {**ASKED[CHAT], "max_tokens": 2}).status_code == 200


def test_who_takes_nothing_for_too_long_is_dropped():
    with slow_reader(patience=0.2) as (server, slow):
        idle(server)
        with pytest.raises(ConnectionError):
            while slow.recv(1 << 16):
                pass
            raise ConnectionError("it ended before it was whole")


# Deadlines, queues, faults.


@BOTH
@HOW
def test_a_deadline_that_passes_in_the_queue_is_a_408(server: Server, path: str, streamed: bool):
    with held(server.engine), openai_client(server) as one:
        with pytest.raises(openai.APIStatusError, match=r"by its deadline|within 0\.05 s") as caught:
            create(one, path)(stream=streamed, extra_headers={"x-deadline": "0.05"})
        assert caught.value.status_code == 408 and caught.value.code == "deadline_exceeded"
        assert caught.value.response.headers["x-should-retry"] == "false"
        idle(server)


@BOTH
def test_a_deadline_amid_a_streamed_reply_is_its_last_event(server: Server, path: str):
    server.engine.pace(50)
    try:
        with client(server) as one:
            for seconds in ("0.3", "3", "30"):  # long enough for some text, on any machine
                ask: dict[str, Any] = {
                    "json": {**ASKED[path], **LONG, "stream": True},
                    "headers": {"x-deadline": seconds},
                }
                with one.stream("POST", path, **ask) as response:
                    said = response.read().decode()
                if response.status_code == 200:
                    break
        *chunks, last = (datum(line) for line in said.split("\n") if line)
        assert chunks and all(chunk["choices"] for chunk in chunks)
        assert last["error"]["code"] == "deadline_exceeded" and last["error"]["type"] == "timeout_error"
    finally:
        server.engine.pace(None)
    idle(server)


@BOTH
@HOW
def test_a_deadline_that_passes_while_another_prompt_is_read_is_a_408(server: Server, path: str, streamed: bool):
    with tokenizer_taken(server.engine), client(server) as one:
        ask = {**ASKED[path], **LONG, "stream": streamed}
        assert one.post(path, json=ask, headers={"x-deadline": "0.05"}).status_code == 408
    idle(server)


@BOTH
@HOW
def test_closing_answers_those_whose_prompts_are_still_to_be_read(engine: lanes.Engine, path: str, streamed: bool):
    with serving(engine, grace=0.1) as server, ThreadPoolExecutor(2) as pool:
        with tokenizer_taken(engine):
            late = pool.submit(post, server, path, {**ASKED[path], **LONG, "stream": streamed})
            until(lambda: server._run.context.counters.open == 1)
            closing = pool.submit(server.close)
            assert late.result(WAIT).status_code == 503
        closing.result(WAIT)
    until(lambda: engine.wait(0))


@pytest.mark.parametrize("wrong", ["soon", "-1", "0", "nan", "inf", ""])
def test_a_deadline_that_is_none_is_refused(server: Server, wrong: str):
    said = post(server, CHAT, {**ASKED[CHAT], "max_tokens": 1}, headers={"x-deadline": wrong})
    assert said.status_code == 400 and said.json()["error"]["param"] == "x-deadline"


def test_a_full_queue_says_when_to_come_back():
    with lanes.Engine(lanes.tiny("llama"), slots=1, queue=1) as engine, serving(engine) as server, held(engine):
        with a_new_one(engine) as arrived:
            waiting = call(server, CHAT, {"max_tokens": 3})
            arrived()
        with openai_client(server) as one:
            for path in (CHAT, COMPLETIONS):
                for streamed in (True, False):
                    with pytest.raises(openai.RateLimitError) as caught:
                        create(one, path)(stream=streamed, max_tokens=1)
                    assert int(caught.value.response.headers["retry-after"]) >= 1
                    assert caught.value.type == "rate_limit_error"
        engine.resume()
        assert hear(waiting, b"chat.completion").startswith(b"HTTP/1.1 200"), "who had a place in the queue keeps it"
        waiting.close()


@BOTH
def test_a_forward_that_fails_ends_its_replies_and_the_server_goes_on(path: str):
    with rig(slots=2) as own, serving(own.engine) as server:
        with client(server) as one:
            own.fail("rows", RuntimeError("broken on purpose"))
            whole = one.post(path, json={**ASKED[path], "max_tokens": 4})
            assert whole.status_code == 500 and whole.json()["error"]["type"] == "server_error"
            assert "Traceback" not in whole.text and ".py" not in whole.text
            with one.stream("POST", path, json={**ASKED[path], **LONG, "stream": True}) as response:
                lines = (line for line in response.iter_lines() if line)
                assert datum(next(lines))["choices"]
                own.fail("rows", RuntimeError("broken on purpose"))
                said = [datum(line) for line in lines]
            assert said[-1]["error"]["type"] == "server_error" and "[DONE]" not in said
            assert one.post(path, json={**ASKED[path], "max_tokens": 4}).status_code == 200
        idle(server)


@HOW
def test_an_engine_that_is_closed_ends_replies(streamed: bool):
    with lanes.Engine(lanes.tiny("llama"), slots=1) as engine, serving(engine) as server, client(server) as one:
        with a_new_one(engine) as arrived:
            waiting = call(server, CHAT, {**LONG, "stream": streamed})
            arrived()
        if streamed:
            hear(waiting, b"data: ", 2)
        engine.close()
        said = hear(waiting, b"service_unavailable_error")
        assert (b'data: {"error"' in said) if streamed else said.startswith(b"HTTP/1.1 503")
        assert b"[DONE]" not in said
        assert one.post(CHAT, json={**ASKED[CHAT], "stream": streamed}).status_code == 503
        waiting.close()


def test_a_server_that_stops_tells_open_replies(engine: lanes.Engine):
    with serving(engine, grace=0.05) as server, openai_client(server) as one:
        chunks = create(one, CHAT)(max_tokens=FOREVER, stream=True, extra_body={"ignore_eos": True})
        next(chunks)
        closing = threading.Thread(target=server.close)
        closing.start()
        with pytest.raises(openai.APIError, match="stopping"):
            for _ in chunks:
                pass
        closing.join(WAIT)
        assert not closing.is_alive()
    assert engine.wait(WAIT) and newest(engine).state == "cancelled"


@HOW
def test_what_somebody_else_cancels_is_said_to_the_client(server: Server, streamed: bool):
    engine = server.engine
    with held(engine), a_new_one(engine) as arrived:
        one = call(server, CHAT, {**LONG, "stream": streamed})
        engine.cancel(arrived().id)
        assert hear(one, b"cancelled").startswith(b"HTTP/1.1 503")
        one.close()
    if streamed:
        with a_new_one(engine) as arrived, openai_client(server) as client:
            chunks = create(client, CHAT)(max_tokens=FOREVER, stream=True, extra_body={"ignore_eos": True})
            next(chunks)
            engine.cancel(arrived().id)
            with pytest.raises(openai.APIError, match="cancelled"):
                for _ in chunks:
                    pass
    idle(server)
