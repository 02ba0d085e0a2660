"""Clients that trickle, do not read, leave, come too late or in crowds; and an engine that ends while they wait."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from rigs import FOREVER, WAIT, Rig, rig, until
from serving import GOOD, client, post, serving

import lanes
from lanes.serving import Server

CHAT, SYSTEM_ONE, DECISIONS = "/v1/chat/completions", "/v1/systemone", "/v1/decisions"
LONG = {**GOOD[CHAT], "max_tokens": FOREVER, "ignore_eos": True}
"""A reply that goes on until somebody stops it."""
HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@contextmanager
def connected(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), WAIT) as one:
        yield one


def request(path: str, body: Any) -> bytes:
    """A whole request as bytes."""
    said = json.dumps(body).encode()
    return HEAD % (path.encode(), len(said)) + said


def hear(one: socket.socket) -> bytes:
    """Everything until the server hangs up."""
    heard = b""
    try:
        while part := one.recv(1 << 16):
            heard += part
    except ConnectionError:
        pass
    return heard


def idle(engine: lanes.Engine) -> bool:
    """Whether nobody waits and every slot is free."""
    seen = engine.snapshot()
    return not seen.waiting and seen.count("free") == len(seen.slots)


def opened(server: Server) -> int:
    """Requests that the server works on, without this question itself."""
    return server._run.context.counters.open


@pytest.fixture
def paused(engine: lanes.Engine) -> Iterator[lanes.Engine]:
    """The engine, held before its next round: whoever asks has to wait."""
    assert engine.pause(WAIT)
    yield engine
    engine.resume()
    assert engine.wait(WAIT)


@contextmanager
def deaf(server: Server, engine: lanes.Engine) -> Iterator[None]:
    """A client that asks for all rounds, which are more than fit between it and the server, and reads none."""
    while len(engine.rounds) < 1000:
        engine.stream("x", max_tokens=1000, ignore_eos=True).result(WAIT)
    server._run._listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # connections inherit it
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", server.port))
        one.sendall(b"GET /v1/rounds?since=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: opened(server) == 1)
        yield


# --- slow ones ------------------------------------------------------------------------------------------------------


def test_a_body_that_trickles_is_given_up(engine: lanes.Engine):
    with serving(engine, patience=0.2) as server, connected(server) as one:
        one.sendall(HEAD % (CHAT.encode(), 1000) + b'{"model": ')
        heard = hear(one)  # the answer, and then the rest of the body is not waited for either
        until(lambda: opened(server) == 0)
    assert heard.startswith(b"HTTP/1.1 408 ") and b"0.2 s" in heard


@pytest.mark.parametrize("said", [b"", b"GET /health HTTP/1.1\r\nHost: local"])
def test_a_head_that_trickles_is_hung_up_on(engine: lanes.Engine, said: bytes):
    with serving(engine, patience=0.2) as server, connected(server) as one:
        one.sendall(said)
        assert hear(one) == b""


def test_a_second_head_that_trickles_is_hung_up_on(engine: lanes.Engine):
    with serving(engine, patience=0.2) as server, connected(server) as one:
        one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        one.sendall(b"GET /hea")
        hear(one)  # ends


def test_a_reader_that_does_not_read_loses_its_connection_and_nobody_else_does(engine: lanes.Engine):
    with serving(engine, patience=0.3) as server, deaf(server, engine):
        assert post(server, CHAT, GOOD[CHAT]).status_code == 200
        until(lambda: opened(server) == 0)
        assert post(server, CHAT, GOOD[CHAT]).status_code == 200


# --- those that leave -----------------------------------------------------------------------------------------------

WAITING = {
    "a chat": (CHAT, LONG),
    "a streamed chat": (CHAT, {**LONG, "stream": True}),
    "a completion": ("/v1/completions", {**GOOD["/v1/completions"], "max_tokens": FOREVER}),
    "a decision": (SYSTEM_ONE, GOOD[SYSTEM_ONE]),
    "a decision of the other kind": (DECISIONS, GOOD[DECISIONS]),
}


@pytest.mark.parametrize("name", WAITING)
def test_who_leaves_the_queue_is_forgotten(server: Server, paused: lanes.Engine, name: str):
    path, body = WAITING[name]
    with connected(server) as one:
        one.sendall(request(path, body))
        until(lambda: len(paused.snapshot().waiting) == 1)
    paused.resume()  # a cancel is taken with the next round
    until(lambda: idle(paused) and opened(server) == 0)
    last = [end for done in paused.rounds for end in done.finished][-1]
    assert last.reason == "cancelled"


@pytest.mark.parametrize("stream", [False, True])
def test_who_leaves_amid_its_reply_frees_its_slot(server: Server, engine: lanes.Engine, stream: bool):
    with connected(server) as one:
        one.sendall(request(CHAT, {**LONG, "stream": stream}))
        until(lambda: engine.snapshot().count("live") == 1)
    until(lambda: idle(engine) and opened(server) == 0)
    last = [end for done in engine.rounds for end in done.finished][-1]
    assert last.reason == "cancelled"


def test_who_leaves_is_counted(engine: lanes.Engine):
    with serving(engine) as server:
        with connected(server) as one:
            one.sendall(request(CHAT, LONG))
            until(lambda: engine.snapshot().count("live") == 1)
        until(lambda: server._run.context.counters.gone == 1)
        assert post(server, CHAT, GOOD[CHAT]).status_code == 200
        assert server._run.context.counters.gone == 1, "one that got its answer is not gone"


def test_cancelling_one_that_waits_leaves_the_one_that_runs(server: Server, engine: lanes.Engine):
    with ThreadPoolExecutor(1) as pool:
        kept = pool.submit(post, server, CHAT, {**LONG, "max_tokens": 300})
        until(lambda: engine.snapshot().count("live") == 1)
        with connected(server) as one:
            one.sendall(request(CHAT, LONG))
            until(lambda: opened(server) == 2)
        assert kept.result(WAIT).json()["usage"]["completion_tokens"] == 300


# --- too late, too many ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, SYSTEM_ONE, DECISIONS, "/v1/completions"])
def test_a_deadline_that_passes_is_a_408(server: Server, paused: lanes.Engine, path: str):
    got = post(server, path, GOOD[path], headers={"x-deadline": "0.05"})
    assert got.status_code == 408 and got.headers["x-should-retry"] == "false"
    assert "error" in got.json() or got.json()["detail"]["error_type"] == "timeout_error"


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "soon", "1e999", ""])
def test_a_deadline_that_is_none_is_refused(server: Server, given: str):
    got = post(server, CHAT, GOOD[CHAT], headers={"x-deadline": given})
    assert got.status_code == 400 and got.json()["error"]["param"] == "x-deadline"


def test_the_servers_own_deadline_is_the_longest(paused: lanes.Engine):
    with serving(paused, deadline=0.05) as server:
        assert post(server, CHAT, GOOD[CHAT]).status_code == 408
        assert post(server, CHAT, GOOD[CHAT], headers={"x-deadline": "1000"}).status_code == 408


@pytest.mark.parametrize(
    ("path", "status"), [(CHAT, 429), ("/v1/completions", 429), (DECISIONS, 429), (SYSTEM_ONE, 529)]
)
def test_a_crowd_is_told_to_come_back(paused: lanes.Engine, path: str, status: int):
    with serving(paused, requests=1) as server, connected(server) as one:
        one.sendall(request(CHAT, LONG))
        until(lambda: len(paused.snapshot().waiting) == 1)
        got = post(server, path, GOOD[path])
        assert got.status_code == status and int(got.headers["retry-after"]) > 0
        with client(server) as other:
            assert other.get("/health").status_code == 200, "a supervisor is not turned away"
    paused.resume()


@pytest.mark.parametrize(("path", "status"), [(CHAT, 429), (SYSTEM_ONE, 529)])
def test_a_full_queue_says_when_to_come_back(path: str, status: int):
    with lanes.Engine(lanes.tiny("llama"), queue=1) as engine, serving(engine) as server:
        assert engine.pause(WAIT)
        first = engine.stream("x") if path == CHAT else engine.score("x", [" a", " b"])
        got = post(server, path, GOOD[path])
        assert got.status_code == status and int(got.headers["retry-after"]) > 0
        engine.resume()
        first.result(WAIT)
        assert post(server, path, GOOD[path]).status_code == 200


# --- an engine that ends --------------------------------------------------------------------------------------------

ENDS: dict[str, Callable[[Rig], None]] = {
    "closed": lambda held: held.engine.close(),
    "stalled": lambda held: held.engine._desk.stop(lanes.DeviceStalled("the device does not answer")),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_engine_that_ends_under_load_leaves_nobody_waiting(name: str):
    asked = [
        (CHAT, LONG),
        (CHAT, {**LONG, "stream": True}),
        (SYSTEM_ONE, GOOD[SYSTEM_ONE]),
        (DECISIONS, GOOD[DECISIONS]),
    ]
    with rig(slots=2) as held, serving(held.engine) as server, ThreadPoolExecutor(17) as pool:
        gate = held.gate()
        waiting = [pool.submit(post, server, CHAT, LONG)]
        assert gate.entered.wait(WAIT)  # a round of this one alone: none of the others is answered in it
        waiting += [pool.submit(post, server, *what) for what in asked * 4]
        until(lambda: opened(server) == len(waiting) and len(held.engine.snapshot().waiting) == len(asked) * 4)
        opener = threading.Timer(0.05, gate.open.set)  # closing waits for the round that is held
        opener.start()
        ENDS[name](held)
        answers = [one.result(WAIT) for one in waiting]
        opener.join()
        for got in answers:
            assert got.status_code == 503 or '"error"' in got.text.splitlines()[-2], got.text
        with client(server) as one:
            assert one.get("/health").status_code == 503
            assert one.get("/slots").status_code == 200
            assert one.post(CHAT, json=GOOD[CHAT]).status_code == 503
            assert "the engine is closed" in one.get("/v1/rounds?since=0").text
        until(lambda: opened(server) == 0)  # who has an answer may hear it before the server has counted


def test_a_forward_that_fails_is_told_and_the_next_request_is_served():
    with rig() as held, serving(held.engine) as server:
        held.fail("rows", RuntimeError("secret"))
        got = post(server, CHAT, GOOD[CHAT])
        assert got.status_code == 500 and "Traceback" not in got.text
        assert post(server, CHAT, GOOD[CHAT]).status_code == 200
        held.fail("rows", RuntimeError("secret"))
        got = post(server, CHAT, {**GOOD[CHAT], "stream": True})
        assert "server_error" in got.text and "Traceback" not in got.text
        assert post(server, CHAT, GOOD[CHAT]).status_code == 200


# --- a server that is closed ----------------------------------------------------------------------------------------


def test_closing_lets_open_requests_finish(engine: lanes.Engine):
    with serving(engine, grace=WAIT) as server, ThreadPoolExecutor(2) as pool:
        plain = pool.submit(post, server, CHAT, {**LONG, "max_tokens": 400})
        streamed = pool.submit(post, server, CHAT, {**LONG, "max_tokens": 400, "stream": True})
        until(lambda: engine.snapshot().count("live") == 2)
        server.close()
        assert plain.result(WAIT).json()["usage"]["completion_tokens"] == 400
        assert streamed.result(WAIT).text.rstrip().endswith("[DONE]")


def test_closing_ends_what_does_not_finish_in_time_and_says_so(engine: lanes.Engine):
    assert engine.pause(WAIT)
    with serving(engine, grace=0.1) as server, ThreadPoolExecutor(3) as pool:
        plain = pool.submit(post, server, CHAT, LONG)
        streamed = pool.submit(post, server, CHAT, {**LONG, "stream": True})
        decided = pool.submit(post, server, SYSTEM_ONE, GOOD[SYSTEM_ONE])
        until(lambda: len(engine.snapshot().waiting) == 3)
        server.close()
        assert plain.result(WAIT).status_code == 503 and "stopping" in plain.result().text
        assert decided.result(WAIT).status_code == 503 and "stopping" in decided.result().text
        told = streamed.result(WAIT)
        assert "stopping" in told.text.rstrip().splitlines()[-1]
        with pytest.raises(httpx.ConnectError):
            post(server, CHAT, GOOD[CHAT])
    engine.resume()
    until(lambda: idle(engine))


def test_closing_hangs_up_on_who_does_not_read(engine: lanes.Engine):
    with serving(engine, grace=0.1, patience=WAIT) as server, deaf(server, engine):
        server.close()
        assert opened(server) == 0
