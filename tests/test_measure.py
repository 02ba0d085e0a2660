"""The parts of the measurements: prompts of a length, and figures drawn from rounds and answers made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.measure import figures
from lanes.measure.figures import Asked
from lanes.measure.prompts import fitted, questions, topics
from lanes.measure.report import Evidence, decisions, equal_bits, gaps_of, speeds
from lanes.measure.workload import Run
from lanes.models.tokens import tiny_tokenizer
from lanes.prompts import encode
from lanes.record import Piece, Round, RowsOf

TOKENIZER = tiny_tokenizer(512)


def ids(text: str) -> list[int]:
    return encode(TOKENIZER, text)


def rounds(*plan: tuple[float, int, str]) -> tuple[Round, ...]:
    """Rounds that follow each other: (seconds, live streams, what else: "piece", "tail" or "")."""
    made: list[Round] = []
    for index, (seconds, live, more) in enumerate(plan):
        rows = tuple(RowsOf(slot, slot, "decode", 1, 1) for slot in range(live))
        if more == "tail":
            rows = (*rows, RowsOf(7, 99, "tail", 2))
        start = made[-1].end if made else 0.0
        piece = Piece(7, 99, 0, 32) if more == "piece" else None
        made.append(Round(index, start, start + seconds, 8, 1, rows, piece))
    return tuple(made)


def asked(question: int, seconds: float, *logits: float, logsumexp: float = 9.0) -> Asked:
    return Asked(question, 64, seconds, np.array(logits, dtype=np.float32), logsumexp)


PLAN = rounds((5, 1, ""), (1, 2, ""), (1, 2, ""), (3, 2, "piece"), (1.5, 2, "tail"), (1, 2, ""), (7, 1, "piece"))


def test_speed_counts_the_time_in_which_all_streams_were_live():
    # Four gaps of the two streams follow the first round in which both were live: 1 + 3 + 1.5 + 1 seconds.
    assert figures.tokens_per_s(PLAN, 2) == pytest.approx(8 / 6.5)
    assert figures.tokens_per_s(PLAN, 3) is None
    assert figures.tokens_per_s(PLAN[:2], 2) is None


def test_gaps_are_sorted_by_what_their_round_did():
    assert figures.quiet_gaps(PLAN, 2) == pytest.approx([1, 1])
    assert figures.piece_costs(PLAN, 2, quiet=1) == pytest.approx([2])
    assert figures.worst_gap(PLAN) == pytest.approx(7)
    assert figures.worst_gap(PLAN[:1]) is None


def test_a_piece_in_parts_costs_what_all_its_parts_add():
    plain = rounds((1, 2, ""), (3, 2, "piece"), (1, 2, ""), (2.5, 2, "piece"), (4, 2, "piece"), (2, 2, "piece"))
    parts = {1: (1, 2), 3: (2, 2), 4: (1, 1), 5: (1, 2)}
    parted = [
        replace(done, piece=done.piece._replace(part=parts[at][0], parts=parts[at][1])) if done.piece else done
        for at, done in enumerate(plain)
    ]
    assert figures.piece_costs(parted, 2, quiet=1) == pytest.approx([2 + 1.5, 3]), "what never ended is left out"


def test_a_pause_between_rounds_is_part_of_the_gap():
    late = Round(2, 4.0, 5.0, 8, 1, PLAN[1].rows)
    paused = (*rounds((1, 2, ""), (1, 2, "")), late)
    assert figures.quiet_gaps(paused, 2) == pytest.approx([1, 3])
    assert figures.tokens_per_s(paused, 2) == pytest.approx(4 / 4)


def test_answers_are_compared_as_bits():
    idle = [asked(0, 1, 0.5, -1), asked(1, 1, 0.25, 2)]
    assert figures.same_answers(idle, [asked(1, 3, 0.25, 2), asked(0, 2, 0.5, -1)]) == (True, 2)
    assert figures.same_answers(idle, [asked(0, 2, np.nextafter(np.float32(0.5), 1), -1)]) == (False, 1)
    assert figures.same_answers(idle, [asked(0, 2, 0.5, -1, logsumexp=9.0001)]) == (False, 1)
    assert figures.same_answers(idle, [asked(5, 2, 0.5, -1)]) == (None, 0)
    zero, minus = asked(0, 1, 0.0), asked(0, 1, -0.0)
    assert figures.same_answers([zero], [minus]) == (False, 1)


def test_rows_are_compared_as_far_as_the_stream_ran_alone():
    assert figures.same_rows("ab", ["abc", "abd"]) == (True, 4)
    assert figures.same_rows("ab", ["abc", "aec"]) == (False, 4)
    assert figures.same_rows("", ["abc"]) == (None, 0)


def evidence(**changes: object) -> Evidence:
    slow = rounds((1, 2, ""), (1, 2, ""), (4, 2, "piece"), (1, 2, ""))
    parts = {
        "streams": 2,
        "solo": ("a", "b"),
        "idle": (asked(0, 1, 0.5), asked(0, 2, 0.5), asked(0, 9, 0.5)),
        "alone": (Run(rounds((1, 2, ""), (1, 2, "")), (), ("a", "b", "c")),),
        "beside": (Run(slow, (asked(0, 4, 0.5), asked(0, 6, 0.5)), ("a", "b", "c")),),
        "behind": Run((), (asked(0, 30, 0.5),), ("a", "b", "c")),
    }
    return Evidence(**{**parts, **changes})  # type: ignore[arg-type]


def test_figures_are_medians_of_their_own_arms():
    found = evidence()
    assert (decisions(found).idle, decisions(found).beside, decisions(found).behind) == (2, 5, 30)
    assert (speeds(found).alone, speeds(found).with_decisions) == (pytest.approx(2), pytest.approx(6 / 6))
    gap = gaps_of(found)
    assert (gap.quiet, gap.worst, gap.piece) == (pytest.approx(1), pytest.approx(4), pytest.approx(3))
    assert (equal_bits(found).stream, equal_bits(found).decision) == (True, True)


def test_what_was_not_measured_is_none():
    nothing = Run((), (), ())
    found = evidence(idle=(), alone=(nothing,), beside=(nothing,), behind=nothing)
    assert (decisions(found).idle, decisions(found).beside, decisions(found).behind) == (None, None, None)
    assert (speeds(found).alone, speeds(found).with_decisions) == (None, None)
    assert (gaps_of(found).quiet, gaps_of(found).worst, gaps_of(found).piece) == (None, None, None)
    assert (equal_bits(found).stream, equal_bits(found).decision) == (None, None)


def test_one_differing_run_is_enough_for_unequal_bits():
    odd = Run((), (asked(0, 1, 0.75),), ("a", "x"))
    assert equal_bits(evidence(behind=odd)).stream is False
    assert equal_bits(evidence(behind=odd)).decision is False
    late = Run((), (), ("a", "b", "x"))  # differs only after the tokens that the stream drew alone
    assert equal_bits(evidence(behind=late)).stream is False


@given(st.integers(40, 400))
def test_a_fitted_text_is_as_long_as_it_can_be(tokens: int):
    text = fitted(ids, "An opening", " and the end", tokens)
    assert text.startswith("An opening") and text.endswith(" and the end")
    assert tokens - 12 < len(ids(text)) <= tokens


def test_a_length_that_nothing_fits_gives_the_shortest_text():
    assert fitted(ids, "An opening", " and the end", 3) == "An opening and the end"


def test_no_two_prompts_begin_alike():
    prompts = [question.prompt for question in questions(ids, [64] * 12)] + topics(ids, [64] * 6)
    beginnings = {tuple(ids(prompt)[:12]) for prompt in prompts}
    assert len(beginnings) == len(prompts)
