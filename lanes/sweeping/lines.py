"""What one row of a sweep gave, and its line in the file: the same bytes whenever and wherever it was asked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

import numpy as np

from lanes.decisions.answers import Answer, Answers
from lanes.errors import InvalidRequest, LanesError
from lanes.sweeping.rows import Row
from lanes.sweeping.terms import Terms


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row has no answers: the kind of error, by its class's name, and its text."""

    kind: str
    text: str

    @property
    def stays(self) -> bool:
        """Whether the row itself is at fault, so that asking again would give the same."""
        return self.kind == InvalidRequest.__name__


@dataclass(frozen=True, slots=True)
class Line:
    """A row's answers by question, or its failure. `seconds` is how long the ask took, NaN where nobody measured."""

    number: int
    digest: str | None
    answers: Mapping[str, Answer] = field(default_factory=dict)
    failure: Failure | None = None
    seconds: float = nan

    @classmethod
    def answered(cls, row: Row, answers: Answers) -> "Line":
        """The line of a row that was answered."""
        return cls(
            row.number, row.digest, {name: _lean(answer) for name, answer in answers.items()}, None, answers.seconds
        )

    @classmethod
    def failed(cls, row: Row, error: LanesError | str) -> "Line":
        """The line of a row that could not be answered."""
        kind = InvalidRequest.__name__ if isinstance(error, str) else type(error).__name__
        return cls(row.number, row.digest, {}, Failure(kind, str(error)))

    @property
    def stays(self) -> bool:
        """Whether a resumed run keeps it."""
        return self.failure is None or self.failure.stays


def write(line: Line) -> bytes:
    """One line of JSON, its end included: nothing in it depends on time, load, or the cache."""
    shape: dict[str, Any] = {"row": line.number, "state": line.digest}
    if line.failure:
        shape["error"] = {"kind": line.failure.kind, "text": line.failure.text}
    else:
        shape["answers"] = {name: _shape(answer) for name, answer in line.answers.items()}
    return dumps(shape)


def parse(data: bytes, terms: Terms, model: str) -> Line:
    """The line that `write` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    shape = json.loads(data)
    if "error" in shape:
        return Line(shape["row"], shape["state"], {}, Failure(shape["error"]["kind"], shape["error"]["text"]))
    answers = {name: _answer(shape["answers"][name], name, terms, model) for name in terms.questions}
    return Line(shape["row"], shape["state"], answers)


def dumps(shape: Any) -> bytes:
    """A line of plain JSON."""
    return json.dumps(shape, allow_nan=False).encode() + b"\n"


def _lean(answer: Answer) -> Answer:
    """Without what no file and no frame holds: prompts are far longer than answers."""
    return replace(answer, prompt="", timing=None, cached_tokens=0, likelier=())


def _shape(answer: Answer) -> dict[str, Any]:
    return {
        "logs": [float(value) for value in answer.logs],
        "label_mass": answer.label_mass,
        "temperature": answer.temperature,
        "abstain": answer.abstain,
        "orders": answer.orders,
        "flips": answer.flips,
        "prompt_tokens": answer.prompt_tokens,
        "warnings": list(answer.warnings),
    }


def _answer(shape: Mapping[str, Any], name: str, terms: Terms, model: str) -> Answer:
    question = terms.questions[name]
    logs = np.array(shape["logs"], dtype=np.float64)
    if logs.shape != (len(question.keys),):
        raise ValueError(f"{name!r} has {logs.shape} log-probabilities for {len(question.keys)} options")
    return Answer(
        type=question.type,
        options=question.keys,
        logs=logs,
        label_mass=shape["label_mass"],
        temperature=shape["temperature"],
        abstain=shape["abstain"],
        orders=shape["orders"],
        flips=shape["flips"],
        method=terms.manner.method,
        prior=terms.prior.kind if terms.prior else "none",
        prompt_tokens=shape["prompt_tokens"],
        warnings=tuple(shape["warnings"]),
        model=model,
    )
