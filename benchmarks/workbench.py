"""What the widgets cost: messages to the front end, the engine's speed beside them, and the time that a click takes.

    python benchmarks/workbench.py [--quick] [--json] [--model default]

A kernel of its own runs the engine and a `lanes_widgets.Workbench`; this program hears what the kernel publishes and
sends clicks as a page does. Messages and speed are measured on a tiny model, whose rounds are nearly all Python: the
hardest case, as the widgets' thread takes turns with the engine's. Prints a Markdown table; takes several minutes.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from live_kernel import Heard, Kernel, kernel
from tqdm import tqdm
from workbench_figures import Clicks, Messages, Speed, table
from workbench_front import Front

from lanes.measure.prompts import LABELS, PROSE

TINY = "lanes.tiny('llama')"
IMPORTS = "import lanes, time\nfrom lanes_widgets import Workbench\nfrom workbench_cells import *"
QUIET_S = 1.0
"""No message for so long: the last frame has come."""
SPACING_S = 0.73
"""Between two clicks; no multiple of a frame's time."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    tokens: int = 24_000
    """That eight streams draw together while messages are counted, in `seconds`."""
    seconds: float = 20.0
    pairs: int = 7
    """Runs without and with a workbench, in turn; of eight streams of `arm` tokens each on the tiny model."""
    arm: int = 1500
    clicks: int = 20
    late: int = 5
    """Clicks during a busy cell."""


def count(kernel: Kernel, sizes: Sizes) -> Messages:
    """Let eight paced streams run below a workbench, and hear what it publishes."""
    kernel.run(f"engine = lanes.Engine({TINY})\nworkbench = Workbench(engine)\nworkbench")
    comm = kernel.run("print(workbench.model_id)")
    kernel.run(f"engine.pace({sizes.tokens / 8 / sizes.seconds})")
    quiet(kernel, comm)
    before = len(kernel.of(comm))
    kernel.run(f"crowd(engine, 8, {sizes.tokens // 8})\nawait engine.drain()")
    quiet(kernel, comm)
    truth = json.loads(kernel.run("print(truth(engine))"))
    heard = kernel.of(comm)
    during = heard[before:]
    kernel.run("workbench.close(); engine.close()")
    return Messages(
        tokens=truth["tokens"],
        tokens_per_s=truth["tokens"] / truth["seconds"],
        messages=len(during),
        mean_per_s=len(during) / (during[-1].at - during[0].at),
        worst_per_s=worst(during, lambda one: 1),
        largest_kb=max(one.size for one in during) / 1000,
        opening_kb=heard[0].size / 1000,
        worst_kb_per_s=worst(during, lambda one: one.size) / 1000,
        faults=Front(heard).faults(truth),
        warnings=kernel.warnings(),
    )


def worst(heard: Sequence[Heard], weight: Any) -> int:
    """The largest sum of weights over any second."""
    return max(sum(weight(one) for one in heard[at:] if one.at < first.at + 1) for at, first in enumerate(heard))


def quiet(kernel: Kernel, comm: str) -> None:
    """Wait until a widget has said nothing for a while."""
    while time.perf_counter() - kernel.of(comm)[-1].at < QUIET_S:
        time.sleep(0.05)


def compare(kernel: Kernel, speed: Speed, pairs: int, tokens: int, tick: Any) -> None:
    """Run the streams without and with a workbench, `pairs` times; who is first changes each time.

    Of any but the tiny model the kernel has an `engine`.
    """
    for number in range(-1, pairs):
        for shown in (False, True) if number % 2 else (True, False):
            call = f"print(*await arm(engine, {shown}, {speed.streams}, {tokens}))"
            # A tiny engine is new each time, so that no run has a longer record behind it than another.
            fresh = f"with lanes.Engine({TINY}, prefix_bytes=0) as engine: {call}"
            found, share = map(float, kernel.run(fresh if speed.model == TINY else call).split())
            if number >= 0:  # what happens for the first time is not counted
                (speed.shown if shown else speed.without).append(found)
                speed.shares.extend([share] * shown)
            tick()


def ask(name: str) -> dict[str, Any]:
    """A decision of about 64 tokens, as the desk's form sends it."""
    return {"prompt": f"{PROSE[:280]}\nThe mood of {name}", "labels": list(LABELS)}


def start(name: str) -> dict[str, Any]:
    """A short stream, as the form sends it."""
    form = {"chat": False, "max_tokens": 2, "temperature": 0.0, "top_p": 1.0, "seed": "", "logprobs": True}
    return {"prompt": f"The story of {name}", **form}


ACTS = {"ask": ask, "start": start}


def click(kernel: Kernel, what: str, cell: str, clicks: int, subshell: str | None) -> Clicks:
    """Click while a cell, "await" or "busy", runs beside four streams of the kernel's `engine`."""
    kernel.run("workbench = Workbench(engine)\nworkbench")
    comm = kernel.run("print(workbench.model_id)")
    ids = json.loads(kernel.run("print(crowd(engine, 4, 1024))"))
    time.sleep(2)  # they fill, and begin to draw
    length = clicks * SPACING_S + 1
    code = "await engine.drain(); print(time.perf_counter())" if cell == "await" else f"print(busy({length}))"
    running = kernel.send(code)
    time.sleep(0.5)
    sent: dict[str, float] = {}
    for number in range(clicks):
        name = f"click-{cell}-{subshell}-{number}"
        sent[name] = kernel.click(comm, what, ACTS[what](name), subshell)
        time.sleep(SPACING_S)
    for id in ids:
        kernel.click(comm, "cancel", {"id": id}, subshell)
    end = float(kernel.ended(running))
    kernel.run("await engine.drain()")
    came = json.loads(kernel.run(f"print(enqueued(engine, workbench, {clicks if what == 'ask' else 0}))"))
    kernel.run("workbench.close()")
    if not came.keys() >= sent.keys():
        raise RuntimeError(f"{len(sent)} clicks were sent, but {len(came)} requests were submitted")
    seconds = [came[name] - at for name, at in sent.items()]
    return Clicks(what, cell, "subshell" if subshell else "shell", seconds, sum(came[name] < end for name in sent))


def check_clocks(kernel: Kernel) -> None:
    """Both processes must read one clock. Raises RuntimeError where they do not."""
    before = time.perf_counter()
    there = float(kernel.run("print(time.perf_counter())"))
    if not before <= there <= time.perf_counter():
        raise RuntimeError("time.perf_counter differs between two processes here: clicks cannot be timed")


def main() -> None:
    parser = argparse.ArgumentParser(description="What the widgets cost.")
    parser.add_argument("--model", default="default", help="for clicks, and for speed too: a folder or a hub id")
    parser.add_argument("--quick", action="store_true", help="measure less: faster, and noisier")
    parser.add_argument("--json", action="store_true", help="print every figure as JSON")
    given = parser.parse_args()
    sizes = Sizes(4_800, 4.0, 3, 600, 5, 3) if given.quick else Sizes()
    with kernel() as live:
        said = live.ready()
        live.run(IMPORTS)
        version = live.run("import ipykernel; print(ipykernel.__version__)").strip()
        check_clocks(live)
        subshells = "kernel subshells" in said.get("supported_features", ())
        routes = [None, live.subshell()] if subshells else [None]
        model = repr(given.model)
        speeds = [Speed(TINY, 8), Speed(model, 4)]
        with tqdm(total=4 * sizes.pairs + 9 + 3 * len(routes), disable=None, leave=False, file=sys.stderr) as bar:
            counted = count(live, sizes)
            bar.update()
            compare(live, speeds[0], sizes.pairs, sizes.arm, bar.update)
            live.run(f"engine = lanes.Engine({model}, prefix_bytes=0)")
            compare(live, speeds[1], sizes.pairs, 64, bar.update)
            clicks: list[Clicks] = []
            for cell, what in (("await", "ask"), ("await", "start"), ("busy", "ask")):
                for route in routes:
                    number = sizes.clicks if cell == "await" else sizes.late
                    clicks.append(click(live, what, cell, number, route))
                    bar.update()
    if given.json:
        both = [{**asdict(one), "ratio": one.ratio} for one in speeds]
        found = {"kernel": version, "messages": asdict(counted), "speed": both}
        print(json.dumps({**found, "clicks": [asdict(one) for one in clicks]}, indent=1))
    else:
        print(f"ipykernel {version}\n\n{table(counted, speeds, clicks)}")


if __name__ == "__main__":
    main()
