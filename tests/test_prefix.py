"""The prefix cache: what it keeps and finds, and that a hit in an engine has the bits of a miss."""

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import pytest
from company import WAIT, Ask, alone, bits, fill, held, make, since, step_until, tokens, words
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx.utils import tree_flatten

import lanes
from lanes.engine import Engine
from lanes.forward import prepare
from lanes.forward.prefix import PrefixCache, Tokens

PIECE = 4


def state(size: int) -> list[Any]:
    """A state of `size` bytes, nested as the single route's are."""
    return [[mx.zeros((size // 4,)), None, 7]]


def cache(limit: int = 1000, cuttable: bool = True, *kept: Tokens) -> PrefixCache:
    made = PrefixCache(limit, PIECE, cuttable)
    for ids in kept:
        made.keep(ids, state(100))
    return made


A8: Tokens = (1, 2, 3, 4, 5, 6, 7, 8)
A12: Tokens = (*A8, 9, 9, 9, 9)
B8: Tokens = (1, 2, 3, 4, 0, 0, 0, 0)


def test_it_finds_the_longest_beginning_in_whole_pieces() -> None:
    found = cache(1000, True, A8, B8)
    assert found.find((*A8, 5, 5), 8)[0] == 8
    assert found.find((*A8[:6], 0, 0, 0), 8)[0] == 4  # six tokens are alike, one piece of them is whole
    assert found.find((1, 2, 3, 0, 0), 4) == (0, [])
    assert found.find(A12, 12)[0] == 8


def test_it_never_goes_beyond_the_body_of_a_prompt() -> None:
    # A prompt's last piece is not one of its body if it ends there: its last row must be computed.
    assert cache(1000, True, A12).find(A12, 8)[0] == 8
    assert cache(1000, True, A12).find(A12, 0) == (0, [])


def test_a_state_that_cannot_be_cut_serves_only_prompts_that_hold_all_of_it() -> None:
    found = cache(1000, False, A12)
    assert found.find((*A8, 0, 0, 0, 0), 12) == (0, [])
    assert found.find(A12, 8) == (0, [])
    assert found.find((*A12, 1), 12)[0] == 12


def test_of_states_that_cannot_be_cut_the_longest_that_fits_is_found() -> None:
    found = cache(1000, False, A8, A12)
    assert len(found) == 2
    assert found.find((*A8, 0, 0, 0, 0, 0), 12)[0] == 8
    assert found.find((*A12, 0), 12)[0] == 12


def test_a_longer_state_replaces_its_beginnings_where_it_can_be_cut() -> None:
    found = cache(1000, True, A8, A12)
    assert len(found) == 1
    assert found.nbytes == 100
    assert found.find(A8, 8)[0] == 8


def test_the_least_recently_used_goes_first() -> None:
    found = cache(200, True, A8, B8)
    assert found.find(A8, 8)[0] == 8
    found.keep((7, 7, 7, 7), state(100))
    assert found.find(A8, 8)[0] == 8
    assert found.find(B8, 8)[0] == 4, "only what it shares with the other one is left"
    assert found.find((7, 7, 7, 7), 4)[0] == 4


def test_a_state_beyond_the_limit_is_not_kept_and_drops_nothing() -> None:
    found = cache(150, True, A8)
    found.keep(B8, state(200))
    assert (len(found), found.nbytes) == (1, 100)


def test_it_wants_only_what_would_add_something() -> None:
    found = cache(1000, True, A8)
    assert not found.wants(A8)
    assert not found.wants(A8[:4])
    assert not found.wants((1, 2, 3))
    assert found.wants(A12)
    assert found.wants(B8)
    assert not cache(0).wants(A8)
    assert cache(1000, False, A12).wants(A8), "the longer state cannot be cut"


def test_clearing_forgets_everything() -> None:
    found = cache(1000, True, A8, B8)
    found.clear()
    assert (len(found), found.nbytes, found.find(A8, 8)) == (0, 0, (0, []))


PROMPTS = st.lists(st.integers(0, 1), min_size=4, max_size=16).map(lambda ids: tuple(ids[: len(ids) // 4 * 4]))


@settings(max_examples=60)
@given(
    steps=st.lists(st.tuples(PROMPTS, st.sampled_from([40, 80, 160])), max_size=25),
    cuttable=st.booleans(),
    limit=st.sampled_from([0, 120, 400]),
)
def test_its_bytes_stay_within_the_limit_and_add_up(
    steps: list[tuple[Tokens, int]], cuttable: bool, limit: int
) -> None:
    found = PrefixCache(limit, PIECE, cuttable)
    sizes: dict[Tokens, int] = {}
    for ids, size in steps:
        hit, kept = found.find(ids, len(ids))
        assert hit % PIECE == 0
        assert (hit > 0) == bool(kept)
        assert any(known[:hit] == ids[:hit] for known in sizes) or not hit
        if found.wants(ids):
            assert hit < len(ids)
            found.keep(ids, state(size))
            sizes[ids] = size
        assert found.nbytes <= limit
        assert len(found) <= found.nbytes / 40


# --- in an engine ---------------------------------------------------------------------------------------------------

TRUNK = words(80, 1)  # two pieces and a rest
OTHER = words(80, 2)
LABELS = [" yes", " yes no", " no"]


@pytest.fixture(scope="module", params=["llama", "gemma3", "qwen3_moe", "qwen3_5"])
def arch(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def plain(arch: str) -> Iterator[Engine]:
    """An engine that keeps nothing: every prompt is a miss."""
    with make(arch, slots=3) as engine:
        yield engine


@pytest.fixture
def engine(arch: str) -> Iterator[Engine]:
    with make(arch, slots=3, prefix_bytes=1 << 28) as made:
        yield made


def cached(engine: Engine, id: int) -> int:
    """How many tokens a request got from the cache when it was last admitted, by the record."""
    return [seat.cached for done in engine.rounds for seat in done.admitted if seat.id == id][-1] or 0


def room_for_one(arch: str) -> int:
    """Bytes that hold one state of 64 tokens, but not two."""
    loaded = lanes.load(lanes.tiny(arch, seed=1))
    forward, _ = prepare(loaded, slots=1, piece=32)
    fill(forward, 0, tokens(65), 32)
    leaves = [leaf for _, leaf in tree_flatten(forward.save(0, 64)) if isinstance(leaf, mx.array)]
    return sum(leaf.nbytes for leaf in leaves) * 3 // 2


STREAM = Ask(TRUNK + words(20, 3), length=12)
HOT = Ask(TRUNK + words(220, 4), length=8, sampling={"temperature": 1.0, "seed": 3})
SCORE = Ask(TRUNK + words(5, 5), labels=LABELS)
DECIDE = Ask(TRUNK, branches=[words(3, 6), words(40, 7), words(9, 8)], labels=LABELS)


@pytest.mark.parametrize("ask", [STREAM, HOT, SCORE, DECIDE], ids=["stream", "sampled", "score", "decide"])
def test_a_hit_has_the_bits_of_a_miss(engine: Engine, plain: Engine, ask: Ask) -> None:
    want = alone(plain, ask)
    handles = []
    for _ in range(3):
        handles.append(ask(engine))
        assert bits(handles[-1]) == want
    found = [cached(engine, handle.id) for handle in handles]
    assert found[0] == 0
    assert found[1] == found[2] >= 64
    assert engine.rounds.totals.cached_tokens == 2 * found[1]
    assert (engine.rounds.totals.cache_hits, engine.rounds.totals.cache_misses) == (2, 1)


def test_a_hit_of_only_some_pieces_has_the_bits_of_a_miss(engine: Engine, plain: Engine) -> None:
    wants = [alone(plain, ask) for ask in (STREAM, HOT, SCORE, DECIDE)]
    assert bits(SCORE(engine)) == wants[2]  # leaves a state of 64 tokens, which each of the others begins with
    for ask, want in zip((HOT, STREAM, DECIDE), (wants[1], wants[0], wants[3]), strict=True):
        handle = ask(engine)
        assert bits(handle) == want
        assert cached(engine, handle.id) == 64


def test_a_prompt_that_parts_amid_a_piece_takes_only_whole_pieces(engine: Engine, plain: Engine) -> None:
    near = Ask(words(50, 1) + words(60, 9), length=6)  # 50 tokens as in TRUNK: one whole piece
    want = alone(plain, near)
    bits(STREAM(engine))
    handle = near(engine)
    assert bits(handle) == want
    assert cached(engine, handle.id) == (32 if engine.exactness.route == "packed" else 0)


def test_what_the_cache_dropped_is_filled_again_with_the_same_bits(arch: str, plain: Engine) -> None:
    wants = [alone(plain, Ask(text + words(9, 3), labels=LABELS)) for text in (TRUNK, OTHER)]
    with make(arch, slots=3, prefix_bytes=room_for_one(arch)) as engine:
        hits = []
        for turn in (0, 0, 1, 0, 1, 1):
            handle = engine.score((TRUNK, OTHER)[turn] + words(9, 3), LABELS)
            assert bits(handle) == wants[turn]
            hits.append(cached(engine, handle.id))
    assert hits == [0, 64, 0, 0, 0, 64]


def test_hits_beside_streams_and_streams_beside_hits(engine: Engine, plain: Engine) -> None:
    asks = (Ask(words(40, 10), length=30), HOT, DECIDE, SCORE)
    wants = [alone(plain, ask) for ask in asks]
    bits(Ask(TRUNK + words(1, 11), length=1)(engine))
    with held(engine) as index:
        stream = asks[0](engine)
        step_until(engine, lambda: len(stream.tokens) >= 2)
        handles = [ask(engine) for ask in asks[1:]]
    assert [bits(handle) for handle in (stream, *handles)] == wants
    admitted = [seat for done in since(engine, index) for seat in done.admitted]
    assert sum(seat.cached == 64 for seat in admitted) >= 3


def test_an_evicted_decision_starts_again_with_a_hit_or_without_one_and_the_same_bits(
    engine: Engine, plain: Engine
) -> None:
    far = Ask(TRUNK + words(200, 12), labels=LABELS)
    want = alone(plain, far)
    bits(SCORE(engine))
    with held(engine):
        crowd = [Ask(words(3, at), length=12)(engine) for at in range(2)]
        decision = far(engine)
        engine.step(4, WAIT)
        assert decision.state == "filling"
        late = Ask(words(3, 13), length=4)(engine)
        engine.step(1, WAIT)
        assert decision.state == "queued"
    assert bits(decision) == want
    assert decision.timing.evictions == 1
    assert all(stream.wait(WAIT) for stream in (*crowd, late))


def test_with_the_cache_off_it_is_not_asked(plain: Engine) -> None:
    handle = SCORE(plain)
    assert handle.result(WAIT).cached_tokens == 0
    assert [seat.cached for done in plain.rounds for seat in done.admitted if seat.id == handle.id] == [None]
