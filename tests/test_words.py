"""A round in sentences."""

import pytest

from lanes.record import Admitted, Evicted, Finished, Piece, Round, RowsOf, Seat
from lanes.record.words import words

ROUND = Round(7, 1.0, 1.1, 8)


def test_what_a_round_did_is_told_in_the_order_of_events() -> None:
    done = Round(
        7,
        1.0,
        1.1,
        8,
        groups=1,
        rows=(RowsOf(0, 1, "decode", 1, 1), RowsOf(1, 2, "decode", 1, 1), RowsOf(2, 3, "tail", 4)),
        piece=Piece(3, 4, 32, 32),
        admitted=(Admitted(3, 4, "decision", 0), Admitted(2, 3, "stream", 64)),
        evicted=(Evicted(2, 9),),
        finished=(Finished(1, 2, "stream", "length"),),
        seats=(Seat(0, 1, "stream", "live"), Seat(2, 3, "stream", "filling"), Seat(3, 4, "decision", "filling")),
        waiting_streams=1,
        waiting_decisions=2,
    )
    assert words(done, "beside") == [
        "Decision 9 gave slot 2 back, as a stream waited for one; it will start again.",
        "Decision 4 took slot 3.",
        "Stream 3 took slot 2, with 64 prompt tokens from the cache.",
        "Slot 3 filled a piece of decision 4: prompt tokens 32 to 63.",
        "Slots 0 and 1 drew a token each.",
        "Slot 2, stream 3, ran 4 of the last tokens of its prompt, in rows that were free.",
        "Stream 2 has all the tokens it asked for.",
        "1 stream waits: no slot is free.",
        "2 decisions wait: no slot is free for them.",
    ]


@pytest.mark.parametrize(("policy", "why"), [("idle", "no stream is left"), ("off", "lets none run")])
def test_it_says_why_decisions_wait(policy: str, why: str) -> None:
    [said] = words(Round(7, 1.0, 1.1, 8, waiting_decisions=1), policy)
    assert said.startswith("1 decision waits") and why in said


def test_a_part_of_a_piece_is_told_as_one() -> None:
    done = Round(0, 0.0, 0.1, 8, piece=Piece(3, 4, 2048, 32, part=2, parts=3))
    assert words(done, "beside") == ["Slot 3 computed part 2 of 3 of a piece of request 4: prompt tokens 2048 to 2079."]


def test_a_failed_round_says_so() -> None:
    assert words(Round(7, 1.0, 1.1, 8, error="no memory"), "beside") == ["The forward failed: no memory"]


def test_what_failed_is_not_told_as_done() -> None:
    done = Round(
        7,
        1.0,
        1.1,
        8,
        rows=(RowsOf(0, 1, "decode", 1), RowsOf(1, 2, "decode", 1), RowsOf(2, 3, "tail", 4)),
        piece=Piece(3, 4, 32, 32),
        finished=(
            Finished(0, 1, "stream", "error"),
            Finished(2, 3, "stream", "error"),
            Finished(3, 4, "decision", "error"),
        ),
        error="no memory",
    )
    assert words(done, "beside") == [
        "Slot 1 drew a token.",
        "The forward failed: no memory",
        "Stream 1 failed.",
        "Stream 3 failed.",
        "Decision 4 failed.",
    ]


def test_a_round_in_which_nothing_happened_has_nothing_to_say() -> None:
    assert words(ROUND, "beside") == []
