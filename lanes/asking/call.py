"""One call of `lanes.ask` on its way: what it asks, stage by stage, and how it ends.

The first stage is read and submitted on the caller's thread, so that bad input is refused at once. A thread of its own
waits for each stage, asks the next, and ends with the last.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lanes.asking.references import References
from lanes.deadlines import left_until
from lanes.decisions.answers import Answer, Answers
from lanes.decisions.binding import Branch, put
from lanes.decisions.inquiry import Heard, Inquiry
from lanes.decisions.orders import Order
from lanes.decisions.priors import Prior
from lanes.decisions.results import Scored
from lanes.engine.channel import Channel, End
from lanes.engine.failure import failure
from lanes.engine.handles import Pending
from lanes.errors import Cancelled, DeadlineExceeded, EngineClosed, LanesError
from lanes.record import Reason, Timing

if TYPE_CHECKING:
    from lanes.engine import Engine
    from lanes.evaluation import Calibration

TOP = 6
"""Likeliest tokens that are read with every question, to say what the model would rather have said."""
END_S = 60.0
"""Seconds to wait, at the end, for decisions that were cancelled."""


@dataclass(frozen=True)
class _Part:
    """One decision on its way: branches on one state, a question's name for each."""

    names: tuple[str, ...]
    branches: tuple[Branch, ...]
    pending: Pending[tuple[Scored, ...]]

    def hear(self) -> list[tuple[str, Order, Heard]]:
        """Wait for what the branches give."""
        results = self.pending.result()
        triples = zip(self.names, self.branches, results, strict=True)
        return [(name, branch.order, branch.hear(result)) for name, branch, result in triples]

    @property
    def cached_tokens(self) -> int:
        """What the state's slot began with, once the branches have given what they give."""
        return max(result.cached_tokens for result in self.pending.result())


class Call:
    """It owns the pending result: cancels go to whatever decisions it has on their way."""

    def __init__(
        self,
        engine: "Engine",
        state: str,
        inquiries: Mapping[str, Inquiry],
        prior: Prior | None,
        calibration: "Calibration | None",
        end: float | None,
    ) -> None:
        self._engine = engine
        self._state = state
        self._inquiries = inquiries
        self._prior = prior
        self._calibration = calibration
        self._end_at = end
        self._began = time.perf_counter()
        self._channel = Channel()
        self._parts: list[_Part] = []
        self._cancelled = False
        self._prompt_tokens = self._cached_tokens = 0  # of what was heard on the state itself

    def start(self, wait: bool) -> Pending[Answers]:
        """Submit the first stage and go on in the background."""
        part = self._decide(self._state, self._pairs(), wait)
        handle: Pending[Answers] = Pending(part.pending.id, self._channel, self, part.pending.prompt_tokens)
        threading.Thread(target=self._run, args=(part,), name="lanes-ask", daemon=True).start()
        return handle

    # --- what the pending result needs of its owner -------------------------------------------------------------

    def cancel(self, id: int = 0) -> None:
        """Give the whole call up, started or not."""
        self._cancelled = True
        for part in list(self._parts):
            part.pending.cancel()

    def locate(self, id: int) -> str | None:
        """Where the decision on its way is; between two of them the call is queued."""
        if self._channel.end:
            return None
        waiting = (part.pending for part in list(self._parts) if not part.pending.done)
        return next((pending.state for pending in waiting), "queued")

    # --- the stages ---------------------------------------------------------------------------------------------

    def _run(self, part: _Part) -> None:
        try:
            self._hear(part)
            while pairs := self._pairs():
                self._hear(self._decide(self._state, pairs, True))
            self._end("answered", self._answers())
        except LanesError as error:
            self._end(_reason(error), error=error)
        except Exception as error:  # whatever happened, somebody waits for an end
            self._end("error", error=failure("the answers could not be put together", error))

    def _pairs(self) -> list[tuple[str, Order]]:
        """What is to be asked next: names of questions, and orders."""
        orders = {name: inquiry.next_orders() for name, inquiry in self._inquiries.items()}
        return [(name, order) for name, own in orders.items() for order in own]

    def _decide(self, state: str, pairs: Sequence[tuple[str, Order]], wait: bool) -> _Part:
        branches = tuple(self._put(state, name, order) for name, order in pairs)
        prompts, labels = [branch.prompt for branch in branches], [branch.labels for branch in branches]
        left = left_until(self._end_at)
        pending = self._engine.decide_bound(prompts, labels, TOP, left, wait)
        part = _Part(tuple(name for name, _ in pairs), branches, pending)
        self._parts.append(part)
        if self._cancelled:  # it may have come too early for this part
            part.pending.cancel()
        return part

    def _put(self, state: str, name: str, order: Order) -> Branch:
        """One branch; many of them take a while, so that somebody may have given up before the last."""
        if self._cancelled:
            raise Cancelled("the questions were cancelled before all of them were put to the model")
        engine, inquiry = self._engine, self._inquiries[name]
        return engine.use_tokenizer(lambda it: put(it, inquiry, state, order, engine.info.context))

    def _hear(self, part: _Part) -> None:
        """Wait for a stage, and sort what it gave into the inquiries."""
        heard = part.hear()
        self._prompt_tokens += part.pending.prompt_tokens
        self._cached_tokens += part.cached_tokens
        priors = self._prior_logs([(name, order) for name, order, _ in heard])
        for (name, _, own), logs in zip(heard, priors, strict=True):
            self._inquiries[name].heard.append(own)
            self._inquiries[name].priors += logs

    def _prior_logs(self, pairs: Sequence[tuple[str, Order]]) -> list[list[np.ndarray]]:
        """For each pair the mean log-probabilities of the prior's states; nothing without a prior."""
        if self._prior is None:
            return [[] for _ in pairs]
        states = self._prior.states
        with References.of(self._engine).held(self._check) as known:
            missing = {state: [pair for pair in pairs if self._key(state, *pair) not in known] for state in states}
            asked = {state: self._decide(state, own, True) for state, own in missing.items() if own}
            for state, part in asked.items():
                known.update({self._key(state, name, order): heard.logs for name, order, heard in part.hear()})
            return [[np.mean([known[self._key(state, *pair)] for state in states], axis=0)] for pair in pairs]

    def _key(self, state: str, name: str, order: Order) -> tuple[object, ...]:
        inquiry = self._inquiries[name]
        return state, inquiry.question.fingerprint, inquiry.manner.method, inquiry.manner.abstain, order

    def _check(self) -> None:
        """Raise where nobody waits for the answers any more."""
        if self._cancelled:
            raise Cancelled("the questions were cancelled before all answers were there")
        if self._end_at is not None and time.monotonic() > self._end_at:
            raise DeadlineExceeded("the deadline passed before all answers were there: allow more time")
        if self._engine.closed:
            raise EngineClosed("the engine was closed before all answers were there")

    # --- the end ------------------------------------------------------------------------------------------------

    def _answers(self) -> Answers:
        answers = {name: self._answer(inquiry) for name, inquiry in self._inquiries.items()}
        return Answers(answers, time.perf_counter() - self._began, self._prompt_tokens, self._cached_tokens)

    def _answer(self, inquiry: Inquiry) -> Answer:
        question = inquiry.question
        found = self._calibration.for_(question.type, len(question.keys)) if self._calibration else None
        top = inquiry.likelier
        texts = self._engine.texts([token for token, _ in top])
        likelier = [(text, p) for text, (_, p) in zip(texts, top, strict=True)]
        kind = self._prior.kind if self._prior else "none"
        return inquiry.answer(found or 1.0, kind, self._engine.info.fingerprint, likelier)

    def _end(self, reason: Reason, result: Answers | None = None, error: LanesError | None = None) -> None:
        for part in self._parts:
            part.pending.cancel()
            with suppress(LanesError):
                part.pending.wait(END_S)
        timings = [part.pending.timing for part in self._parts if part.pending.timing]
        self._channel.finish(End(reason, Timing.spanning(timings), result, error))


def _reason(error: LanesError) -> Reason:
    if isinstance(error, Cancelled):
        return "cancelled"
    if isinstance(error, DeadlineExceeded):
        return "deadline"
    return "closed" if isinstance(error, EngineClosed) else "error"
