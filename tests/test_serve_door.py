"""Who may come in: hosts, origins, keys, names of requests, heads of requests; and what is told to whoever may not."""

import contextlib
import logging
import socket
from typing import Any

import pytest
from rigs import WAIT, until
from serving import client, serving, talk

import lanes
from lanes.serving import Server

KEYS = ("right-key", "other-key")


@pytest.fixture(scope="module")
def locked(engine: lanes.Engine):
    """A server that wants a key."""
    with serving(engine, api_keys=KEYS) as server:
        yield server


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]:{port}", "[::1]"])
def test_its_own_names_are_let_in(server: Server, host: str):
    with client(server) as one:
        assert one.get("/health", headers={"Host": host.format(port=server.port)}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil.example:1", "::1", "a" * 500],
)
def test_a_page_that_points_its_name_here_is_refused(server: Server, host: str):
    with client(server) as one:
        got = one.get("/slots", headers={"Host": host.format(port=server.port)})
    assert got.status_code == 403 and got.json()["error"]["code"] == "host_not_allowed"
    assert len(got.content) < 1000


def test_names_that_were_given_are_let_in(engine: lanes.Engine):
    with serving(engine, hosts="box.example") as server, client(server) as one:
        assert one.get("/health", headers={"Host": "Box.Example:80"}).status_code == 200
        assert one.get("/health", headers={"Host": "other.example"}).status_code == 403
    with serving(engine, hosts="*") as server, client(server) as one:
        assert one.get("/health", headers={"Host": "other.example"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1:1"]
)
def test_a_foreign_page_is_refused(server: Server, origin: str):
    with client(server) as one:
        got = one.get("/slots", headers={"Origin": origin})
        asked = one.options("/v1/models", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
    assert got.status_code == asked.status_code == 403
    assert got.json()["error"]["code"] == "origin_not_allowed"
    assert "access-control-allow-origin" not in {**got.headers, **asked.headers}


def test_its_own_pages_are_let_in(server: Server):
    with client(server) as one:
        assert one.get("/health", headers={"Origin": server.url}).status_code == 200


def test_pages_that_were_named_are_let_in_by_the_browser_too(engine: lanes.Engine):
    page = "https://page.example"
    with serving(engine, origins=page, api_keys=KEYS) as server, client(server) as one:
        asked = one.options("/v1/models", headers={"Origin": page, "Access-Control-Request-Method": "GET"})
        assert asked.status_code == 200 and asked.headers["access-control-allow-origin"] == page
        refused = one.get("/v1/models", headers={"Origin": page})
        assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == page
        got = one.get("/v1/models", headers={"Origin": page, "Authorization": f"Bearer {KEYS[0]}"})
        assert got.status_code == 200 and got.headers["access-control-allow-origin"] == page
        assert one.get("/health", headers={"Origin": "https://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "path", ["/v1/models", "/slots", "/metrics", "/v1/rounds", "/openapi.json", "/nothing", "/docs"]
)
def test_without_a_key_nothing_but_health_answers(locked: Server, path: str):
    with client(locked) as one:
        got = one.get(path)
        assert got.status_code == 401 and got.headers["www-authenticate"] == "Bearer"
        assert got.json()["error"]["type"] == "authentication_error"
        assert one.get("/health").status_code == 200


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER  {}"])
def test_any_of_the_keys_opens(locked: Server, key: str, form: str):
    with client(locked) as one:
        assert one.get("/v1/models", headers={"Authorization": form.format(key)}).status_code == 200


WRONG: list[Any] = [
    "Bearer wrong",
    "Bearer right-key2",
    "Bearer right-ke",
    "Basic right-key",
    "right-key",
    "Bearer",
    "",
]


@pytest.mark.parametrize("given", [*WRONG, "Bearer \xe9".encode("latin1"), b"Bearer " + b"x" * 10_000])
def test_no_other_key_does(locked: Server, given: Any):
    with client(locked) as one:
        got = one.get("/v1/models", headers=[(b"Authorization", given if isinstance(given, bytes) else given.encode())])
    assert got.status_code == 401
    assert not [key for key in KEYS if key in got.text]


def test_the_key_is_asked_for_in_the_style_of_the_endpoint(locked: Server):
    with client(locked) as one:
        got = one.post("/v1/systemone", json={})
    assert got.status_code == 401 and got.json()["detail"]["error_type"] == "authentication_error"


def test_without_keys_any_is_accepted(server: Server):
    with client(server) as one:
        assert one.get("/v1/models", headers={"Authorization": "Bearer whatever"}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
def test_decisions_are_not_there_unless_asked_for(engine: lanes.Engine, path: str):
    with serving(engine, decisions=False) as server, client(server) as one:
        got = one.post(path, json={"state": "x", "questions": {}})
        assert got.status_code == 404 and path in got.text
        assert path not in one.get("/openapi.json").json()["paths"]


def test_what_is_not_there_says_so(server: Server):
    with client(server) as one:
        assert one.get("/v1/nothing").json()["error"]["type"] == "not_found_error"
        got = one.delete("/v1/models")
    assert got.status_code == 405 and "GET" in got.headers["allow"] and got.json()["error"]


def test_every_answer_has_the_name_of_its_request(server: Server):
    with client(server) as one:
        assert one.get("/health", headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
        assert one.get("/nothing", headers={"x-request-id": "mine-2"}).headers["x-request-id"] == "mine-2"
        names = {one.get("/health").headers["x-request-id"] for _ in range(3)}
        assert len(names) == 3
        long = one.get("/health", headers={"x-request-id": "x" * 500}).headers["x-request-id"]
        assert len(long) == 32
        odd = one.get("/health", headers={"x-request-id": "a b;c"}).headers["x-request-id"]
        assert odd != "a b;c"


def test_an_error_nobody_expected_shows_nothing_of_itself(server: Server, monkeypatch, caplog):
    monkeypatch.setattr(server.engine, "snapshot", lambda: 1 / 0)
    with client(server) as one, caplog.at_level(logging.ERROR):
        got = one.get("/slots", headers={"x-request-id": "mine-3"})
    assert got.status_code == 500 and got.json()["error"]["type"] == "server_error"
    assert got.headers["x-request-id"] == "mine-3" and "mine-3" in got.text
    assert "Traceback" not in got.text and "division" not in got.text and ".py" not in got.text
    assert any("mine-3" in one.getMessage() and one.exc_info for one in caplog.records), "but the log has it"


HEADS = {
    "no request": b"hello\r\n\r\n",
    "zero bytes": b"\0" * 100 + b"\r\n\r\n",
    "a newer protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "a huge header": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "many headers": b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
    "a header without a name": b"GET /health HTTP/1.1\r\nHost: localhost\r\n: y\r\n\r\n",
    "an odd length": b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "two lengths": b"POST /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "an endless length": b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    "an odd chunk": b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_a_head_that_is_none_gets_a_4xx_and_does_no_harm(server: Server, head: bytes):
    said = talk(server, head)
    assert said == b"" or said.startswith(b"HTTP/1.1 4"), said[:200]
    assert b"Traceback" not in said
    with client(server) as one:
        assert one.get("/health").status_code == 200


def test_two_requests_in_one_packet_get_two_answers_in_order(server: Server):
    one = b"GET /%s HTTP/1.1\r\nHost: localhost\r\nx-request-id: %d\r\n%s\r\n"
    said = talk(server, one % (b"health", 1, b"") + one % (b"nothing", 2, b"Connection: close\r\n"))
    assert said.index(b"x-request-id: 1") < said.index(b"x-request-id: 2")
    assert said.count(b"HTTP/1.1 ") == 2


def test_an_upgrade_is_not_made(server: Server):
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert talk(server, head).startswith(b"HTTP/1.1 200")


def test_many_connections_that_say_nothing_hold_nobody_up(server: Server):
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), WAIT))
        with client(server) as one:
            assert one.get("/health").status_code == 200


def test_who_says_nothing_makes_room_for_who_does(engine: lanes.Engine):
    with (
        serving(engine, requests=4) as server,
        client(server) as one,
        one.stream("GET", "/v1/rounds?last=1") as rounds,
        contextlib.ExitStack() as stack,
    ):
        lines = rounds.iter_lines()
        assert next(lines) == ": rounds"
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), WAIT)) for _ in range(20)]
        with client(server) as another:
            assert another.get("/health").status_code == 200
        with contextlib.suppress(ConnectionError):
            assert silent[0].recv(1) == b"", "it was there for longest"
        until(lambda: len(server._run._server.server_state.connections) <= 2 * 4)
        engine.stream("x", max_tokens=2).result(WAIT)
        assert any(line.startswith("id: ") for line in lines), "who is being answered stays"
