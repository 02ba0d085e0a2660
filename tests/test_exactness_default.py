"""The central cases of exactness once on the embedded model, whose products are as large as real ones."""

from collections.abc import Iterator

import pytest
from company import WAIT, Ask, alone, bits, decoding, held, places, since, step_until, words

from lanes.engine import Engine

LONG = Ask(words(290, 1), length=8)
SAMPLED = Ask(words(40, 2), length=14, sampling={"temperature": 1.0, "top_p": 0.95, "seed": 7})
SCORE = Ask(words(262, 3), labels=[" yes", " no", " great answer", " great review"])
TRUNK = words(70, 4)
QUESTIONS = [words(n, n) for n in (4, 9, 40)]
LABELS = [" positive", " negative"]


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    # The prefix cache holds the beginning of one short prompt: 46 kB a token. Longer ones are filled every time.
    with Engine("default", slots=4, prefix_bytes=4_000_000, progress=False) as made:
        assert made.exactness.exact, made.exactness
        assert made.exactness.route == "packed"
        yield made


def test_streams_and_decisions_that_come_go_fill_and_are_evicted_leave_every_bit_alone(engine: Engine) -> None:
    wants = [alone(engine, ask) for ask in (LONG, SAMPLED, SCORE)]
    with held(engine) as index:
        first = Ask(words(3, 5), length=6)(engine)
        sampled, long = SAMPLED(engine), LONG(engine)
        decision = SCORE(engine)
        step_until(engine, lambda: len(sampled.tokens) >= 3)
        last = Ask(words(33, 6), length=9)(engine)
        late = Ask(words(5, 7), length=9)(engine)
    assert [bits(handle) for handle in (long, sampled, decision)] == wants
    assert all(handle.wait(WAIT) for handle in (first, last, late))
    rounds = since(engine, index)
    assert decision.timing.evictions == 1
    assert max(done.decode_rows for done in rounds) >= 3
    assert any(done.piece and done.piece.id == long.id for done in decoding(rounds, sampled.id))
    assert len(places(rounds, sampled.id)) > 1


def test_branches_are_whole_prompts_and_hits_are_misses(engine: Engine) -> None:
    with held(engine):
        noise = LONG(engine)
        fresh = engine.decide(TRUNK, QUESTIONS, LABELS)
    found = bits(fresh)
    again = engine.decide(TRUNK, QUESTIONS, LABELS)
    wholes = [engine.score(TRUNK + question, LABELS) for question in QUESTIONS]
    assert bits(again) == found
    assert [bits(whole)[0] for whole in wholes] == list(found)
    assert [fresh.result()[0].cached_tokens, again.result()[0].cached_tokens] == [0, 64]
    assert noise.wait(WAIT)
