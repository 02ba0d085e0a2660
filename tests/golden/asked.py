"""A case's request as it is really made, through the public face, and how to see what came of it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import lanes
from golden.leads import LISTED
from golden.seen import Names, of_answer, of_scored, of_stream, refusal
from golden.shapes import Values

WAIT = 300.0
"""Seconds after which a wait counts as a hang."""
QUESTIONS = {"noul": lanes.Noul, "choice": lanes.Choice, "score": lanes.Score}


class Asked(NamedTuple):
    """A request on its way; `see` waits for its end and says what came of it, with requests by their names."""

    handle: Any
    see: Callable[[Names], Values]


def stream(engine: lanes.Engine, given: Values) -> Asked:
    """A stream, with what its leads need."""
    evidence = {"digests": True, "logprobs": LISTED if given.get("temperature") else 2}
    made = engine.stream(**{**evidence, **given})

    def see(names: Names) -> Values:
        assert made.wait(WAIT), f"{made} did not end"
        return of_stream(engine, made, given, names)

    return Asked(made, see)


def score(engine: lanes.Engine, given: Values) -> Asked:
    """A decision on one prompt."""
    return _pending(engine.score(**given), of_scored)


def decide(engine: lanes.Engine, given: Values) -> Asked:
    """A decision of several branches."""
    return _pending(engine.decide(**given), lambda results: {"results": [of_scored(result) for result in results]})


def ask(engine: lanes.Engine, given: Values) -> Asked:
    """Typed questions."""
    made = lanes.ask(
        engine, **{**given, "questions": _questions(given["questions"]), "prior": _prior(given.get("prior"))}
    )
    return _pending(made, lambda answers: {"answers": {name: of_answer(answer) for name, answer in answers.items()}})


def engine(_: lanes.Engine, given: Values) -> Asked:
    """The making of another engine, with options that cannot work."""
    lanes.Engine(**given).close()
    return Asked(None, lambda _: {"made": True})


ASK: Mapping[str, Callable[[lanes.Engine, Values], Asked]] = {
    "stream": stream,
    "score": score,
    "decide": decide,
    "ask": ask,
    "engine": engine,
}


def _pending(made: lanes.Pending[Any], shape: Callable[[Any], Values]) -> Asked:
    def see(names: Names) -> Values:
        try:
            return shape(made.result(WAIT))
        except lanes.LanesError as error:
            return refusal(error, names)

    return Asked(made, see)


def _questions(questions: Any) -> Any:
    return {name: _question(one) for name, one in questions.items()} if isinstance(questions, Mapping) else questions


def _question(question: Any) -> Any:
    """A question from {"type": ..., "instructions": ..., "criteria": ...}; anything else as it is, to be refused."""
    if not isinstance(question, Mapping) or "type" not in question:
        return question
    return QUESTIONS[question["type"]](**{name: value for name, value in question.items() if name != "type"})


def _prior(prior: Any) -> Any:
    """A prior from {"kind": "domain", "texts": [...], ...}; a name, or None, as it is."""
    if not isinstance(prior, Mapping):
        return prior
    options = {name: value for name, value in prior.items() if name != "kind"}
    return getattr(lanes.Prior, prior["kind"])(**options)
