"""Arrivals by a clock and in turns, awaited; and what proofs rest on: digests, and a request's company."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
from company import words

import lanes
from lanes import receipts
from lanes.measure import evidence
from lanes.measure.loops import among, by_clock, by_turns
from lanes.measure.prompts import Question

QUESTIONS = [Question(words(count, count), (" yes", " no")) for count in (5, 40, 70)]
PROMPTS = [words(count, count) for count in (3, 35, 9)]


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(lanes.tiny("llama"), slots=4, prefix_bytes=0) as made:
        yield made


def test_an_open_loop_asks_each_question_when_it_is_due_whoever_still_waits(engine: lanes.Engine) -> None:
    first = engine.rounds.next_index
    engine.pause()

    async def run() -> tuple:
        loop = asyncio.ensure_future(by_clock(engine, QUESTIONS, [0.0, 0.05, 0.1, 0.15]))
        while len(engine.snapshot().waiting) < 4:  # all four are asked, though none can be answered
            await asyncio.sleep(0.01)
        engine.resume()
        return await loop

    asked = asyncio.run(run())
    assert [one.question for one in asked] == [0, 1, 2, 0]
    digests = [receipts.digest(one) for one in asked]
    assert digests[0] == digests[3] != digests[1]
    assert asked[0].seconds >= 0.15, "the time runs from when it was due"
    assert sum(len(done.submitted) for done in engine.rounds.since(first).rounds) == 4


def test_what_an_open_loop_loses_because_its_caller_comes_late_counts(engine: lanes.Engine) -> None:
    asked = asyncio.run(by_clock(engine, QUESTIONS, [-5.0]))
    assert asked[0].seconds > 5.0


def test_a_closed_loop_asks_the_next_question_when_the_last_is_answered(engine: lanes.Engine) -> None:
    first = engine.rounds.next_index
    asked = asyncio.run(by_turns(engine, QUESTIONS, clients=2, each=3))
    assert [one.question for one in asked] == [0, 1, 2, 0, 1, 2]
    rounds = engine.rounds.since(first).rounds
    most, open_now = 0, set()
    for done in rounds:
        open_now |= {new.id for new in done.submitted}
        most = max(most, len(open_now))
        open_now -= {end.id for end in done.finished}
    assert most == 2


def test_a_loop_that_is_given_up_leaves_nothing_in_the_engine(engine: lanes.Engine) -> None:
    async def give_up() -> None:
        engine.pause()
        running = [
            asyncio.ensure_future(by_clock(engine, QUESTIONS, [0.0, 0.0, 3600.0])),
            asyncio.ensure_future(by_turns(engine, QUESTIONS, 2, 5)),
            asyncio.ensure_future(among(engine, PROMPTS, 4000, lambda: by_clock(engine, QUESTIONS, [3600.0]))),
        ]
        while len(engine.snapshot().waiting) < 2 + 2 + len(PROMPTS):
            await asyncio.sleep(0.01)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(give_up())
    engine.resume()
    assert engine.wait(60)


def test_arrivals_begin_when_as_many_streams_write_as_have_a_slot() -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=3, reserved=1, prefix_bytes=0) as engine:
        run = asyncio.run(among(engine, PROMPTS, 6, lambda: by_clock(engine, QUESTIONS, [0.0])))
    assert len(run.asked) == 1
    assert len(run.digests) == 6
    came = next(at for at, done in enumerate(run.rounds) if any(new.kind == "decision" for new in done.submitted))
    before = {id for done in run.rounds[:came] for id, _ in done.gains}
    assert len(before) == 2, "two of the three slots are for streams"
    assert sum(done.tokens for done in run.rounds) == 3 * 6


def test_digests_are_those_of_the_rows_and_of_every_result(engine: lanes.Engine) -> None:
    stream = engine.stream(PROMPTS[0], max_tokens=5, ignore_eos=True, digests=True)
    stream.result(60)
    assert evidence.digests(stream) == list(stream.digests)
    asks = engine.decide(words(40, 1), [words(3, 2), words(4, 3)], [" yes", " yes no"])
    one, two = asks.result(60)
    assert evidence.digests(asks) == [evidence.digest(one), evidence.digest(two)]
    assert evidence.digest(one) != evidence.digest(two)


@pytest.mark.parametrize("field", ["logits", "logsumexp", "log_probabilities"])
def test_a_digest_tells_of_the_last_bit(engine: lanes.Engine, field: str) -> None:
    from dataclasses import replace

    found = engine.score(words(9, 4), [" yes", " no"]).result(60)
    value = getattr(found, field)
    kind = np.float32 if field == "logsumexp" else value.dtype.type
    changed = np.nextafter(kind(value) if field == "logsumexp" else value, kind(np.inf))
    other = replace(found, **{field: float(changed) if field == "logsumexp" else changed})
    assert evidence.digest(other) != evidence.digest(found) == evidence.digest(replace(found))


def test_a_request_that_failed_has_no_digests(engine: lanes.Engine) -> None:
    engine.pause()
    asks = engine.score(words(9, 4), [" yes", " no"])
    asks.cancel()
    engine.resume()
    assert asks.wait(60)
    with pytest.raises(lanes.Cancelled):
        evidence.digests(asks)


def test_the_record_tells_of_a_streams_company(engine: lanes.Engine) -> None:
    assert engine.wait(60)
    first = engine.rounds.next_index
    engine.pause()
    early = engine.stream(PROMPTS[0], max_tokens=3, ignore_eos=True)
    stream = engine.stream(PROMPTS[2], max_tokens=40, ignore_eos=True)
    while len(stream.tokens) < 5:
        engine.step(1)
    engine.score(words(70, 5), [" yes", " no"])
    engine.resume()
    assert engine.wait(60)
    rounds = engine.rounds.since(first).rounds
    assert len(evidence.draws(rounds, stream.id)) == 39  # the first token came from the prompt's tail
    assert set(evidence.mates(rounds, stream.id)) >= {0, 1}
    assert evidence.places(rounds, stream.id) == {0, 1}
    assert evidence.pieces_beside(rounds, stream.id) == 4  # two pieces, each in two parts
    assert early.done
