"""Throughput against mlx-lm itself, in one process and one run: decoding at several loads, and filling a prompt.

Both sides run the same weights over the same tokens, at the same number of keys. They take turns, block by block, so
that a machine that slows down slows both, and each side rests while the other computes. Time is wall clock, seen by
the caller. The figures are medians over the blocks.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from statistics import median
from typing import Any

from tqdm import tqdm

from lanes.engine import Engine
from lanes.measure.own import Own
from lanes.measure.prompts import encoder, topics
from lanes.measure.rival import MlxLm


@dataclass(frozen=True)
class Sizes:
    """How much is measured; lengths in tokens."""

    live: tuple[int, ...] = (1, 2, 4, 8)
    """Streams at once."""
    prompt: int = 64
    blocks: int = 8
    """Of each side at each load, in turn."""
    steps: int = 10
    """In a block."""
    fills: int = 5
    """Of each side, in turn."""
    fill: int = 512


FULL = Sizes()
QUICK = replace(FULL, blocks=4, fills=3)


@dataclass(frozen=True)
class Arm:
    """Decode throughput of both sides with `live` streams, all streams together."""

    live: int
    lanes_tokens_per_s: float
    mlx_lm_tokens_per_s: float
    ratio: float


@dataclass(frozen=True)
class Fill:
    """Prompt throughput of both sides for one prompt alone, `piece` tokens at a time."""

    piece: int
    lanes_tokens_per_s: float
    mlx_lm_tokens_per_s: float
    ratio: float


@dataclass(frozen=True)
class Bench:
    """Everything that was measured; a ratio above 1 says that Lanes is the faster side."""

    arms: tuple[Arm, ...]
    fill: Fill

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: {"arms": [...], "fill": {...}}."""
        return {"arms": [asdict(arm) for arm in self.arms], "fill": asdict(self.fill)}

    def __str__(self) -> str:
        rows: list[tuple[str, Arm | Fill]] = [(f"decode, {arm.live} live", arm) for arm in self.arms]
        rows.append((f"fill, pieces of {self.fill.piece}", self.fill))
        lines = [f"{'tokens/s':<20}{'lanes':>9}{'mlx-lm':>9}{'ratio':>8}"]
        lines += [
            f"{name:<20}{row.lanes_tokens_per_s:>9.1f}{row.mlx_lm_tokens_per_s:>9.1f}{row.ratio:>8.2f}"
            for name, row in rows
        ]
        return "\n".join(lines)


def run(model: Any = "default", piece: int = 32, sizes: Sizes = FULL) -> Bench:
    """Measure on a model, which is loaded twice; bars go to stderr where it is a terminal.

    mlx-lm's side is `BatchGenerator` for decoding, and its model over a plain cache, piece by piece, for the fill; it
    computes no logits there, as no sampler asks for any. Raises what engines and requests raise.
    """
    with Engine(model, slots=max(sizes.live), piece=piece, prefix_bytes=0) as engine, MlxLm(model) as rival:
        own = Own(engine)
        encode = encoder(engine)
        texts = topics(encode, list(repeat(sizes.prompt, max(sizes.live))))
        prompts = [encode(text) for text in texts]
        with _bar(len(sizes.live) * sizes.blocks, "decoding in turn") as bar:
            arms = [_arm(own, rival, texts[:live], prompts[:live], sizes, bar) for live in sizes.live]
        # One token more than the fill, because an engine draws from the last one's logits.
        [text] = topics(encode, [sizes.fill + 1])
        with _bar(sizes.fills, "filling in turn") as bar:
            fill = _fill(own, rival, text, encode(text), piece, sizes, bar)
    return Bench(tuple(arms), fill)


def _bar(total: int, title: str) -> "tqdm[Any]":
    return tqdm(total=total, desc=title, leave=False, disable=None, file=sys.stderr)


def _arm(
    own: Own, rival: MlxLm, texts: Sequence[str], prompts: Sequence[Sequence[int]], sizes: Sizes, bar: "tqdm[Any]"
) -> Arm:
    """Both sides' streams stand ready, with as many keys, and a block of each runs in turn; who is first changes."""
    # The engine fills one prompt after the other while the first streams go on: they need more room.
    room = (sizes.steps + 1) * sizes.blocks + len(texts) * sizes.prompt + 2
    own.begin(texts, room)
    rival.begin(prompts, room)
    rival.decode(round(own.tokens / len(texts)))
    mine: list[float] = []
    theirs: list[float] = []
    for block in range(sizes.blocks):
        turns = [(own, mine), (rival, theirs)]
        for side, seconds in turns if block % 2 else reversed(turns):
            seconds.append(side.decode(sizes.steps))
        bar.update()
    own.end()
    rival.end()
    tokens = len(texts) * sizes.steps
    return Arm(len(texts), tokens / median(mine), tokens / median(theirs), median(theirs) / median(mine))


def _fill(own: Own, rival: MlxLm, text: str, prompt: Sequence[int], piece: int, sizes: Sizes, bar: "tqdm[Any]") -> Fill:
    """Each side fills what the engine takes in pieces of the prompt, in turn; the first turn is not counted."""
    tokens, _ = own.fill(text)
    rival.fill(prompt[:tokens], piece)
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(sizes.fills):
        mine.append(own.fill(text)[1])
        theirs.append(rival.fill(prompt[:tokens], piece))
        bar.update()
    return Fill(piece, tokens / median(mine), tokens / median(theirs), median(theirs) / median(mine))
