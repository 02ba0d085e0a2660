"""Concurrent equals solo, by bits of logits: streams and decisions in whole engines, under every kind of load."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from company import WAIT, Ask, Handle, alone, bits, decoding, held, make, places, since, step_until, words

import lanes
from lanes.engine import Engine

ARCHS = ("llama", "qwen3_moe", "gemma3", "qwen3_5")
LONG = Ask(words(300, 1), length=20)
SHORT = Ask(words(40, 2), length=40)
SCORE = Ask(words(290, 3), labels=[" yes", " no", " true"])
SCORE_LONG_LABELS = Ask(words(70, 4), labels=[" yes", " yes no", " yes no sea", " no", " great answer"])
DECIDE = Ask(words(75, 5), branches=[words(n, n) for n in (3, 30, 70)], labels=[" positive", " negative"])
SAMPLED = (
    Ask(words(270, 6), length=16, sampling={"temperature": 1.0, "seed": 11}),
    Ask(words(9, 7), length=24, sampling={"temperature": 0.8, "top_p": 0.9, "seed": 12}),
    Ask(words(33, 8), length=24, sampling={"temperature": 1.5, "top_k": 20, "min_p": 0.02, "seed": 13}),
)
CROWD = tuple(Ask(words(n, n), length=length) for n, length in [(5, 3), (64, 9), (1, 14), (257, 6), (32, 30), (99, 4)])


@pytest.fixture(scope="module", params=ARCHS)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with make(request.param, slots=8) as made:
        yield made


@pytest.fixture(scope="module", params=ARCHS)
def small(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with make(request.param, slots=3) as made:
        yield made


@pytest.mark.parametrize(("ask", "others"), [(LONG, 2), (SHORT, 5), (LONG, 14)], ids=["long-2", "short-5", "long-14"])
def test_a_stream_in_ragged_company_that_joins_and_leaves(engine: Engine, ask: Ask, others: int) -> None:
    want = alone(engine, ask)
    crowd = [CROWD[at % len(CROWD)] for at in range(others)]
    crowd_alone = {mate: alone(engine, mate) for mate in crowd}
    with held(engine) as index:
        early = [(mate, mate(engine)) for mate in crowd[: others // 2]]
        stream = ask(engine)
        step_until(engine, lambda: len(stream.tokens) >= 3)
        joined = [(mate, mate(engine)) for mate in crowd[others // 2 :]]
        given_up = LONG(engine)
        engine.step(4, WAIT)
        given_up.cancel()
    assert bits(stream) == want
    assert all(bits(handle) == crowd_alone[mate] for mate, handle in early + joined)
    live = decoding(since(engine, index), stream.id)
    assert len({done.decode_rows for done in live}) > 1, "its company never changed"
    assert others <= 8 or any(done.waiting_streams for done in live), "nobody waited for a slot"
    if engine.exactness.route == "packed":
        assert len(places(live, stream.id)) > 1, "its row never moved"


def test_equal_prompts_at_once_follow_one_trajectory(engine: Engine) -> None:
    with held(engine) as index:
        streams = [SHORT(engine)]
        engine.step(2, WAIT)
        streams += [SHORT(engine) for _ in range(7)]
    found = [bits(stream) for stream in streams]
    assert found == found[:1] * 8
    assert found[0] == alone(engine, SHORT)
    assert max(done.decode_rows for done in since(engine, index)) == 8


def test_a_stream_beside_a_filling_prompt(engine: Engine) -> None:
    want = alone(engine, SHORT)
    with held(engine) as index:
        stream = SHORT(engine)
        step_until(engine, lambda: len(stream.tokens) >= 2)
        filling = [LONG(engine), Ask(words(600, 9), length=2)(engine)]
    assert bits(stream) == want
    fills = {handle.id for handle in filling}
    beside = [done for done in decoding(since(engine, index), stream.id) if done.piece and done.piece.id in fills]
    assert len(beside) >= 20
    assert bits(filling[0]) == alone(engine, LONG)


def test_a_prompt_is_filled_in_the_same_pieces_and_gives_the_same_bits_under_any_load(engine: Engine) -> None:
    def pieces(index: int, id: int) -> list[tuple[int, int]]:
        found = [done.piece for done in since(engine, index) if done.piece and done.piece.id == id]
        return [(piece.start, piece.filled) for piece in found if piece.part == piece.parts]

    with held(engine) as index:
        quiet = LONG(engine)
    want = bits(quiet)
    cut = pieces(index, quiet.id)
    tail = [(288, 12)] if engine.exactness.route == "single" else []
    assert cut == [(start, 32) for start in range(0, 288, 32)] + tail
    with held(engine) as index:
        crowd = [mate(engine) for mate in CROWD]
        engine.step(5, WAIT)
        busy = LONG(engine)
        crowd += [SCORE(engine), SHORT(engine)]
    assert bits(busy) == want
    assert pieces(index, busy.id) == cut
    assert all(handle.wait(WAIT) for handle in crowd)


def test_a_prompt_of_many_keys_is_filled_in_parts_beside_streams_with_the_bits_of_whole_pieces() -> None:
    ask, mate = Ask(words(1300, 21), length=6), Ask(words(30, 22), length=80)
    with make("llama", slots=3) as engine:
        want, mate_want = alone(engine, ask), alone(engine, mate)
        with held(engine) as index:
            beside = mate(engine)
            step_until(engine, lambda: len(beside.tokens) >= 2)
            given_up, busy = ask(engine), ask(engine)

            def amid() -> bool:
                piece = engine.rounds.last.piece if engine.rounds.last else None
                return bool(piece and piece.id == given_up.id and piece.part < piece.parts)

            step_until(engine, amid)
            given_up.cancel()  # amid a piece: the slot's next request must not meet what is left of it
            engine.step(1, WAIT)
            after = ask(engine)
        assert bits(busy) == bits(after) == want
        assert bits(beside) == mate_want
        pieces = [done.piece for done in since(engine, index) if done.piece and done.piece.id == busy.id]
        starts = [piece.start for piece in pieces if piece.part == piece.parts]
        assert starts == list(range(0, 1280, 32))
        assert any(piece.parts == 2 for piece in pieces), "no piece was ever computed in parts"
        assert engine.rounds.totals.prompt_tokens == sum(done.filled for done in engine.rounds)


def test_a_stream_with_decisions_in_flight_cancelled_and_evicted(small: Engine) -> None:
    asks = [SHORT, SCORE, LONG, CROWD[0]]
    wants = [alone(small, ask) for ask in asks]
    with held(small) as index:
        stream = SHORT(small)
        step_until(small, lambda: len(stream.tokens) >= 2)
        decision, given_up = SCORE(small), DECIDE(small)
        step_until(small, lambda: decision.state == given_up.state == "filling")
        small.step(2, WAIT)
        given_up.cancel()
        small.step(1, WAIT)
        late, later = LONG(small), CROWD[0](small)
        small.step(1, WAIT)
        assert decision.state == "queued", "the decision was not evicted"
    handles = [stream, decision, late, later]
    assert [bits(handle) for handle in handles] == wants
    rounds = since(small, index)
    live = decoding(rounds, stream.id)
    assert any(gone.id == decision.id for done in live for gone in done.evicted)
    cancelled = [end for done in rounds for end in done.finished if end.id == given_up.id]
    assert [end.reason for end in cancelled] == ["cancelled"]
    assert cancelled[0].slot is not None, "it was cancelled before it held a slot"
    assert sum(any(seat.id == decision.id for seat in done.seats) for done in live) >= 6
    assert decision.timing.evictions == 1


@pytest.mark.parametrize("ask", [SCORE, SCORE_LONG_LABELS, DECIDE], ids=["score", "long labels", "decide"])
def test_a_decision_has_the_same_logits_and_logsumexp_idle_and_beside_streams(engine: Engine, ask: Ask) -> None:
    want = alone(engine, ask)
    crowd = [CROWD[4], CROWD[5], LONG, SHORT, SAMPLED[1]]
    with held(engine) as index:
        streams = [mate(engine) for mate in crowd]
        step_until(engine, lambda: sum(len(stream.tokens) > 0 for stream in streams) >= 3)
        decision = ask(engine)
        twin = ask(engine)  # in another slot, at the same time
    assert bits(decision) == want
    assert bits(twin) == want
    rounds = [done for done in since(engine, index) if any(seat.id == decision.id for seat in done.seats)]
    assert all(any(seat.kind == "stream" for seat in done.seats) for done in rounds)
    assert max(done.decode_rows for done in rounds) >= 3
    assert all(stream.wait(WAIT) for stream in streams)


def test_sampled_streams_draw_the_same_from_the_same_bits(engine: Engine) -> None:
    wants = [alone(engine, ask) for ask in SAMPLED]
    with held(engine) as index:
        crowd = [CROWD[0](engine), SHORT(engine)]
        sampled = [ask(engine) for ask in SAMPLED]
        step_until(engine, lambda: all(stream.tokens for stream in sampled))
        crowd += [SCORE(engine), CROWD[3](engine)]
    assert [bits(stream) for stream in sampled] == wants
    assert max(done.decode_rows for done in decoding(since(engine, index), sampled[1].id)) >= 4
    other_seed = Ask(SAMPLED[0].prompt, 16, {"temperature": 1.0, "seed": 99})
    assert alone(engine, other_seed)[0] != wants[0][0], "the seed has no effect"
    assert all(handle.wait(WAIT) for handle in crowd)


@pytest.mark.parametrize(("arch", "width", "hot"), [("llama", 8, 0.0), ("llama", 4, 1.0), ("gemma3", 4, 1.0)])
def test_more_live_streams_than_rows_run_as_several_groups(arch: str, width: int, hot: float) -> None:
    sizes = (270, 3, 10, 17, 24, 31, 38, 45, 52, 59, 66, 73)
    asks = [
        Ask(words(n, n), length=60 - at, sampling={"temperature": hot * (at % 3 == 1), "seed": 5})
        for at, n in enumerate(sizes)
    ]
    with make(arch, slots=12, width=width) as engine:
        wants = [alone(engine, ask) for ask in asks]
        question = alone(engine, SCORE_LONG_LABELS)
        with held(engine) as index:
            streams = [ask(engine) for ask in asks]
            step_until(engine, lambda: any(stream.done for stream in streams))
            decision = SCORE_LONG_LABELS(engine)
        assert [bits(stream) for stream in streams] == wants
        assert bits(decision) == question
        assert max(done.decode_rows for done in since(engine, index)) > max(width, 8)
        assert max(done.groups for done in since(engine, index)) >= 12 // width


STREAMS = (LONG, SHORT, *SAMPLED, *CROWD)
DECISIONS = (SCORE, SCORE_LONG_LABELS, DECIDE)


def play(engine: Engine, rng: Random, wants: dict[Ask, tuple[Any, ...]], moves: int) -> int:
    """Submit, step and cancel at random; whatever ends by itself must have its bits. Returns how many did."""
    running: list[tuple[Ask, Handle]] = []
    with held(engine):
        for _ in range(moves):
            move = rng.random()
            if move < 0.4:
                ask = rng.choice(STREAMS if rng.random() < 0.4 else DECISIONS)
                running.append((ask, ask(engine)))
            elif move < 0.5 and running:
                rng.choice(running)[1].cancel()
            else:
                engine.step(rng.randint(1, 8), WAIT)
    assert engine.wait(WAIT)
    ended = [(ask, handle) for ask, handle in running if not isinstance(handle.error, lanes.Cancelled)]
    for ask, handle in ended:
        assert bits(handle) == wants[ask], f"{ask} differs"
    return len(ended)


@pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen3_5"])
def test_random_companies_of_all_kinds_with_a_prefix_cache_that_overflows(arch: str) -> None:
    with make(arch, slots=4) as engine:
        wants = {ask: alone(engine, ask) for ask in STREAMS + DECISIONS}
    # Room for the beginnings of two or three of the prompts: hits, misses and what was dropped all happen.
    with make(arch, slots=4, prefix_bytes=400_000) as engine:
        assert sum(play(engine, Random(seed), wants, moves=60) for seed in range(2)) >= 25
        totals = engine.rounds.totals
    assert totals.cache_hits > 5
    assert totals.cache_misses > 5
    assert totals.decisions.evicted > 0
    assert totals.errors == 0
