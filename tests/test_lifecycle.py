"""An engine's life: pause, step and pace, deadlines, close, being dropped, interrupts, exit, a device that hangs."""

import asyncio
import ctypes
import dataclasses
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from pathlib import Path
from textwrap import dedent

import pytest
from company import words
from rigs import INTERRUPT, ROOT, WAIT, check_record, decision, interrupt_at, rig, stream, threads, until

import lanes
from lanes.engine import thread as engine_thread

# Pause, step, resume, pace.


def test_step_runs_just_so_many_rounds_and_holds_again() -> None:
    with rig() as one:
        engine = one.engine
        assert engine.pause(WAIT)
        request = stream(engine, words(3))
        before = engine.rounds.next_index
        assert engine.step(1, WAIT) == 1
        assert engine.step(4, WAIT) == 4
        assert engine.rounds.next_index == before + 5
        assert len(request.tokens) == 5, "a prompt below a piece gives a token a round"
        assert engine.snapshot().paused


def test_step_stops_early_where_nothing_is_left_to_do() -> None:
    with rig() as one:
        engine = one.engine
        assert engine.step(3, WAIT) == 0
        request = engine.stream(words(3), max_tokens=2, ignore_eos=True)
        assert engine.step(50, WAIT) == 2
        assert request.finish_reason == "length"
        decision(engine)
        assert engine.rounds.totals.decisions.finished == 0, "it holds again after a step"


def test_step_gives_up_when_its_time_is_up() -> None:
    with rig() as one:
        gate = one.gate()
        stream(one.engine)
        assert gate.entered.wait(WAIT)
        assert one.engine.step(2, timeout=0.05) == 0
        gate.open.set()


def test_pause_waits_for_the_round_in_flight() -> None:
    with rig() as one, ThreadPoolExecutor() as pool:
        gate = one.gate()
        request = stream(one.engine)
        assert gate.entered.wait(WAIT)
        assert not one.engine.pause(timeout=0.05), "the round is still in flight"
        pausing = pool.submit(one.engine.pause, WAIT)
        gate.open.set()
        assert pausing.result(WAIT)
        drawn = request.tokens
        assert len(drawn) == 1
        one.engine.resume()
        until(lambda: len(request.tokens) > len(drawn))


def test_pause_twice_and_resume_twice_are_as_once() -> None:
    with rig() as one:
        assert one.engine.pause(WAIT) and one.engine.pause(WAIT)
        request = decision(one.engine)
        one.engine.resume()
        one.engine.resume()
        assert request.result(WAIT).choice


def test_resume_ends_a_step_and_close_does_too() -> None:
    for end in ("resume", "close"):
        with rig() as one, ThreadPoolExecutor() as pool:
            gate = one.gate()
            stream(one.engine)
            assert gate.entered.wait(WAIT)
            stepping = pool.submit(one.engine.step, 1000, WAIT)
            until(lambda one=one: one.engine.snapshot().paused)
            ending = pool.submit(getattr(one.engine, end))
            until(lambda one=one, end=end: one.engine.closed if end == "close" else not one.engine.snapshot().paused)
            gate.open.set()
            assert stepping.result(WAIT) < 1000
            ending.result(WAIT)


def test_cancel_works_while_paused_and_costs_no_round() -> None:
    with rig(slots=1) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        held, queued = stream(engine), stream(engine)
        engine.step(2, WAIT)
        assert (held.state, queued.state) == ("live", "queued")
        for request in (queued, held):
            request.cancel()
            assert request.wait(WAIT)
            assert request.state == "cancelled"
        assert engine.snapshot().paused and engine.rounds.totals.forwards == 2
        check_record(engine, [held, queued])


def test_deadlines_pass_while_paused_in_the_queue_while_filling_and_while_live() -> None:
    with rig(slots=2, piece=8) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        live = stream(engine, words(3), deadline=2.0)
        filling = stream(engine, words(300), deadline=2.0)
        queued = stream(engine, deadline=2.0)
        waiting = decision(engine, deadline=2.0)
        engine.step(3, WAIT)
        assert [one.state for one in (live, filling, queued, waiting)] == ["live", "filling", "queued", "queued"]
        for request in (live, filling, queued, waiting):
            with pytest.raises(lanes.DeadlineExceeded, match="deadline"):
                request.result(WAIT)
            assert request.state == "deadline"
        assert live.text == engine_text(engine, live), "what was drawn until then stays"
        check_record(engine, [live, filling, queued, waiting])


def engine_text(engine: lanes.Engine, request: lanes.Stream) -> str:
    """The text of so many greedy tokens of the same prompt."""
    engine.resume()
    return engine.stream(words(3), max_tokens=len(request.tokens), ignore_eos=True).result(WAIT)


def test_a_deadline_that_was_kept_changes_nothing() -> None:
    with rig() as one:
        assert decision(one.engine, deadline=1e9).result(WAIT).choice
        assert one.engine.stream("Hi", max_tokens=3, ignore_eos=True, deadline=1e9).result(WAIT) is not None


def test_a_deadline_far_away_does_not_end_the_engine_that_waits_for_it() -> None:
    with rig() as one:
        assert one.engine.pause(WAIT)
        request = decision(one.engine, deadline=1e300)
        until(lambda: one.engine.snapshot().waiting)
        one.engine.resume()
        assert request.result(WAIT).choice


def test_pace_leaves_time_between_the_starts_of_rounds_and_can_be_taken_back() -> None:
    with rig() as one:
        engine = one.engine
        engine.pace(50)
        assert engine.snapshot().pace == 50
        engine.stream("Hi", max_tokens=6, ignore_eos=True).result(WAIT)
        starts = [done.start for done in engine.rounds if done.groups]
        assert len(starts) == 6
        assert min(late - early for early, late in pairwise(starts)) >= 0.02
        engine.pace(1e-300)
        held = stream(engine)
        until(lambda: held.tokens)
        engine.pace(None)
        until(lambda: len(held.tokens) > 20)
        assert engine.snapshot().pace is None


def test_a_paced_engine_takes_cancels_and_deadlines_at_once() -> None:
    with rig() as one:
        one.engine.pace(1e-6)
        late, given_up = stream(one.engine, deadline=0.5), stream(one.engine)
        until(lambda: late.tokens)
        given_up.cancel()
        assert given_up.wait(WAIT) and late.wait(WAIT)
        assert (given_up.state, late.state) == ("cancelled", "deadline")


def test_wait_and_drain_end_with_the_last_request() -> None:
    with rig() as one:
        requests = [one.engine.stream("Hi", max_tokens=4, ignore_eos=True), decision(one.engine)]
        assert one.engine.wait(WAIT) and all(request.done for request in requests)
        assert one.engine.wait(0)
        assert one.engine.pause(WAIT)
        decision(one.engine)
        assert not one.engine.wait(0.02)
        one.engine.resume()
        asyncio.run(asyncio.wait_for(one.engine.drain(), WAIT))
        assert not one.engine.snapshot().waiting


# Snapshot.


def test_a_snapshot_is_a_picture_that_nobody_can_change_and_that_does_not_change() -> None:
    with rig(slots=3, piece=8, policy="beside") as one:
        engine = one.engine
        assert engine.pause(WAIT)
        live, filling = stream(engine, words(5)), decision(engine, words(90))
        engine.step(3, WAIT)
        third, fourth, asked = stream(engine, words(50)), stream(engine), decision(engine)
        engine.step(1, WAIT)
        picture = engine.snapshot()
        before = json.dumps(picture.to_dict()), repr(picture)
        first, second, last = picture.slots
        assert (first.state, first.kind, first.id, first.prompt_tokens) == ("live", "stream", live.id, 5)
        assert (first.filled, first.generated, first.context_fill) == (5, 4, 9 / 4096)
        assert first.ttft is not None and first.ttft >= 0 and first.tokens_per_s is not None
        assert (second.kind, second.id) == ("stream", third.id), "it took back the decision's slot"
        assert (last.kind, last.id) == ("stream", fourth.id)
        assert [item.id for item in picture.waiting] == [filling.id, asked.id], "the evicted one is first: it is older"
        assert picture.waiting[0].age >= picture.waiting[1].age >= 0
        assert picture.waiting_streams == () and len(picture.waiting_decisions) == 2
        assert picture.paused and picture.pace is None and picture.policy == "beside"
        with pytest.raises(dataclasses.FrozenInstanceError):
            first.generated = 99  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(dataclasses.FrozenInstanceError):
            picture.round = 99  # pyright: ignore[reportAttributeAccessIssue]
        engine.resume()
        until(lambda: len(live.tokens) > 20)
        assert (json.dumps(picture.to_dict()), repr(picture)) == before


def test_snapshot_totals_and_record_tell_the_same_story_as_the_callers() -> None:
    with rig(slots=2, piece=8) as one:
        engine = one.engine
        streams = [engine.stream(words(9, seed), max_tokens=5, ignore_eos=True) for seed in range(4)]
        late = stream(engine, deadline=0.001)
        given_up = stream(engine)
        decisions = [decision(engine, words(20, seed)) for seed in range(4)]
        given_up.cancel()
        assert engine.wait(WAIT)
        totals = engine.snapshot().totals
        assert (totals.streams.length, totals.streams.deadline, totals.streams.cancelled) == (4, 1, 1)
        assert totals.decisions.answered == 4
        assert totals.rounds == engine.rounds.next_index and totals.errors == 0
        check_record(engine, [*streams, late, given_up, *decisions])
        assert all(slot.state == "free" for slot in engine.snapshot().slots)


def test_the_trace_of_a_run_is_json_with_every_request_in_it(tmp_path: Path) -> None:
    with rig(slots=2, piece=8) as one:
        requests = [one.engine.stream(words(20), max_tokens=4, ignore_eos=True), decision(one.engine, words(30))]
        assert one.engine.wait(WAIT)
        path = one.engine.rounds.to_trace(tmp_path / "trace.json")
        events = json.loads(path.read_text())["traceEvents"]
        lives = [(event["id"], event["ph"]) for event in events if event["ph"] in "be"]
        assert sorted(lives) == sorted((str(request.id), phase) for request in requests for phase in "be")
        frame = one.engine.rounds.to_frame()
        assert len(frame) == one.engine.rounds.next_index and frame["tokens"].sum() == 4


# Close.


def test_close_under_load_fails_every_waiter_before_the_round_in_flight_ends() -> None:
    with rig(slots=2) as one, ThreadPoolExecutor(16) as pool:
        engine = one.engine
        gate = one.gate()
        live = [stream(engine) for _ in range(2)]
        assert gate.entered.wait(WAIT)
        queued, asked = [stream(engine) for _ in range(3)], [decision(engine) for _ in range(3)]
        requests = [*live, *queued, *asked]
        waiters = [pool.submit(request.result, WAIT) for request in requests]
        waiters.append(pool.submit(lambda: "".join(live[0])))
        waiters.append(pool.submit(lambda: asyncio.run(wait_for(asked[0]))))
        closing = pool.submit(engine.close)
        for waiter in waiters:
            with pytest.raises(lanes.EngineClosed, match="closed"):
                waiter.result(WAIT)
        assert not gate.open.is_set() and not closing.done()
        gate.open.set()
        closing.result(WAIT)
        assert {request.state for request in requests} == {"closed"}
        check_record(engine, requests)


async def wait_for(request: lanes.Pending) -> object:
    return await request


def test_a_closed_engine_refuses_with_the_reason_and_answers_the_rest() -> None:
    with rig() as one:
        engine = one.engine
        done = decision(engine)
        done.result(WAIT)
        engine.close()
        engine.close()
        assert engine.closed and "closed" in repr(engine)
        for ask in (lambda: stream(engine), lambda: decision(engine), lambda: stream(engine, wait=False)):
            with pytest.raises(lanes.EngineClosed, match="make a new one"):
                ask()
        assert engine.step(3, WAIT) == 0 and engine.pause(WAIT) and engine.wait(WAIT)
        engine.resume()
        engine.pace(3)
        assert done.result(0).choice and done.state == "answered"
        assert engine.snapshot().count("free") == 8 and len(engine.rounds) > 0


def test_close_leaves_no_thread_and_a_with_block_closes() -> None:
    before = set(threads())
    with lanes.Engine(lanes.tiny("llama")) as engine:
        assert {one.name for one in set(threads()) - before} == {"lanes-engine", "lanes-watch"}
        stream(engine)
    assert engine.closed
    until(lambda: set(threads()) == before)


def test_close_from_many_threads_at_once() -> None:
    with rig() as one, ThreadPoolExecutor(8) as pool:
        request = stream(one.engine)
        for closing in [pool.submit(one.engine.close) for _ in range(8)]:
            closing.result(WAIT)
        assert request.state == "closed"


def test_two_engines_live_side_by_side_and_one_closes_alone() -> None:
    with rig() as one, rig() as other:
        request = stream(other.engine)
        one.engine.close()
        seen = len(request.tokens)
        until(lambda: len(request.tokens) > seen + 5)


# Dropped.


def test_an_engine_dropped_without_close_leaves_no_thread() -> None:
    before = set(threads())
    engine = lanes.Engine(lanes.tiny("llama"))
    dropped = weakref.ref(engine)
    request = stream(engine)
    assert next(iter(request))
    del engine, request
    gc.collect()
    assert dropped() is None
    until(lambda: set(threads()) == before)


def test_an_engine_dropped_in_a_cycle_leaves_no_thread() -> None:
    before = set(threads())
    engine = lanes.Engine(lanes.tiny("llama"))
    engine.myself = engine  # pyright: ignore[reportAttributeAccessIssue]
    stream(engine)
    del engine
    gc.collect()
    until(lambda: set(threads()) == before)


def test_a_request_keeps_its_engine_until_it_has_ended_and_no_longer() -> None:
    before = set(threads())
    engine = lanes.Engine(lanes.tiny("llama"))
    request = engine.stream("Hi", max_tokens=200, ignore_eos=True)
    dropped = weakref.ref(engine)
    del engine
    assert len(request.result(WAIT)) > 0 and len(request.tokens) == 200
    until(lambda: (gc.collect(), dropped() is None)[1])
    until(lambda: set(threads()) == before)
    assert request.state == "length" and "length" in repr(request)


def test_a_failed_request_keeps_no_engine_and_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    # A log record keeps the frames of its traceback, and pytest keeps the record.
    monkeypatch.setattr(logging.getLogger("lanes"), "disabled", True)
    with rig() as one:
        one.fail("rows", RuntimeError("the device said no"))
        request = stream(one.engine)
        assert request.wait(WAIT)
        model = weakref.ref(one.forward.model)
        del one.forward
        one.engine.close()
        until(lambda: (gc.collect(), model() is None)[1])
        assert "the device said no" in str(request.error)


def test_a_model_that_cannot_be_had_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threads())
    with pytest.raises(lanes.ModelError, match=r"config\.json"):
        lanes.Engine(tmp_path)
    until(lambda: set(threads()) == before)


# A device that hangs.


def test_a_device_that_hangs_fails_every_waiter_and_says_so() -> None:
    with rig(stall_after=0.3) as one, ThreadPoolExecutor(8) as pool:
        engine = one.engine
        gate = one.gate()
        live, asked = stream(engine), decision(engine)
        assert gate.entered.wait(WAIT)
        waiters = [pool.submit(live.result, WAIT), pool.submit(lambda: "".join(live))]
        waiters += [pool.submit(lambda: asyncio.run(wait_for(asked))), pool.submit(asked.result, WAIT)]
        for waiter in waiters:
            with pytest.raises(lanes.DeviceStalled, match=r"0\.3 s.*stall_after="):
                waiter.result(WAIT)
        assert engine.closed and (live.state, asked.state) == ("error", "error")
        with pytest.raises(lanes.DeviceStalled):
            decision(engine)
        totals = engine.snapshot().totals
        assert (totals.streams.open, totals.decisions.open) == (0, 0)
        gate.open.set()


def test_closing_a_stalled_engine_does_not_wait_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_thread, "JOIN", WAIT)
    with rig(stall_after=0.2) as one:
        gate = one.gate()
        request = stream(one.engine)
        assert request.wait(WAIT)
        one.engine.close()
        assert not gate.open.is_set()
        gate.open.set()


def test_an_idle_a_paused_and_a_slow_engine_are_not_stalled() -> None:
    with rig(stall_after=0.2) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        request = decision(engine, deadline=1.0)
        assert request.wait(WAIT) and request.state == "deadline", "a second passed while it was paused"
        engine.resume()
        engine.pace(2)
        assert len(engine.stream("Hi", max_tokens=3, ignore_eos=True).result(WAIT)) >= 0
        assert not engine.closed


def test_an_error_in_the_loop_itself_fails_every_waiter_and_later_requests() -> None:
    with rig() as one:
        engine = one.engine
        one.fail("rows", SystemExit("out of the loop"))
        assert engine.pause(WAIT)
        live, asked = stream(engine), decision(engine, words(100))
        engine.resume()
        for request in (live, asked):
            with pytest.raises(lanes.EngineFailed, match="out of the loop"):
                request.result(WAIT)
        with pytest.raises(lanes.EngineFailed, match="make a new engine"):
            stream(engine)
        assert engine.closed
        check_record(engine, [live, asked])


# Interrupts and exits, in processes of their own.


def script(text: str) -> tuple[int, str]:
    """Run a script that has an engine; its exit code and all it printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LANES_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
    head = "import lanes\nengine = lanes.Engine(lanes.tiny('llama'))\n" + INTERRUPT
    command = [sys.executable, "-u", "-c", head + dedent(text)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            said, _ = process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[0] + "\n(it hung)"
    return process.returncode, said


LIVE = """
streams = [engine.stream(f"Hi {i}", max_tokens=4000, ignore_eos=True) for i in range(4)]
asked = [engine.score(f"Is {i} it?" + " and" * 300, [" yes", " no"]) for i in range(4)]
next(iter(streams[0]))
streams[0] = engine.stream("Hi", max_tokens=4000, ignore_eos=True)
"""
EXITS = {
    "falls off the end": "",
    "sys.exit": "sys.exit()",
    "while paused": "engine.pause()",
    "while paced": "engine.pace(0.01)",
    "engine kept by builtins": "import builtins; builtins.engine = engine",
    "an iterator in use": "it = iter(streams[1]); next(it)",
    "a waiting daemon thread": """
        def wait():
            try: streams[1].result()
            except lanes.EngineClosed: pass
        threading.Thread(target=wait, daemon=True).start()""",
    "an asyncio loop that ended": """
        import asyncio
        async def one(): await streams[1]
        async def main(): await asyncio.wait([asyncio.ensure_future(one())], timeout=0.05)
        asyncio.run(main())""",
    "another engine that loads": """
        def load():
            try: lanes.Engine(lanes.tiny("qwen3", num_hidden_layers=12))
            except lanes.EngineClosed: pass
        threading.Thread(target=load, daemon=True).start()""",
    "an engine dropped before": "del engine, streams, asked",
}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX exit codes")
@pytest.mark.parametrize("name", EXITS)
def test_an_exit_with_live_streams_is_clean(name: str) -> None:
    code, said = script(LIVE + dedent(EXITS[name]) + "\nprint('the end')")
    if name == "sys.exit":
        said += "the end"
    assert code == 0, said
    assert "the end" in said and "Traceback" not in said and "Fatal" not in said, said


@pytest.mark.parametrize("_", range(5))
def test_exit_after_exit_never_crashes(_: int) -> None:
    code, said = script(LIVE)
    assert (code, said) == (0, "")


def test_an_exit_does_not_wait_for_a_thread_that_waits_on_a_paused_engine() -> None:
    code, said = script("""
        engine.pause()
        request = engine.stream("Hi")
        def wait():
            try: request.result()
            except lanes.EngineClosed: print("told")
        threading.Thread(target=wait).start()
    """)
    assert (code, said.strip()) == (0, "told")


# What is held, in a process that has nothing else to hold.


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps what was freed")
def test_closed_engines_give_their_memory_back() -> None:
    code, said = script("""
        import psutil
        engine.close()
        model = lanes.tiny("llama", hidden_size=512, intermediate_size=2048, num_hidden_layers=4)
        engines = [lanes.Engine(model, slots=1) for _ in range(4)]  # threads at once, each with an arena of its own
        held = psutil.Process().memory_info().rss
        for engine in engines:
            engine.close()
        given_back = held - psutil.Process().memory_info().rss
        print(given_back / sum(4 * engine.info.parameters for engine in engines))
    """)
    assert code == 0 and float(said) > 0.9, said


INTERRUPTED = {
    "result": "stream.result()",
    "wait": "stream.wait()",
    "iteration": "for _ in stream: pass",
    "engine.wait": "engine.wait()",
    "a paused result": "engine.pause(); decision.result()",
    "step": "engine.step(10**9, None)",
    "asyncio": "import asyncio; asyncio.run(main())",
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interrupt_while_waiting_leaves_things_usable(name: str) -> None:
    code, said = script(f"""
stream = engine.stream("Hi", max_tokens=4000, ignore_eos=True)
engine.pace(30)
decision = engine.score("Is it so?" + " and" * 500, [" yes", " no"])
async def main(): await stream
try:
    interrupt_once_waiting()
    {INTERRUPTED[name]}
except KeyboardInterrupt:
    print("interrupted")
engine.resume()
print(engine.score("Is it so?", [" yes", " no"]).result(30).choice)
assert decision.result(30).choice
if {name!r} in ("iteration", "asyncio"):
    stream.wait(30)
    assert stream.state == "cancelled", stream.state
else:
    assert stream.state == "live", stream.state
engine.close()
assert stream.done and not [one for one in threading.enumerate() if one.name == "lanes-engine"]
print("usable")
""")
    assert code == 0 and "interrupted" in said and said.endswith("usable\n"), said


def test_an_interrupt_that_nobody_catches_ends_the_program() -> None:
    code, said = script(LIVE + "interrupt_once_waiting(); streams[1].result()")
    assert code == -signal.SIGINT and said.rstrip().endswith("KeyboardInterrupt"), said


def test_an_interrupt_while_a_model_loads_leaves_no_thread() -> None:
    code, said = script("""
engine.close()
try:
    interrupt_once_waiting()
    lanes.Engine(lanes.tiny("llama", num_hidden_layers=200))
except KeyboardInterrupt: print("interrupted")
end = time.monotonic() + 30
while any(one.name.startswith("lanes") for one in threading.enumerate()) and time.monotonic() < end: time.sleep(0.01)
print(len(threading.enumerate()), "thread")
""")
    assert code == 0 and "interrupted" in said and "1 thread" in said, said


def test_an_interrupt_at_any_line_of_making_an_engine_leaves_no_thread() -> None:
    before = set(threads())
    for line in count():
        try:
            with interrupt_at(line, [lanes.Engine.__init__, engine_thread.start]):
                engine = lanes.Engine(lanes.tiny("llama"), slots=1, width=1, piece=1)
        except KeyboardInterrupt:
            until(lambda: not set(threads()) - before)
        else:
            break
    assert line > 30, "there are more lines to be interrupted at"
    assert engine.score("Is it so?", [" yes", " no"]).result(WAIT).choice
    engine.close()


def test_interrupts_at_any_moment_leave_no_lock_taken() -> None:
    _, said = script("""
import os, random, signal
storm = True
def interrupt():
    while storm:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(random.random() * 0.002)
hits, end, begun = 0, time.monotonic() + 3, False
thread = threading.Thread(target=interrupt)
while time.monotonic() < end:
    try:
        if not begun:
            begun = True
            thread.start()
        while time.monotonic() < end:
            engine.snapshot(), engine.cancel(10**9), engine.wait(0), engine.rounds.totals
    except KeyboardInterrupt:
        hits += 1
while thread.is_alive():
    try:
        storm = False
        thread.join()
    except KeyboardInterrupt: pass
free = []
probe = threading.Thread(target=lambda: free.append(engine.score("Is it so?", [" yes", " no"]).result(20)), daemon=True)
probe.start()
probe.join(20)
print("hits", hits > 100, "free", bool(free), flush=True)
os._exit(0)
""")
    assert said.endswith("hits True free True\n"), said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_is_told_that_the_engine_is_not_its_own() -> None:
    code, said = script("""
import os, warnings
warnings.simplefilter("ignore")
pid = os.fork()
if pid == 0:
    try: engine.stream("Hi").result(10)
    except lanes.EngineClosed as error: print("told:", error, flush=True)
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(engine.score("Is it so?", [" yes", " no"]).result(20).choice)
""")
    assert code == 0 and "told:" in said and "\n0\n" in said, said
