"""The snapshot: immutable, ready for JSON, readable as text and as HTML without scripts."""

import json
import re
from dataclasses import FrozenInstanceError, replace

import pytest

from lanes.record import Counts, SlotView, Snapshot, Totals, Waiting

SNAPSHOT = Snapshot(
    time=12.5,
    round=40,
    slots=(
        SlotView(0, "live", "stream", 1, 100, 100, 12, 0.25, 17.25, 0.5),
        SlotView(1, "filling", "decision", "d2", 200, 64, 0, 0.125, finish_reason="stop"),
        SlotView(2, finish_reason="cancelled"),
    ),
    waiting=(Waiting(4, "stream", 30, 0.25), Waiting("d5", "decision", 64, 3.0)),
    totals=Totals(rounds=40, busy_s=10.0, streams=Counts(submitted=3, stop=1, cancelled=1)),
    policy="beside",
    paused=False,
    pace=None,
    width=8,
    piece=64,
)

TEXT = """\
Snapshot after round 40: 3 slots (1 free, 1 filling, 1 live); waiting: 1 streams, 1 decisions; policy beside
slot  state    kind      id  prompt   generated  context  last end
0     live     stream    1   100/100  12         25%      -
1     filling  decision  d2  64/200   0          12%      stop
2     free     -         -   -        -          -        cancelled"""


def test_the_text_is_a_stable_table():
    assert repr(SNAPSHOT) == TEXT
    assert repr(replace(SNAPSHOT, paused=True)).splitlines()[0].endswith("policy beside, paused")


def test_the_text_does_not_depend_on_speed():
    faster = replace(SNAPSHOT, time=1.0, slots=(replace(SNAPSHOT.slots[0], tokens_per_s=99.0), *SNAPSHOT.slots[1:]))
    assert repr(faster) == TEXT


def test_a_snapshot_cannot_be_changed():
    for thing, name in ((SNAPSHOT, "round"), (SNAPSHOT.slots[0], "state"), (SNAPSHOT.totals, "rounds")):
        with pytest.raises(FrozenInstanceError):
            setattr(thing, name, 0)
    assert hash(SNAPSHOT) == hash(replace(SNAPSHOT))


def test_queues_counts_and_load_are_read_from_it():
    assert [item.id for item in SNAPSHOT.waiting_streams] == [4]
    assert [item.id for item in SNAPSHOT.waiting_decisions] == ["d5"]
    assert (SNAPSHOT.count("live"), SNAPSHOT.count("branch")) == (1, 0)
    assert SNAPSHOT.load == 0.8
    assert replace(SNAPSHOT, time=0.0).load == 0.0


def test_the_dict_is_the_same_after_json():
    found = SNAPSHOT.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["slots"][1]["id"] == "d2"
    assert found["totals"]["streams"]["cancelled"] == 1
    assert Totals().to_dict()["busy_s"] == 0.0


def test_the_html_is_static_escaped_and_themed():
    html = replace(SNAPSHOT, waiting=(Waiting("<b>x</b>", "decision", 1, 0.0),))._repr_html_()
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<b>x</b>" not in html
    assert not re.search(r"<script|<link|<style|https?:|\son\w+=|url\(", html)
    assert all("," in colour for colour in re.findall(r"var\([^)]*\)", html)), "a colour without a fallback"
    assert "17.2" in html
    assert "0.500 s" in html


def test_a_snapshot_without_a_queue_shows_no_queue():
    assert "age" not in replace(SNAPSHOT, waiting=())._repr_html_()


def test_a_snapshot_before_the_first_request_shows_no_totals():
    assert "totals" in SNAPSHOT._repr_html_()
    assert "totals" not in replace(SNAPSHOT, totals=Totals())._repr_html_()
