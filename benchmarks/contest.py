"""One client for both sides of a comparison: the same prompts, threads that read streams, decisions that arrive."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import lanes
from lanes.measure.prompts import Question, questions, topics

LOOK_S = 0.01
ABOUT_64 = (60, 61, 62, 63, 64, 65, 66, 67, 68)
STREAM_LENGTHS = (32, 40, 48, 56)
RUNS = 20  # the most for which there are fresh prompts


class Side(Protocol):
    """What is compared; a call returns, and a stream ends, when the side is done.

    `had` says of every label that was asked for whether the answer told anything about it.
    """

    @property
    def name(self) -> str: ...

    @property
    def had(self) -> list[bool]: ...

    def ask(self, question: Question) -> None: ...

    def stream(self, prompt: str, tokens: int) -> Iterator[str]: ...


class Own:
    """The engine of this process."""

    name = "lanes"

    def __init__(self, engine: lanes.Engine) -> None:
        self._engine = engine
        self.had: list[bool] = []

    def ask(self, question: Question) -> None:
        """How likely each label is."""
        result = self._engine.score(question.prompt, question.labels).result()
        self.had += [label in result for label in question.labels]

    def stream(self, prompt: str, tokens: int) -> Iterator[str]:
        """The pieces of text, as they arrive."""
        return iter(self._engine.stream(prompt, max_tokens=tokens, ignore_eos=True))


@dataclass
class Prompts:
    """Prompts that come up once each, so that no cache has them; every side goes through a copy of its own."""

    streams: Iterator[list[str]]
    questions: Iterator[Question]
    long: Question

    @classmethod
    def of(cls, encode: Callable[[str], Sequence[int]], long: int) -> "Prompts":
        """Questions of about 64 tokens, four streams a run, and a question of `long` tokens."""
        texts = topics(encode, STREAM_LENGTHS * RUNS)
        width = len(STREAM_LENGTHS)
        *short, last = questions(encode, [*(ABOUT_64 * 3 * RUNS), long])
        return cls((texts[at : at + width] for at in range(0, len(texts), width)), iter(short), last)


@dataclass(frozen=True)
class Run:
    """Streams that ran together.

    tokens_per_s: all tokens over the time from the first request to the last stream's end. gaps: seconds between two
    pieces of text of a stream, as its reader saw them. asked: seconds of the decisions that arrived.
    """

    tokens_per_s: float
    gaps: list[float]
    asked: list[float]


@dataclass
class Found:
    """What a side gave in all its runs; the decisions' times in seconds."""

    idle: list[float] = field(default_factory=list)
    alone: list[Run] = field(default_factory=list)
    beside: list[Run] = field(default_factory=list)
    long: list[Run] = field(default_factory=list)


def timed(side: Side, question: Question) -> float:
    """Seconds from the request to the answer."""
    begin = time.perf_counter()
    side.ask(question)
    return time.perf_counter() - begin


def crowd(side: Side, prompts: Sequence[str], tokens: int, asked: Iterable[Question] = (), every: float = 1.0) -> Run:
    """Run a stream for each prompt; from when all have begun until one ends, a decision arrives every `every` s."""
    arrivals: list[list[float]] = [[] for _ in prompts]

    def read(number: int) -> float:
        for _ in side.stream(prompts[number], tokens):
            arrivals[number].append(time.perf_counter())
        return time.perf_counter()

    with ThreadPoolExecutor(len(prompts)) as readers, ThreadPoolExecutor(64) as askers:
        begin = time.perf_counter()
        streams = [readers.submit(read, number) for number in range(len(prompts))]
        decisions: list[Future[float]] = []
        if _wait(streams, lambda: all(arrivals)):
            start = time.monotonic()
            for number, question in enumerate(asked):
                due = start + number * every
                if not _wait(streams, lambda due=due: time.monotonic() >= due):
                    break
                decisions.append(askers.submit(timed, side, question))
        end = max(stream.result() for stream in streams)
        gaps = [after - before for times in arrivals for before, after in pairwise(times)]
        return Run(len(prompts) * tokens / (end - begin), gaps, [decision.result() for decision in decisions])


def _wait(streams: Sequence["Future[float]"], ready: Callable[[], bool]) -> bool:
    """Wait until it is so; False where a stream ended before."""
    while not ready():
        if any(stream.done() for stream in streams):
            return False
        time.sleep(LOOK_S)
    return True
