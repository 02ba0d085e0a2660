"""Lanes against mlx_lm.server on the same model: decisions idle and beside four streams, and what they cost these.

    python benchmarks/against_mlx_lm_server.py [--quick] [--model tiny:llama]

Both sides serve the same prompts to the same client, in turn. The server is a process of its own with the same BLAS;
the engine lives in this one and keeps nothing between requests. Prints a Markdown table, and ends by itself after about
five minutes on two cores.
"""

import lanes  # isort: skip - before anything that imports mlx, so that the fast BLAS is in place

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import Any

from contest import Found, Own, Prompts, Run, Side, crowd, timed
from mlx_lm_server import server
from tqdm import tqdm

from lanes.measure.machine import device_name
from lanes.measure.prompts import encoder

EVERY_S = 1.0


@dataclass(frozen=True)
class Sizes:
    """How much is measured; lengths in tokens."""

    tokens: int = 256
    idle: int = 9
    pairs: int = 2
    long: int = 2000


@dataclass
class Contestant:
    """A side, the prompts that it has left, and what it gave."""

    side: Side
    prompts: Prompts
    found: Found = field(default_factory=Found)

    def warm_up(self, sizes: Sizes) -> None:
        """What happens for the first time is not counted."""
        crowd(self.side, next(self.prompts.streams), min(8, sizes.tokens))
        timed(self.side, next(self.prompts.questions))

    def idle(self, sizes: Sizes) -> None:
        """Decisions one after the other, with nothing else to do."""
        self.found.idle += [timed(self.side, question) for question in islice(self.prompts.questions, sizes.idle)]

    def alone(self, sizes: Sizes) -> None:
        """Four streams."""
        self.found.alone.append(crowd(self.side, next(self.prompts.streams), sizes.tokens))

    def beside(self, sizes: Sizes) -> None:
        """Four streams, and a decision a second."""
        run = crowd(self.side, next(self.prompts.streams), sizes.tokens, self.prompts.questions, EVERY_S)
        self.found.beside.append(run)

    def long(self, sizes: Sizes) -> None:
        """Four streams, and one decision with a long prompt."""
        self.found.long.append(crowd(self.side, next(self.prompts.streams), sizes.tokens, [self.prompts.long]))


def measure(contestants: Sequence[Contestant], sizes: Sizes) -> None:
    """Run every arm on all sides before the next one; who is first changes each time."""
    pair = [Contestant.idle, Contestant.alone, Contestant.beside]
    arms = [Contestant.warm_up, *pair * sizes.pairs, Contestant.long]
    with tqdm(total=len(arms) * len(contestants), disable=None, leave=False, file=sys.stderr) as bar:
        for number, arm in enumerate(arms):
            for one in contestants if number % 2 else reversed(contestants):
                bar.set_description(f"{one.side.name}, {arm.__name__}")
                arm(one, sizes)
                bar.update()


def table(contestants: Sequence[Contestant], sizes: Sizes) -> str:
    """The figures as Markdown: medians, and the worst gaps of all runs."""
    beside, long = "decision beside 4 streams, one a second", f"decision of {sizes.long} tokens beside 4 streams"
    sides = [one.found for one in contestants]
    rows = [
        ("decision, idle: p50, s", [_s(one.idle) for one in sides]),
        (f"{beside}: p50, s", [_s(_asked(one.beside)) for one in sides]),
        ("4 streams alone, tokens/s", [_n(_speed(one.alone)) for one in sides]),
        ("4 streams with these decisions, tokens/s (share kept)", [_kept(one) for one in sides]),
        ("gap between two pieces of text: median alone, s", [_s(_gaps(one.alone)) for one in sides]),
        ("worst gap with these decisions, s", [_s(_gaps(one.beside), max) for one in sides]),
        (f"{long}, s", [_s(_asked(one.long)) for one in sides]),
        ("worst gap meanwhile, s", [_s(_gaps(one.long), max) for one in sides]),
        ("labels that were asked for and could not be had", [_missing(one.side) for one in contestants]),
    ]
    head = ["", *(one.side.name for one in contestants)]
    lines = [head, ["---"] * len(head), *([name, *cells] for name, cells in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _asked(runs: Sequence[Run]) -> list[float]:
    return [seconds for run in runs for seconds in run.asked]


def _gaps(runs: Sequence[Run]) -> list[float]:
    return [gap for run in runs for gap in run.gaps]


def _speed(runs: Sequence[Run]) -> float:
    return median(run.tokens_per_s for run in runs)


def _kept(found: Found) -> str:
    alone, beside = _speed(found.alone), _speed(found.beside)
    return f"{_n(beside)} ({beside / alone:.2f}x)"


def _missing(side: Side) -> str:
    return f"{side.had.count(False)} of {len(side.had)}"


def _s(seconds: list[float], pick: Any = median) -> str:
    return f"{pick(seconds):.3f}" if seconds else "not measured"


def _n(number: float) -> str:
    return f"{number:.1f}"


def compare(model: Any, sizes: Sizes) -> str:
    """Measure both sides; the table, with a line above it that says on what."""
    with lanes.Engine(model, prefix_bytes=0) as engine:
        encode = encoder(engine)
        with server(model, encode) as rival:
            sides: list[Side] = [Own(engine), rival]
            contestants = [Contestant(side, Prompts.of(encode, sizes.long)) for side in sides]
            measure(contestants, sizes)
    return f"{engine.model}, {device_name()}, medians\n\n{table(contestants, sizes)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare Lanes with mlx_lm.server.")
    parser.add_argument("--model", default="default", help='"default", a folder, a hub id, or "tiny:llama"')
    parser.add_argument("--quick", action="store_true", help="measure less: faster, and noisier")
    chosen = parser.parse_args()
    tiny = chosen.model.startswith("tiny:")
    model = lanes.tiny(chosen.model.removeprefix("tiny:")) if tiny else chosen.model
    print(compare(model, Sizes(tokens=96, pairs=1) if chosen.quick else Sizes()))


if __name__ == "__main__":
    main()
