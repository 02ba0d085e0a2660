"""The three dialects as schemas and conversions alone: what they take, what that asks, and how answers are told."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanes
from lanes.decisions.answers import Answer, Answers
from lanes.decisions.trie import log_softmax
from lanes.serving.decide.asking import OPENAI, OPTIONS, SYSTEM_ONE, dialect_of, read
from lanes.serving.decide.decisions import names
from lanes.serving.decide.dialect import Dialect, field
from lanes.serving.errors import Refusal, path
from lanes.serving.reading import parse

JSON = dict[str, Any]
SYSTEM: JSON = {
    "model": "jev-latest",
    "state": "I was charged twice.",
    "questions": {"a": {"type": "noul", "instructions": "So?"}},
}
OPEN: JSON = {"model": "default", "input": "hi", "questions": [{"type": "predicate", "instructions": "So."}]}
THIRD: JSON = {"input": "hi", "questions": [{"id": "a", "type": "yes_no", "question": "So?"}]}
COMPOSED, DECOMPOSED = "\u00e9", "e\u0301"
"""One letter in two spellings: two options, byte for byte."""
CHOICE: JSON = {"type": "choice", "instructions": "Which?", "choices": [{"value": "a"}, {"value": "b"}]}


def asked(dialect: Dialect[Any], body: JSON) -> Any:
    """What a body asks."""
    return dialect.asked(parse(dialect.body, body))


def question(dialect: Dialect[Any], body: JSON) -> lanes.decisions.questions.Question:
    """The only question that a body asks."""
    (one,) = asked(dialect, body).questions
    return one.question


def answer(type: str, options: tuple[str, ...], shares: list[float], **more: Any) -> Answer:
    """An answer that says these probabilities."""
    return Answer(type=type, options=options, logs=log_softmax(np.log(shares)), label_mass=0.75, **more)


def told(dialect: Dialect[Any], body: JSON, *answers: Answer) -> JSON:
    """What is said of these answers."""
    found = Answers({str(place): one for place, one in enumerate(answers)}, prompt_tokens=7, cached_tokens=3)
    said = dialect.told(parse(dialect.body, body), found, "a-model")
    return json.loads(said.model_dump_json(exclude_unset=True))


# --- which dialect --------------------------------------------------------------------------------------------------

BODIES: list[tuple[JSON, Dialect[Any]]] = [
    (SYSTEM, SYSTEM_ONE),
    ({"questions": {}}, SYSTEM_ONE),
    ({"state": None}, SYSTEM_ONE),
    ({"state": "x", "questions": THIRD["questions"]}, SYSTEM_ONE),
    (THIRD, OPTIONS),
    ({"questions": [{"question": "So?"}]}, OPTIONS),
    ({"questions": [{}, {"id": 1}]}, OPTIONS),
    (OPEN, OPENAI),
    ({}, OPENAI),
    ({"questions": []}, OPENAI),
    ({"questions": [1, "id", None]}, OPENAI),
    ({"questions": "id"}, OPENAI),
]


@pytest.mark.parametrize(("body", "dialect"), BODIES)
def test_the_body_tells_the_dialect(body: JSON, dialect: Dialect[Any]):
    assert dialect_of(body) is dialect


# --- System One -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["text", {"a": [1, None, True]}, ["a", {"b": 1.5}], {}, []])
def test_system_one_takes_any_state_as_it_is(state: Any):
    found = asked(SYSTEM_ONE, {**SYSTEM, "state": state, "seed": 1, "x_trace": "unknown fields are ignored"})
    assert (found.state, found.field) == (state, "state")


NOULS: list[tuple[JSON, lanes.Noul]] = [
    ({"instructions": "So?"}, lanes.Noul("So?")),
    ({"instructions": "So?", "criteria": None}, lanes.Noul("So?")),
    ({"instructions": "So?", "criteria": {"true": "a"}}, lanes.Noul("So?", {"true": "a"})),
    ({"instructions": "So?", "criteria": {"true": None, "false": ["b"]}}, lanes.Noul("So?", {"false": ["b"]})),
    ({"instructions": {"ask": "so"}, "criteria": {}}, lanes.Noul({"ask": "so"})),
    ({"criteria": {"true": "a"}}, lanes.Noul("Which of these is so?", {"true": "a"})),
]


@pytest.mark.parametrize(("given", "meant"), NOULS)
def test_a_noul_may_have_one_side_none_or_no_instructions(given: JSON, meant: lanes.Noul):
    found = question(SYSTEM_ONE, {**SYSTEM, "questions": {"a": {"type": "noul", **given}}})
    assert isinstance(found, lanes.Noul) and found.fingerprint == meant.fingerprint


def test_choices_and_scores_may_have_no_instructions():
    choice = {"type": "choice", "criteria": {"a": None, "b": {"c": 1}}}
    found = question(SYSTEM_ONE, {**SYSTEM, "questions": {"a": choice}})
    assert found == lanes.Choice("Which of these fits best?", {"a": None, "b": {"c": 1}})
    score = {"type": "score", "criteria": ["low", {"label": "high"}], "instructions": None}
    found = question(SYSTEM_ONE, {**SYSTEM, "questions": {"a": score}})
    assert found == lanes.Score("Which level fits best?", ["low", {"label": "high"}])


def one_of(count: int) -> JSON:
    """A choice of so many options."""
    return {"type": "choice", "criteria": {str(n): None for n in range(count)}}


WRONG: list[tuple[JSON, tuple[Any, ...], str]] = [
    ({"state": None}, ("state",), "value_type"),
    ({"state": 1}, ("state",), "value_type"),
    ({"state": ""}, ("state",), "string_too_short"),
    ({"model": 1}, ("model",), "string_type"),
    ({"questions": []}, ("questions",), "dict_type"),
    ({"questions": {}}, ("questions",), "too_short"),
    ({"questions": {str(n): one_of(2) for n in range(401)}}, ("questions",), "too_long"),
    ({"questions": {"": one_of(2)}}, ("questions", "", "[key]"), "string_too_short"),
    ({"assets": {"a": {"type": "image"}}}, ("assets",), "unsupported_value"),
    ({"x_orders": 13}, ("x_orders",), "orders"),
    ({"x_orders": True}, ("x_orders",), "orders"),
    ({"x_method": "words"}, ("x_method",), "literal_error"),
    ({"x_abstain": "yes"}, ("x_abstain",), "bool_type"),
]
WRONG_QUESTIONS: list[tuple[Any, tuple[Any, ...], str]] = [
    (1, (), "model_attributes_type"),
    ({}, (), "union_tag_not_found"),
    ({"type": "boolean", "instructions": "?"}, (), "union_tag_invalid"),
    ({"type": "box", "instructions": "the dog"}, (), "unsupported"),
    ({"type": "noul"}, ("noul",), "missing"),
    ({"type": "noul", "instructions": ""}, ("noul", "instructions"), "string_too_short"),
    ({"type": "noul", "criteria": {"true": None}}, ("noul",), "missing"),
    ({"type": "noul", "criteria": {"yes": "x"}}, ("noul", "criteria", "yes"), "extra_forbidden"),
    ({"type": "noul", "critera": {"true": "x"}}, ("noul", "critera"), "extra_forbidden"),
    ({"type": "choice"}, ("choice", "criteria"), "missing"),
    ({"type": "choice", "criteria": ["a", "b"]}, ("choice", "criteria"), "dict_type"),
    ({"type": "choice", "criteria": {"a": 1, "b": None}}, ("choice", "criteria", "a"), "value_type"),
    (one_of(1), ("choice", "criteria"), "too_short"),
    (one_of(256), ("choice", "criteria"), "too_long"),
    ({"type": "score", "criteria": {"0": "a", "1": "b"}}, ("score", "criteria"), "list_type"),
    ({"type": "score", "criteria": ["a", None]}, ("score", "criteria", 1), "value_type"),
    ({"type": "score", "criteria": ["a"] * 11}, ("score", "criteria"), "too_long"),
]
ALL_WRONG = WRONG + [({"questions": {"a": q}}, ("questions", "a", *at), code) for q, at, code in WRONG_QUESTIONS]


@pytest.mark.parametrize(("change", "where", "code"), ALL_WRONG)
def test_system_one_names_the_wrong_field(change: JSON, where: tuple[Any, ...], code: str):
    with pytest.raises(Refusal) as caught:
        asked(SYSTEM_ONE, {**SYSTEM, **change})
    assert (caught.value.where, caught.value.code, caught.value.status) == (where, code, 400)


@pytest.mark.parametrize("field", ["model", "state", "questions"])
def test_system_one_needs_all_of_its_fields(field: str):
    with pytest.raises(Refusal) as caught:
        asked(SYSTEM_ONE, {name: value for name, value in SYSTEM.items() if name != field})
    assert (caught.value.where, caught.value.code) == ((field,), "missing")


def test_system_one_answers_in_its_own_words():
    questions = {
        "b": {"type": "score", "instructions": "?", "criteria": ["low", {"label": "high"}]},
        "a": {"type": "choice", "instructions": "?", "criteria": {COMPOSED: None, DECOMPOSED: None}},
        "c": {"type": "noul", "instructions": "?"},
    }
    said = told(
        SYSTEM_ONE,
        {**SYSTEM, "questions": questions},
        answer("score", ("0", "1"), [0.25, 0.75]),
        answer("choice", (COMPOSED, DECOMPOSED), [0.9, 0.1], orders=4, flips=1, abstain=0.5, warnings=("take care",)),
        answer("noul", ("true", "false"), [0.75, 0.25], method="labels", prior="contextual"),
    )
    assert said["model"] == "a-model"
    assert said["usage"] == {"input_tokens": 7, "output_tokens": 0, "x_cached_tokens": 3}
    assert list(said["answers"]) == ["b", "a", "c"]
    score, choice, noul = said["answers"].values()
    plain = {"x_temperature": 1.0, "x_method": "codes", "x_prior": "none", "x_orders": 1, "x_label_mass": 0.75}
    assert score == {
        "type": "score",
        "score": pytest.approx(0.75),
        "confidence": pytest.approx(0.5),
        "legend": {"0": "low", "1": {"label": "high"}},
        "probabilities": {"0": pytest.approx(0.25), "1": pytest.approx(0.75)},
        "x_entropy": pytest.approx(0.5623, abs=1e-4),
        **plain,
    }
    assert choice == {
        "type": "choice",
        "choice": COMPOSED,
        "confidence": pytest.approx(0.8),
        "probabilities": {COMPOSED: pytest.approx(0.9), DECOMPOSED: pytest.approx(0.1)},
        "x_entropy": pytest.approx(0.3251, abs=1e-4),
        **plain,
        "x_orders": 4,
        "x_order_flips": 1,
        "x_abstain": 0.5,
        "x_warnings": ["take care"],
    }
    assert noul == {
        "type": "noul",
        "noul": pytest.approx(0.75),
        "x_entropy": pytest.approx(0.5623, abs=1e-4),
        **plain,
        "x_method": "labels",
        "x_prior": "contextual",
    }
    assert [next(iter(one)) for one in (score, choice, noul)] == ["type"] * 3


@given(st.integers(2, 255), st.sampled_from(["choice", "score"]))
def test_confidence_never_leaves_its_range(count: int, type: str):
    even = answer(type, tuple(map(str, range(count))), [1 / count] * count)
    sure = answer(type, tuple(map(str, range(count))), [1.0, *[1e-300] * (count - 1)])
    assert 0 <= (even.confidence or 0) < 1e-9 and 1 - 1e-9 < (sure.confidence or 0) <= 1


def test_confidence_is_that_of_the_published_examples():
    assert answer("score", ("0", "1", "2"), [0.1, 0.1, 0.8]).confidence == pytest.approx(0.55)
    assert answer("score", ("0", "1", "2"), [1e-12, 0.95, 0.05]).confidence == pytest.approx(0.925)
    assert answer("choice", ("billing", "sales"), [0.88, 0.12]).confidence == pytest.approx(0.76)
    assert answer("noul", ("true", "false"), [0.9, 0.1]).confidence is None


# --- OpenAI ---------------------------------------------------------------------------------------------------------


def test_openai_messages_become_a_state_without_ids_and_hints():
    items = [
        {"role": "system", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "one", "prompt_cache_breakpoint": {"mode": "explicit"}},
            {"type": "input_json", "data": {"é": [1]}},
        ]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "phase": "final_answer"},
        {"type": "function_call", "call_id": "c1", "id": "f1", "name": "look", "arguments": "{}", "status": None},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "dig", "input": "deep"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "gold"}]},
    ]  # fmt: skip
    assert asked(OPENAI, {**OPEN, "input": items}).state == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": 'one\n{"é": [1]}'},
        {"role": "assistant", "content": "No."},
        {"type": "function_call", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "output": "found"},
        {"type": "custom_tool_call", "name": "dig", "input": "deep"},
        {"type": "custom_tool_call_output", "output": "gold"},
    ]
    assert asked(OPENAI, OPEN).state == "hi"


def test_openai_questions_become_those_of_lanes():
    level = {"levels": [{"label": "low"}, {"label": "high", "description": "very"}]}
    found = asked(
        OPENAI,
        {
            **OPEN,
            "safety_identifier": "me",
            "prompt_cache_key": "k",
            "prompt_cache_options": {"mode": "implicit"},
            "questions": [
                {"type": "predicate", "instructions": [{"type": "input_text", "text": "It is so."}], "name": None},
                {**CHOICE, "choices": [{"value": "a", "description": "first"}, {"value": True}], "name": "x"},
                {"type": "score", "instructions": "How?", "name": "x", **level},
            ],
        },
    )
    assert [one.question for one in found.questions] == [
        lanes.Noul("It is so."),
        lanes.Choice("Which?", {"a": "first", "true": None}),
        lanes.Score("How?", ["low", "high: very"]),
    ]


def test_a_text_and_a_truth_of_one_look_stay_apart():
    assert names([True, "a", False]) == ["true", "a", "false"]
    assert names([True, "true"]) == ["true (boolean)", "true"]
    assert names(["true", True, "true (boolean)"]) == ["true", "true (boolean) (boolean)", "true (boolean)"]
    choices = [{"value": "true"}, {"value": True}, {"value": "x"}]
    said = told(
        OPENAI,
        {**OPEN, "questions": [{**CHOICE, "choices": choices}]},
        answer("choice", ("true", "true (boolean)", "x"), [0.2, 0.7, 0.1]),
    )
    (one,) = said["answers"]
    assert one["choice"] is True and one["name"] is None
    assert [pair["value"] for pair in one["probabilities"]] == ["true", True, "x"]
    assert [pair["probability"] for pair in one["probabilities"]] == pytest.approx([0.2, 0.7, 0.1])
    assert said["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    }


def test_openai_levels_come_back_with_their_labels():
    levels = [{"label": "low", "description": "x"}, {"label": "low"}, {"label": "high"}]
    body = {**OPEN, "questions": [{"type": "score", "instructions": "How?", "name": "n", "levels": levels}]}
    (one,) = told(OPENAI, body, answer("score", ("0", "1", "2"), [0.5, 0.25, 0.25]))["answers"]
    assert (one["type"], one["name"], one["score"]) == ("score", "n", pytest.approx(0.75))
    assert [(pair["value"], pair["label"]) for pair in one["probabilities"]] == [(0, "low"), (1, "low"), (2, "high")]


PICTURE: JSON = {"type": "input_image", "image_url": "https://example.com/dog.png"}
EMPTY: JSON = {"type": "input_text", "text": ""}
OPEN_WRONG: list[tuple[str, Any, str, str | None]] = [
    ("input", None, "", "value_type"),
    ("input", {"a": 1}, "", "value_type"),
    ("input", "", "", "string_too_short"),
    ("input", [], "", "too_short"),
    ("input", [1], "[0]", "item_type"),
    ("input", [{"role": "user"}], "[0].content", "missing"),
    ("input", [{"role": "tool", "content": "x"}], "[0].role", "literal_error"),
    ("input", [{"role": "user", "content": 1}], "[0].content", "value_type"),
    ("input", [{"role": "user", "content": [PICTURE]}], "[0].content[0]", "unsupported_content"),
    ("input", [{"role": "user", "content": [{"type": "input_text"}]}], "[0].content[0].text", "missing"),
    ("input", [{"type": "function_call_output", "call_id": "c", "output": "x"}], "", "call_missing"),
    ("questions", [], "", "too_short"),
    ("questions", {"type": "predicate"}, "", "list_type"),
    ("questions", [{"instructions": "x"}], "[0]", "union_tag_not_found"),
    ("questions", [{"type": "predicate"}], "[0].instructions", "missing"),
    ("questions", [{"type": "predicate", "instructions": [EMPTY]}], "[0].instructions", None),
    ("questions", [{"type": "predicate", "instructions": [PICTURE]}], "[0].instructions[0]", "unsupported_content"),
    ("questions", [{"type": "predicate", "instructions": "x", "choices": []}], "[0].choices", "extra_forbidden"),
    ("questions", [CHOICE, {**CHOICE, "choices": [{"value": "a"}]}], "[1].choices", "too_short"),
    ("questions", [{**CHOICE, "choices": [{"value": "a"}, {"value": 1}]}], "[0].choices[1].value", "value_type"),
    ("questions", [{**CHOICE, "choices": [{"value": "a"}, {"value": "a"}]}], "[0].choices", "not_distinct"),
    ("questions", [{**CHOICE, "choices": [{"value": True}, {"value": True}]}], "[0].choices", "not_distinct"),
    ("questions", [{"type": "score", "instructions": "x", "levels": [{}]}], "[0].levels[0].label", "missing"),
    ("store", True, "", "extra_forbidden"),
    ("model", None, "", "string_type"),
]


@pytest.mark.parametrize(("name", "value", "where", "code"), OPEN_WRONG)
def test_openai_names_the_wrong_field_without_types_between(name: str, value: Any, where: str, code: str | None):
    with pytest.raises(Refusal) as caught:
        read(OPENAI, {**OPEN, name: value})
    assert (path(caught.value.where), caught.value.code) == (name + where, code)


def test_a_place_keeps_what_is_in_the_body_alone():
    body = {"questions": [{"type": "choice", "choices": [{"value": 1}]}]}
    assert field(body, ("questions", 0, "choice", "choices", 0, "value"), False) == (
        "questions",
        0,
        "choices",
        0,
        "value",
    )
    assert field(body, ("questions", 0, "choice", "levels"), True) == ("questions", 0, "levels")
    assert field(body, ("input", "text"), False) == ()
    assert field(body, ("input",), True) == ("input",)


# --- the third ------------------------------------------------------------------------------------------------------


def test_the_third_dialect_asks_and_tells_by_id():
    options = [{"name": "a", "description": "1st"}, {"name": "b"}]
    body = {
        "input": {"message": "hi"},
        "temperature": 2,
        "prompt_format_version": 1,
        "chat_template_kwargs": {"enable_thinking": False},
        "return_prompt_token_ids": False,
        "images": [],
        "questions": [
            {"id": "y", "type": "yes_no", "question": "So?", "no": "not so"},
            {"id": "x", "type": "choice", "question": ["Which?"], "options": options},
            {"id": "z", "type": "score", "question": "How?", "levels": ["low", ["high"]]},
        ],
    }
    found = asked(OPTIONS, body)
    assert found.state == {"message": "hi"}
    assert [one.question for one in found.questions] == [
        lanes.Noul("So?", {"true": None, "false": "not so"}),
        lanes.Choice(["Which?"], {"a": "1st", "b": None}),
        lanes.Score("How?", ["low", ["high"]]),
    ]
    answers = (
        answer("noul", ("true", "false"), [0.9, 0.1]),
        answer("choice", ("a", "b"), [0.2, 0.8]),
        answer("score", ("0", "1"), [0.5, 0.5]),
    )
    said = told(OPTIONS, body, *answers)
    assert (said["object"], said["model"], said["prompt_format_version"]) == ("decisions", "a-model", 1)
    assert said["usage"]["prompt_tokens"] == said["usage"]["total_tokens"] == 7
    assert said["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    assert list(said["answers"]) == ["y", "x", "z"]
    assert said["answers"]["y"]["probabilities"] == {"yes": pytest.approx(0.75), "no": pytest.approx(0.25)}
    assert said["answers"]["x"]["choice"] == "b"
    assert said["answers"]["z"]["score"] == pytest.approx(0.5)
    for one in said["answers"].values():
        assert one["x_temperature"] == 2 and one["label_mass"] == 0.75 and "x_label_mass" not in one


TWICE: JSON = {"id": "a", "type": "choice", "question": "?", "options": [{"name": "x"}, {"name": "x"}]}
THIRD_WRONG: list[tuple[JSON, tuple[Any, ...], str]] = [
    ({"seed": 1}, ("seed",), "extra_forbidden"),
    ({"input": ""}, ("input",), "string_too_short"),
    ({"temperature": 0}, ("temperature",), "greater_than"),
    ({"temperature": "1"}, ("temperature",), "float_type"),
    ({"temperature": True}, ("temperature",), "float_type"),
    ({"prompt_format_version": 2}, ("prompt_format_version",), "unsupported_value"),
    ({"chat_template_kwargs": {"enable_thinking": True}}, ("chat_template_kwargs",), "unsupported_value"),
    ({"chat_template_kwargs": {"other": False}}, ("chat_template_kwargs",), "unsupported_value"),
    ({"return_prompt_token_ids": True}, ("return_prompt_token_ids",), "unsupported_value"),
    ({"images": ["x"]}, ("images",), "unsupported_value"),
    ({"questions": THIRD["questions"] * 2}, ("questions",), "not_distinct"),
    ({"questions": [{"id": "", "type": "yes_no"}]}, ("questions", 0, "yes_no", "id"), "string_too_short"),
    ({"questions": [{"id": "a", "type": "yes_no"}]}, ("questions", 0, "yes_no", "question"), "missing"),
    ({"questions": [TWICE]}, ("questions", 0, "choice", "options"), "not_distinct"),
]


@pytest.mark.parametrize(("change", "where", "code"), THIRD_WRONG)
def test_the_third_dialect_names_the_wrong_field(change: JSON, where: tuple[Any, ...], code: str):
    with pytest.raises(Refusal) as caught:
        asked(OPTIONS, {**THIRD, **change})
    assert (caught.value.where, caught.value.code) == (where, code)


def test_the_manner_is_that_of_the_body():
    manner = {"x_method": "labels", "x_orders": "auto", "x_prior": "contextual", "x_abstain": True}
    for dialect, body in ((SYSTEM_ONE, SYSTEM), (OPENAI, OPEN), (OPTIONS, THIRD)):
        found = asked(dialect, {**body, **manner}).manner
        assert {name: getattr(found, name) for name in manner} == manner
        plain = asked(dialect, body).manner
        assert [plain.x_method, plain.x_orders, plain.x_prior, plain.x_abstain] == ["codes", 1, "none", False]
