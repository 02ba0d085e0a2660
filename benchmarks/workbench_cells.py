"""What the workbench's measurement runs inside the kernel; `workbench.py` sends the cells that call it."""

import gc
import json
import threading
import time
from typing import Any

import psutil

import lanes
from lanes_widgets import Workbench


def crowd(engine: lanes.Engine, streams: int, tokens: int, **options: Any) -> list[int]:
    """Begin seeded streams of so many tokens each; their ids."""
    asked = {"max_tokens": tokens, "ignore_eos": True, "temperature": 1.0, **options}
    return [engine.stream(f"Chapter {number}.", seed=number, **asked).id for number in range(streams)]


async def arm(engine: lanes.Engine, shown: bool, streams: int, tokens: int) -> tuple[float, float]:
    """Tokens a second of a crowd, with a workbench on display or without any widget; its thread's share of a core."""
    from IPython.display import display

    gc.collect()
    first = engine.rounds.next_index
    view = Workbench(engine) if shown else None
    if view:
        display(view)
    crowd(engine, streams, tokens)
    begun = time.perf_counter()
    await engine.drain()
    share = publishing() / (time.perf_counter() - begun)
    if view:
        view.close()
    drew = [done for done in engine.rounds.since(first).rounds if done.decode_rows]
    return sum(done.tokens for done in drew) / (drew[-1].end - drew[0].start), share


def publishing() -> float:
    """Seconds that the thread which writes the widgets has computed so far; 0 without one."""
    own = {one.native_id for one in threading.enumerate() if one.name == "lanes-publisher"}
    return sum(one.user_time + one.system_time for one in psutil.Process().threads() if one.id in own)


def truth(engine: lanes.Engine) -> str:
    """What a last frame must say: the engine's own totals, and every stream's tokens with what they added."""
    drew = [done for done in engine.rounds if done.decode_rows]
    return json.dumps(
        {
            "tokens": engine.rounds.totals.tokens,
            "rounds": engine.rounds.totals.rounds,
            "seconds": drew[-1].end - drew[0].start,
            "streams": {view.id: list(zip(view.tokens, view.pieces, strict=True)) for view in engine.streams()},
        }
    )


def enqueued(engine: lanes.Engine, workbench: Workbench, count: int) -> str:
    """When the decisions and streams that clicks asked for were submitted, by the last word of their prompts.

    Seconds on time.perf_counter. Waits for the desk's `count` entries: they are written a moment after the answers.
    """
    end = time.monotonic() + 30
    while len(workbench.past.entries) < count and time.monotonic() < end:
        time.sleep(0.01)
    timings = [(entry.wish.to_dict().get("prompt"), entry.timing) for entry in workbench.past.entries]
    timings += [(view.prompt, view.timing) for view in engine.streams()]
    zero = time.perf_counter() - engine.rounds.now()
    named = {str(prompt).split()[-1]: timing for prompt, timing in timings if timing and "click" in str(prompt)}
    return json.dumps({name: zero + timing.submitted for name, timing in named.items()})


def busy(seconds: float) -> float:
    """Compute without a pause, as a cell that blocks the kernel does; when it ended (time.perf_counter)."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return time.perf_counter()
