"""Engines whose forward a test can hold, break or watch, and what must hold of every engine's record."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import lanes
from lanes.engine import thread
from lanes.engine.runner import Runner
from lanes.record import Round

WAIT = 120.0
"""Seconds after which a wait counts as a hang."""
ROOT = Path(__file__).parents[1]
FOREVER = 4000
"""More tokens than any test lets a stream draw."""
NO_BOOLS: list[Any] = ["no", "", 1, 0, 0.0, None, [], b"yes"]


def until(condition: Callable[[], Any], seconds: float = WAIT) -> None:
    """Wait until something is so; fail where it does not come to that."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.002)


def threads(name: str = "lanes-") -> list[threading.Thread]:
    """The running threads that engines made."""
    return [one for one in threading.enumerate() if one.name.startswith(name)]


def stream(engine: lanes.Engine, prompt: str = "Tell me", **options: Any) -> lanes.Stream:
    """A stream that goes on until it is stopped, its digests kept."""
    return engine.stream(prompt, **{"max_tokens": FOREVER, "ignore_eos": True, "digests": True, **options})


def decision(engine: lanes.Engine, prompt: str = "Is it so?", **options: Any) -> lanes.Pending:
    """A decision with two labels."""
    return engine.score(prompt, [" yes", " no"], **options)


@contextmanager
def interrupt_at(line: int, functions: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Ctrl-C on this thread before the so-many-th line, from 0, that it runs of these functions, if it comes so far."""
    codes = {function.__code__ for function in functions}
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace if event != "call" or frame.f_code in codes else None

    usual = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(usual)


INTERRUPT = """
import os, signal, sys, threading, time
def interrupt_once_waiting():
    def watch():
        while True:
            time.sleep(0.01)
            frames = [sys._current_frames()[threading.main_thread().ident]]
            while frames[-1].f_back: frames.append(frames[-1].f_back)
            started = all(frame.f_code is not interrupt_once_waiting.__code__ for frame in frames)
            if started and frames[0].f_code.co_filename.endswith(("threading.py", "selectors.py")):
                return os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=watch).start()
"""
"""Defines `interrupt_once_waiting()`: SIGINT as soon as the main thread stands in a lock or in an event loop."""


@dataclass
class Gate:
    """Holds the engine's thread inside a forward: `entered` once it is there, on until `open` is set."""

    entered: threading.Event = field(default_factory=threading.Event)
    open: threading.Event = field(default_factory=threading.Event)

    def pass_through(self) -> None:
        self.entered.set()
        assert self.open.wait(WAIT), "nobody opened the gate"


class Rig:
    """An engine and the runner on its thread."""

    def __init__(self, engine: lanes.Engine, runner: Runner) -> None:
        self.engine = engine
        self.forward: Any = runner.forward
        self.calls: Counter[str] = Counter()
        """How often each method of the forward was called since it was wrapped."""

    def wrap(self, method: str, around: Callable[..., Any]) -> Callable[[], None]:
        """Let `around(original, *args)` stand in for a method of the forward; returns what takes it away."""
        original = getattr(self.forward, method)

        def wrapped(*args: Any) -> Any:
            self.calls[method] += 1
            return around(original, *args)

        setattr(self.forward, method, wrapped)
        return lambda: setattr(self.forward, method, original)

    def gate(self, method: str = "rows") -> Gate:
        """Hold the engine in the next call of this method, and in that one alone."""
        gate = Gate()

        def around(original: Callable[..., Any], *args: Any) -> Any:
            remove()
            gate.pass_through()
            return original(*args)

        remove = self.wrap(method, around)
        return gate

    def fail(self, method: str, error: BaseException, times: int | None = 1) -> None:
        """Raise an error from a method, the next `times` calls (None: always)."""
        left = [times]

        def around(original: Callable[..., Any], *args: Any) -> Any:
            if left[0] == 0:
                return original(*args)
            left[0] = None if left[0] is None else left[0] - 1
            raise error

        self.wrap(method, around)


@contextmanager
def rig(model: Any = None, **options: Any) -> Iterator[Rig]:
    """An engine on a tiny model whose forward is at hand. Closing it must end its threads."""
    made: list[Runner] = []

    def capture(*args: Any) -> Runner:
        made.append(Runner(*args))
        return made[-1]

    before = set(threads())
    usual, thread.Runner = thread.Runner, capture  # pyright: ignore[reportPrivateImportUsage]
    try:
        engine = lanes.Engine(lanes.tiny("llama") if model is None else model, **options)
    finally:
        thread.Runner = usual  # pyright: ignore[reportPrivateImportUsage]
    try:
        yield Rig(engine, made.pop())
    finally:
        engine.close()
    until(lambda: not set(threads()) - before)


def check_record(engine: lanes.Engine, handles: Iterable[Any] = ()) -> None:
    """What the record says must fit together, and fit what the callers of these handles got. The engine is idle."""
    rounds, totals = engine.rounds.copy(), engine.rounds.totals
    assert len(rounds) == totals.rounds, "this check needs the whole record"
    assert totals.strays == 0
    _check_requests(rounds, totals)
    _check_slots(rounds, engine.rounds.slots)
    assert sum(done.tokens for done in rounds) == totals.tokens
    assert sum(done.filled for done in rounds) == totals.prompt_tokens
    ends = {end.id: end.reason for done in rounds for end in done.finished}
    gained = Counter(row.id for done in rounds for row in done.rows for _ in range(row.tokens))
    for handle in handles:
        assert ends[handle.id] == handle.state
        if isinstance(handle, lanes.Stream):
            assert gained[handle.id] == len(handle.tokens)


def _check_requests(rounds: tuple[Round, ...], totals: Any) -> None:
    submitted = [new.id for done in rounds for new in done.submitted]
    finished = [end.id for done in rounds for end in done.finished]
    assert len(set(submitted)) == len(submitted), "each is submitted once"
    assert sorted(map(str, finished)) == sorted(map(str, submitted)), "each ends once"
    for counts, kind in ((totals.streams, "stream"), (totals.decisions, "decision")):
        ends = [end for done in rounds for end in done.finished if end.kind == kind]
        in_slots = sum(end.slot is not None for end in ends)
        assert counts.open == 0 and counts.finished == counts.submitted == len(ends)
        assert counts.admitted == counts.evicted + in_slots, "who got a slot left it, by an eviction or its end"
    assert totals.streams.evicted == 0


def _check_slots(rounds: tuple[Round, ...], slots: int) -> None:
    held: dict[int, Any] = {}
    for done in rounds:
        seated = {seat.id for seat in done.seats}
        for end in done.finished:  # cancels and deadlines are taken before the round's forward
            if end.slot is not None and end.id not in seated:
                assert held.pop(end.slot) == end.id
        for out in done.evicted:
            assert held.pop(out.slot) == out.id
        for new in done.admitted:
            assert new.slot not in held and new.id not in held.values()
            held[new.slot] = new.id
        if done.groups or done.piece:
            assert {seat.slot: seat.id for seat in done.seats} == held, "nobody changes slots"
        for end in done.finished:
            if end.slot is not None and end.id in seated:
                assert held.pop(end.slot) == end.id
        assert len(held) <= slots
    assert not held, "every slot is free at the end"
