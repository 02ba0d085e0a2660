"""The story of one request: on rounds made by hand, with numbers that can be checked by head, and on an engine."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from rigs import WAIT
from stories import SLOTS, WIDTH, stories

import lanes
from lanes.record import Admitted, Evicted, Finished, Kind, Piece, Round, RowsOf, Seat, Submitted
from lanes.record.story import AROUND, Wait, story
from lanes.record.tolls import Toll, gaps_by_round, quiet_gap, tolls

QUIET, PIECE = 0.5, 1.25


def live(slot: int, id: int) -> Seat:
    return Seat(slot, id, "stream", "live")


def token(slot: int, id: int) -> RowsOf:
    return RowsOf(slot, id, "decode", 1, 1)


def beside(piece: Piece | None = None, *extra: RowsOf) -> tuple[RowsOf, ...]:
    return (token(0, 1), token(1, 2), *extra)


def two_streams_and_a_decision() -> list[Round]:
    """Streams 1 and 2 decode in two slots of three. Decision 9 comes in round 1, takes two pieces, is evicted by stream
    3, waits through rounds 5 and 6, starts again with one piece and a tail, and is answered in round 8.

    A round takes half a second, one with a piece three quarters more.
    """
    both, filling = (live(0, 1), live(1, 2)), Seat(2, 9, "decision", "filling")
    plans: list[dict] = [
        {"seats": both},
        {"seats": both, "submitted": (Submitted(9, "decision", 70, 0.75),), "waiting_decisions": 1},
        {"seats": (*both, filling), "piece": Piece(2, 9, 0, 32), "admitted": (Admitted(2, 9, "decision", 0),)},
        {
            "seats": (*both, filling), "piece": Piece(2, 9, 32, 32), "submitted": (Submitted(3, "stream", 4, 3.0),),
            "waiting_streams": 1,
        },
        {"seats": (*both, filling), "waiting_streams": 1},
        {
            "seats": (*both, Seat(2, 3, "stream", "filling")), "evicted": (Evicted(2, 9),),
            "admitted": (Admitted(2, 3, "stream"),), "rows": (*beside(), RowsOf(2, 3, "tail", 4, 1)),
            "waiting_decisions": 1,
        },
        {
            "seats": (*both, live(2, 3)), "rows": (*beside(), token(2, 3)),
            "finished": (Finished(2, 3, "stream", "length"),), "waiting_decisions": 1,
        },
        {"seats": (*both, filling), "piece": Piece(2, 9, 0, 32), "admitted": (Admitted(2, 9, "decision", 32),)},
        {
            "seats": (*both, filling), "rows": (*beside(), RowsOf(2, 9, "tail", 6)),
            "finished": (Finished(2, 9, "decision", "answered"),),
        },
    ]  # fmt: skip
    rounds, now = [], 0.0
    for index, plan in enumerate(plans):
        end = now + (PIECE if "piece" in plan else QUIET)
        rounds.append(Round(index, now, end, WIDTH, 1, **{"rows": beside(), **plan}))
        now = end
    return rounds


def test_a_decision_s_story_has_its_waits_slots_work_and_end():
    told = story(two_streams_and_a_decision(), 9, SLOTS)
    assert (told.kind, told.prompt_tokens, told.reason) == ("decision", 70, "answered")
    assert (told.submitted, told.finished, told.seconds) == (0.75, 6.75, 6.0)
    assert told.waits == (
        Wait(0.75, 1.0, rounds=0, full=0),
        Wait(4.0, 5.0, rounds=2, full=2, streams=(1, 2, 3)),
    )
    assert told.waited == 1.25
    assert [(stay.slot, stay.start, stay.end, stay.ending) for stay in told.stays] == [
        (2, 1.0, 4.0, "evicted"), (2, 5.0, 6.75, "answered"),
    ]  # fmt: skip
    assert told.evictions == 1 and told.cached == 32
    assert (told.pieces, told.tails, told.branches, told.drew) == ((2, 3, 7), (8,), (), ())


def test_each_stream_pays_what_its_gaps_were_longer_than_quiet_ones():
    told = story(two_streams_and_a_decision(), 9, SLOTS)
    assert told.quiet_s == QUIET
    more = 3 * (PIECE - QUIET)
    assert told.tolls == (Toll(1, 3, more), Toll(2, 3, more))
    assert told.cost_s == 2 * more
    assert story(two_streams_and_a_decision(), 3, SLOTS).cost_s == 0


def test_the_words_say_it_in_order_and_leave_times_out_where_they_are_asked_to():
    told = story(two_streams_and_a_decision(), 9, SLOTS)
    assert told.words() == [
        "Decision 9, 70 prompt tokens, came at 0.750 s.",
        "It waited less than a round, 250.0 ms.",
        "It took slot 2 at 1.000 s, and gave it back at 4.000 s, as a stream waited for one.",
        "It waited through 2 rounds, 1.00 s: every slot was held, by streams 1, 2 and 3.",
        "It took slot 2 at 5.000 s, with 32 prompt tokens from the cache.",
        "Pieces of its prompt ran in 3 rounds from 2 to 7.",
        "The end of its prompt ran in rows that were free, in round 8.",
        "It is answered, 6.00 s after it came.",
        "Beside its pieces, gaps were longer than the quiet 500.0 ms: stream 1 by 2.25 s in 3 rounds, "
        "stream 2 by 2.25 s in 3 rounds.",
        "That makes 4.50 s, all streams together.",
    ]
    assert " ms" not in repr(told) and " s " not in repr(told)
    assert "Beside its pieces streams 1 and 2 went on." in repr(told)


def test_a_stream_s_story_has_its_first_token():
    told = story(two_streams_and_a_decision(), 3, SLOTS)
    assert (told.submitted, told.first_token, told.finished) == (3.0, 4.5, 5.0)
    assert (told.tokens, told.drew, told.reason) == (2, (5, 6), "length")
    assert told.waits == (Wait(3.0, 4.0, rounds=1, full=1, streams=(1, 2), decisions=(9,)),)
    assert "It drew 2 tokens in rounds 5 to 6." in told.words()
    assert "It needed no piece, so no stream paid for it." in told.words()


def test_what_the_rounds_do_not_show_is_none():
    rounds = two_streams_and_a_decision()[3:]
    told = story(rounds, 9, SLOTS)
    assert told.submitted is None and told.prompt_tokens is None
    assert told.seconds is None and told.waited is None
    assert told.words()[0] == "Decision 9 came before the rounds that are kept, so how long it waited is not known."
    # Round 3 is the first that is kept: whose gap ends there began before.
    assert told.tolls[0] == Toll(1, 1, PIECE - QUIET, unknown=1)
    assert "in 1 round (1 round not known)" in " ".join(told.words())


def test_a_request_that_goes_on_has_no_end():
    told = story(two_streams_and_a_decision()[:6], 9, SLOTS)
    assert told.finished is None and told.reason is None and told.waited is None
    assert told.waits[-1] == Wait(4.0, None, rounds=1, full=1, streams=(1, 2, 3))
    assert "It has not ended." in told.words()
    assert any(sentence.startswith("It waits, so far through 1 round:") for sentence in told.words())


@pytest.mark.parametrize(
    ("policy", "kind", "why"),
    [
        ("idle", "decision", 'a slot was free, but policy "idle" lets them run only when no stream is left'),
        ("off", "decision", 'a slot was free, but policy "off" lets none run'),
        (None, "decision", "a slot was free, but the rules gave it none"),
        ("idle", "stream", "a slot was free, but the rules gave it none"),
    ],
)
def test_a_wait_beside_a_free_slot_is_the_policy_s(policy: str | None, kind: Kind, why: str):
    rounds = [
        Round(0, 0.0, 1.0, WIDTH, 1, (token(0, 1),), seats=(live(0, 1),), submitted=(Submitted(5, kind, 9, 0.0),)),
        Round(1, 1.0, 2.0, WIDTH, 1, (token(0, 1),), seats=(live(0, 1),)),
        Round(2, 2.0, 2.0, WIDTH, finished=(Finished(None, 5, kind, "cancelled"),)),
    ]
    told = story(rounds, 5, SLOTS)
    assert told.stays == () and told.waits == (Wait(0.0, 2.0, rounds=2, full=0, streams=(1,)),)
    assert f"It waited through 2 rounds, 2.00 s: {why}." in told.words(policy)
    assert told.words()[-2] == "It was cancelled, 2.00 s after it came."


def test_a_gap_in_which_the_engine_stood_still_says_nothing_about_a_piece():
    rounds = two_streams_and_a_decision()
    held = [done if done.index < 3 else _later(done, 60.0) for done in rounds]
    usual, (first, second) = tolls(held, 9)
    assert usual == QUIET
    assert first == Toll(1, 2, 2 * (PIECE - QUIET), unknown=1) and second.unknown == 1


def test_without_a_quiet_gap_the_cost_is_not_known():
    rounds = two_streams_and_a_decision()[2:4]
    told = story(rounds, 9, SLOTS)
    assert told.quiet_s is None and told.cost_s is None
    assert told.tolls == (Toll(1, 0, None, 2), Toll(2, 0, None, 2))
    assert "is not known" in told.words()[-1]


def test_what_is_quiet_is_measured_around_the_request():
    rounds = two_streams_and_a_decision()
    later = [_later(rounds[0], 6.75 + 0.125 * n) for n in range(AROUND * 3)]
    slow = [replace(done, index=9 + n, end=done.start + 0.125) for n, done in enumerate(later)]
    assert story([*rounds, *slow], 9, SLOTS).quiet_s == 0.125
    assert story([*rounds, *slow[:3]], 9, SLOTS).quiet_s == QUIET


def test_an_unknown_request_is_refused_with_what_is_there():
    with pytest.raises(lanes.InvalidRequest, match=r"no request 77 \(rounds 0 to 8\)"):
        story(two_streams_and_a_decision(), 77, SLOTS)
    with pytest.raises(lanes.InvalidRequest, match="no round yet"):
        story([], 1, SLOTS)


def test_times_that_are_neither_told_nor_left_out_are_refused():
    with pytest.raises(lanes.InvalidRequest, match="times must be True or False, not 'no'"):
        story(two_streams_and_a_decision(), 9, SLOTS).words(times="no")  # pyright: ignore[reportArgumentType]


@given(stories)
def test_every_request_of_any_rounds_has_a_story_that_adds_up(rounds: list[Round]):
    every = {new.id for done in rounds for new in done.submitted}
    for id in every:
        told = story(rounds, id, SLOTS)
        json.dumps(told.to_dict(), allow_nan=False)
        assert told.words() and told.words(times=False) and repr(told)
        assert told.evictions == sum(out.id == id for done in rounds for out in done.evicted)
        assert told.tokens == sum(count for done in rounds for stream, count in done.gains if stream == id)
        assert told.pieces == tuple(done.index for done in rounds if done.piece and done.piece.id == id)
        for wait in told.waits:
            assert 0 <= wait.full <= wait.rounds
            assert wait.end is None or wait.end >= wait.start


@given(stories)
def test_the_gaps_by_round_are_the_record_s_gaps(rounds: list[Round]):
    from lanes.record.gaps import gaps

    found = list(gaps_by_round(rounds))
    for stream, own in gaps(rounds).items():
        assert [each[stream].seconds for _, each in found if stream in each] == own
    assert (quiet_gap(found) is None) == (not any(own for done, own in found if done.piece is None))


def test_an_engine_s_decision_tells_what_its_handle_knows(engine: lanes.Engine):
    streams = [engine.stream(f"Number {n}", max_tokens=60, ignore_eos=True) for n in range(2)]
    pending = engine.score("Is it so, or is it not so? " * 12, [" yes", " no"])
    pending.result(WAIT)
    assert engine.wait(WAIT)
    told = engine.rounds.story(pending.id)
    assert told.kind == "decision" and told.reason == "answered" and told.evictions == 0
    assert pending.timing and told.submitted == pending.timing.submitted
    assert told.pieces and told.prompt_tokens and told.prompt_tokens > 32
    assert {toll.id for toll in told.tolls} <= {stream.id for stream in streams}
    own = engine.rounds.story(streams[0].id)
    assert own.tokens == len(streams[0].tokens) == 60
    assert own.first_token is not None and own.submitted is not None
    assert repr(own).startswith(f"Stream {streams[0].id}, ")


def _later(done: Round, seconds: float) -> Round:
    return replace(done, start=done.start + seconds, end=done.end + seconds)
