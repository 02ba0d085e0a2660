"""A server's life: where it listens, what it shows of itself, and that nothing of it is left."""

import os
import resource
import socket
import subprocess
import sys
import textwrap
import threading
from itertools import count
from typing import Any

import httpx
import pytest
from rigs import ROOT, WAIT, interrupt_at, threads, until
from serving import GOOD, post, serving

import lanes
from lanes.errors import InvalidRequest, LanesError
from lanes.serving import server as servers
from lanes.serving.thread import Run, most_connections


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def refused(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def run(code: str) -> subprocess.CompletedProcess[str]:
    """A program of its own."""
    head = 'import lanes, httpx, os, sys\nengine = lanes.Engine(lanes.tiny("llama"), progress=False)\n'
    program = [sys.executable, "-c", head + textwrap.dedent(code)]
    return subprocess.run(program, check=False, cwd=ROOT, capture_output=True, text=True, timeout=WAIT)


def test_it_begins_at_once_and_leaves_nothing(engine: lanes.Engine):
    server = lanes.serve(engine, port=0)
    assert not server.closed and server.url == f"http://127.0.0.1:{server.port}"
    assert httpx.get(f"{server.url}/health").status_code == 200
    server.close()
    server.close()
    assert server.closed and refused(server.port)
    assert not threads("lanes-serve")
    assert engine.score("x", [" a", " b"]).result(WAIT), "the engine goes on"


def test_a_cell_that_is_run_again_takes_over_its_port(engine: lanes.Engine):
    port, made = free_port(), []
    for _ in range(20):
        made.append(lanes.serve(engine, port=port, decisions=True))
        assert post(made[-1], "/v1/systemone", GOOD["/v1/systemone"]).status_code == 200
        assert len(threads("lanes-serve")) == 1
    assert [server.closed for server in made] == [True] * 19 + [False]
    made[-1].close()
    assert refused(port) and not threads("lanes-serve")
    assert not servers._running


def test_a_port_is_taken_over_under_its_other_names_too(engine: lanes.Engine):
    first = lanes.serve(engine, port=0)
    again = lanes.serve(engine, host="localhost", port=first.port)
    assert first.closed and not again.closed
    with lanes.serve(engine, host="0.0.0.0", port=first.port, api_keys="k") as everywhere:
        assert again.closed and not everywhere.closed
        with lanes.serve(engine, port=first.port) as last:
            assert everywhere.closed and httpx.get(f"{last.url}/health").status_code == 200


def test_only_an_address_that_is_taken_is_taken_over(engine: lanes.Engine):
    with lanes.serve(engine, port=0) as server:
        assert server.holds("127.0.0.1", server.port) and server.holds("0.0.0.0", server.port)
        assert not server.holds("127.0.0.1", server.port + 1) and not server.holds("127.0.0.2", server.port)
        assert not server.holds("::1", server.port) and not server.holds("::", server.port)


@pytest.mark.parametrize(("files", "most"), [(256, 128), (1024, 512), (4096, 600), (resource.RLIM_INFINITY, 600)])
def test_connections_leave_files_to_others(monkeypatch: pytest.MonkeyPatch, files: int, most: int):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, resource.RLIM_INFINITY))
    assert most_connections(300) == most


def test_a_port_of_somebody_else_is_refused_with_what_to_do(engine: lanes.Engine):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LanesError, match=r"port=0$") as caught:
            lanes.serve(engine, port=port)
    assert str(caught.value).count(str(port)) == 1
    assert not threads("lanes-serve")


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.1"])
def test_an_address_that_is_not_here_is_refused(engine: lanes.Engine, host: str):
    with pytest.raises(LanesError, match="cannot listen"):
        lanes.serve(engine, host=host, port=0, api_keys="k")


def test_it_listens_on_ipv6_too(engine: lanes.Engine):
    if not socket.has_ipv6 or not _has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    with lanes.serve(engine, host="::1", port=0) as server:
        assert server.url.startswith("http://[::1]:")
        assert httpx.get(f"{server.url}/health").status_code == 200


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_only_with_keys_does_it_listen_to_other_machines(engine: lanes.Engine):
    with pytest.raises(InvalidRequest, match="api_keys"):
        lanes.serve(engine, host="0.0.0.0", port=0)
    with lanes.serve(engine, host="0.0.0.0", port=0, api_keys=["k"]) as server:
        url = f"http://127.0.0.1:{server.port}/v1/models"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": "Bearer k"}).status_code == 200


BAD: list[tuple[str, Any]] = [
    ("host", ""),
    ("host", "a b"),
    ("host", 1),
    ("port", -1),
    ("port", 65536),
    ("port", "8000"),
    ("port", True),
    ("decisions", "yes"),
    ("decisions", 1),
    ("api_keys", [""]),
    ("api_keys", ["a b"]),
    ("api_keys", ["k\n"]),
    ("api_keys", ["é"]),
    ("api_keys", [1]),
    ("api_keys", 1),
    ("hosts", [None]),
    ("origins", 5),
    ("show_prompts", "no"),
    ("deadline", 0),
    ("deadline", float("nan")),
    ("body_bytes", 0),
    ("requests", 0),
    ("patience", -1),
    ("grace", float("inf")),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_settings_that_cannot_work_are_refused_by_name(engine: lanes.Engine, name: str, value: Any):
    with pytest.raises(InvalidRequest, match=name):
        lanes.serve(engine, **{"port": 0, name: value})
    assert not threads("lanes-serve")


def test_a_wrong_key_is_not_repeated(engine: lanes.Engine):
    with pytest.raises(InvalidRequest) as error:
        lanes.serve(engine, port=0, api_keys=["my secret"])
    assert "secret" not in str(error.value)


def test_it_shows_what_it_is(engine: lanes.Engine):
    with lanes.serve(engine, port=0, decisions=True, api_keys="hush") as server:
        assert repr(server) == f"Server({server.url!r}, {engine.model!r}, decisions on, keys needed)"
        shown = server._repr_html_()
        assert server.url in shown and "<table" in shown and "<script" not in shown
        assert "hush" not in shown + repr(server) + repr(server.settings)
    assert repr(server).endswith("closed)") and "closed" in server._repr_html_()


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(InvalidRequest, match="engine"):
        lanes.serve("default", port=0)  # type: ignore[arg-type]


def test_several_servers_share_one_engine(engine: lanes.Engine):
    with serving(engine, decisions=True) as one, serving(engine, decisions=False) as other:
        assert post(one, "/v1/systemone", GOOD["/v1/systemone"]).status_code == 200
        assert post(other, "/v1/systemone", GOOD["/v1/systemone"]).status_code == 404
        assert post(other, "/v1/completions", GOOD["/v1/completions"]).status_code == 200


def test_a_program_that_forgets_its_server_ends():
    ended = run("server = lanes.serve(engine, port=0); print(httpx.get(server.url + '/health').status_code)")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "200\n", "")


def test_a_program_that_holds_no_server_is_served_nevertheless():
    code = (
        "import gc; url = lanes.serve(engine, port=0).url; gc.collect(); print(httpx.get(url + '/health').status_code)"
    )
    assert run(code).stdout == "200\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_hold_the_port():
    ended = run("""
        import socket
        server = lanes.serve(engine, port=0)
        read, write = os.pipe()
        if not (child := os.fork()):
            os.read(read, 1)
            os._exit(0)
        server.close()
        again = lanes.serve(engine, port=server.port)
        print(httpx.get(again.url + "/health").status_code)
        again.close()
        os.write(write, b"x")
        os.waitpid(child, 0)
    """)
    assert ended.stdout == "200\n", ended.stderr


def test_it_can_be_closed_by_many_at_once(engine: lanes.Engine):
    server = lanes.serve(engine, port=0)
    closers = [threading.Thread(target=server.close) for _ in range(8)]
    for one in closers:
        one.start()
    for one in closers:
        one.join(WAIT)
    assert refused(server.port) and not threads("lanes-serve")


def test_an_interrupt_at_any_line_of_its_start_leaves_no_thread_and_no_port(engine: lanes.Engine):
    before = set(threads("lanes-serve"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for line in count():
        try:
            with interrupt_at(line, [servers.Server.__init__, Run.start]):
                server = lanes.serve(engine, port=port)
        except KeyboardInterrupt:
            until(lambda: not set(threads("lanes-serve")) - before)
        else:
            break
    assert line > 8, "there are more lines to be interrupted at"
    assert httpx.get(f"{server.url}/health").status_code == 200
    server.close()


def test_in_a_notebook_it_ends_when_its_variable_gets_another_one():
    ended = run("""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.user_ns["engine"] = engine
        shell.run_cell("import lanes; first = server = lanes.serve(engine, port=0)")
        shell.run_cell("again = lanes.serve(engine, port=0)")
        shell.run_cell("del first")
        first = shell.user_ns["server"]
        print(first.closed)
        shell.run_cell("server = lanes.serve(engine, port=0)")
        print(first.closed, shell.user_ns["server"].closed, shell.user_ns["again"].closed)
    """)
    assert ended.stdout == "False\nTrue False False\n", ended.stdout + ended.stderr
