"""Plays cases on an engine, through its public face alone, and gives what came of them in plain values."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import lanes
from golden.asked import ASK
from golden.script import run
from golden.seen import refusal
from golden.shapes import Case, Values

ENGINE: Values = {"model": "default", "slots": 6, "width": 8, "queue": 16}
"""The engine that all cases are played on. The width is fixed: what a script's rounds compute follows from it."""
COMPANY = 10
"""Cases in flight at once: enough to fill the slots, and fewer than a queue holds."""


def play(case: Case, engine: lanes.Engine) -> Values:
    """What comes of one case."""
    return begin(case, engine)()


def play_all(cases: Iterable[Case], engine: lanes.Engine) -> Iterator[tuple[Case, Values]]:
    """Each case with what came of it: most of them side by side, a script alone."""
    flying: deque[tuple[Case, Callable[[], Values]]] = deque()
    for case in cases:
        while flying and (case.does == "script" or len(flying) == COMPANY):
            yield _land(flying)
        flying.append((case, begin(case, engine)))
        while case.does == "script" and flying:
            yield _land(flying)
    while flying:
        yield _land(flying)


def begin(case: Case, engine: lanes.Engine) -> Callable[[], Values]:
    """Ask; what is returned waits for the end and says what came of it."""
    given = written_out(case.given)
    if case.does == "script":
        return lambda: plain(run(engine, given["steps"]))
    try:
        asked = ASK[case.does](engine, given)
    except lanes.LanesError as error:
        refused = refusal(error)
        return lambda: refused
    return lambda: plain(asked.see({}))


def written_out(value: Any) -> Any:
    """The same values, with each {"repeat": text, "times": n} as the text it stands for."""
    if isinstance(value, Mapping):
        if value.keys() == {"repeat", "times"}:
            return value["repeat"] * value["times"]
        return {key: written_out(one) for key, one in value.items()}
    return [written_out(one) for one in value] if isinstance(value, list) else value


def plain(values: Values) -> Values:
    """As the values come back from JSON."""
    return json.loads(json.dumps(values, allow_nan=False))


def _land(flying: deque[tuple[Case, Callable[[], Values]]]) -> tuple[Case, Values]:
    case, end = flying.popleft()
    return case, end()
