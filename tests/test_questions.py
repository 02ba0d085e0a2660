"""Typed questions as data: what they accept, what they refuse, and what never changes their answers."""

from typing import Any

import numpy as np
import pytest

import lanes
from lanes import Choice, Noul, Score
from lanes.decisions.questions import Option, shown


def test_options_follow_from_the_criteria() -> None:
    assert Noul("Is it?").options == (Option("true"), Option("false"))
    assert Noul("Is it?", {"false": "Anything else"}).options == (Option("true"), Option("false", "Anything else"))
    assert Noul("Is it?", {True: "Yes, so", False: None}).options == (Option("true", "Yes, so"), Option("false"))
    assert Choice("Which?", {"a ": "first", "b": None}).options == (Option("a ", "first"), Option("b"))
    assert Choice("Which?", ["x", "y"]).keys == ("x", "y")
    assert Score("How much?", ["low", {"level": "high"}]).options == (
        Option("0", "low"),
        Option("1", '{"level": "high"}'),
    )


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (Noul, ("",), "empty"),
        (Noul, (3,), "text, an object or an array"),
        (
            Noul,
            (
                "Is it?",
                {"yes": "so"},
            ),
            '"true" and "false"',
        ),
        (
            Noul,
            (
                "Is it?",
                {"true": "so", True: "so"},
            ),
            '"true" and "false"',
        ),
        (
            Noul,
            (
                "Is it?",
                ["so"],
            ),
            "criteria",
        ),
        (Choice, ("Which?",), "2 to 255"),
        (
            Choice,
            (
                "Which?",
                ["a"],
            ),
            "2 to 255 options, not 1",
        ),
        (
            Choice,
            (
                "Which?",
                [str(n) for n in range(256)],
            ),
            "not 256",
        ),
        (
            Choice,
            (
                "Which?",
                ["a", "a"],
            ),
            "'a' is there twice",
        ),
        (
            Choice,
            (
                "Which?",
                ["a", ""],
            ),
            "empty",
        ),
        (
            Choice,
            (
                "Which?",
                {"a": None, 3: None},
            ),
            "option",
        ),
        (
            Choice,
            (
                "Which?",
                "ab",
            ),
            "list of options",
        ),
        (
            Choice,
            (
                "Which?",
                {"a": "x", "b": object()},
            ),
            "text, an object or an array",
        ),
        (
            Choice,
            (
                {"ask": float("nan")},
                ["a", "b"],
            ),
            "JSON",
        ),
        (
            Score,
            (
                "How much?",
                ["one"],
            ),
            "2 to 10",
        ),
        (
            Score,
            (
                "How much?",
                [str(n) for n in range(11)],
            ),
            "not 11",
        ),
        (
            Score,
            (
                "How much?",
                {"0": "low", "1": "high"},
            ),
            "list of levels",
        ),
        (
            Score,
            (
                "How much?",
                ["low", None],
            ),
            "level 1",
        ),
        (
            Score,
            (
                "\ud800",
                ["low", "high"],
            ),
            "half a character",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_when_it_is_made(kind: Any, given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(lanes.InvalidRequest, match=said):
        kind(*given)


def test_255_options_and_10_levels_are_allowed() -> None:
    assert len(Choice("Which?", [str(n) for n in range(255)]).keys) == 255
    assert Score("How much?", [f"level {n}" for n in range(10)]).keys == tuple("0123456789")


def test_objects_and_arrays_are_shown_as_json_in_their_own_order() -> None:
    assert shown({"b": 1, "a": ["é", None]}, "it") == '{"b": 1, "a": ["é", null]}'
    assert shown((1, 2), "it") == "[1, 2]"
    assert shown({"n": np.float64(0.5), "m": np.arange(2)}, "it") == '{"n": 0.5, "m": [0, 1]}'
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(lanes.InvalidRequest, match="JSON"):
        shown(loop, "it")


def test_a_fingerprint_tells_questions_apart_and_nothing_else() -> None:
    one = Choice("Which?", {"a": "first", "b": None})
    assert one.fingerprint == Choice("Which?", {"a": "first", "b": None}).fingerprint
    others = [
        Choice("Which one?", {"a": "first", "b": None}),
        Choice("Which?", {"a": "first", "b": "second"}),
        Choice("Which?", {"b": None, "a": "first"}),
        Score("Which?", ["first", "b"]),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5
