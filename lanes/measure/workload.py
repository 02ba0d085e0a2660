"""Live streams with decisions that arrive beside them at a fixed rate: what one run of it gave, as plain values."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from lanes.measure.figures import Asked
from lanes.measure.prompts import Question
from lanes.record import Round

if TYPE_CHECKING:
    from lanes.decisions.results import Scored
    from lanes.engine import Engine, Pending, Stream

LOOK_S = 0.05
Tick = Callable[[int], object]
"""Told now and then how many tokens the streams of a run have in all."""


@dataclass(frozen=True)
class Run:
    """One run: its rounds, the decisions that arrived in it, and the row digests of its first stream."""

    rounds: tuple[Round, ...]
    asked: tuple[Asked, ...]
    digests: tuple[str, ...]


@dataclass(frozen=True)
class Sent:
    """A decision on its way; `at` is when it was asked, or due to be, in seconds on the record's clock."""

    question: int
    at: float
    pending: "Pending[Scored]"

    def arrived(self) -> Asked:
        """Wait for it. The time runs from `at` to the result, so reading the prompt counts too."""
        result = self.pending.result()
        timing = self.pending.timing
        assert timing is not None and timing.finished is not None
        return Asked(
            self.question, self.pending.prompt_tokens, timing.finished - self.at, result.logits, result.logsumexp
        )


def ask_idle(engine: "Engine", questions: Sequence[Question]) -> tuple[Asked, ...]:
    """Ask the questions one after the other, each when the one before it has its result."""
    return tuple(send(engine, number, question).arrived() for number, question in enumerate(questions))


def solo(engine: "Engine", prompt: str, tokens: int) -> tuple[str, ...]:
    """The row digests of a stream that has the engine to itself."""
    stream = engine.stream(prompt, max_tokens=tokens, ignore_eos=True, digests=True)
    stream.result()
    return stream.digests


def crowd(
    engine: "Engine",
    prompts: Sequence[str],
    tokens: int,
    questions: Sequence[Question] = (),
    every: float = 1.0,
    tick: Tick = lambda tokens: None,
) -> Run:
    """Run a stream of `tokens` tokens for each prompt, while a decision arrives every `every` seconds.

    The first arrives when all streams are live, the last before one of them ends; the questions
    come in turn. A decision arrives whether or not the one before it is answered. Returns when everything is
    done. Raises what a stream or a decision raises.
    """
    first = engine.rounds.next_index
    streams = [
        engine.stream(prompt, max_tokens=tokens, ignore_eos=True, digests=number == 0)
        for number, prompt in enumerate(prompts)
    ]
    watch = _Watch(streams, tick)
    sent: list[Sent] = []
    if watch.all_live() and questions:
        for due in _times(every):
            if not watch.until(due):
                break
            number = len(sent) % len(questions)
            sent.append(send(engine, number, questions[number]))
    watch.until(None)
    for stream in streams:
        stream.result()
    asked = tuple(one.arrived() for one in sent)
    return Run(engine.rounds.since(first).rounds, asked, streams[0].digests)


def send(engine: "Engine", number: int, question: Question, at: float | None = None) -> Sent:
    """Ask a question; its time runs from `at`, seconds on the record's clock (None: from now)."""
    at = engine.rounds.now() if at is None else at
    return Sent(number, at, engine.score(question.prompt, question.labels))


def _times(every: float) -> Iterator[float]:
    """Now, and then every so many seconds (time.monotonic)."""
    begin = time.monotonic()
    yield begin
    for number in count(1):
        yield begin + every * number


class _Watch:
    """Waits beside running streams and tells how far they are."""

    def __init__(self, streams: Sequence["Stream"], tick: Tick) -> None:
        self._streams = streams
        self._tick = tick

    def all_live(self) -> bool:
        """Wait until every stream has a token; False where one ended before."""
        while not all(stream.tokens for stream in self._streams):
            if any(stream.done for stream in self._streams):
                return False
            self._look(LOOK_S)
        return True

    def until(self, due: float | None) -> bool:
        """Wait until `due` (time.monotonic; None: until every stream has ended); False once one has ended."""
        while due is None or (left := due - time.monotonic()) > 0:
            ended = [stream.done for stream in self._streams]
            if all(ended) or (due is not None and any(ended)):
                return False
            self._look(LOOK_S if due is None else min(LOOK_S, left))
        return not any(stream.done for stream in self._streams)

    def _look(self, seconds: float) -> None:
        time.sleep(seconds)
        self._tick(sum(len(stream.tokens) for stream in self._streams))
