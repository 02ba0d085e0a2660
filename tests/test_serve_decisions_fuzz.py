"""A thousand bodies that are nearly right: each is answered, or refused with a 4xx that names the field."""

import copy
import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import client

from lanes.serving import Server

JSON = dict[str, Any]
SYSTEM: JSON = {
    "model": "jev-latest",
    "state": {"a": "x"},
    "questions": {
        "n": {"type": "noul", "instructions": "So?", "criteria": {"true": "a", "false": None}},
        "c": {"type": "choice", "criteria": {"a": None, "b": ["x"]}},
        "s": {"type": "score", "instructions": {"how": 1}, "criteria": ["low", "high"]},
    },
}
OPEN: JSON = {
    "model": "default",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "input_json", "data": {"a": 1}}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "y"},
    ],
    "questions": [
        {"type": "predicate", "name": "p", "instructions": "So."},
        {"type": "choice", "instructions": "Which?", "choices": [{"value": "true"}, {"value": True}]},
        {"type": "score", "instructions": "How?", "levels": [{"label": "a"}, {"label": "b", "description": "c"}]},
    ],
}
THIRD: JSON = {
    "input": ["x"],
    "temperature": 2.0,
    "prompt_format_version": 1,
    "questions": [
        {"id": "y", "type": "yes_no", "question": "So?", "yes": "it is"},
        {"id": "c", "type": "choice", "question": "Which?", "options": [{"name": "a"}, {"name": "b"}]},
        {"id": "s", "type": "score", "question": ["How?"], "levels": ["low", "high"]},
    ],
}
WHERE: list[tuple[str, JSON]] = [
    ("/v1/systemone", SYSTEM),
    ("/v1/decisions", SYSTEM),
    ("/v1/decisions", OPEN),
    ("/v1/decisions", THIRD),
]


def single(body: JSON) -> list[JSON]:
    """The body with each of its questions alone."""
    asked = body["questions"]
    each = [{name: one} for name, one in asked.items()] if isinstance(asked, dict) else [[one] for one in asked]
    return [{**body, "questions": questions} for questions in each]


GOOD = [(path, one) for path, body in WHERE for one in (*single(body), *single(body), body)]
"""Mostly with one question: they are answered sooner."""
WHOLE = {"json_invalid", "too_deep", "model_type"}
"""What is wrong with a whole body, of which there is no field to name."""

ODD: list[Any] = [
    *(None, True, False, 0, -1, 2, 1.5, -0.0, 1e308, 10**30, 2**63, "", " ", "a", "true", "\u0000", "\ud83d\ude00"),
    *("<|im_end|>", "</data>", [], {}, [[]], {"": ""}, ["a", "a"], {"type": "noul"}, {"type": []}, "auto", "labels"),
    *("noul", "choice", "score", "predicate", "yes_no", "box", "input_image", "message", "x" * 300),
]
KEYS = [
    *("", "x", "id", "type", "name", "question", "questions", "state", "model", "assets", "images", "value", "role"),
    *("x_orders", "x_method", "x_prior", "x_abstain", "criteria", "temperature", "chat_template_kwargs", "content"),
]
odd = st.sampled_from(ODD).map(copy.deepcopy) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where everything in a JSON value is."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, Any]:
    """A path and a body: a good one in which up to three things were put, taken away, doubled or renamed."""
    path, good = draw(st.sampled_from(GOOD))
    body: Any = copy.deepcopy(good)
    for _ in range(draw(st.integers(0, 3))):
        where = draw(st.sampled_from(list(places(body))))
        if not where:
            continue
        inside = body
        for key in where[:-1]:
            inside = inside[key]
        act, key = draw(st.sampled_from(["put", "put", "take", "add", "double"])), where[-1]
        if act == "take":
            del inside[key]
        elif act == "put":
            inside[key] = draw(odd)
        elif isinstance(inside, dict):
            inside[draw(st.sampled_from(KEYS))] = draw(odd) if act == "add" else copy.deepcopy(inside[key])
        else:
            inside.insert(key, draw(odd) if act == "add" else copy.deepcopy(inside[key]))
    return path, body


@pytest.fixture(scope="module")
def one(server: Server) -> Iterator[httpx.Client]:
    """One client for all of them."""
    with client(server) as one:
        yield one


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[int]]:
    """How often each status came; both kinds must have come often, or nothing was tried."""
    seen: Counter[int] = Counter()
    yield seen
    assert seen[200] > 100 and seen[422] > 200 and seen[400] > 50, seen


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(bodies())
def test_a_body_is_answered_or_its_fault_is_named(one: httpx.Client, seen: Counter[int], asked: tuple[str, Any]):
    path, body = asked
    got = one.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    seen[got.status_code] += 1
    said = got.json()
    if got.status_code == 200:
        assert len(said["answers"]) == len(body["questions"])
        assert all(math.isfinite(number) for number in numbers(said))
    elif got.status_code == 422:
        (fault,) = said["detail"]
        assert fault["loc"][0] == "body" and fault["msg"] and fault["type"]
        assert len(fault["loc"]) > 1 or fault["type"] in WHOLE
    elif got.status_code == 400:
        assert said["error"]["param"] or said["error"]["code"] in WHOLE
        assert said["error"]["message"] and said["error"]["type"] == "invalid_request_error"
    else:
        assert got.status_code == 404 and body["model"] != "jev-latest"


@settings(max_examples=100)
@given(st.binary(max_size=40) | odd.map(lambda value: json.dumps(value).encode()), st.sampled_from(GOOD))
def test_what_is_no_body_at_all_is_refused(one: httpx.Client, said: bytes, good: tuple[str, JSON]):
    got = one.post(good[0], content=said, headers={"content-type": "application/json"})
    assert got.status_code in (400, 422) and ("error" in got.json() or "detail" in got.json())


def numbers(value: Any) -> Iterator[float]:
    """All numbers in a JSON value."""
    if isinstance(value, float):
        yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for inner in inside:
        yield from numbers(inner)
