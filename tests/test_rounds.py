"""The record of rounds: its bound, its counters, its readers."""

import threading
import tracemalloc
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stories import SLOTS, stories

from lanes.record import (
    Admitted,
    Counts,
    Evicted,
    Finished,
    Kind,
    Piece,
    Round,
    Rounds,
    RowsOf,
    Seat,
    Submitted,
    Totals,
)


def record_of(rounds: list[Round], keep: int = 20_000) -> Rounds:
    record = Rounds(SLOTS, keep)
    for done in rounds:
        record.append(done)
    return record


def event(index: int, **what) -> Round:
    return Round(index, float(index), index + 0.5, 8, **what)


@given(stories, st.integers(1, 50))
def test_the_ring_keeps_the_newest_rounds(rounds, keep):
    record = record_of(rounds, keep)
    assert list(record) == rounds[-keep:]
    assert len(record) == min(len(rounds), keep)
    assert record.next_index == record.totals.rounds == len(rounds)
    assert record.last == (rounds[-1] if rounds else None)


@given(stories, st.integers(1, 10), st.integers(0, 50))
def test_since_gives_what_is_new_and_counts_what_is_lost(rounds, keep, index):
    found = record_of(rounds, keep).since(index)
    wanted = rounds[index:]
    assert list(found.rounds) == wanted[max(0, len(wanted) - keep) :]
    assert found.lost == len(wanted) - len(found.rounds)
    assert found.next == len(rounds)


def test_indexing_and_slicing_go_over_the_kept_rounds():
    record = record_of([event(index) for index in range(10)], keep=4)
    assert (record[0].index, record[-1].index) == (6, 9)
    assert [done.index for done in record[1:3]] == [7, 8]
    with pytest.raises(IndexError):
        record[4]
    with pytest.raises(ValueError, match="starts at 0"):
        record.since(-1)


@given(stories, st.integers(1, 10))
def test_totals_agree_with_a_count_over_all_rounds(rounds, keep):
    def counts(kind: Kind) -> Counts:
        ends = Counter(end.reason for done in rounds for end in done.finished if end.kind == kind)
        return Counts(
            submitted=sum(new.kind == kind for done in rounds for new in done.submitted),
            admitted=sum(seat.kind == kind for done in rounds for seat in done.admitted),
            evicted=sum(len(done.evicted) for done in rounds) if kind == "decision" else 0,
            **ends,
        )

    rows = [row for done in rounds for row in done.rows]
    cached = [seat.cached for done in rounds for seat in done.admitted if seat.cached is not None]
    pieces = [done.piece.tokens for done in rounds if done.piece]
    totals = record_of(rounds, keep).totals
    assert totals == Totals(
        rounds=len(rounds),
        forwards=sum(done.groups for done in rounds),
        pieces=len(pieces),
        rows=sum(row.rows for row in rows),
        tokens=sum(row.tokens for row in rows),
        prompt_tokens=sum(pieces) + sum(row.rows for row in rows if row.kind in ("tail", "branch")),
        drafted=sum(row.rows for row in rows if row.kind == "draft"),
        accepted=sum(row.tokens for row in rows if row.kind == "draft"),
        cache_hits=sum(tokens > 0 for tokens in cached),
        cache_misses=cached.count(0),
        cached_tokens=sum(cached),
        errors=sum(done.error is not None for done in rounds),
        busy_s=sum(done.seconds for done in rounds),
        decode_s=sum(done.seconds for done in rounds if any(row.kind == "decode" for row in done.rows)),
        streams=counts("stream"),
        decisions=counts("decision"),
    )
    assert totals.prompt_tokens == sum(done.filled for done in rounds)
    assert totals.rows == sum(done.groups * done.width - done.idle_rows for done in rounds)
    if rounds:
        held = Counter(seat.kind for seat in rounds[-1].seats) - Counter(
            end.kind for end in rounds[-1].finished if end.slot is not None
        )
        assert totals.streams.open == rounds[-1].waiting_streams + held["stream"]
        assert totals.decisions.open == rounds[-1].waiting_decisions + held["decision"]


def test_cancels_are_counted_once_wherever_they_land():
    new = (Submitted(1, "stream", 9, 0.0), Submitted(2, "decision", 9, 0.0), Submitted(3, "stream", 9, 0.0))
    twice = Finished(None, 3, "stream", "cancelled")
    record = record_of(
        [
            event(0, submitted=new, admitted=(Admitted(0, 1, "stream"), Admitted(1, 2, "decision"))),
            event(1, evicted=(Evicted(1, 2),), finished=(twice,)),
            event(2, finished=(twice, Finished(None, 2, "decision", "cancelled"))),
            event(3, finished=(Finished(0, 1, "stream", "cancelled"), twice)),
        ]
    )
    totals = record.totals
    assert (totals.streams.cancelled, totals.decisions.cancelled) == (2, 1)
    assert (totals.streams.open, totals.decisions.open) == (0, 0)
    assert totals.strays == 2


def test_a_cancel_taken_in_the_same_round_as_its_submit_is_counted():
    end = Finished(None, "a", "decision", "cancelled")
    totals = record_of([event(0, submitted=(Submitted("a", "decision", 9, 0.0),), finished=(end,))]).totals
    assert (totals.decisions.submitted, totals.decisions.cancelled, totals.strays) == (1, 1, 0)


def test_work_without_decoding_is_visible_in_the_load_figures():
    filling = event(0, piece=Piece(0, 1, 0, 64))
    decoding = event(1, groups=1, rows=(RowsOf(0, 1, "decode", 1, 1),))
    totals = record_of([filling, decoding]).totals
    assert (totals.busy_s, totals.decode_s) == (1.0, 0.5)


def test_a_round_out_of_turn_is_refused_and_changes_nothing():
    record = record_of([event(0)])
    before = record.totals
    with pytest.raises(ValueError, match="expects round 1"):
        record.append(event(2))
    for start, end in ((0.4, 1.0), (2.0, 1.0), (1.0, float("nan")), (1.0, float("inf"))):
        with pytest.raises(ValueError, match="overlaps"):
            record.append(Round(1, start, end, 8))
    assert (record.totals, len(record)) == (before, 1)


@pytest.mark.parametrize("bad", [{"slots": 0}, {"slots": 2, "keep": 0}])
def test_a_record_without_room_is_refused(bad):
    with pytest.raises(ValueError, match="at least one"):
        Rounds(**bad)


def test_readers_see_whole_consistent_rounds_while_the_engine_appends():
    count, faults, seen = 50_000, [], []
    record = Rounds(SLOTS, keep=1_000)

    def write():
        rows = (RowsOf(0, 1, "decode", 1, 1),)
        for index in range(count):
            record.append(event(index, groups=1, rows=rows))

    def read():
        try:
            while record.next_index < count:
                numbers = [done.index for done in record]
                assert all(after == before + 1 for before, after in pairwise(numbers))
                totals = record.totals
                assert totals.rounds == totals.tokens == totals.busy_s * 2
                repr(record)
        except BaseException as error:
            faults.append(error)

    def follow():
        at = lost = 0
        while at < count:
            found = record.since(at)
            lost, at = lost + found.lost, found.next
            seen.extend(done.index for done in found.rounds)
        seen.append(lost)

    threads = [threading.Thread(target=work) for work in (read, follow, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults
    lost = seen.pop()
    assert lost + len(seen) == count
    assert seen == sorted(set(seen))


def memory(record: Rounds, make) -> float:
    """Bytes a kept round, after the ring went round three times."""
    tracemalloc.start()
    for index in range(3 * record.keep):
        record.append(make(index))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / record.keep


def test_memory_is_bounded_and_small_while_slots_go_on():
    def same(index: int) -> Round:
        return everything(index, 0)

    def everything(index: int, shift: int | None = None) -> Round:
        ids = [1_000 + slot + (8 * index if shift is None else shift) for slot in range(8)]
        rows = tuple(RowsOf(slot, id, "decode", 1, 1) for slot, id in enumerate(ids))
        seats = tuple(Seat(slot, id, "stream", "live") for slot, id in enumerate(ids))
        return event(index, groups=1, rows=rows, seats=seats, piece=Piece(0, ids[0], 64 * index, 64))

    assert memory(Rounds(8, keep=2_000), same) < 600
    assert memory(Rounds(8, keep=2_000), everything) < 4_000


def test_equal_parts_are_shared_and_the_round_stays_equal():
    rows = (RowsOf(0, 1, "decode", 1, 1), RowsOf(1, 2, "tail", 3))
    after = event(1, groups=1, rows=(RowsOf(0, 1, "decode", 1, 1), RowsOf(1, 2, "tail", 2)))
    record = record_of([event(0, groups=1, rows=rows), after])
    assert record[1] == after
    assert record[1].rows[0] is rows[0]


def test_the_clock_starts_at_zero_with_the_record():
    ticks = iter((100.0, 102.5))
    assert Rounds(1, clock=lambda: next(ticks)).now() == 2.5


def test_reprs_are_stable_and_free_of_addresses():
    record = record_of([event(index, error="no memory" if index == 1 else None) for index in range(5)], keep=3)
    assert repr(record) == "Rounds(3 kept of 5; 3 slots; 1 errors)"
    assert record._repr_html_() == record._repr_html_()
    assert "<script" not in record._repr_html_()
