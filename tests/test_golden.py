"""The golden cases, played again; and the rules by which they are compared, tried on cases that were tampered with."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from golden import store
from golden.differences import ELSEWHERE, RULES, differences, first_open
from golden.machine import here
from golden.play import ENGINE
from golden.regenerate import faults, replay, shown, verdict
from golden.shapes import Topic, Values

import lanes

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def engine() -> Iterator[lanes.Engine]:
    with lanes.Engine(**ENGINE) as engine:
        yield engine


@pytest.mark.parametrize("name", store.names())
def test_everything_is_as_it_was_frozen(engine: lanes.Engine, name: str) -> None:
    frozen = store.read(name)
    assert all(case.gave for case in frozen.cases), "freeze the new cases first"
    now = replay(frozen, engine, here(engine))
    print(verdict(frozen, now))
    assert not list(faults(frozen, now))


def test_there_are_many_cases_each_with_a_name_of_its_own() -> None:
    topics = [store.read(name) for name in store.names()]
    assert sum(len(topic.cases) for topic in topics) > 100
    for topic in topics:
        assert len({case.name for case in topic.cases}) == len(topic.cases)
        assert topic.machine is not None and topic.model


@pytest.mark.parametrize("name", store.names())
def test_a_file_is_written_as_it_was_read(name: str) -> None:
    assert store.dump(store.read(name)) == store.source(name)
    assert shown(name, store.source(name), store.source(name)) == ""


def found(topic: str, wanted: Callable[[Values], Any]) -> Values:
    """What the first case of a topic gave of which something is so."""
    return next(case.gave for case in store.read(topic).cases if case.gave and wanted(case.gave))


def changed(gave: Values, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Values:
    """The same with another value at a place."""
    other = copy.deepcopy(gave)
    place: Any = other
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = change(place[path[-1]])
    return other


SURE = found("replies", lambda gave: "tokens" in gave and gave["leads"][0] > 1)
SCORED = found("decisions", lambda gave: "probabilities" in gave and max(gave["probabilities"]) > 0.6)
REFUSED = found("refusals", lambda gave: "refused" in gave)
EVENTS = found("events", lambda gave: len(gave.get("rounds", ())) > 3)


@pytest.mark.parametrize(
    ("gave", "path", "change"),
    [
        pytest.param(SURE, ("tokens", 0), lambda token: token + 1, id="a token that was sure"),
        pytest.param(SURE, ("finish_reason",), lambda _: "stop", id="a finish reason"),
        pytest.param(SURE, ("prompt_tokens",), lambda count: count + 1, id="a count"),
        pytest.param(SURE, ("logprobs", 0), lambda value: value + 0.1, id="a log-probability"),
        pytest.param(SCORED, ("probabilities", 0), lambda p: p + 0.02, id="a probability"),
        pytest.param(SCORED, ("logits", 0), lambda value: value - 0.05, id="a logit"),
        pytest.param(SCORED, ("label_mass",), lambda _: None, id="a mass that is gone"),
        pytest.param(SCORED, ("choice",), lambda _: "something else", id="a choice"),
        pytest.param(SCORED, ("labels",), lambda labels: labels[::-1], id="the order of labels"),
        pytest.param(REFUSED, ("refused",), lambda _: "ValueError", id="a kind of error"),
        pytest.param(REFUSED, ("says",), lambda says: f"{says}.", id="what an error says"),
        pytest.param(EVENTS, ("rounds",), lambda rounds: rounds[1:], id="an event that is missing"),
        pytest.param(EVENTS, ("rounds", 0), lambda said: said.replace("0", "1"), id="another slot"),
    ],
)
def test_what_may_differ_nowhere_is_found(gave: Values, path: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    other = changed(gave, path, change)
    assert other != gave
    for allowed in (None, ELSEWHERE):
        named = [one for one in differences(gave, other, allowed) if str(path[0]) in str(one)]
        assert named, "it was not found"
    assert not differences(gave, gave)


@pytest.mark.parametrize(
    ("gave", "path", "change"),
    [
        pytest.param(SURE, ("bits",), lambda _: "0" * 64, id="bits"),
        pytest.param(SURE, ("logprobs", 0), lambda value: value + 0.015, id="a log-probability"),
        pytest.param(SCORED, ("probabilities", 0), lambda p: p + 0.004, id="a probability"),
        pytest.param(SCORED, ("logits", 0), lambda value: value - 0.009, id="a logit"),
    ],
)
def test_what_may_differ_elsewhere_may_not_here(
    gave: Values, path: tuple[Any, ...], change: Callable[[Any], Any]
) -> None:
    other = changed(gave, path, change)
    assert differences(gave, other)
    assert not differences(gave, other, ELSEWHERE)


def test_after_an_open_token_a_stream_may_go_elsewhere_and_not_before() -> None:
    open_at_1 = {**SURE, "leads": [SURE["leads"][0], 0.001, *SURE["leads"][2:]]}
    assert first_open(open_at_1, ELSEWHERE) == 1
    later = changed(changed(open_at_1, ("tokens", 1), lambda token: token + 1), ("text",), lambda _: "other")
    assert not differences(open_at_1, later, ELSEWHERE)
    assert differences(open_at_1, changed(later, ("tokens", 0), lambda token: token + 1), ELSEWHERE)
    assert differences(open_at_1, changed(later, ("tokens",), lambda tokens: tokens[:-1]), ELSEWHERE)


def test_another_model_is_a_fault() -> None:
    topic: Topic = store.read("stops")
    other = topic.model_copy(update={"model": "0" * 64})
    assert any("the model" in fault for fault in faults(other, topic))


def test_every_rule_is_in_the_list_that_people_read() -> None:
    told = (store.FOLDER / "README.md").read_text(encoding="utf-8")
    table = told[told.index("| value |") :]
    assert [name for name in RULES if f"`{name}`" not in table] == []
