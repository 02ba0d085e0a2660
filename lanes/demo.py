"""The main job: four live streams, decisions beside them, what that costs, and whether any bit changes by it."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tqdm import tqdm

from lanes.engine import Engine
from lanes.errors import InvalidRequest
from lanes.measure import figures, report
from lanes.measure.machine import device_name
from lanes.measure.prompts import Question, encoder, questions, topics
from lanes.measure.report import Demo, Evidence, LongPrompt
from lanes.measure.workload import Run, ask_idle, crowd, solo

__all__ = ["FULL", "QUICK", "Demo", "Sizes", "run"]

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """How much is measured: lengths in tokens, times in seconds."""

    tokens: int = 256
    """Of each stream."""
    topics: tuple[int, ...] = (240, 32, 40, 48)
    """The streams' prompts, one stream each. The first also runs alone, for `solo` tokens: beyond 256 keys."""
    solo: int = 64
    questions: tuple[int, ...] = (60, 61, 62, 63, 64, 65, 66, 67, 68)
    """The decisions' prompts: around 64, on both sides of a piece's border."""
    every: float = 1.0
    """Between the arrivals of two decisions beside the streams."""
    every_behind: float = 4.0
    """Between the arrivals of two decisions that wait for the streams' end."""
    pairs: int = 3
    """Runs without and with decisions, in turn."""
    long: int | None = None
    """The prompt of one more decision, which fills beside the streams; None: leave it out."""


FULL = Sizes()
QUICK = replace(FULL, tokens=96, pairs=1, every_behind=2.0)


@dataclass(frozen=True)
class _Work:
    """What is asked of the engines."""

    topics: list[str]
    questions: list[Question]
    long: list[Question]
    sizes: Sizes


def run(model: Any = "default", slots: int = 8, sizes: Sizes = FULL, tell: Tell = lambda line: None) -> Demo:
    """Measure on a model; `tell` gets each line of the story as it happens, bars go to stderr where it is a terminal.

    Nothing is kept between requests (the prefix cache is off). Two engines are made one after the other, so the model
    is loaded twice: the second has policy="idle". Raises InvalidRequest for fewer than two slots, and what engines and
    requests raise.
    """
    if slots < 2:
        raise InvalidRequest(f"the demo needs a slot for a stream and one for a decision beside it, not slots={slots}")
    with Engine(model, slots, prefix_bytes=0) as engine:
        name, exactness = engine.model, engine.exactness
        tell(f"{name} on {device_name()}, {slots} slots")
        tell(f"  {exactness}")
        work = _prepare(engine, sizes, slots)
        alone, beside, idle = [], [], []
        digests = _alone(engine, work, tell)
        for _ in range(sizes.pairs):
            idle += _idle(engine, work, tell)
            alone.append(_crowd(engine, work, tell, "alone"))
            beside.append(_crowd(engine, work, tell, "decisions beside them", work.questions, sizes.every))
        long = _long(engine, work, tell)
    tell('The same model again with policy="idle": decisions wait until no stream is left')
    with Engine(model, slots, policy="idle", prefix_bytes=0) as engine:
        behind = _crowd(engine, work, tell, "decisions behind them", work.questions, sizes.every_behind)
    evidence = Evidence(len(work.topics), digests, tuple(idle), tuple(alone), tuple(beside), behind)
    return Demo(
        name,
        device_name(),
        exactness.width,
        exactness.exact,
        report.decisions(evidence),
        report.speeds(evidence),
        report.gaps_of(evidence),
        report.equal_bits(evidence),
        long,
    )


def _prepare(engine: Engine, sizes: Sizes, slots: int) -> _Work:
    """Write the prompts, and run a little of everything, so that nothing is measured at its first time."""
    encode = encoder(engine)
    work = _Work(
        topics(encode, sizes.topics[: slots - 1]),
        questions(encode, sizes.questions),
        questions(encode, [sizes.long] if sizes.long else []),
        sizes,
    )
    crowd(engine, work.topics, 4)
    ask_idle(engine, work.questions[:2])
    return work


def _alone(engine: Engine, work: _Work, tell: Tell) -> tuple[str, ...]:
    digests = solo(engine, work.topics[0], work.sizes.solo)
    tell(f"The first stream has the engine to itself for {len(digests)} tokens: its rows of logits are kept as digests")
    return digests


def _idle(engine: Engine, work: _Work, tell: Tell) -> Sequence[figures.Asked]:
    asked = ask_idle(engine, work.questions)
    tell(f"{len(asked)} decisions, one after the other on the idle engine: {_median_ms(asked)}")
    return asked


def _crowd(
    engine: Engine, work: _Work, tell: Tell, how: str, asked: Sequence[Question] = (), every: float = 1.0
) -> Run:
    """One run of all the streams, with a bar and a line of the story."""
    streams, tokens = len(work.topics), work.sizes.tokens
    title = f"{streams} stream{'s' * (streams > 1)} of {tokens} tokens, {how}"
    if len(asked) > 1:
        title += f", one every {every:g} s"
    with tqdm(total=streams * tokens, desc=title, unit="tok", leave=False, disable=None, file=sys.stderr) as bar:
        done = crowd(engine, work.topics, tokens, asked, every, lambda tokens: bar.update(tokens - bar.n))
    speed = figures.tokens_per_s(done.rounds, streams)
    found = [] if speed is None else [f"{speed:.1f} tokens/s"]
    found += [f"{len(done.asked)} decisions, {_median_ms(done.asked)}"] if done.asked else []
    tell(f"{title}: {', '.join(found) or 'not measured'}")
    return done


def _long(engine: Engine, work: _Work, tell: Tell) -> LongPrompt | None:
    """A decision with a long prompt, filled piece by piece beside the streams."""
    if not work.long:
        return None
    done = _crowd(engine, work, tell, "a long prompt filling beside them", work.long, float("inf"))
    return report.long_prompt(done, len(work.topics))


def _median_ms(asked: Sequence[figures.Asked]) -> str:
    middle = figures.middle(one.seconds for one in asked)
    return "no time" if middle is None else f"median {middle * 1e3:.0f} ms"
