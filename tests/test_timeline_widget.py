"""The live timeline without a browser: rounds as short arrays, stories, runs kept to compare with, traces."""

import json
import re
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rigs import WAIT, until
from stories import SLOTS, stories
from test_story import two_streams_and_a_decision

import lanes
from lanes.record import Round
from lanes.record.stays import cells
from lanes.record.timeline import SIGNS
from lanes.simulation import Arrival, simulate
from lanes_widgets import Timeline, front
from lanes_widgets.feed import ITEMS, RUN, TICKS, Feed
from lanes_widgets.timeline import TRACE, TimelinePanel

WORK = [Arrival(0.0, "stream", 40, 30), Arrival(0.4, "decision", 120)]
numbers = count()


@pytest.fixture
def timeline(engine: lanes.Engine) -> Iterator[Timeline]:
    timeline = Timeline(engine, hz=50)
    yield timeline
    timeline.close()


def act(view: Timeline, do: str, **given: Any) -> dict[str, str]:
    """What a click sends, and what became of it in the end."""
    id = f"act-{next(numbers)}"
    view._handle_custom_msg({"id": id, "do": do, "with": given}, [])

    def told() -> list[dict[str, str]]:
        return [one for one in view.frame["acts"] if one["id"] == id and one["state"] in ("done", "refused")]

    until(told)
    return told()[0]


def shown(view: Timeline) -> dict[str, Any]:
    return view.frame["timeline"]


# --- rounds as short arrays -----------------------------------------------------------------------------------------


class Reader:
    """What a front end makes of items: the rounds, with who sat where."""

    def __init__(self) -> None:
        self.rounds: list[dict[str, Any]] = []
        self.have = 0
        self.seats: list[Any] | None = None

    def take(self, cut: dict[str, Any]) -> None:
        assert cut["from"] <= self.have or cut["from"] <= cut["gone"]
        if cut["from"] > self.have:
            self.rounds, self.seats, self.have = [], None, cut["from"]
        for first, start, steps, works, seats, waiting, more in cut["items"][self.have - cut["from"] :]:
            self.have += 1
            self.seats = seats if seats != 0 else self.seats
            assert self.seats is not None, "the first item says who sits where"
            at = start
            for place in range(0, len(steps), 2):
                self.rounds.append(
                    {
                        "index": first + place // 2, "start": at, "end": at + steps[place], "works": works,
                        "seats": self.seats, "waiting": waiting, "more": more,
                    }
                )  # fmt: skip
                at += sum(steps[place : place + 2])


def told(done: Round) -> dict[str, Any]:
    """A round as a reader should have it, but for what it has alone."""
    signs = [""] * SLOTS
    for cell in cells(done):
        signs[cell.slot] = "".join(SIGNS[work] for work in cell.works)
    waiting = [done.waiting_streams, done.waiting_decisions]
    return {
        "index": done.index, "start": round(done.start * TICKS), "end": round(done.end * TICKS),
        "works": "|".join(signs),
        "seats": [[seat.slot, seat.id, seat.kind[0]] for seat in done.seats], "waiting": waiting if any(waiting) else 0,
    }  # fmt: skip


def without(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if name != "more"} for one in rounds]


@given(stories, st.lists(st.integers(1, 9)))
def test_a_reader_gets_every_round_however_they_are_cut(rounds: list[Round], portions: list[int]) -> None:
    feed, reader, at = Feed(SLOTS, keep=10_000), Reader(), 0
    for portion in (*portions, len(rounds)):
        feed.put(rounds[at : at + portion])
        at += portion
        reader.take(json.loads(json.dumps(feed.cut(), allow_nan=False)))
    assert without(reader.rounds) == [told(done) for done in rounds]


def test_what_a_round_has_alone_is_told() -> None:
    feed, reader = Feed(SLOTS, keep=100, rounds=two_streams_and_a_decision()), Reader()
    reader.take(feed.cut())
    more = [one["more"] for one in reader.rounds]
    assert more[0] == 0
    assert more[1] == {"came": [[9, "d", 70, 75_000]]}
    assert more[2] == {"in": [[2, 9, "d", 0]], "piece": [2, 9, 0, 32, 1, 1]}
    assert more[5]["out"] == [[2, 9]]
    assert more[5]["rows"] == [[2, "+", 4]] and more[5]["got"] == [0, 1, 2]
    assert more[8]["end"] == [[2, 9, "d", "answered"]]


def quiet(count: int, first: int = 0) -> list[Round]:
    """Rounds in which nothing changes."""
    [one] = [done for done in two_streams_and_a_decision() if done.index == 0]
    return [
        Round(n, n * 0.01, n * 0.01 + 0.008, one.width, 1, one.rows, seats=one.seats)
        for n in range(first, first + count)
    ]


def test_quiet_rounds_are_sent_as_runs() -> None:
    feed = Feed(SLOTS, keep=10_000, rounds=quiet(1000))
    cut = feed.cut()
    assert len(cut["items"]) == -(-1000 // RUN)
    assert len(json.dumps(cut, separators=(",", ":"))) < 11 * 1000, "bytes a round"
    reader = Reader()
    reader.take(cut)
    assert len(reader.rounds) == 1000


def test_what_was_sent_is_never_changed() -> None:
    feed = Feed(SLOTS, keep=10_000, rounds=quiet(3))
    first = json.dumps(feed.cut())
    feed.tape.rewind(0)  # somebody asks for it again; somebody else has it
    feed.put(quiet(5, first=3))
    again = feed.cut()
    assert json.dumps(again["items"][:1]) == json.dumps(json.loads(first)["items"])
    assert again["items"][1][0] == 3


def test_old_rounds_are_forgotten_and_the_rest_can_be_read_alone() -> None:
    feed = Feed(SLOTS, keep=100)
    for first in range(0, 1000, 10):
        feed.put(quiet(10, first))
        feed.cut()
    feed.tape.rewind(0)
    cut, reader = feed.cut(), Reader()
    assert cut["gone"] > 0 and cut["from"] == cut["gone"]
    reader.take(cut)
    assert reader.rounds[-1]["index"] == 999
    assert 100 <= len(reader.rounds) < 100 + RUN


def test_a_frame_has_so_many_items_and_the_rest_comes_with_the_next() -> None:
    changing = [done for n in range(400) for done in quiet(1, n)]
    changing = [
        Round(d.index, d.start, d.end, d.width, 1, d.rows if d.index % 2 else (), seats=d.seats) for d in changing
    ]
    feed, reader = Feed(SLOTS, keep=10_000, rounds=changing), Reader()
    sizes = []
    while not sizes or reader.have > sizes[-1]:
        sizes.append(reader.have)
        reader.take(feed.cut())
    assert [after - before for before, after in pairwise(sizes)] == [ITEMS] * (400 // ITEMS) + [400 % ITEMS]


# --- the widget -----------------------------------------------------------------------------------------------------


def test_a_timeline_shows_all_rounds_of_its_engine(engine: lanes.Engine, timeline: Timeline) -> None:
    reader = Reader()
    timeline.observe(lambda change: reader.take(change["new"]["timeline"]["rounds"]), "frame")
    reader.take(shown(timeline)["rounds"])
    handles: list[Any] = [engine.stream(f"Number {n}", max_tokens=20, ignore_eos=True) for n in range(3)]
    handles.append(engine.score("Is it so? " * 12, [" yes", " no"]))
    for handle in handles:
        handle.result(WAIT)
    last = engine.rounds.next_index - 1
    until(lambda: reader.rounds and reader.rounds[-1]["index"] == last)
    assert [one["index"] for one in reader.rounds] == [done.index for done in engine.rounds]
    assert [one["end"] for one in reader.rounds] == [round(done.end * TICKS) for done in engine.rounds]
    answered = engine.rounds.totals.decisions.answered
    assert f"{answered} decision" in shown(timeline)["summary"]
    json.dumps(timeline.frame, allow_nan=False)


def test_a_story_is_told_in_words_and_goes_on_until_its_end(engine: lanes.Engine, timeline: Timeline) -> None:
    engine.pause()
    stream = engine.stream("The sea", max_tokens=12, ignore_eos=True)
    engine.step(3)
    assert act(timeline, "tell_story", id=stream.id)["state"] == "done"
    until(lambda: shown(timeline)["story"])
    assert shown(timeline)["story"]["words"][-2:] == [
        "It has not ended.",
        "It needed no piece, so no stream paid for it.",
    ]
    engine.resume()
    stream.result(WAIT)
    until(lambda: shown(timeline)["story"]["ended"])
    told = shown(timeline)["story"]
    assert told["words"] == engine.rounds.story(stream.id).words(engine.snapshot().policy)
    assert (told["id"], told["kind"]) == (stream.id, "stream")
    assert act(timeline, "tell_story", id=None)["state"] == "done"
    until(lambda: shown(timeline)["story"] is None)


def test_a_story_says_which_rounds_and_who_paid(engine: lanes.Engine, timeline: Timeline) -> None:
    engine.pause()
    stream = engine.stream("The sea", max_tokens=60, ignore_eos=True)
    engine.step(5)
    decision = engine.score("Is it so, or is it not so? " * 10, [" yes", " no"])
    engine.resume()
    decision.result(WAIT)
    act(timeline, "tell_story", id=decision.id)
    until(lambda: (shown(timeline)["story"] or {}).get("ended"))
    told = shown(timeline)["story"]
    assert list(told["pieces"]) == [done.index for done in engine.rounds if done.piece and done.piece.id == decision.id]
    assert stream.id in told["paid"]
    stream.cancel()
    assert stream.wait(WAIT)


@pytest.mark.parametrize(
    ("do", "given", "why"),
    [
        ("tell_story", {"id": 10**9}, "no request 1000000000"),
        ("tell_story", {"id": 1.5}, "id"),
        ("tell_story", {}, "id"),
        ("save_trace", {"path": "/etc/passwd"}, "path"),
    ],
)
def test_what_cannot_be_done_is_refused(timeline: Timeline, do: str, given: Any, why: str) -> None:
    told = act(timeline, do, **given)
    assert told["state"] == "refused" and why in told["why"]


def test_a_run_is_kept_and_the_next_begins_after_it(engine: lanes.Engine, timeline: Timeline) -> None:
    engine.stream("The sea", max_tokens=5, ignore_eos=True).result(WAIT)
    count = engine.rounds.next_index
    assert act(timeline, "keep_run")["state"] == "done"
    until(lambda: shown(timeline)["reference"])
    kept = shown(timeline)["reference"]
    assert shown(timeline)["origin"] == count
    assert kept["title"] == f"rounds 0 to {count - 1}, kept"
    reader = Reader()
    until(lambda: reader.take(shown(timeline)["reference"]["rounds"]) or reader.rounds[-1]["index"] == count - 1)
    assert act(timeline, "keep_run")["why"] == "there is no round to keep yet: run something first"
    engine.stream("The sea", max_tokens=7, ignore_eos=True).result(WAIT)
    until(lambda: "0 rounds" not in (shown(timeline)["figures"] or "0 rounds"))
    text = repr(timeline.record())
    assert text.startswith(f"rounds 0 to {count - 1}, kept\nTimeline: ") and "\nlive\nTimeline: " in text
    assert act(timeline, "drop_run")["state"] == "done"
    until(lambda: shown(timeline)["reference"] is None)
    assert shown(timeline)["origin"] == 0


def test_each_kept_run_has_a_tape_of_its_own(engine: lanes.Engine) -> None:
    panel = TimelinePanel(engine, reference=two_streams_and_a_decision())
    assert set(panel.tapes) == {"rounds", "kept-1"}
    engine.stream("The sea", max_tokens=2, ignore_eos=True).result(WAIT)
    panel.keep_run()
    assert set(panel.tapes) == {"rounds", "kept-2"}
    panel.drop_run()
    assert set(panel.tapes) == {"rounds"}


def test_a_simulation_can_be_the_reference(engine: lanes.Engine) -> None:
    simulated = simulate(WORK, "idle", slots=2, record=True)
    timeline = Timeline(engine, reference=simulated)
    kept = shown(timeline)["reference"]
    assert (kept["title"], kept["slots"]) == ('simulated, policy "idle"', 2)
    assert kept["figures"].startswith(f"{simulated.rounds} rounds · 1 decision, p50 ")
    reader = Reader()
    reader.take(kept["rounds"])
    assert len(reader.rounds) == len(simulated.log)
    timeline.close()


def test_a_reference_without_rounds_is_refused(engine: lanes.Engine) -> None:
    other: Any = 3
    with pytest.raises(lanes.InvalidRequest, match="holds no rounds"):
        Timeline(engine, reference=other)


def test_a_trace_is_written_under_a_free_name(
    engine: lanes.Engine, timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / TRACE.format(1)).write_text("mine")
    engine.stream("The sea", max_tokens=5, ignore_eos=True).result(WAIT)
    assert act(timeline, "save_trace")["state"] == "done"
    path = tmp_path / TRACE.format(2)
    until(lambda: shown(timeline)["saved"] == str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(event["name"].startswith("round ") for event in events) == len(engine.rounds)
    assert (tmp_path / TRACE.format(1)).read_text() == "mine"


def test_a_trace_that_cannot_be_written_says_why(
    timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.setattr(Path, "cwd", lambda: gone)
    gone.rmdir()
    told = act(timeline, "save_trace")
    assert told["state"] == "refused" and "the trace was not written" in told["why"]
    assert shown(timeline)["saved"] is None


def test_its_record_is_the_still_timeline(engine: lanes.Engine, timeline: Timeline) -> None:
    engine.stream("The sea", max_tokens=5, ignore_eos=True).result(WAIT)
    record = timeline.record()
    assert repr(record) == repr(engine.rounds.timeline())
    html = record._repr_html_()
    assert engine.rounds.timeline().svg() in html and "<pre>Timeline: " in html and "<script" not in html


# --- the front end --------------------------------------------------------------------------------------------------


def test_the_front_end_is_one_module_with_what_it_is_built_on() -> None:
    code = front.module("timeline")
    assert code.index("function timelineRun") < code.index("PANELS.timeline = ")
    assert "http" not in code and "import " not in code and "innerHTML" not in code
    assert code.count("export default") == 1


def test_no_two_files_of_the_front_end_give_one_name() -> None:
    names: list[str] = []
    for path in Path(front.__file__).parent.glob("*.mjs"):
        text = path.read_text(encoding="utf-8")
        names += re.findall(r"^(?:async )?(?:const|let|function|class) (\w+)", text, re.MULTILINE)
        for line in re.findall(r"^const \w+ = [^;({\[]*;", text, re.MULTILINE):
            names += re.findall(r", (\w+) = ", line)
    assert len(set(names)) == len(names), sorted(name for name in set(names) if names.count(name) > 1)
