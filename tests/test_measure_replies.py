"""Requests that come all at once: what each got and when, from an engine and from mlx-lm."""

import asyncio
from itertools import pairwise

import pytest

import lanes
from lanes.measure.prompts import encoder
from lanes.measure.replies import Reply, at_once, same_tokens
from lanes.measure.rival import MlxLm

PROMPTS = ["The sea", "A house on the hill", "Once"]
TOKENS = 5


def test_every_stream_s_tokens_have_the_times_of_their_rounds(engine: lanes.Engine) -> None:
    first = engine.rounds.next_index
    got = asyncio.run(at_once(engine, PROMPTS, TOKENS, digests=True))
    ends = sorted({done.end for done in engine.rounds.since(first).rounds if done.gains})
    for reply in got:
        assert len(reply.tokens) == len(reply.times) == len(reply.digests) == TOKENS
        assert list(reply.times) == sorted(reply.times) and reply.ttft == reply.times[0] > 0
        assert reply.gaps == tuple(after - before for before, after in pairwise(reply.times))
        begin = ends[0] - min(one.times[0] for one in got)
        assert all(min(abs(begin + time - end) for end in ends) < 1e-9 for time in reply.times)
    alone = [asyncio.run(at_once(engine, [prompt], TOKENS, digests=True))[0] for prompt in PROMPTS]
    assert [one.digests for one in alone] == [one.digests for one in got]
    assert same_tokens(alone, got) == len(PROMPTS)


def test_what_a_stream_raises_ends_the_others(engine: lanes.Engine) -> None:
    with pytest.raises(lanes.InvalidRequest):
        asyncio.run(at_once(engine, ["", "The sea"], TOKENS))
    assert engine.wait(60)


def test_equal_tokens_are_counted_reply_by_reply() -> None:
    one, other = Reply((1, 2), (0.1, 0.2)), Reply((1, 3), (0.1, 0.2))
    assert same_tokens([one, other], [one, one]) == 1
    assert same_tokens([one, other], [one]) == 1


def test_mlx_lm_gives_every_reply_whole_at_once_and_one_by_one(engine: lanes.Engine) -> None:
    ids = [encoder(engine)(prompt) for prompt in PROMPTS]
    with MlxLm(lanes.tiny("llama")) as rival:
        for way in (rival.at_once, rival.one_by_one):
            got = way(ids, TOKENS)
            assert [len(reply.tokens) for reply in got] == [TOKENS] * len(PROMPTS)
            assert all(list(reply.times) == sorted(reply.times) for reply in got)
        serial = rival.one_by_one(ids, TOKENS)
        assert serial[1].ttft > serial[0].times[-1], "they run one after the other"
        assert same_tokens(serial, rival.one_by_one(ids, TOKENS)) == len(PROMPTS)
