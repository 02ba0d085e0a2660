"""Runs looked into and set against each other: whatever holds rounds, plotly figures, two runs on one axis."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from stories import SLOTS, WIDTH, stories
from test_story import two_streams_and_a_decision

import lanes
from lanes.record import Finished, Round, Rounds, RowsOf, Seat, Submitted, compare
from lanes.record.compare import Figures, aligned
from lanes.record.figure import figure
from lanes.record.lives import Life, lives
from lanes.record.source import Run, run
from lanes.simulation import Arrival, simulate

SVG = "{http://www.w3.org/2000/svg}"
WORK = [Arrival(0.0, "stream", 40, 30), Arrival(0.0, "stream", 40, 30), Arrival(0.4, "decision", 120)]


def record(rounds: list[Round]) -> Rounds:
    made = Rounds(SLOTS)
    for done in rounds:
        made.append(done)
    return made


# --- whatever holds rounds ------------------------------------------------------------------------------------------


def test_a_record_its_rounds_a_picture_and_a_simulation_are_runs():
    rounds = two_streams_and_a_decision()
    whole = record(rounds)
    assert run(whole).rounds == whole.copy() and run(whole).slots == SLOTS
    assert run(whole.timeline(last=4)) == Run(whole.copy()[-4:], SLOTS)
    assert run(rounds[:2]) == Run(tuple(rounds[:2]), 2), "two slots were used"
    assert run([]) == Run((), 1)
    simulated = simulate(WORK, slots=5, record=True)
    assert run(simulated) == Run(simulated.log, 5)


def test_an_engine_is_a_run(engine: lanes.Engine):
    engine.score("So?", [" yes", " no"]).result(60)
    assert run(engine).slots == engine.rounds.slots
    assert run(engine).rounds[:1] == engine.rounds.copy()[:1]


@pytest.mark.parametrize("other", [3, "rounds", [1, 2], {"a": 1}, None])
def test_what_holds_no_rounds_is_refused(other: Any):
    with pytest.raises(lanes.InvalidRequest, match=r"holds no rounds: pass engine\.rounds"):
        run(other)


def test_a_simulation_that_kept_nothing_says_how_to_keep_it():
    with pytest.raises(lanes.InvalidRequest, match="record=True"):
        run(simulate(WORK))


# --- requests from submit to end ------------------------------------------------------------------------------------


def test_lives_share_rows_only_where_they_do_not_overlap():
    asked = [Submitted(id, "decision", 9, at) for id, at in ((1, 0.0), (2, 0.5), (3, 2.0), (4, 2.5))]
    ends = [Finished(None, id, "decision", "answered") for id in (1, 2, 3)]
    rounds = [
        Round(0, 0.0, 1.0, WIDTH, submitted=tuple(asked[:2]), finished=(ends[0],)),
        Round(1, 1.0, 2.0, WIDTH, finished=(ends[1],)),
        Round(2, 2.0, 3.0, WIDTH, submitted=tuple(asked[2:]), finished=(ends[2],)),
    ]
    assert lives(rounds, "decision") == [
        Life(1, "decision", 0.0, 1.0, "answered", 0), Life(2, "decision", 0.5, 2.0, "answered", 1),
        Life(3, "decision", 2.0, 3.0, "answered", 0), Life(4, "decision", 2.5, None, None, 1),
    ]  # fmt: skip
    assert lives(rounds, "stream") == []


# --- two runs -------------------------------------------------------------------------------------------------------


def test_a_run_in_figures():
    rounds = two_streams_and_a_decision()
    found = Figures.of(rounds)
    assert (found.rounds, found.decisions, found.decision_p50_s, found.gap_worst_s) == (9, 1, 6.0, 1.25)
    assert (found.tokens, found.seconds) == (20, 6.75)
    assert found.tokens_per_s == pytest.approx(20 / 6.75)
    assert found.words() == "9 rounds · 1 decision, p50 6.00 s · worst gap 1.25 s · 3.0 tokens/s"
    assert Figures.of([]).words() == "0 rounds · 0 decisions · worst gap - · - tokens/s"


def test_runs_are_aligned_at_their_first_rounds():
    rounds = two_streams_and_a_decision()[2:]
    moved = aligned(rounds)
    assert (moved[0].start, moved[0].end) == (0.0, 1.25)
    assert moved[1].submitted[0].at == 3.0 - 1.0
    assert Figures.of(moved) == Figures.of(rounds)
    assert aligned([]) == ()


def test_a_record_and_a_simulation_stand_on_one_axis():
    quick = simulate(WORK, slots=3, record=True)
    both = compare(record(two_streams_and_a_decision()), quick, names=("measured", "simulated <off>"))
    picture = ET.fromstring(both.svg())
    groups = [node for node in picture.iter(f"{SVG}g") if node.get("transform")]
    assert len(groups) == 2
    marks = [
        [node.text for node in group.iter(f"{SVG}text") if node.get("text-anchor") == "middle"] for group in groups
    ]
    assert marks[0] == marks[1] != []
    titles = [node.text for node in picture.iter(f"{SVG}text") if node.get("class") == "title"]
    assert titles == list(both.titles)
    assert titles[1] and titles[1].startswith("simulated <off>: ")
    assert repr(both).startswith("measured\nTimeline: 9 rounds, 3 slots\n")
    assert "<script" not in both.svg() and both._repr_svg_() == both.svg()


def test_a_run_with_itself_is_drawn_twice_alike():
    rounds = two_streams_and_a_decision()
    later = [aligned(rounds)[0], *aligned(rounds)[1:]]
    groups = [node for node in ET.fromstring(compare(rounds, later).svg()).iter(f"{SVG}g") if node.get("transform")]
    first, second = ([ET.tostring(path) for path in group.iter(f"{SVG}path")] for group in groups)
    assert first == second


def test_nothing_can_be_compared_too():
    empty = compare([], [])
    assert ET.fromstring(empty.svg()).tag == f"{SVG}svg"
    assert empty.figure().data == ()


def test_names_are_two():
    for names in (("one",), "ab", ()):
        with pytest.raises(lanes.InvalidRequest, match="two texts"):
            compare([], [], names)


def test_an_engine_s_record_is_compared_with_what_a_simulation_says(engine: lanes.Engine):
    engine.stream("The sea", max_tokens=8, ignore_eos=True).result(60)
    both = engine.rounds.compare(simulate(WORK, record=True))
    assert both.names == ("this run", "the other")
    assert both.figures[0].tokens == engine.rounds.totals.tokens


# --- plotly ---------------------------------------------------------------------------------------------------------


def bars(plot: Any, name: str) -> list[Any]:
    return [trace for trace in plot.data if trace.name == name]


def test_a_figure_has_every_round_decision_eviction_and_gap():
    rounds = two_streams_and_a_decision()
    plot: Any = figure(rounds, SLOTS)
    [decode] = bars(plot, "decode: a stream's next token")
    assert len(decode.base) == sum(row.kind == "decode" for done in rounds for row in done.rows)
    [piece] = bars(plot, "piece: a stretch of a prompt")
    assert list(piece.base) == [1.0, 2.25, 5.0] and list(piece.x) == [1.25] * 3
    assert [custom[1] for custom in piece.customdata] == ["decision 9"] * 3
    [decision] = bars(plot, "decision, from submit to end")
    assert list(decision.base) == [0.75] and list(decision.x) == [6.0]
    [evicted] = bars(plot, "evicted")
    assert list(evicted.x) == [4.0]
    beside = bars(plot, "gap beside a piece")
    assert [list(trace.y) for trace in beside] == [[1250.0] * 3] * 2
    assert [trace.showlegend for trace in beside] == [True, False], "once in the legend"
    assert plot.layout.xaxis.title.text == "seconds since the first round"
    assert list(plot.layout.yaxis.ticktext) == ["decisions", "slot 0", "slot 1", "slot 2"]


def test_two_runs_share_a_figure_s_axis():
    plot: Any = compare(two_streams_and_a_decision(), simulate(WORK, record=True), ("a", "<b>")).figure()
    assert {trace.xaxis for trace in plot.data} == {None}
    heads = [note.text for note in plot.layout.annotations]
    assert heads[0].startswith("<b>a: 9 rounds") and heads[1].startswith("<b>&lt;b&gt;: ")
    domains = sorted(plot.layout[name].domain for name in plot.layout if name.startswith("yaxis"))
    assert all(low < top for low, top in domains)
    assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(domains))


@given(stories)
def test_any_rounds_make_a_figure(rounds: list[Round]):
    plot: Any = figure(rounds, SLOTS)
    json.loads(plot.to_json())
    assert sum(len(trace.base) for trace in plot.data if trace.name == "draft: proposed tokens") == sum(
        row.kind == "draft" for done in rounds for row in done.rows
    )


def test_a_record_s_figure_shows_its_newest_rounds():
    whole = record(two_streams_and_a_decision())
    [decode] = bars(whole.figure(last=2), "decode: a stream's next token")
    assert {custom[0] for custom in decode.customdata} == {7, 8}
    [decode] = bars(whole.figure(since=8), "decode: a stream's next token")
    assert {custom[0] for custom in decode.customdata} == {8}


def test_without_plotly_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install plotly.*timeline\(\)"):
        figure(
            [Round(0, 0.0, 1.0, WIDTH, 1, (RowsOf(0, 1, "decode", 1, 1),), seats=(Seat(0, 1, "stream", "live"),))], 1
        )


def test_plotly_is_loaded_by_figures_alone():
    program = "import sys, lanes.record, lanes.record.figure; print('plotly' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
