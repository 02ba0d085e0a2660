"""What is drawn from the record: trace, frame, gaps and summary."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from stories import SLOTS, stories

from lanes.record import Finished, Piece, Round, Rounds, RowsOf, Submitted, Summary
from lanes.record.frame import COLUMNS, to_frame
from lanes.record.gaps import gaps, summarise
from lanes.record.trace import FIRST_SLOT_TRACK, events, write_trace


def decode(index: int, start: float, end: float, *ids: int, piece: bool = False) -> Round:
    rows = tuple(RowsOf(slot, id, "decode", 1, 1) for slot, id in enumerate(ids))
    return Round(index, start, end, 8, int(bool(rows)), rows, Piece(7, 99, 0, 64) if piece else None)


@given(stories)
def test_every_track_of_the_trace_is_named_sorted_and_without_overlaps(rounds):
    made = list(events(rounds, SLOTS))
    names = {event["tid"]: event["args"]["name"] for event in made if event["name"] == "thread_name"}
    assert [names[FIRST_SLOT_TRACK + slot] for slot in range(SLOTS)] == [f"slot {slot}" for slot in range(SLOTS)]
    tracks = defaultdict(list)
    for event in made:
        if event["ph"] in "Xi":
            assert event["tid"] in names
            tracks[event["tid"]].append(event)
        if event["ph"] == "C":
            tracks[event["name"]].append(event)
    for track in tracks.values():
        assert all(event["ts"] >= 0 and event.get("dur", 0) >= 0 for event in track)
        assert all(before["ts"] <= after["ts"] for before, after in pairwise(track))
        slices = [event for event in track if event["ph"] == "X"]
        assert all(before["ts"] + before["dur"] <= after["ts"] for before, after in pairwise(slices))


@given(stories)
def test_the_trace_holds_each_slots_work_and_each_event_once(rounds):
    made = list(events(rounds, SLOTS))
    slots = {
        (event["tid"], event["args"]["round"]) for event in made if event["ph"] == "X" and "round" in event["args"]
    }
    works = [(row.slot, done.index) for done in rounds for row in (*done.rows, *filter(None, (done.piece,)))]
    assert slots == {(FIRST_SLOT_TRACK + slot, index) for slot, index in works}
    instants = [event["name"].split()[0] for event in made if event["ph"] == "i"]
    for name in ("submitted", "admitted", "evicted", "finished"):
        assert instants.count(name) == sum(len(getattr(done, name)) for done in rounds)


@given(stories)
def test_a_requests_slice_begins_at_its_submit_and_ends_with_its_round(rounds):
    lives = defaultdict(list)
    for event in events(rounds, SLOTS):
        if event["ph"] in "be":
            lives[event["id"]].append(event)
    for begin, *ends in lives.values():
        assert begin["ph"] == "b"
        assert [end["ph"] for end in ends] in ([], ["e"])
        assert all(begin["ts"] <= end["ts"] for end in ends)
    assert len(lives) == sum(len(done.submitted) for done in rounds)


def test_the_slice_of_a_request_whose_submit_is_forgotten_is_left_out():
    end = Round(5, 1.0, 2.0, 8, finished=(Finished(None, 1, "stream", "cancelled"),))
    assert not [event for event in events([end], SLOTS) if event["ph"] in "be"]


def test_the_trace_file_is_json_that_a_viewer_opens(tmp_path: Path):
    record = Rounds(2)
    record.append(
        Round(0, 0.0, 0.5, 8, piece=Piece(1, "d1", 64, 32), submitted=(Submitted("d1", "decision", 99, 0.0),))
    )
    record.append(
        Round(1, 0.5, 0.75, 8, 1, (RowsOf(0, 1, "decode", 1, 1), RowsOf(0, 1, "draft", 3, 2)), error="broken")
    )
    path = record.to_trace(tmp_path / "run.json")
    assert path == tmp_path / "run.json"
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]
    trace = json.loads(path.read_text())
    slices = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
    assert list(slices) == ["round 0", "piece 64-96 of d1", "round 1", "decode 1 of 1 + draft 3 of 1"]
    assert (slices["round 1"]["ts"], slices["round 1"]["dur"]) == (500_000, 250_000)
    assert slices["round 1"]["args"]["error"] == "broken"
    assert trace["otherData"]["rounds"] == 2


def test_an_empty_record_makes_a_valid_trace(tmp_path: Path):
    trace = json.loads(Rounds(2).to_trace(str(tmp_path / "empty.json")).read_text())
    assert {event["ph"] for event in trace["traceEvents"]} == {"M"}


def test_a_trace_that_cannot_be_written_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "run.json"
    path.write_text("old")
    odd = Round(0, 0.0, 1.0, 8, finished=(Finished(None, object(), "stream", "stop"),))  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        write_trace([odd], path, slots=1, started=0.0)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@given(stories)
def test_the_frame_has_one_row_a_round_and_the_same_dtypes_always(rounds):
    frame = to_frame(rounds)
    assert list(frame.index) == [done.index for done in rounds]
    assert frame.index.name == "round"
    assert list(frame.dtypes) == list(to_frame([]).dtypes)
    assert list(frame.dtypes) == [pd.Series([], dtype=dtype).dtype for dtype, _ in COLUMNS.values()]
    assert frame["tokens"].sum() == sum(done.tokens for done in rounds)
    used = frame[["decode_rows", "draft_rows", "tail_rows", "branch_rows"]].sum(axis=1)
    assert list(used + frame["idle_rows"]) == [done.groups * done.width for done in rounds]
    assert list(frame["piece_tokens"].isna()) == [done.piece is None for done in rounds]
    assert list(frame["error"].isna()) == [done.error is None for done in rounds]
    assert list(frame["streams"] + frame["decisions"]) == [len(done.seats) for done in rounds]


def test_the_record_gives_its_frame():
    record = Rounds(2)
    record.append(decode(0, 0.0, 0.5, 1, piece=True))
    frame = record.to_frame()
    assert frame.loc[0, ["seconds", "decode_rows", "idle_rows", "piece_slot"]].to_list() == [0.5, 1, 7, 7]


def test_gaps_are_the_times_between_the_ends_of_a_streams_rounds():
    rounds = [
        Round(0, 0.0, 1.0, 8, 1, (RowsOf(0, 1, "tail", 3, 1), RowsOf(1, 2, "tail", 3, 0))),
        decode(1, 1.0, 1.5, 1),
        Round(2, 2.0, 4.0, 8, piece=Piece(7, 99, 0, 64)),
        Round(3, 4.0, 4.25, 8, 1, (RowsOf(0, 1, "decode", 1, 1), RowsOf(0, 1, "draft", 3, 2))),
        decode(4, 4.25, 4.5, 2),
    ]
    assert gaps(rounds) == {1: [0.5, 2.75], 2: []}
    record = Rounds(8)
    for done in rounds:
        record.append(done)
    assert record.gaps(1) == {1: [0.5, 2.75]}
    assert record.gaps(77) == {}


@given(stories)
def test_gaps_of_a_stream_add_up_to_the_time_of_its_tokens(rounds):
    ends = defaultdict(list)
    for done in rounds:
        for id in {row.id for row in done.rows if row.tokens}:
            ends[id].append(done.end)
    found = gaps(rounds)
    assert found.keys() == ends.keys()
    assert all(
        sum(found[id]) == times[-1] - times[0] and len(found[id]) == len(times) - 1 for id, times in ends.items()
    )


def test_the_summary_tells_quiet_steps_from_pieces():
    rounds = [
        decode(0, 0.0, 0.25, 1),
        decode(1, 0.25, 0.5, 1),
        decode(2, 0.5, 1.5, 1, piece=True),
        decode(3, 2.0, 2.5, piece=True),
    ]
    found = summarise(rounds)
    assert found == Summary(4, 2, 0.625, found.gap_p99_s, 1.0, quiet_s=0.25, piece_s=1.0, lone_piece_s=0.5)
    assert found.gap_p99_s == pytest.approx(0.25 + 0.99 * 0.75)
    record = Rounds(8)
    for done in rounds:
        record.append(done)
    assert record.summary() == found


def test_what_was_not_measured_is_none():
    assert summarise([]) == Summary(0, 0, None, None, None, None, None, None)
