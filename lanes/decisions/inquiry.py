"""One question on its way: which orders to ask, and its answer from what they gave. Plain values, no engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lanes import checks
from lanes.decisions.answers import Answer
from lanes.decisions.orders import STEP, Order, sequence, settled, wanted
from lanes.decisions.questions import Option, Question
from lanes.decisions.render import NONE_OF_THESE
from lanes.decisions.results import Scored
from lanes.decisions.trie import log_softmax
from lanes.errors import InvalidRequest
from lanes.record import Timing

METHODS = ("codes", "labels")
LOW_MASS = 0.5
"""Below this the codes or labels are less than half of what the model would say, and the answer carries a warning."""


@dataclass(frozen=True)
class Manner:
    """How all questions of one call are asked."""

    method: str = "codes"
    orders: int | str = 1
    abstain: bool = False

    @classmethod
    def read(cls, method: Any, orders: Any, abstain: Any) -> "Manner":
        """The manner that a caller means; InvalidRequest for one that there is not."""
        if method not in METHODS:
            raise InvalidRequest(f"method must be one of {METHODS}, not {method!r}")
        wanted(orders, 2)
        return cls(method, orders, checks.flag("abstain", abstain))


@dataclass(frozen=True)
class Heard:
    """What one order gave: log-probabilities of all options at temperature 1, in the question's order; the rest."""

    logs: np.ndarray
    """[n options], float64; with none-of-these last where it was offered."""
    result: Scored
    prompt: str


@dataclass
class Inquiry:
    """A question, the manner it is asked in, and what was heard so far, order by order."""

    question: Question
    manner: Manner
    heard: list[Heard] = field(default_factory=list)
    priors: list[np.ndarray] = field(default_factory=list)
    """For each order that was heard, the mean log-probabilities of the prior's states; empty without a prior."""

    @cached_property
    def options(self) -> tuple[Option, ...]:
        """The question's options, and none-of-these where it is offered."""
        return (*self.question.options, NONE_OF_THESE) if self.manner.abstain else self.question.options

    @cached_property
    def _orders(self) -> tuple[Order, ...]:
        return sequence(len(self.options))

    def next_orders(self) -> tuple[Order, ...]:
        """The orders to ask now; none when the answer is settled."""
        first, most = wanted(self.manner.orders, len(self.options))
        done = len(self.heard)
        if done >= most or (done >= first and settled(self._logs())):
            return ()
        return self._orders[done : first if done < first else min(done + STEP, most)]

    @property
    def label_mass(self) -> float:
        """The mean over the orders that were heard."""
        return float(np.mean([heard.result.label_mass for heard in self.heard]))

    @property
    def likelier(self) -> tuple[tuple[int, float], ...]:
        """Where the mass is low, the tokens that the model would rather have said, with their probabilities."""
        return self.heard[0].result.top if self.label_mass < LOW_MASS else ()

    def answer(self, temperature: float, prior: str, model: str, likelier: Sequence[tuple[str, float]]) -> Answer:
        """The answer; `likelier` are the tokens that the model would rather have said, as text with probabilities."""
        logs = self._logs()
        # What is normalised stays as it is: once more would move its last bits, and one order is just that score.
        joint = log_softmax(logs.mean(axis=0)) if len(logs) > 1 else logs[0]
        count = len(self.question.options)
        results = [heard.result for heard in self.heard]
        timings = [result.timing for result in results if result.timing]
        mass = self.label_mass
        final = int(np.argmax(joint[:count]))
        flips = int(np.sum(logs[:, :count].argmax(axis=1) != final))
        return Answer(
            type=self.question.type,
            options=self.question.keys,
            logs=log_softmax(joint[:count]) if self.manner.abstain else joint,
            label_mass=mass,
            temperature=temperature,
            abstain=float(np.exp(joint[count])) if self.manner.abstain else None,
            orders=len(results),
            flips=flips,
            method=self.manner.method,
            prior=prior,
            prompt=self.heard[0].prompt,
            labels=results[0].labels[:count],
            prompt_tokens=sum(result.prompt_tokens for result in results),
            cached_tokens=sum(result.cached_tokens for result in results),
            timing=Timing.spanning(timings) if timings else None,
            likelier=tuple(likelier),
            warnings=tuple(_warnings(mass, likelier, flips, len(results))),
            model=model,
        )

    def _logs(self) -> np.ndarray:
        """Log-probabilities of all options, [orders, n], each order's prior taken out."""
        logs = np.array([heard.logs for heard in self.heard])
        return log_softmax(logs - np.array(self.priors)) if self.priors else logs


def _warnings(mass: float, likelier: Sequence[tuple[str, float]], flips: int, orders: int) -> list[str]:
    found: list[str] = []
    if mass < LOW_MASS:
        rather = ", ".join(f"{text!r} ({100 * p:.0f} %)" for text, p in likelier[:3])
        found.append(
            f"only {100 * mass:.1f} % of what the model would say is one of the answers; it would rather say {rather}: "
            "reword the question, or try the other method"
        )
    if 2 * flips >= orders > 1:
        found.append(f"{flips} of {orders} orders of the options alone chose something else: the answer hangs on order")
    return found
