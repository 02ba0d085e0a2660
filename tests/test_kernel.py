"""An engine inside a notebook's kernel: cells that are run again, awaited, interrupted; the kernel's end."""

import os
import sys
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from rigs import INTERRUPT, ROOT, WAIT

MAKE = "engine = lanes.Engine(lanes.tiny('llama'))\n"
LONG = "max_tokens=4000, ignore_eos=True"
COUNT = """
import gc, threading, time
def count(wanted=1):
    gc.collect()
    end = time.monotonic() + 60
    alive = lambda: sum(one.name == "lanes-engine" for one in threading.enumerate())
    while alive() > wanted and time.monotonic() < end: time.sleep(0.01)
    return alive()
"""
OPEN = """
import gc, lanes_widgets
from ipywidgets.widgets.widget import _instances
def boards(): return sum(isinstance(one, lanes_widgets.Board) for one in _instances.values())
"""


class Kernel:
    """A kernel without a front end."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str) -> str:
        """Run a cell: all that it prints and shows, and the name of its error."""
        said: list[str] = []

        def hear(message: Any) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] == "execute_result":
                said.append(content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                said.append(content["ename"])

        self.client.execute_interactive(dedent(code), timeout=WAIT, output_hook=hear)
        return "".join(said).strip()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    manager = KernelManager(transport="ipc" if sys.platform != "win32" else "tcp")
    arguments = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=arguments, display_name="lanes", language="python")
    manager.start_kernel(env={**os.environ, "PYTHONPATH": str(ROOT), "LANES_THREADS": "1"})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=WAIT)
        kernel = Kernel(manager, client)
        assert kernel.run("import lanes" + COUNT + INTERRUPT) == ""
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.fixture
def clean(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel with no engine in it."""
    yield kernel
    kernel.run("engine.close()")


@pytest.mark.parametrize(
    "shown",
    [
        "",
        f"s = engine.stream('Hi', {LONG})",
        "engine",
        f"s = engine.stream('Hi', {LONG})\ns",
        "p = engine.score('Is it so?', [' yes', ' no'])\np",
        "engine.stream('Hi', max_tokens=-1)",
        f"s = engine.stream('Hi', {LONG})\nnext(iter(s))",
    ],
)
def test_a_cell_that_is_run_again_leaves_one_engine(clean: Kernel, shown: str) -> None:
    for _ in range(2):
        said = clean.run(MAKE + shown)
        assert said == "InvalidRequest" if "-1" in shown else "Error" not in said, said
    assert clean.run("count()") == "1"
    assert clean.run("engine.score('Is it so?', [' yes', ' no']).result(30).choice in (' yes', ' no')") == "True"


def test_a_second_engine_under_another_name_lives_beside_the_first(clean: Kernel) -> None:
    assert clean.run(MAKE) == ""
    assert clean.run("other = engine") == ""
    assert clean.run(MAKE) == ""
    assert clean.run("count(2), other.closed, engine.closed") == "(2, False, False)"
    assert clean.run("other.close()") == ""
    assert clean.run("count()") == "1"


def test_a_deleted_engine_leaves_no_thread(kernel: Kernel) -> None:
    assert kernel.run(MAKE + f"s = engine.stream('Hi', {LONG})") == ""
    assert kernel.run("s.cancel(); s.wait(30); del engine, s") == ""
    assert kernel.run("count(0)") == "0"


def test_cells_that_await_leave_the_kernel_free(clean: Kernel) -> None:
    assert clean.run(MAKE) == ""
    assert clean.run("(await engine.score('Is it so?', [' yes', ' no'])).choice in (' yes', ' no')") == "True"
    assert clean.run("len([piece async for piece in engine.stream('Hi', max_tokens=5, ignore_eos=True)]) > 0") == "True"
    assert clean.run("s = engine.stream('Hi', max_tokens=50, ignore_eos=True)") == ""
    assert clean.run("await engine.drain(); s.finish_reason") == "'length'"


@pytest.mark.parametrize(
    ("cell", "state"),
    [
        ("s.result()", "live"),
        ("for _ in s: pass", "cancelled"),
        ("await s", "cancelled"),
        ("async for _ in s: pass", "cancelled"),
        ("engine.wait()", "live"),
        ("engine.pause(); engine.score('Is it so?', [' yes', ' no']).result()", "live"),
    ],
)
def test_an_interrupted_cell_leaves_things_usable(clean: Kernel, cell: str, state: str) -> None:
    assert clean.run(MAKE + "engine.pace(50)\n" + f"s = engine.stream('Hi', {LONG})\nwhile not s.tokens: pass") == ""
    assert clean.run(f"interrupt_once_waiting()\n{cell}") in ("KeyboardInterrupt", "CancelledError")
    assert clean.run("engine.resume()") == ""
    assert clean.run("engine.score('Is it so?', [' yes', ' no']).result(30).choice in (' yes', ' no')") == "True"
    if state == "cancelled":
        assert clean.run("s.wait(30)") == "True"
    assert clean.run("s.state") == repr(state)


def test_nothing_is_printed_into_cells_that_did_not_ask(clean: Kernel) -> None:
    assert clean.run(MAKE) == ""
    broken = """
        def broken(*_): raise RuntimeError("no")
        engine.pause()
        s = engine.stream("Hi", max_tokens=40, ignore_eos=True)
        engine.step(2)
        for work in engine._desk._state.works.values(): work.text.push = broken
        engine.resume()
        s.wait(30)"""
    assert clean.run(broken) == "True"
    assert clean.run("s.state") == "'error'"


def test_a_cell_that_made_a_widget_leaves_one_when_it_is_run_again(clean: Kernel) -> None:
    assert clean.run(OPEN + MAKE) == ""
    for _ in range(50):
        assert "Board(Engine(" in clean.run("board = lanes_widgets.Board(engine)\nboard")
    assert clean.run("boards(), sum(one.name == 'lanes-publisher' for one in threading.enumerate())") == "(1, 1)"
    assert clean.run("board.close()") == ""


def test_an_engine_and_a_widget_of_one_cell_both_go_with_it(clean: Kernel) -> None:
    assert clean.run(OPEN) == ""
    for _ in range(5):
        assert "Board(Engine(" in clean.run(MAKE + "lanes_widgets.Board(engine)")
    assert clean.run("count()") == "1"
    assert clean.run("boards()") == "1"


def test_a_click_sent_while_a_cell_awaits_is_done(clean: Kernel) -> None:
    """Whatever thread the kernel calls the handler on, the act is done once the kernel takes messages again."""
    assert clean.run(OPEN + MAKE + "board = lanes_widgets.Board(engine)") == ""
    model = clean.run("print(board.model_id)")
    act = {"method": "custom", "content": {"id": "a", "do": "pause", "with": {}}}
    message = clean.client.session.msg("comm_msg", {"comm_id": model, "data": act})
    clean.client.execute("import asyncio; await asyncio.sleep(0.3)")
    clean.client.shell_channel.send(message)
    until = "import time\nend = time.monotonic() + 30\n"
    until += "while not engine.snapshot().paused and time.monotonic() < end: time.sleep(0.01)"
    assert clean.run(until) == ""
    assert clean.run("engine.snapshot().paused, board.close()") == "(True, None)"


def test_a_kernel_with_live_streams_shuts_down_by_itself(kernel: Kernel) -> None:
    """The last test here: it ends the kernel."""
    assert kernel.run(MAKE + f"s = [engine.stream('Hi', {LONG}) for _ in range(4)]\nengine") != ""
    kernel.client.shutdown()
    kernel.manager.shutdown_wait_time = WAIT
    kernel.manager.finish_shutdown()
    assert not kernel.manager.is_alive()
