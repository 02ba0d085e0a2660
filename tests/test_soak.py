"""Many requests and random mixes of operations from several threads: nothing leaks, hangs or is counted wrongly."""

import faulthandler
import gc
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest
from company import words
from rigs import WAIT, check_record, rig

import lanes

DECISIONS, STREAMS = 1000, 200
ENDS = {"stop", "length", "answered", "cancelled", "deadline", "closed"}


@contextmanager
def hard_limit(seconds: float) -> Iterator[None]:
    """End the process with every stack shown where even pytest's time-out cannot get through."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def ask(engine: lanes.Engine, rng: random.Random, kind: str, **options: Any) -> Any:
    """A request of random size."""
    prompt = words(rng.choice((1, 3, 9, 20, 33, 40)), rng.randrange(50))
    if kind == "stream":
        return engine.stream(prompt, max_tokens=rng.randint(1, 12), ignore_eos=rng.random() < 0.5, **options)
    if rng.random() < 0.2:
        branches = [words(rng.randint(1, 8), seed) for seed in range(rng.randint(1, 3))]
        return engine.decide(prompt, branches, [" yes", " no"], **options)
    return engine.score(prompt, [" yes", " no", " other"], **options)


def wave(engine: lanes.Engine, decisions: int, streams: int, seed: int) -> Counter[str]:
    """Submit so many from four threads, cancel a third at random points from four others; how they ended."""
    rng = random.Random(seed)
    kinds = ["decision"] * decisions + ["stream"] * streams
    rng.shuffle(kinds)
    ends: Counter[str] = Counter()
    lock = threading.Lock()

    def one(number: int) -> None:
        own = random.Random(seed * 1_000_003 + number)
        request = ask(engine, own, kinds[number])
        if number % 3 == 0:
            after = own.randrange(3)
            if after == 1 and isinstance(request, lanes.Stream):
                request._channel.wait(own.randrange(5), WAIT)
            elif after == 2:
                request.wait(own.random() * 0.05)
            request.cancel()
        assert request.wait(WAIT), "every request ends"
        if not isinstance(request.error, lanes.Cancelled):
            assert request.result(0) is not None
        with lock:
            ends[request.state] += 1

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(one, number) for number in range(len(kinds))]:
            done.result()
    return ends


def test_a_thousand_decisions_and_two_hundred_streams_a_third_cancelled_leave_nothing_behind() -> None:
    with hard_limit(600), rig(slots=8, keep_rounds=100_000, prefix_bytes=1 << 20) as one:
        engine = one.engine
        warm = wave(engine, DECISIONS // 2, STREAMS // 2, seed=1)
        before = memory()
        ends = wave(engine, DECISIONS, STREAMS, seed=2)
        grown = memory() - before
        assert sum(ends.values()) == DECISIONS + STREAMS
        assert set(ends) <= ENDS and ends["cancelled"] > 50, "some were cancelled in time, some were not"
        assert engine.wait(WAIT)
        picture = engine.snapshot()
        assert all(slot.state == "free" for slot in picture.slots) and not picture.waiting
        for kind, total in ((picture.totals.decisions, DECISIONS), (picture.totals.streams, STREAMS)):
            assert kind.submitted == kind.finished == total + total // 2
        told = warm + ends
        noted = picture.totals
        assert told["answered"] == noted.decisions.answered
        assert told["length"] == noted.streams.length and told["stop"] == noted.streams.stop
        assert told["cancelled"] == noted.decisions.cancelled + noted.streams.cancelled
        assert noted.errors == noted.strays == 0
        check_record(engine)
        assert grown < 20e6, f"{grown / 1e6:.1f} MB"


def memory() -> int:
    """What this process holds, in bytes, after a collection."""
    gc.collect()
    return psutil.Process().memory_info().rss


@pytest.mark.parametrize("seed", range(6))
def test_random_operations_from_several_threads_keep_the_rules(seed: int) -> None:
    rng = random.Random(seed)
    options = {
        "slots": rng.randint(1, 4),
        "piece": rng.choice((4, 8, 32)),
        "queue": rng.choice((2, 5, 100)),
        "policy": rng.choice(("beside", "beside", "idle")),
        "prefix_bytes": rng.choice((0, 20_000, 1 << 20)),
    }
    if options["policy"] == "beside" and options["slots"] > 1:
        options["reserved"] = rng.randint(0, options["slots"] - 1)
    with hard_limit(600), rig(**options) as one:
        requests = [handle for part in _storm(one.engine, seed) for handle in part]
        one.engine.pace(None)
        one.engine.resume()
        if seed % 2:
            one.engine.close()
        assert all(request.wait(WAIT) for request in requests), "every request ends"
        assert one.engine.wait(WAIT)
        assert {request.state for request in requests} <= ENDS
        check_record(one.engine, requests)
        totals = one.engine.snapshot().totals
        assert totals.streams.submitted + totals.decisions.submitted == len(requests)


def _storm(engine: lanes.Engine, seed: int) -> list[list[Any]]:
    """Four threads that do whatever comes to their mind, and what they asked for."""

    def actor(number: int) -> list[Any]:
        rng = random.Random(1000 * seed + number)
        own: list[Any] = []
        for _ in range(150):
            with suppress(lanes.Busy, lanes.DeadlineExceeded):
                _act(engine, rng, own)
        return own

    with ThreadPoolExecutor(4) as pool:
        return [done.result() for done in [pool.submit(actor, number) for number in range(4)]]


def _act(engine: lanes.Engine, rng: random.Random, own: list[Any]) -> None:
    what = rng.random()
    if what < 0.5:
        deadline = rng.choice((None, None, None, 0.001, 0.05))
        kind = rng.choice(("stream", "decision"))
        own.append(ask(engine, rng, kind, deadline=deadline, wait=rng.random() < 0.8))
    elif what < 0.65 and own:
        rng.choice(own).cancel()
    elif what < 0.72 and own:
        rng.choice(own).wait(rng.random() * 0.02)
    elif what < 0.76 and own and isinstance(own[-1], lanes.Stream) and own[-1].text:
        for _ in own[-1]:
            break
    elif what < 0.8:
        assert engine.pause(WAIT)
    elif what < 0.86:
        assert engine.step(rng.randint(1, 5), WAIT) >= 0
    elif what < 0.92:
        engine.resume()
    elif what < 0.95:
        engine.pace(rng.choice((None, 200.0, 2000.0)))
    else:
        picture = engine.snapshot()
        assert len(picture.slots) == engine.rounds.slots and picture.totals.strays == 0
