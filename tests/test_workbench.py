"""The workbench in a real kernel: how much it publishes and how often, its last frame, and what is left of it."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from live_kernel import Heard, Kernel, kernel
from workbench import IMPORTS, TINY, click, quiet, worst
from workbench_front import Front

HZ, STREAMS, TOKENS = 10.0, 6, 100
LEFT = """
import gc, threading, weakref
from ipywidgets.widgets.widget import _instances
def left(seen):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        gc.collect()
        threads = sum(one.name == "lanes-publisher" for one in threading.enumerate())
        open_ = sum(isinstance(one, Workbench) for one in _instances.values())
        if not (threads or open_ or seen()): break
        time.sleep(0.01)
    return threads, open_, seen() is not None
"""


@pytest.fixture(scope="module")
def live() -> Iterator[Kernel]:
    with kernel(LANES_THREADS="1") as one:
        one.run(IMPORTS + LEFT)
        yield one


def test_few_small_messages_and_an_exact_last_one(live: Kernel) -> None:
    live.run(f"engine = lanes.Engine({TINY})\nworkbench = Workbench(engine, hz={HZ})\ndisplay(workbench)")
    comm = live.run("print(workbench.model_id)")
    quiet(live, comm)
    before, begin = len(live.of(comm)), time.perf_counter()
    live.run(f"engine.pace(100)\ncrowd(engine, {STREAMS}, {TOKENS})\nawait engine.drain()")
    quiet(live, comm)
    truth = json.loads(live.run("print(truth(engine))"))
    heard = live.of(comm)
    during = heard[before:]
    assert truth["tokens"] == STREAMS * TOKENS
    assert 2 <= len(during) <= HZ * (during[-1].at - begin) + 3
    assert Front(heard).faults(truth) == []
    assert max(one.size for one in heard[1:]) < 64_000  # the opening brings the front end's code
    assert live.run("seen = weakref.ref(workbench); workbench.close(); del workbench; print(left(seen))") == str(
        (0, 0, False)
    )
    assert [one.kind for one in live.of(comm)].count("comm_close") == 1
    live.run("engine.close()")
    assert live.warnings() == []


def test_a_front_end_that_lost_a_frame_is_found_out(live: Kernel) -> None:
    live.run(f"engine = lanes.Engine({TINY})\nworkbench = Workbench(engine, hz=50)\ndisplay(workbench)")
    comm = live.run("print(workbench.model_id)")
    live.run("engine.pace(50)\ncrowd(engine, 2, 40)\nawait engine.drain()")
    quiet(live, comm)
    truth = json.loads(live.run("print(truth(engine))"))
    live.run("workbench.close(); engine.close()")
    heard = [one for one in live.of(comm) if one.kind != "comm_close"]
    told = [one for one in heard if any(stream["tape"]["items"] for stream in streams(one))]
    assert Front(heard).faults(truth) == []
    assert "stream 0: other tokens" in Front([one for one in heard if one is not told[0]]).faults(truth)
    assert any(fault.startswith("rounds in all") for fault in Front(heard[: heard.index(told[0])]).faults(truth))


def streams(one: Heard) -> list[dict[str, Any]]:
    return one.content["data"].get("state", {}).get("frame", {}).get("streams", {}).get("streams", [])


@pytest.mark.parametrize("what", ["ask", "start"])
def test_every_click_during_a_cell_comes_to_a_request(live: Kernel, what: str) -> None:
    live.run(f"engine = lanes.Engine({TINY})")
    found = click(live, what, "await", 2, None)
    assert len(found.seconds) == 2 and min(found.seconds) > 0
    live.run("engine.close()")


def test_the_worst_second_is_the_one_with_most() -> None:
    heard = [Heard(at, "comm_msg", {}, "", 10) for at in (0.0, 0.5, 1.4, 1.45, 1.49, 2.6)]
    assert worst(heard, lambda one: 1) == 4
    assert worst(heard, lambda one: one.size) == 40
