"""The picture of rounds: who held which slot, time across the page, the SVG and the text."""

import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stories import SLOTS, WIDTH, stories, story

from lanes.record import Admitted, Evicted, Finished, Piece, Round, Rounds, RowsOf, Seat, Submitted
from lanes.record.axis import CUT, axis
from lanes.record.drawing import svg
from lanes.record.stays import Cell, Stay, cells, stays, waiters
from lanes.record.timeline import Timeline, text

SVG = "{http://www.w3.org/2000/svg}"


def decode(index: int, start: float, end: float, *ids: int, **rest) -> Round:
    """A round in which these streams, in the slots 0, 1, ..., each draw a token."""
    rows = tuple(RowsOf(slot, id, "decode", 1, 1) for slot, id in enumerate(ids))
    seats = tuple(Seat(slot, id, "stream", "live") for slot, id in enumerate(ids))
    return Round(index, start, end, WIDTH, int(bool(rows)), rows, **{"seats": seats, **rest})


def decision_beside_a_stream() -> list[Round]:
    """Stream 1 decodes; decision 2 comes during round 0, takes a piece and a tail, and is answered."""
    beside = (Seat(0, 1, "stream", "live"), Seat(1, 2, "decision", "filling"))
    asked = (Submitted(2, "decision", 40, 0.25),)
    return [
        decode(0, 0.0, 0.5, 1, submitted=asked, waiting_decisions=1),
        decode(1, 0.5, 2.0, 1, seats=beside, piece=Piece(1, 2, 0, 32), admitted=(Admitted(1, 2, "decision"),)),
        Round(
            2, 2.0, 2.5, WIDTH, 1, (RowsOf(0, 1, "decode", 1, 1), RowsOf(1, 2, "tail", 7)), seats=beside,
            finished=(Finished(1, 2, "decision", "answered"),),
        ),
        decode(3, 2.5, 3.0, 1, finished=(Finished(0, 1, "stream", "length"),)),
    ]  # fmt: skip


def shapes(picture: str, kind: str) -> int:
    """The number of rectangles drawn in a kind's one path."""
    paths = [path.get("d", "") for path in ET.fromstring(picture).iter(f"{SVG}path") if path.get("class") == kind]
    return sum(path.count("z") for path in paths)


# --- who held which slot --------------------------------------------------------------------------------------------


def test_a_stay_lasts_from_the_first_round_to_the_end_of_the_last():
    stream, decision = stays(decision_beside_a_stream())
    assert stream == Stay(0, 1, "stream", 0.0, 3.0, "length")
    assert decision == Stay(1, 2, "decision", 0.5, 2.5, "answered", asked=0.25)
    assert decision.seconds == 2.25
    assert stream.seconds is None  # its submit is not among the rounds


def test_an_evicted_decision_has_a_stay_for_each_time_it_held_a_slot():
    filling = (Seat(0, 9, "decision", "filling"),)
    asked = (Submitted(9, "decision", 40, 0.0),)
    rounds = [
        Round(0, 0.0, 1.0, WIDTH, piece=Piece(0, 9, 0, 32), seats=filling, submitted=asked),
        decode(1, 1.5, 2.0, 1, evicted=(Evicted(0, 9),), admitted=(Admitted(0, 1, "stream"),), waiting_decisions=1),
        Round(
            2, 2.0, 3.0, WIDTH, 1, (RowsOf(0, 9, "tail", 8),), seats=filling,
            finished=(Finished(0, 9, "decision", "answered"),),
        ),
    ]  # fmt: skip
    first, stream, again = stays(rounds)
    assert (first.end, first.ending, first.seconds) == (1.0, "evicted", None)
    assert (stream.id, stream.start, stream.end) == (1, 1.5, 2.0)
    assert (again.start, again.ending, again.seconds) == (2.0, "answered", 3.0)


def test_a_request_cancelled_between_two_rounds_leaves_before_the_next():
    rounds = [
        decode(0, 0.0, 1.0, 1, 2),
        decode(1, 4.0, 5.0, 1, finished=(Finished(1, 2, "stream", "cancelled"),)),
    ]
    assert stays(rounds)[1] == Stay(1, 2, "stream", 0.0, 1.0, "cancelled")


@given(stories)
def test_stays_cover_the_seats_and_nothing_else(rounds):
    found = stays(rounds)
    for done in rounds:
        here = {(stay.slot, stay.id) for stay in found if stay.start <= done.start and done.end <= stay.end}
        assert {(seat.slot, seat.id) for seat in done.seats} <= here
    for slot in range(SLOTS):
        own = [stay for stay in found if stay.slot == slot]
        assert all(before.end <= after.start for before, after in pairwise(own))
    assert len(found) == sum(len(done.admitted) for done in rounds)


def test_cells_say_what_each_held_slot_did():
    done = Round(
        0, 1.0, 2.0, WIDTH, 1, (RowsOf(0, 1, "decode", 1, 1), RowsOf(0, 1, "draft", 3, 2)), Piece(2, 5, 0, 32),
        seats=(Seat(0, 1, "stream", "live"), Seat(1, 4, "decision", "filling"), Seat(2, 5, "decision", "filling")),
    )  # fmt: skip
    assert [(cell.slot, cell.works) for cell in cells(done)] == [
        (0, ("decode", "draft")),
        (1, ("held",)),
        (2, ("piece",)),
    ]
    assert cells(done)[0] == Cell(0, 1.0, 2.0, ("decode", "draft"))


def test_who_comes_during_a_round_has_not_waited_through_it():
    came = (Submitted(1, "stream", 4, 1.5), Submitted(2, "decision", 4, 0.5))
    done = Round(0, 1.0, 2.0, WIDTH, submitted=came, waiting_streams=3, waiting_decisions=1)
    assert waiters(done) == (2, 1)


# --- time across the page -------------------------------------------------------------------------------------------


def test_the_axis_is_to_scale_and_a_long_wait_is_cut():
    time = axis([decode(0, 10.0, 12.0, 1), decode(1, 12.1, 14.0, 1), decode(2, 74.0, 75.0, 1)], 0, 1000)
    assert time.x(10.0) == 0
    assert time.x(75.0) == pytest.approx(1000)
    assert time.x(12.0) - time.x(11.0) == pytest.approx(time.x(75.0) - time.x(74.0))
    assert [pytest.approx(cut[1:]) for cut in time.cuts()] == [(CUT, 60.0)]
    assert time.x(40.0) == time.x(14.0)  # within the cut
    assert (time.x(0.0), time.x(99.0)) == (0, pytest.approx(1000))


def test_marks_of_time_count_from_the_first_round_over_the_cut():
    time = axis([decode(0, 5.0, 6.0, 1), decode(1, 25.0, 26.0, 1)], 0, 1000)
    marks = {words: x for x, words in time.ticks()}
    assert list(marks) == [f"{seconds / 10:.1f} s" for seconds in (*range(0, 11, 2), *range(200, 211, 2))]
    assert marks["20.0 s"] - marks["1.0 s"] == pytest.approx(CUT)


@given(stories.filter(bool), st.floats(0, 100))
def test_the_axis_never_runs_backwards_or_off_the_page(rounds, at):
    time = axis(rounds, 58, 942)
    assert 58 <= time.x(at) <= 942 + 1e-6
    assert time.x(at) <= time.x(at + 1)
    assert all(58 - 1e-6 <= x <= 942 + 1e-6 for x, _ in time.ticks())
    assert all(before.right <= after.left for before, after in pairwise(time.spans))


# --- the picture ----------------------------------------------------------------------------------------------------


def test_the_picture_has_a_shape_for_each_slot_and_round():
    picture = svg(decision_beside_a_stream(), 4)
    assert [shapes(picture, kind) for kind in ("decode", "piece", "tail", "draft")] == [4, 1, 1, 0]
    words = [node.text for node in ET.fromstring(picture).iter(f"{SVG}text")]
    assert "4 rounds · 4 tokens drawn · 39 prompt tokens filled · 1 decision answered" in words
    assert {"slot 0", "slot 3", "stream 1", "decision 2 · 2.25 s"} <= set(words)
    assert "queue" not in words  # the decision came during a round and had a slot in the next
    assert shapes(picture, "decision") == 2  # its wait, and the line under its stay


def test_the_picture_speaks_to_those_who_do_not_see_it():
    root = ET.fromstring(svg(decision_beside_a_stream(), 4))
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext(f"{SVG}title")
    assert root.findtext(f"{SVG}desc") == "Slot 0: stream 1. Slot 1: decision 2, 2.25 s."


def test_a_queue_is_drawn_where_someone_waited_through_a_round():
    waiting = [decode(0, 0.0, 1.0, 1, waiting_streams=1, waiting_decisions=3), decode(1, 1.0, 2.0, 1)]
    picture = svg(waiting, 1)
    assert "queue" in picture
    assert (shapes(picture, "stream"), shapes(picture, "decision")) == (1, 1)


def test_an_unusual_end_is_named():
    rounds = [decode(0, 0.0, 1.0, 1, finished=(Finished(0, 1, "stream", "cancelled"),))]
    assert "stream 1 · cancelled" in svg(rounds, 1)


def test_many_rounds_make_a_small_picture():
    picture = svg([decode(index, index * 0.05, (index + 1) * 0.05, *range(8)) for index in range(5_000)], 8)
    assert shapes(picture, "decode") == 8
    assert len(picture) < 10_000


def test_markup_in_an_id_is_escaped():
    odd = Round(0, 0.0, 1.0, WIDTH, seats=(Seat(0, "<b>&", "stream", "live"),))
    assert "stream <b>&" in [node.text for node in ET.fromstring(svg([odd], 1)).iter(f"{SVG}text")]


@given(stories)
def test_any_story_makes_a_picture_without_scripts_or_links(rounds):
    picture = svg(rounds, SLOTS)
    tags = {node.tag.removeprefix(SVG) for node in ET.fromstring(picture).iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "path", "text", "tspan"}
    assert "nan" not in picture and "url(" not in picture and "@import" not in picture
    assert picture == svg(rounds, SLOTS)


# --- the object that a notebook shows -------------------------------------------------------------------------------


def test_the_text_form_has_a_line_a_slot_and_a_character_a_round():
    assert text(decision_beside_a_stream(), 3).splitlines() == [
        "Timeline: 4 rounds, 3 slots",
        "slot 0  ====",
        "slot 1  .#+.",
        "slot 2  ....",
        "        = decode, # piece, + tail, . free",
    ]


def test_the_text_form_shows_the_newest_of_many_rounds():
    many = [decode(index, float(index), index + 0.5, 1) for index in range(250)]
    assert text(many, 1).splitlines()[:2] == ["Timeline: 250 rounds, 1 slots; the last 100:", f"slot 0  {'=' * 100}"]


def test_a_round_without_work_is_none():
    rounds = [Round(0, 0.0, 0.0, WIDTH, submitted=(Submitted(1, "stream", 4, 0.0),)), decode(1, 0.5, 1.0, 1)]
    assert text(rounds, 1).splitlines()[:2] == ["Timeline: 1 rounds, 1 slots", "slot 0  ="]
    assert "1 round · 1 token drawn" in svg(rounds, 1)


def test_no_rounds_make_a_picture_that_says_so():
    nothing = Timeline((), 2)
    assert repr(nothing).splitlines() == ["Timeline: 0 rounds, 2 slots", "slot 0  ", "slot 1  ", "        . free"]
    assert "0 rounds" in nothing.svg()


def test_the_record_shows_the_rounds_that_are_asked_for():
    record = Rounds(SLOTS)
    for done in story(Random(3), 30):
        record.append(done)
    indexes = [[done.index for done in made.rounds] for made in (record.timeline(), record.timeline(since=25))]
    assert indexes == [list(range(30)), list(range(25, 30))]
    assert [done.index for done in record.timeline(since=10, last=4).rounds] == [26, 27, 28, 29]
    assert record.timeline(since=25)._repr_svg_() == svg(record[25:], SLOTS)


def test_a_saved_picture_is_an_svg_file(tmp_path: Path):
    path = Timeline(tuple(decision_beside_a_stream()), 2).save(tmp_path / "run.svg")
    assert ET.parse(path).getroot().tag == f"{SVG}svg"
