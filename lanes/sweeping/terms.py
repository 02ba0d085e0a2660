"""What every row of a sweep is asked, in which manner, and by which model: what a file of answers stands for."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lanes import checks
from lanes.asking import ask
from lanes.asking.calibrations import read_calibration
from lanes.decisions import render
from lanes.decisions.answers import Answers
from lanes.decisions.binding import put
from lanes.decisions.inquiry import Inquiry, Manner
from lanes.decisions.priors import Prior, read_prior
from lanes.decisions.questions import Question, checked_questions
from lanes.engine.handles import Pending
from lanes.errors import InvalidRequest

if TYPE_CHECKING:
    from lanes.engine import Engine
    from lanes.evaluation import Calibration

PLAIN_STATE = "N/A"
"""A state that any model can be shown, to see whether the questions can be asked at all."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Who answers: the model's fingerprint, and what its bits depend on besides (see `lanes.forward.Exactness`)."""

    fingerprint: str
    route: str
    width: int
    piece: int
    exact: bool

    @classmethod
    def of(cls, engine: "Engine") -> "Maker":
        """The facts of this engine."""
        found = engine.exactness
        return cls(engine.info.fingerprint, found.route, found.width, found.piece, found.exact)

    def check(self, other: "Maker") -> None:
        """Raise InvalidRequest where another engine's answers would not be this one's."""
        if self != other:
            raise InvalidRequest(
                f"an engine on a worker is not the one that this sweep began with: {other} instead of {self}; "
                "give all workers the same model, and width= where machines differ"
            )


@dataclass(frozen=True)
class Terms:
    """The questions by name, the manner, the prior and the calibration; `deadline` in seconds, for each row."""

    questions: Mapping[str, Question]
    manner: Manner
    prior: Prior | None
    calibration: "Calibration | None"
    deadline: float | None

    @classmethod
    def read(
        cls,
        questions: Any,
        method: Any,
        orders: Any,
        prior: Any,
        abstain: Any,
        calibration: Any,
        deadline: Any,
    ) -> "Terms":
        """The terms that a caller means; InvalidRequest for what `lanes.ask` would refuse on every row."""
        asked = checked_questions(questions)
        limit = None if deadline is None else checks.seconds("deadline", deadline)
        manner, fitted = Manner.read(method, orders, abstain), read_calibration(calibration)
        return cls(asked, manner, read_prior(prior), fitted, limit)

    def check(self, engine: "Engine") -> None:
        """Raise InvalidRequest where this engine could answer no row at all, whatever its state."""
        if engine.options["policy"] == "off":
            raise InvalidRequest('policy="off" serves no decisions: make the engine with policy="beside" or "idle"')
        if self.calibration is not None:
            self.calibration.check(engine.info.fingerprint)
        context = engine.info.context
        for question in self.questions.values():
            inquiry = Inquiry(question, self.manner)
            first = inquiry.next_orders()[0]
            engine.use_tokenizer(lambda it, inquiry=inquiry, order=first: put(it, inquiry, PLAIN_STATE, order, context))

    def ask(self, engine: "Engine", state: str) -> Pending[Answers]:
        """Ask one row."""
        return ask(
            engine,
            state,
            self.questions,
            method=self.manner.method,
            orders=self.manner.orders,
            prior=self.prior,
            abstain=self.manner.abstain,
            calibration=self.calibration,
            deadline=self.deadline,
        )

    def header(self, maker: Maker) -> dict[str, Any]:
        """All that a row's answer depends on besides its state, ready for JSON."""
        return {
            "prompt_version": render.VERSION,
            "questions": {
                name: {
                    "type": question.type,
                    "sha256": question.fingerprint,
                    "temperature": self._temperature(question),
                }
                for name, question in self.questions.items()
            },
            **asdict(self.manner),
            "prior": self.prior and {"kind": self.prior.kind, "sha256": _digest(self.prior.states)},
            "model": maker.fingerprint,
            "exactness": {name: value for name, value in asdict(maker).items() if name != "fingerprint"},
        }

    def _temperature(self, question: Question) -> float:
        found = self.calibration.for_(question.type, len(question.keys)) if self.calibration else None
        return found or 1.0


def _digest(texts: tuple[str, ...]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
