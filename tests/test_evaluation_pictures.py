"""How an evaluation reads: as text, as HTML, as static pictures and as plotly figures."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest
from answered import answer, answers, simulate

from lanes.errors import InvalidRequest
from lanes.evaluation import Evaluation, evaluate

P, GOLD = simulate(120, 4, seed=1)
FOUND = evaluate(answers(P, orders=3, flips=1, seconds=0.2), [None, *GOLD[1:]], question="team", resamples=50)
KINDS = ("reliability", "risk_coverage", "confusion")
MANY = tuple(f"option {at}" for at in range(255))


def crowded() -> Evaluation:
    p = np.full((300, 255), 1e-4)
    p[np.arange(300), np.arange(300) % 255] = 0.9
    return evaluate(answers(p / p.sum(axis=1, keepdims=True), MANY), [MANY[0]] * 300, resamples=5)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def tags(svg: str, name: str) -> list[ElementTree.Element]:
    return parsed(svg).findall(f".//{{http://www.w3.org/2000/svg}}{name}")


def test_the_text_is_a_table_of_what_is_there() -> None:
    lines = repr(FOUND).splitlines()
    assert lines[0] == "Evaluation: team (choice), 4 keys, 119 rows, 1 without gold, own temperatures"
    assert lines[1].split() == ["figure", "value", "95", "%", "interval"]
    there = [name for name, figure in FOUND.figures.items() if figure is not None]
    assert len(lines) == 2 + len(there)
    assert not any(name in repr(FOUND) for name in ("RPS", "MAE", "KL", "abstained"))
    assert f"{FOUND.accuracy.value:.4f}" in lines[2]  # pyright: ignore[reportOptionalMemberAccess]


def test_the_html_holds_the_table_and_the_pictures_and_nothing_from_outside() -> None:
    html = FOUND._repr_html_()
    for kind in KINDS:
        assert FOUND.svg(kind) in html
    assert "coverage at 5 % error" in html
    bare = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    for foreign in ("<script", "<style", "http", "class=", "onclick", "NaN", "None"):
        assert foreign not in bare


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_are_well_formed_and_say_what_they_show(kind: str) -> None:
    root = parsed(FOUND.svg(kind))
    assert (root.get("role"), bool(root.get("aria-label"))) == ("img", True)
    words = [text.text for text in tags(FOUND.svg(kind), "text")]
    axes = {
        "reliability": ["Reliability", "probability of the answer", "share right"],
        "risk_coverage": ["Risk and coverage", "share of rows answered", "share of those wrong"],
        "confusion": ["Confusion", "chosen", "gold"],
    }
    assert words[:3] == axes[kind]


@pytest.mark.parametrize("found", [FOUND, crowded(), evaluate([answer([0.6, 0.4])], ["red"])])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_drawn_outside_the_picture(found: Evaluation, kind: str) -> None:
    for mark in [*tags(found.svg(kind), "rect"), *tags(found.svg(kind), "circle")]:
        x, y = float(mark.get("x") or mark.get("cx") or -1), float(mark.get("y") or mark.get("cy") or -1)
        width, height = float(mark.get("width", 0)), float(mark.get("height", 0))
        assert 58 <= x <= x + width <= 268.1
        assert 30 <= y <= y + height <= 240.1


def test_the_reliability_picture_has_one_mark_for_each_bin_with_rows() -> None:
    assert len(tags(FOUND.svg("reliability"), "circle")) == sum(line.rows > 0 for line in FOUND.bins)


def test_the_confusion_picture_draws_each_cell_with_rows_and_its_count() -> None:
    cells = tags(FOUND.svg("confusion"), "rect")[1:]
    counts = FOUND.confusion_counts[FOUND.confusion_counts > 0]
    assert len(cells) == len(counts)
    shown = [text.text for text in tags(FOUND.svg("confusion"), "text")]
    assert [str(count) for count in counts] == [text for text in shown if text and text.isdigit()]


def test_many_keys_are_drawn_without_names() -> None:
    words = [text.text for text in tags(crowded().svg("confusion"), "text")]
    assert words == ["Confusion", "chosen", "gold"]


def test_keys_are_escaped_and_cut() -> None:
    keys = ("<b>&", "a key much longer than its room")
    svg = evaluate([answer([0.4, 0.6], keys)] * 2, keys, resamples=5).svg("confusion")
    words = [text.text or "" for text in tags(svg, "text")]
    assert "<b>&" in words
    assert "a key mu…" in words


def test_an_unknown_picture_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="kind must be one of"):
        FOUND.svg("pie")


@pytest.mark.parametrize("kind", KINDS)
def test_plotly_figures_have_titles_axes_and_the_evaluations_numbers(kind: str) -> None:
    plot: Any = getattr(FOUND, kind)()
    drawn = plot.to_dict()
    assert drawn["layout"]["title"]["text"]
    assert drawn["layout"]["xaxis"]["title"]["text"] and drawn["layout"]["yaxis"]["title"]["text"]
    trace = plot.data[-1]
    if kind == "reliability":
        filled = [line for line in FOUND.bins if line.rows]
        assert list(trace.y) == [line.accuracy for line in filled]
        tops = [y + up for y, up in zip(trace.y, trace.error_y.array, strict=True)]
        assert tops == pytest.approx([line.high for line in filled])
    elif kind == "risk_coverage":
        assert list(trace.y) == FOUND.curve.risk.tolist()
    else:
        assert np.array_equal(trace.z, FOUND.confusion_counts)


def test_plotly_is_loaded_by_its_figures_alone() -> None:
    import subprocess
    import sys

    program = "import sys, lanes.evaluation; print([n for n in ('plotly', 'pandas', 'mlx.core') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
