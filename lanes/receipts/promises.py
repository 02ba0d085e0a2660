"""What a notebook's code says that its receipt has to hold, read without running it. Pure.

Only what surely runs is a promise: calls at the top of a cell, and inside of an `if` whose outcome is known.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from lanes.errors import InvalidRequest
from lanes.receipts.calls import (
    UNKNOWN,
    Call,
    calls_in,
    draft_name,
    is_method,
    known_names,
    read_call,
    statements,
    surely_run,
)
from lanes.receipts.canonical import plain


class Promise(NamedTuple):
    """Something that has to be on record: where, under which name (None: for all there), and what is known of it.

    `facts` are values by their paths, such as "evidence.high".
    """

    kind: str
    name: str | None
    facts: dict[str, Any]


def promises(cells: Sequence[str], parameters: Mapping[str, Any]) -> Iterator[Promise]:
    """What a notebook puts on record whatever happens.

    A notebook that begins more than one receipt promises nothing, as nothing says to which of them a call belongs.
    """
    bodies = [body for cell in cells for body in statements(cell)]
    nodes = [node for body in bodies for node in ast.walk(body)]
    methods = Counter(node.func.attr for node in nodes if is_method(node))
    if methods["begin"] != 1:
        return
    known, draft = known_names(bodies, parameters), draft_name(nodes)
    begun = next(node for node in nodes if is_method(node) and node.func.attr == "begin")
    yield _begin(read_call(begun, known))  # it ran, wherever it stands: there is a receipt
    for call in (own for body in surely_run(bodies, known) for own in calls_in(body, known)):
        if call.owner != draft:
            continue  # a method of something else, with the same name
        if call.method == "measure":
            yield from _measure(call, methods["measure"] == 1)
        elif (make := _MAKERS.get(call.method)) is not None:
            promise = make(call)
            if isinstance(promise.name, str):
                yield promise._replace(facts=dict(_plain(promise.facts)))


def _begin(call: Call) -> Promise:
    facts = {"topic": call.given(0, "topic"), "claim": call.given(1, "claim")}
    return Promise("", None, dict(_plain(facts)))


def _check(call: Call) -> Promise:
    facts = {"evidence.kind": "value", "expected": call.given(1, "expected")}
    return Promise("checks", call.given(0, "name"), facts)


def _equal(call: Call) -> Promise:
    return Promise("checks", call.given(0, "name"), {"evidence.kind": "digests"})


def _within(call: Call) -> Promise:
    figure = call.given(1, "figure")
    if isinstance(figure, str):
        figure = [figure]
    elif isinstance(figure, tuple | list):
        figure = [*figure, "median"] if len(figure) == 2 else [*figure]
    else:
        figure = UNKNOWN
    ends = {f"evidence.{end}": call.option(end, None) for end in ("low", "high")}
    return Promise("checks", call.given(0, "name"), {"evidence.kind": "range", "evidence.figure": figure, **ends})


def _ratio(call: Call) -> Promise:
    facts = {
        "kind": call.option("kind", "pairs"),
        "numerator": call.given(1, "numerator"),
        "denominator": call.given(2, "denominator"),
    }
    return Promise("ratios", call.given(0, "name"), facts)


def _named(kind: str) -> Callable[[Call], Promise]:
    return lambda call: Promise(kind, call.given(0, "name"), {})


def _measure(call: Call, only: bool) -> Iterator[Promise]:
    """The plan of each arm; where the arms are not written out, that of all, if nothing else was measured."""
    plan = {"repeats": call.option("repeats", UNKNOWN), "warmups": call.option("warmups", 1)}
    facts = dict(_plain(plan))
    if call.arms is not None and all(isinstance(name, str) for name in call.arms):
        yield from (Promise("arms", name, facts) for name in call.arms)
    elif only:
        yield Promise("arms", None, facts)


def _plain(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The facts that are known and that JSON can hold."""
    for path, value in facts.items():
        if value is not UNKNOWN:
            with suppress(InvalidRequest):  # a bytes literal, say: the call that is given it fails
                yield path, plain(path, value)


_MAKERS: dict[str, Callable[[Call], Promise]] = {
    "check": _check,
    "equal": _equal,
    "within": _within,
    "ratio": _ratio,
    "reply": _named("replies"),
    "prompt": _named("prompts"),
    "uses": _named("engines"),
    "not_run": _named("not_run"),
}
