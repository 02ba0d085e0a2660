"""Faults that users of other engines met, kind by kind, tried on this one; docs/faults.md says which test is which."""

import ast
import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from company import Ask, alone, bits, decoding, held, raw, since, step_until, words
from rigs import ROOT, WAIT, check_record, decision, rig, stream, threads, until

import lanes
from lanes.forward import Packed, Row, prepare

TABLE = ROOT / "docs" / "faults.md"


# The table.


def named_tests() -> list[str]:
    """Every test that the table names, as file::function."""
    return re.findall(r"`(test_\w+\.py::test_\w+)`", TABLE.read_text())


def test_every_kind_of_fault_names_a_test_that_exists() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("|")][2:]
    assert len(lines) > 40
    assert [line for line in lines if not re.search(r"`test_\w+\.py::test_\w+`", line)] == []
    for named in named_tests():
        file, function = named.split("::")
        tree = ast.parse((ROOT / "tests" / file).read_text())
        assert any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body), named


# Hangs.


def test_a_failing_forward_fails_the_live_requests_only_and_the_loop_goes_on() -> None:
    with rig(slots=3) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        live = [stream(engine, words(3, seed)) for seed in range(2)]
        engine.step(3, WAIT)
        filling, queued, asked = stream(engine, words(200)), stream(engine, words(4)), decision(engine)
        one.fail("rows", RuntimeError("[metal::malloc] Resource limit (499000) exceeded"))
        engine.step(1, WAIT)
        for request in live:
            with pytest.raises(lanes.EngineFailed, match=r"Resource limit .* exceeded"):
                request.result(WAIT)
            assert len(request.tokens) == 3, "what was drawn before stays"
        assert engine.rounds.totals.errors == 1
        assert "Resource limit" in str(engine.rounds.last and engine.rounds.last.error)
        engine.resume()
        assert asked.result(WAIT).choice
        for request in (filling, queued):
            until(lambda request=request: len(request.tokens) > 5)
            request.cancel()
        assert not engine.closed and engine.wait(WAIT)
        check_record(engine, [*live, filling, queued, asked])


@pytest.mark.parametrize("arch", ["llama", "qwen3_5"])
def test_after_a_failed_forward_new_requests_have_the_bits_that_they_always_have(arch: str) -> None:
    with rig(lanes.tiny(arch), slots=2, piece=8) as one:
        engine, ask = one.engine, Ask(words(40))
        want = alone(engine, ask)
        for method in ("rows", "begin"):
            broken = stream(engine, words(41, 1), max_tokens=2)
            assert broken.result(WAIT) is not None
            one.fail(method, RuntimeError("no"))
            assert stream(engine, words(41, 2)).wait(WAIT)
            index = engine.rounds.next_index
            assert alone(engine, ask) == want, "no slot is trusted after it"
            cached = [new.cached for done in since(engine, index) for new in done.admitted]
            assert cached == [0], "and no kept beginning"


def test_a_failing_fill_fails_its_own_request_only() -> None:
    with rig(piece=8) as one:
        engine = one.engine
        want = alone(engine, Ask(words(3), 30))
        assert engine.pause(WAIT)
        live = Ask(words(3), 30)(engine)
        engine.step(4, WAIT)
        for victim in (stream(engine, words(50)), decision(engine, words(50))):
            one.fail("begin", ValueError("bad piece"))
            engine.step(1, WAIT)
            with pytest.raises(lanes.EngineFailed, match="ValueError: bad piece"):
                victim.result(WAIT)
        engine.resume()
        assert bits(live) == want


def test_a_forward_that_always_fails_is_tried_once_a_request_and_never_in_a_hot_loop() -> None:
    with rig(slots=2, piece=8) as one:
        engine = one.engine
        one.fail("rows", RuntimeError("broken for good"), times=None)
        one.fail("begin", RuntimeError("broken for good"), times=None)
        assert engine.pause(WAIT)
        requests = [stream(engine, words(3)) for _ in range(6)] + [decision(engine, words(30)) for _ in range(6)]
        engine.resume()
        for request in requests:
            with pytest.raises(lanes.EngineFailed, match="broken for good"):
                request.result(WAIT)
        assert engine.wait(WAIT)
        calls = Counter(one.calls)
        assert calls["rows"] + calls["begin"] <= len(requests)
        rounds = engine.rounds.next_index
        assert not threading.Event().wait(0.1)
        assert (one.calls, engine.rounds.next_index) == (calls, rounds), "an idle engine does nothing"
        assert not engine.closed
        check_record(engine, requests)


def test_an_error_and_an_output_in_one_round_both_arrive() -> None:
    with rig(slots=3, piece=8) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        ends, goes_on = engine.stream(words(3), max_tokens=3, ignore_eos=True), stream(engine, words(3))
        engine.step(2, WAIT)
        filling = stream(engine, words(90))
        one.fail("begin", RuntimeError("in the piece"))
        engine.step(1, WAIT)
        last = engine.rounds.last
        assert last and {end.id: end.reason for end in last.finished} == {ends.id: "length", filling.id: "error"}
        assert ends.result(WAIT) is not None and len(ends.tokens) == 3
        assert isinstance(filling.error, lanes.EngineFailed) and len(goes_on.tokens) == 3
        engine.resume()
        until(lambda: len(goes_on.tokens) > 6)


def test_a_request_whose_text_cannot_be_made_fails_alone() -> None:
    def broken(*_: Any) -> str:
        raise IndexError("no such token")

    for method in ("push", "flush"):
        with rig() as one:
            engine = one.engine
            assert engine.pause(WAIT)
            other, asked = stream(engine), decision(engine)
            victim = engine.stream(words(3), max_tokens=4, ignore_eos=True)
            engine.step(1, WAIT)
            work: Any = engine._desk._state.works[victim.id]
            setattr(work.text, method, broken)
            engine.resume()
            assert victim.wait(WAIT) and asked.result(WAIT).choice
            if method == "push":
                with pytest.raises(lanes.EngineFailed, match="IndexError: no such token"):
                    victim.result()
            seen = len(other.tokens)
            until(lambda other=other, seen=seen: len(other.tokens) > seen + 3)
            other.cancel()
            assert engine.wait(WAIT)
            check_record(engine, [victim, asked, other])


def test_an_answer_that_cannot_be_made_fails_alone() -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("no answer")

    with rig() as one:
        engine = one.engine
        assert engine.pause(WAIT)
        other, victim, asked = stream(engine), decision(engine, words(200)), decision(engine)
        engine.step(1, WAIT)
        work: Any = engine._desk._state.works[victim.id]
        work.answer = broken
        engine.resume()
        with pytest.raises(lanes.EngineFailed, match="ZeroDivisionError: no answer"):
            victim.result(WAIT)
        assert asked.result(WAIT).choice
        until(lambda: len(other.tokens) > 5)


def test_a_long_prompt_comes_to_its_tokens_and_so_do_those_beside_it() -> None:
    with rig(slots=3) as one:
        engine = one.engine
        requests = [engine.stream(words(n, n), max_tokens=5, ignore_eos=True) for n in (3000, 2, 2500)]
        asked = decision(engine, words(3500))
        for request in (*requests, asked):
            assert request.result(WAIT) is not None
        assert engine.wait(WAIT)
        check_record(engine, [*requests, asked])


def test_requests_while_another_engine_loads_are_served(engine: lanes.Engine) -> None:
    loaded = threading.Event()

    def load() -> None:
        with lanes.Engine(lanes.tiny("qwen3", num_hidden_layers=8)) as other:
            assert decision(other).result(WAIT).choice
        loaded.set()

    loader = threading.Thread(target=load)
    loader.start()
    asked = [decision(engine, words(10, seed)) for seed in range(10)]
    assert all(request.result(WAIT).choice for request in asked)
    loader.join(WAIT)
    assert loaded.is_set()


def test_the_first_requests_come_from_many_threads_at_once() -> None:
    with rig(slots=2) as one, ThreadPoolExecutor(8) as pool:
        together = threading.Barrier(8)

        def ask() -> str:
            together.wait(WAIT)
            return decision(one.engine).result(WAIT).choice

        assert len({future.result(WAIT) for future in [pool.submit(ask) for _ in range(8)]}) == 1


# Wrong state.

COUNTS = (1, 2, 3, 4, 5, 8)


@pytest.mark.parametrize("arch", ["llama", "gemma3_text", "qwen3_5"])
def test_prompts_of_unequal_lengths_at_once_get_the_answers_that_they_get_alone(arch: str) -> None:
    """Sliding windows, recurrent states that no pad may enter, and answers that must not cross."""
    with lanes.Engine(lanes.tiny(arch), slots=8, piece=8) as engine:
        asks = [Ask(words(1 + 7 * seed % 61, seed), length=4 + seed % 3) for seed in range(16)]
        want = [alone(engine, ask) for ask in asks]
        with held(engine):
            handles = [ask(engine) for ask in asks]
        assert [bits(handle) for handle in handles] == want


@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_live_streams_gives_each_what_it_gives_alone(engine: lanes.Engine, count: int) -> None:
    asks = [Ask(words(3 + seed, seed), length=6) for seed in range(count)]
    want = [alone(engine, ask) for ask in asks]
    with held(engine):
        handles = [ask(engine) for ask in asks]
    assert [bits(handle) for handle in handles] == want


def test_one_token_prompts_in_several_slots_at_once(engine: lanes.Engine) -> None:
    asks = [Ask(words(1, seed), length=4) for seed in range(6)]
    want = [alone(engine, ask) for ask in asks]
    with held(engine):
        handles = [ask(engine) for ask in asks]
    assert [bits(handle) for handle in handles] == want


def test_when_the_longest_leaves_the_others_go_on_with_their_own_positions(engine: lanes.Engine) -> None:
    asks = [Ask(words(5 + seed, seed), length=20) for seed in range(3)]
    want = [alone(engine, ask) for ask in asks]
    with held(engine) as index:
        longest = stream(engine, words(400, 9))
        handles = [ask(engine) for ask in asks]
        step_until(engine, lambda: len(longest.tokens) > 2 and len(handles[-1].tokens) > 2)
        longest.cancel()
    assert [bits(handle) for handle in handles] == want
    assert decoding(since(engine, index), longest.id)


def test_a_slot_that_held_a_longer_sequence_leaves_nothing_behind() -> None:
    for arch in ("llama", "gemma3_text", "qwen3_5"):
        with lanes.Engine(lanes.tiny(arch), slots=1, piece=8, prefix_bytes=0) as engine:
            want = alone(engine, Ask(words(5)))
            assert stream(engine, words(300, 1), max_tokens=30).result(WAIT) is not None
            given_up = stream(engine, words(200, 2))
            until(lambda given_up=given_up: given_up.state != "queued")
            given_up.cancel()
            assert alone(engine, Ask(words(5))) == want


def test_a_prompt_given_up_amid_its_fill_leaves_nothing_wrong_in_the_prefix_cache() -> None:
    for arch in ("llama", "qwen3_5"):
        with lanes.Engine(lanes.tiny(arch), slots=2, piece=8) as engine:
            ask = Ask(words(50))
            with lanes.Engine(lanes.tiny(arch), slots=2, piece=8, prefix_bytes=0) as plain:
                want = alone(plain, ask)
            with held(engine):
                given_up = ask(engine)
                engine.step(3, WAIT)
                assert given_up.state == "filling"
                given_up.cancel()
            assert alone(engine, ask) == want
            assert alone(engine, ask) == want, "a hit by now"
            assert engine.rounds.totals.cache_hits > 0


def test_a_hit_and_a_fresh_prompt_fill_side_by_side() -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=3, piece=8) as engine:
        known, fresh = Ask(words(60)), Ask(words(45, 1))
        want = [alone(engine, known), alone(engine, fresh)]
        with lanes.Engine(lanes.tiny("llama"), slots=3, piece=8) as other:
            assert alone(other, known) == want[0]
            with held(other):
                handles = [known(other), fresh(other)]
            assert [bits(handle) for handle in handles] == want
            assert other.rounds.totals.cache_hits == 1


def test_two_models_side_by_side_keep_their_caches_apart() -> None:
    ask = Ask(words(40))
    with lanes.Engine(lanes.tiny("llama", seed=1), piece=8) as one, lanes.Engine(lanes.tiny("llama"), piece=8) as other:
        first, second = alone(one, ask), alone(other, ask)
        assert first != second
        for _ in range(2):
            handles = [ask(one), ask(other), ask(one), ask(other)]
            assert [bits(handle) for handle in handles] == [first, second, first, second]
        assert one.rounds.totals.cache_hits and other.rounds.totals.cache_hits


def test_four_clients_at_once_each_get_their_own_answers(engine: lanes.Engine) -> None:
    asks = [Ask(words(5 + seed, seed), labels=[f" {seed}", " yes", " no"]) for seed in range(4)]
    want = [alone(engine, ask) for ask in asks]

    def client(index: int) -> bool:
        return all(bits(asks[index](engine)) == want[index] for _ in range(10))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(client, range(4)))


def test_packed_weights_in_small_rounds_agree_with_the_model_itself() -> None:
    loaded = lanes.load(lanes.tiny("llama", hidden_size=128, intermediate_size=256))
    nn.quantize(loaded.model, group_size=64, bits=4)
    mx.eval(loaded.model.parameters())
    for width in (1, 2, 4, 5, 8):
        _, exactness = prepare(loaded, 8, 8, width)
        assert exactness.route == "packed", "rows that differ from the model's own would take the other route"


# Threads.


def test_what_leaves_the_engine_is_plain_and_can_be_read_in_any_thread(engine: lanes.Engine) -> None:
    asked, said = decision(engine), engine.stream("Hi", max_tokens=3, ignore_eos=True)
    found = asked.result(WAIT)
    assert said.result(WAIT) is not None and engine.wait(WAIT)
    things = [found, found.to_dict(), asked.timing, said.tokens, engine.snapshot(), engine.rounds.copy()]
    seen: set[int] = set()
    while things:
        thing = things.pop()
        assert not isinstance(thing, mx.array), "a lazy array belongs to the thread that made it"
        if id(thing) in seen or isinstance(thing, str | bytes | np.ndarray):
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            things += list(thing.values())
        elif isinstance(thing, list | tuple | set | frozenset):
            things += list(thing)
        else:
            names = getattr(thing, "__dataclass_fields__", None) or getattr(thing, "__dict__", {})
            things += [getattr(thing, name) for name in names]
    assert len(seen) > 20
    with ThreadPoolExecutor() as pool:
        assert pool.submit(found.logits.tolist).result(WAIT) == found.logits.tolist()


def test_an_engine_made_in_one_thread_serves_and_closes_in_others() -> None:
    before = set(threads())
    with ThreadPoolExecutor(1) as pool:
        engine = pool.submit(lambda: lanes.Engine(lanes.tiny("llama"))).result(WAIT)
    with ThreadPoolExecutor(3) as pool:
        assert [pool.submit(lambda: decision(engine).result(WAIT).choice).result(WAIT) for _ in range(3)]
        pool.submit(engine.close).result(WAIT)
    until(lambda: set(threads()) == before)


def test_only_the_engines_own_thread_runs_the_model() -> None:
    with rig(slots=2, piece=8) as one:
        seen: set[str] = set()

        def note(original: Callable[..., Any], *args: Any) -> Any:
            seen.add(threading.current_thread().name)
            return original(*args)

        for method in ("open", "clear", "begin", "rows", "state", "save", "load"):
            one.wrap(method, note)
        one.fail("rows", RuntimeError("once"))
        requests = [stream(one.engine, words(30)), decision(one.engine, words(30)), decision(one.engine, words(30))]
        requests[0].cancel()
        assert all(request.wait(WAIT) for request in requests)
        one.engine.snapshot().to_dict()
        live = stream(one.engine)
        until(lambda: live.tokens)
        one.engine.close()
        assert seen == {"lanes-engine"}
        assert set(one.calls) >= {"open", "clear", "begin", "rows", "state"}


# Cancel.


def test_cancelled_before_the_engine_took_it_no_orphan_runs_on() -> None:
    with rig() as one:
        engine = one.engine
        assert engine.pause(WAIT)
        requests = [stream(engine), decision(engine)]
        for request in requests:
            request.cancel()
        engine.resume()
        assert all(request.wait(WAIT) and request.state == "cancelled" for request in requests)
        assert engine.wait(WAIT) and engine.rounds.totals.forwards == 0 and engine.rounds.totals.pieces == 0
        check_record(engine, requests)


def test_after_a_cancel_no_row_is_computed_any_more() -> None:
    with rig(slots=2, piece=8) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        live, filling = stream(engine), decision(engine, words(400))
        engine.step(4, WAIT)
        live.cancel()
        filling.cancel()
        assert live.wait(WAIT) and filling.wait(WAIT)
        index = engine.rounds.next_index
        stays = stream(engine)
        engine.step(5, WAIT)
        rows = {row.id for done in since(engine, index) for row in done.rows}
        pieces = {done.piece.id for done in since(engine, index) if done.piece}
        assert rows == {stays.id} and not pieces
        assert live.tokens and len(live.tokens) == 4


def test_cancelling_a_queued_request_leaves_the_active_ones_alone() -> None:
    with rig(slots=1) as one:
        engine = one.engine
        want = alone(engine, Ask(words(3), 20))
        assert engine.pause(WAIT)
        active = Ask(words(3), 20)(engine)
        engine.step(3, WAIT)
        queued = [stream(engine), decision(engine), stream(engine)]
        for request in queued:
            request.cancel()
            assert request.wait(WAIT)
        engine.resume()
        assert bits(active) == want and active.state == "length"


def test_a_cancel_during_a_forward_is_a_cancel_and_not_a_normal_end() -> None:
    with rig() as one:
        gate = one.gate()
        request = stream(one.engine)
        assert gate.entered.wait(WAIT)
        request.cancel()
        assert not request.done, "the round in flight cannot be stopped"
        gate.open.set()
        assert request.wait(WAIT) and request.state == "cancelled"
        assert one.engine.wait(WAIT)
        totals = one.engine.rounds.totals
        assert (totals.streams.cancelled, totals.streams.length, totals.errors) == (1, 0, 0)


def test_a_cancel_between_any_two_rounds_is_never_lost() -> None:
    with rig(slots=2, piece=8) as one:
        engine = one.engine
        for rounds in range(8):
            assert engine.pause(WAIT)
            requests = [stream(engine, words(30)), engine.decide(words(30), [" a", " b"], [" yes", " no"])]
            engine.step(rounds, WAIT) if rounds else None
            for request in requests:
                request.cancel()
            engine.resume()
            assert all(request.wait(WAIT) for request in requests)
            assert requests[0].state == "cancelled" and requests[1].state in ("cancelled", "answered")
            assert engine.wait(WAIT) and engine.snapshot().count("free") == 2
        check_record(engine)


def test_slots_of_readers_that_went_away_are_free_again() -> None:
    with rig(slots=2) as one:
        engine = one.engine

        async def reader(request: lanes.Stream) -> None:
            async for _ in request:
                return

        for _ in range(3):
            left = [stream(engine) for _ in range(2)]
            next(iter(left[0]))
            asyncio.run(reader(left[1]))
            assert all(request.wait(WAIT) and request.state == "cancelled" for request in left)
        assert engine.wait(WAIT)
        picture = engine.snapshot()
        assert picture.count("free") == 2 and picture.totals.streams.cancelled == 6


def test_a_waiter_that_breaks_or_whose_loop_is_closed_harms_nobody(engine: lanes.Engine) -> None:
    async def wait(request: lanes.Stream) -> str:
        return await request

    with held(engine):
        broken = stream(engine, max_tokens=5)
        loop = asyncio.new_event_loop()
        task = loop.create_task(wait(broken))
        loop.run_until_complete(asyncio.wait([task], timeout=0.01))
        assert len(broken._channel._wakers) == 1
        loop.close()  # with the task in it, as a program does that calls neither asyncio.run nor cancel
        fine = decision(engine)
    assert fine.result(WAIT).choice
    assert broken.result(WAIT) is not None


# Scheduling, as far as the planner's own tests do not show it.


def test_a_cancelled_waiter_leaves_no_phantom_in_the_queue() -> None:
    with rig(slots=1) as one:
        engine = one.engine
        active = stream(engine)
        until(lambda: active.tokens)
        waiting = [stream(engine), decision(engine)]
        until(lambda: len(engine.snapshot().waiting) == 2)
        for request in waiting:
            request.cancel()
            assert request.wait(WAIT)
        assert engine.snapshot().waiting == ()
        active.cancel()
        assert engine.wait(WAIT)
        last = engine.rounds.last
        assert last and (last.waiting_streams, last.waiting_decisions) == (0, 0)


def test_an_evicted_decision_keeps_its_age_and_its_place_and_answers_as_if_nothing_had_been() -> None:
    with rig(slots=2, piece=8, prefix_bytes=0) as one:
        engine, ask = one.engine, Ask(words(60), labels=[" yes", " no"])
        want = alone(engine, ask)
        with held(engine) as index:
            first, second = ask(engine), Ask(words(60, 1), labels=[" yes", " no"])(engine)
            engine.step(3, WAIT)
            third = Ask(words(60, 2), labels=[" yes", " no"])(engine)
            streams = [engine.stream(words(3), max_tokens=6, ignore_eos=True) for _ in range(2)]
            engine.step(1, WAIT)
            assert [request.state for request in (first, second, third)] == ["queued"] * 3
            picture = engine.snapshot()
            assert [item.id for item in picture.waiting] == [first.id, second.id, third.id]
            ages = [item.age for item in picture.waiting]
            assert ages == sorted(ages, reverse=True)
        assert bits(first) == want and first.timing and first.timing.evictions == 1
        assert second.result(WAIT) and third.result(WAIT) and all(one.result(WAIT) is not None for one in streams)
        assert engine.wait(WAIT)
        back = [new.id for done in since(engine, index) for new in done.admitted if new.kind == "decision"]
        assert back == [first.id, second.id, first.id, second.id, third.id]
        check_record(engine)


def test_an_idle_policy_lets_decisions_in_only_when_no_stream_is_there() -> None:
    with rig(policy="idle", slots=3) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        said, asked = engine.stream(words(3), max_tokens=5, ignore_eos=True), decision(engine)
        engine.step(4, WAIT)
        assert asked.state == "queued" and engine.snapshot().count("free") == 2
        engine.resume()
        assert asked.result(WAIT).choice and said.done
        first_admission = next(done for done in engine.rounds for new in done.admitted if new.id == asked.id)
        assert said.timing and said.timing.finished is not None and first_admission.start >= said.timing.finished


def test_reserved_slots_are_for_decisions_only() -> None:
    with rig(slots=3, reserved=1) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        streams = [stream(engine) for _ in range(4)]
        engine.step(2, WAIT)
        assert [request.state for request in streams] == ["live", "live", "queued", "queued"]
        assert decision_in_a_step(engine) == "answered"
        assert streams[2].state == "queued"


def decision_in_a_step(engine: lanes.Engine) -> str:
    asked = decision(engine)
    engine.step(3, WAIT)
    return asked.state


def test_policy_off_and_beside_make_the_same_rounds_where_no_decision_is_queued() -> None:
    def rounds(policy: Any) -> list[Any]:
        with rig(policy=policy, slots=3, piece=8) as one:
            assert one.engine.pause(WAIT)
            for seed in range(6):
                one.engine.stream(words(5 + 9 * seed, seed), max_tokens=4 + seed, ignore_eos=True)
            one.engine.resume()
            assert one.engine.wait(WAIT)
            worked = [done for done in one.engine.rounds if done.groups or done.piece]
            return [(done.rows, done.piece, done.admitted, done.seats, done.finished) for done in worked]

    assert rounds("off") == rounds("beside") == rounds("idle")


# Exactness, as far as the tests of exactness do not show it.


def test_rows_that_would_verify_a_draft_have_the_bits_of_rows_one_by_one() -> None:
    loaded = lanes.load(lanes.tiny("llama"))
    prompt, after = [5, 7, 11], [13, 17, 19, 23, 29]

    def begin() -> Packed:
        forward = Packed(loaded, 2, 8)
        forward.open(0, 64)
        mx.eval(forward.rows([Row(0, at, token) for at, token in enumerate(prompt)]), forward.state(0))
        return forward

    forward = begin()
    plain = [raw(forward.rows([Row(0, len(prompt) + at, token)]))[0] for at, token in enumerate(after)]
    together = raw(begin().rows([Row(0, len(prompt) + at, token) for at, token in enumerate(after)]))
    assert np.array_equal(together[: len(after)], np.stack(plain))


def test_a_rejected_draft_leaves_nothing_behind() -> None:
    loaded = lanes.load(lanes.tiny("llama"))
    forward = Packed(loaded, 1, 8)
    forward.open(0, 64)
    plain = raw(forward.rows([Row(0, 0, 5), Row(0, 1, 7), Row(0, 2, 11)]))[2]
    mx.eval(forward.rows([Row(0, 0, 5), Row(0, 1, 7)]), forward.state(0))
    mx.eval(forward.rows([Row(0, 2, 400), Row(0, 3, 401), Row(0, 4, 402)]), forward.state(0))
    assert np.array_equal(raw(forward.rows([Row(0, 2, 11)]))[0], plain)


# Shutdown and metrics.


def test_closing_does_not_wait_for_more_than_the_round_in_flight() -> None:
    with rig() as one, ThreadPoolExecutor() as pool:
        first = stream(one.engine)
        rest = [stream(one.engine) for _ in range(7)], [decision(one.engine, words(2000)) for _ in range(8)]
        until(lambda: first.tokens)
        gate = one.gate()
        assert gate.entered.wait(WAIT)
        calls = Counter(one.calls)
        closing = pool.submit(one.engine.close)
        assert all(request.wait(WAIT) for request in (first, *rest[0], *rest[1]))
        gate.open.set()
        closing.result(WAIT)
        assert one.calls == calls, "not one more forward"


def test_nothing_is_freed_while_a_round_is_in_flight() -> None:
    with rig() as one:
        request = stream(one.engine)
        until(lambda: request.tokens)
        gate = one.gate()
        assert gate.entered.wait(WAIT)
        one.wrap("clear", lambda original, *args: original(*args))
        request.cancel()
        with ThreadPoolExecutor() as pool:
            closing = pool.submit(one.engine.close)
            assert request.wait(WAIT)
            assert one.calls["clear"] == 0
            gate.open.set()
            closing.result(WAIT)


def test_the_record_counts_only_the_tokens_that_streams_got() -> None:
    """Also where a draw fails, and where one of several forwards in a round fails after another went well."""
    with rig(slots=4, width=2) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        requests = [stream(engine, words(3, seed)) for seed in range(4)]
        step_until(engine, lambda: all(len(request.tokens) > 1 for request in requests))
        calls = [0]

        def second(original: Callable[..., Any], *args: Any) -> Any:
            calls[0] += 1
            if calls[0] == 2:
                raise RuntimeError("the second group")
            return original(*args)

        remove = one.wrap("rows", second)
        engine.step(1, WAIT)
        remove()
        assert calls[0] == 2 and all(request.state == "error" for request in requests)
        check_record(engine, requests)


def test_an_idle_engine_does_not_turn() -> None:
    with rig() as one:
        assert decision(one.engine).result(WAIT).choice and one.engine.wait(WAIT)
        taken = one.engine._desk._ran
        rounds = one.engine.rounds.next_index
        assert not threading.Event().wait(0.1)
        assert (one.engine._desk._ran, one.engine.rounds.next_index) == (taken, rounds)
