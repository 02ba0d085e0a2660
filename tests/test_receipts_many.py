"""Values of which one attempt gives many: raw numbers are kept, and figures are over all of them."""

import asyncio
import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from lanes import receipts
from lanes.errors import InvalidRequest
from lanes.receipts.canonical import encode, sha256
from lanes.receipts.spread import DOTS, RIGHT


def measured(*gives: dict[str, Any], repeats: int = 2) -> receipts.Draft:
    """A receipt of arms "a", "b", ... that give these values, every time."""
    draft = receipts.begin("many", "Every number is kept.")
    draft.check("something", 1, 1)

    def arm(given: dict[str, Any]) -> Any:
        async def run() -> dict[str, Any]:
            return given

        return run

    arms = {chr(ord("a") + at): arm(given) for at, given in enumerate(gives)}
    asyncio.run(draft.measure(arms, repeats=repeats, warmups=0))
    return draft


def test_figures_are_over_all_numbers_of_all_attempts(tmp_path: Path) -> None:
    draft = measured({"seconds": 2.0, "decision_s": [0.5, 0.25, 1.0]}, repeats=3)
    record = draft.record()
    assert record.samples[0].values["decision_s"] == (0.5, 0.25, 1.0)
    own = record.aggregates["a"]["decision_s"]
    assert (own.n, own.min, own.median, own.max) == (9, 0.25, 0.5, 1.0)
    path = draft.close(tmp_path)
    assert receipts.verify(path, any_commit=True).ok
    assert receipts.read(path).record == draft.record()


def test_numpy_gives_many_as_well() -> None:
    found = measured({"gap_s": np.array([0.5, 0.25])}, {"gap_s": np.float32(0.5)}).record().samples
    assert [sample.values["gap_s"] for sample in found[:2]] == [(0.5, 0.25), 0.5]


def test_the_median_stands_for_an_attempt_in_a_ratio() -> None:
    draft = measured({"decision_s": [1.0, 9.0, 3.0]}, {"decision_s": [1.0, 2.0]})
    assert draft.ratio("a over b", ("a", "decision_s"), ("b", "decision_s")) == 2.0
    assert draft.ratio("medians", ("a", "decision_s"), ("b", "decision_s"), kind="medians") == 2.0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"gap_s": []}, "empty list"),
        ({"gap_s": [0.5, float("nan")]}, "gap_s.1 must be a finite number"),
        ({"gap_s": [0.5, [0.25]]}, "gap_s.1 must be"),
        ({"seconds": [1.0, 2.0]}, "one number above 0"),
        ({"seconds": 1.0, "words": [3, 4], "words_per_s": 7.0}, "one number each"),
        ({"seconds": 1.0, "words": 3, "words_per_s": [3.0]}, "one number each"),
    ],
)
def test_what_cannot_be_many_fails_the_attempt(given: dict[str, Any], says: str) -> None:
    sample = measured(given).record().samples[0]
    assert not sample.ok
    assert says in str(sample.error)


def test_a_number_that_was_changed_is_found(tmp_path: Path) -> None:
    path = measured({"seconds": 2.0, "decision_s": [0.5, 0.25, 1.0]}).close(tmp_path)
    changed = json.loads(path.read_bytes())
    changed["samples"][1]["values"]["decision_s"][2] = 3.0
    data = encode(changed)
    forged = tmp_path / f"{sha256(data)}.json"
    forged.write_bytes(data)
    fields = [finding.field for finding in receipts.verify(forged, any_commit=True).findings]
    assert "aggregates.a.decision_s.max" in fields


@pytest.mark.parametrize("value", [[], ["0.5"], [True], [[0.5]]])
def test_a_list_of_anything_but_numbers_is_no_value(tmp_path: Path, value: list[Any]) -> None:
    path = measured({"seconds": 2.0, "decision_s": [0.5]}).close(tmp_path)
    changed = json.loads(path.read_bytes())
    changed["samples"][0]["values"]["decision_s"] = value
    data = encode(changed)
    forged = tmp_path / f"{sha256(data)}.json"
    forged.write_bytes(data)
    fields = [finding.field for finding in receipts.verify(forged, any_commit=True).findings]
    assert any(field.startswith("samples.0.values.decision_s") for field in fields)


def test_a_spread_shows_every_number_and_its_percentiles() -> None:
    draft = measured({"gap_s": [0.5, 0.25, 1.0]}, {"gap_s": [0.125]}, {"seconds": 1.0}, repeats=1)
    found = draft.spread("gap_s")
    assert [(line.arm, line.numbers) for line in found.lines] == [("a", (0.5, 0.25, 1.0)), ("b", (0.125,))]
    assert repr(found).splitlines()[1].split() == ["a", "3", "500.0", "ms", "1.00", "s", "1.00", "s", "1.00", "s"]
    assert found.svg().count("<circle") == 4
    ElementTree.fromstring(found.svg())
    assert "<script" not in found.svg() and "http" not in found.svg().replace("http://www.w3.org/2000/svg", "")
    assert [line.arm for line in draft.spread("gap_s", ["b"]).lines] == ["b"]
    assert ">125.0 ms · n 1<" in draft.spread("gap_s", ["b"]).svg(), "one number has no percentiles"
    assert "p50 500.0 ms · p95 1.00 s · p99 1.00 s · n 3" in found.svg()


def test_a_rate_is_no_time() -> None:
    draft = measured({"seconds": 0.5, "tokens": 8})
    assert repr(draft.spread("tokens_per_s")).splitlines()[1].split() == ["a", "2", "16", "16", "16", "16"]
    assert "500.0 ms" in repr(draft.spread("seconds"))


def test_a_spread_of_very_many_numbers_keeps_the_largest() -> None:
    many = [0.001 * at for at in range(3000)] + [9.0]
    found = measured({"gap_s": many}, repeats=1).spread("gap_s")
    assert found.svg().count("<circle") <= DOTS + 1
    assert f'cx="{RIGHT:.1f}"' in found.svg()
    assert len(found.lines[0].numbers) == 3001


@pytest.mark.parametrize(("value", "arms"), [("gap_s", ["b"]), ("gap", []), ("gap_s", ["c"])])
def test_a_spread_of_what_was_not_measured_is_refused(value: str, arms: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="gap_s"):
        measured({"gap_s": [0.5]}, {"seconds": 1.0}).spread(value, arms)


def test_a_shown_receipt_holds_its_file_whole(tmp_path: Path) -> None:
    draft = measured({"decision_s": [0.5, 0.25]})
    draft.check("signs that HTML knows", "<a & b>", "<a & b>")
    assert "the file" not in draft._repr_html_()
    path = draft.close(tmp_path)
    shown = re.search(r"<pre[^>]*>(.*?)</pre>", draft._repr_html_(), re.DOTALL)
    assert shown and unescape(shown[1]).encode() == path.read_bytes()
    large = measured({"decision_s": [0.123456789 + at for at in range(20_000)]})
    large.close(tmp_path)
    assert "<pre" not in large._repr_html_()
