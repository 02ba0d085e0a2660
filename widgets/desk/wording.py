"""A decision as others would ask it: as Python for a cell, as curl for an engine that is served."""

import json
import shlex
from typing import Any

from lanes.decisions.questions import Choice, Question
from lanes_widgets.desk.wishes import TOP, Raw, Typed, Wish

URL = "http://127.0.0.1:8000"
_STEP = "    "


def python(wish: Wish) -> str:
    """A program that asks the same of `engine`; the result is `answer`, or `answers`."""
    if isinstance(wish, Raw):
        return (
            "import lanes  # and an engine: engine = lanes.Engine()\n\n"
            f"answer = engine.score(\n{_STEP}{_value(wish.text, 1)},\n{_STEP}{_value(list(wish.labels), 1)},\n"
            f"{_STEP}top={TOP},\n).result()\nprint(answer)\n"
        )
    manner = f"method={wish.method!r}, orders={wish.orders!r}, prior={wish.prior!r}, abstain={wish.abstain!r}"
    questions = "".join(f"{_STEP * 2}{name!r}: {_constructor(one)},\n" for name, one in wish.questions)
    return (
        "import lanes  # and an engine: engine = lanes.Engine()\n\n"
        f"answers = lanes.ask(\n{_STEP}engine,\n{_STEP}{_value(wish.state, 1)},\n"
        f"{_STEP}{{\n{questions}{_STEP}}},\n{_STEP}{manner},\n).result()\nprint(answers)\n"
    )


def curl(wish: Wish) -> str:
    """A line for a shell that asks a served engine, over the wire format that has the closest words for it."""
    path, body = _decisions(wish) if isinstance(wish, Raw) else _system_one(wish)
    data = shlex.quote(json.dumps(body, ensure_ascii=False))
    return f"curl {URL}{path} \\\n  -H 'Content-Type: application/json' \\\n  --data-binary {data}\n"


def _decisions(wish: Raw) -> tuple[str, dict[str, Any]]:
    choices = [{"value": label} for label in wish.labels]
    question = {"type": "choice", "name": "answer", "instructions": "What comes next?", "choices": choices}
    return "/v1/decisions", {"model": "jev-latest", "input": wish.text, "questions": [question]}


def _system_one(wish: Typed) -> tuple[str, dict[str, Any]]:
    questions = {
        name: {"type": one.type, "instructions": one.instructions, "criteria": one.criteria}
        for name, one in wish.questions
    }
    manner = {"x_method": wish.method, "x_orders": wish.orders, "x_prior": wish.prior or "none"}
    asked = {"model": "jev-latest", "state": wish.state, "questions": questions}
    return "/v1/systemone", {**asked, **manner, "x_abstain": wish.abstain}


def _constructor(question: Question) -> str:
    name = type(question).__name__
    given = [repr(question.instructions)]
    if question.criteria is not None or isinstance(question, Choice):
        given.append(repr(question.criteria))
    return f"lanes.{name}({', '.join(given)})"


def _value(value: Any, depth: int) -> str:
    """A literal; a text of several lines stands line by line."""
    lines = value.splitlines(keepends=True) if isinstance(value, str) else []
    if len(lines) < 2:
        return repr(value)
    inner = "".join(f"{_STEP * (depth + 1)}{line!r}\n" for line in lines)
    return f"(\n{inner}{_STEP * depth})"
