"""The labelled example set: its file, its labels, its variety, and how it is split."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.decisions.questions import Choice, Noul, Score
from lanes.errors import InvalidRequest
from lanes.labelled import Examples, examples

FOLDER = files("lanes.labelled")
SET = examples()
MESSAGES: list[str] = SET.frame["message"].tolist()
FEWEST = {"team": 25, "refund": 60, "urgency": 50}
SIX = ["s008", "s052", "s077", "s204", "s233", "s275"]  # of seed 0, on any machine

# Shared words over all words. A copy of a message with two words in five replaced is at 0.6 / 1.4 = 0.43 of it.
NEAR = 0.4


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def overlap(one: Iterable[str], other: Iterable[str]) -> float:
    left, right = set(one), set(other)
    return len(left & right) / len(left | right)


def teams(part: Examples) -> Counter[str]:
    return Counter(part.gold("team"))


def ids(part: Examples) -> list[str]:
    return part.frame["id"].tolist()


def test_the_file_is_sorted_utf8_json_lines() -> None:
    raw = (FOLDER / "support.jsonl").read_bytes()
    *lines, end = raw.decode("utf-8").split("\n")
    rows = [json.loads(line) for line in lines]
    assert end == ""
    assert not raw.startswith(b"\xef\xbb\xbf")
    assert [json.dumps(row, ensure_ascii=False) for row in rows] == lines
    assert [row["id"] for row in rows] == [f"s{number:03d}" for number in range(1, len(rows) + 1)]
    assert all(list(row) == ["id", "message", "team", "refund", "urgency"] for row in rows)
    assert all(type(row["refund"]) is bool and type(row["urgency"]) is int for row in rows)
    assert rows == SET.frame.to_dict("records")


def test_messages_are_many_and_of_all_lengths() -> None:
    lengths = [len(message.split()) for message in MESSAGES]
    assert len(SET) == 300
    assert (min(lengths), max(lengths)) == (5, 67)
    assert sum(length <= 10 for length in lengths) >= 20
    assert sum(length >= 40 for length in lengths) >= 15
    assert all(message == message.strip() for message in MESSAGES)


@pytest.mark.parametrize("name", ["team", "refund", "urgency"])
def test_every_label_is_an_option_with_rows_enough(name: str) -> None:
    counts = Counter(SET.gold(name))
    assert set(counts) == set(SET.questions[name].keys)
    assert min(counts.values()) >= FEWEST[name]


def test_no_message_is_another_ones_near_copy() -> None:
    bags = [set(words(message)) for message in MESSAGES]
    closest = max(combinations(range(len(bags)), 2), key=lambda pair: overlap(bags[pair[0]], bags[pair[1]]))
    assert overlap(*(bags[row] for row in closest)) < NEAR, [MESSAGES[row] for row in closest]


def test_no_wording_repeats() -> None:
    assert max(Counter(tuple(words(message)[:4]) for message in MESSAGES).values()) == 1
    runs: Counter[tuple[str, ...]] = Counter()
    for message in MESSAGES:
        said = words(message)
        runs.update({tuple(said[at : at + 6]) for at in range(len(said) - 5)})
    assert max(runs.values()) == 1, runs.most_common(3)


def test_some_messages_try_to_give_orders() -> None:
    orders = [row for row, message in enumerate(MESSAGES) if re.search(r"(?i)\bignore|set refund|override", message)]
    golds = {(SET.gold("team")[row], SET.gold("refund")[row]) for row in orders}
    assert len(orders) >= 4
    assert {team for team, _ in golds} >= {"billing", "account", "other"}
    assert {refund for _, refund in golds} == {"false"}


def test_the_questions_are_those_of_the_readme() -> None:
    assert [type(question) for question in SET.questions.values()] == [Choice, Noul, Score]
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for question in SET.questions.values():
        for option in question.options:
            assert option.text
            assert f"| {option.key} | {option.text} |" in readme


def test_the_licence_is_there() -> None:
    text = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert SET.licence == "CC0-1.0"
    assert "CC0 1.0 Universal" in text
    assert "waives" in text
    assert "`CC0-1.0`" in (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "language model" in SET.source


def test_gold_is_spelled_like_the_answers_keys() -> None:
    row = ids(SET).index("s001")
    assert [SET.gold(name)[row] for name in SET.questions] == ["billing", "true", "0"]
    with pytest.raises(InvalidRequest, match="no question 'message' here: ask for one of team, refund, urgency"):
        SET.gold("message")


def test_every_call_reads_a_frame_of_its_own() -> None:
    mine = examples()
    mine.frame.loc[0, "team"] = "sales"
    assert examples().gold("team")[0] == "billing"


@given(st.floats(0.01, 0.99), st.integers(0, 2**53))
def test_a_split_shares_no_row_and_gives_every_team_its_share(fraction: float, seed: int) -> None:
    first, second = SET.split(fraction, seed)
    assert sorted(ids(first) + ids(second)) == ids(SET)
    assert ids(first) == sorted(ids(first)) and ids(second) == sorted(ids(second))
    assert abs(len(first) - fraction * len(SET)) <= 1
    for team, count in teams(SET).items():
        assert abs(teams(first)[team] - fraction * count) <= 1


def test_a_split_keeps_rows_whole_and_questions() -> None:
    whole = SET.frame.set_index("id")
    for part in SET.split(0.3, seed=4):
        assert part.frame.set_index("id").equals(whole.loc[ids(part)])
        assert part.frame.index.tolist() == list(range(len(part)))
        assert part.questions == SET.questions


def test_the_seed_alone_decides_the_split() -> None:
    assert ids(SET.split()[0]) == ids(examples().split(0.5, seed=0)[0])
    assert ids(SET.split(seed=1)[0]) != ids(SET.split(seed=2)[0])
    assert ids(SET.split(0.02, seed=0)[0]) == SIX


def test_a_part_can_be_split_again() -> None:
    half, _ = SET.split()
    train, check = half.split(0.8, seed=3)
    assert (len(train), len(check)) == (120, 30)
    assert set(ids(train)) | set(ids(check)) == set(ids(half))


@pytest.mark.parametrize("fraction", [0.001, 1, 1.5])
def test_a_split_with_an_empty_part_is_refused(fraction: float) -> None:
    with pytest.raises(InvalidRequest, match="leaves one part empty"):
        SET.split(fraction)


@pytest.mark.parametrize("options", [{"fraction": 0}, {"fraction": "half"}, {"seed": -1}, {"seed": 0.5}])
def test_a_bad_split_is_refused_by_name(options: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(options))):
        SET.split(**options)  # pyright: ignore[reportArgumentType]


def test_it_shows_its_counts_and_first_messages() -> None:
    title, head, *rows = repr(SET).splitlines()
    assert title.startswith("Examples: 300 messages, 3 questions, CC0-1.0")
    assert head.split() == ["question", "option", "rows"]
    assert [tuple(row.split()) for row in rows] == [
        (name, key, str(SET.gold(name).count(key))) for name, asked in SET.questions.items() for key in asked.keys
    ]
    html = SET._repr_html_()
    assert "<script" not in html
    assert "s005" in html and "s006" not in html
    assert all(option.text in html for option in SET.questions["urgency"].options)


def test_messages_are_shown_as_text() -> None:
    mine = examples()
    mine.frame.loc[0, "message"] = "<b>now</b>"
    assert "<b>now" not in mine._repr_html_()
    assert "&lt;b&gt;now" in mine._repr_html_()
