"""`lanes.ask`: typed questions about one state, answered as branches on one trunk, in as many stages as they need.

The first stage is read and submitted on the caller's thread, so that bad input is refused at once. A thread of its own
waits for each stage, asks the next, and ends with the last.
"""

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lanes import checks
from lanes.decisions.answers import Answer, Answers
from lanes.decisions.binding import Branch, put
from lanes.decisions.inquiry import Inquiry, Manner
from lanes.decisions.orders import Order
from lanes.decisions.priors import Prior, read_prior
from lanes.decisions.questions import Question, Value, shown
from lanes.decisions.results import Scored
from lanes.engine.channel import Channel, End
from lanes.engine.failure import failure
from lanes.engine.handles import Pending
from lanes.errors import Cancelled, DeadlineExceeded, EngineClosed, InvalidRequest, LanesError
from lanes.record import Reason, Timing

if TYPE_CHECKING:
    from lanes.engine import Engine
    from lanes.evaluation import Calibration

TOP = 6
"""Likeliest tokens that are read with every question, to say what the model would rather have said."""
MOST_QUESTIONS = 400

_priors: "weakref.WeakKeyDictionary[Engine, dict[tuple[Any, ...], np.ndarray]]" = weakref.WeakKeyDictionary()
"""Log-probabilities of the priors' states, by state, question, manner and order."""


def ask(
    engine: "Engine",
    state: Value,
    questions: Mapping[str, Question],
    *,
    method: str = "codes",
    orders: int | str = 1,
    prior: Prior | str | None = None,
    abstain: bool = False,
    calibration: "Calibration | None" = None,
    deadline: float | None = None,
    wait: bool = True,
) -> Pending[Answers]:
    """Ask questions about one state; returns a pending result (an `Answers`) at once.

    state: what is judged, a text, an object or an array. questions: by name; names never reach the model, and no answer
    depends on another question. method: "codes" lists the options under letters and reads those, "labels" reads the
    options' own words. orders: in how many orders of the options each question is asked, or "auto": two, and more until
    the choice is steady. prior: what to take out of the answers, None, "contextual" or a `lanes.Prior`. abstain: offer
    none-of-these as well; its mass stands outside the options' probabilities. calibration: temperatures fitted by
    `lanes.calibrate`. deadline: seconds from now. wait: False raises Busy where no slot is free now.

    Raises InvalidRequest for what cannot be asked, and what `Engine.decide` raises.
    """
    if calibration is not None:
        calibration.check(engine.info.fingerprint)
    manner = Manner.read(method, orders, abstain)
    limit = None if deadline is None else time.monotonic() + checks.seconds("deadline", deadline)
    inquiries = {name: Inquiry(question, manner) for name, question in _checked(questions).items()}
    return _Asked(engine, shown(state, "the state"), inquiries, read_prior(prior), calibration, limit).start(wait)


def _checked(questions: Any) -> Mapping[str, Question]:
    if not isinstance(questions, Mapping) or not questions:
        raise InvalidRequest('questions must be a mapping of at least one, such as {"team": lanes.Choice(...)}')
    if len(questions) > MOST_QUESTIONS:
        raise InvalidRequest(f"there are {len(questions)} questions: ask at most {MOST_QUESTIONS} at once")
    for name, question in questions.items():
        if not isinstance(name, str) or not isinstance(question, Question):
            raise InvalidRequest(f"question {name!r} must be a lanes.Noul, Choice or Score, not {question!r:.80}")
    return questions


@dataclass(frozen=True)
class _Part:
    """One decision of a stage: branches on the state itself, or on a state of the prior."""

    state: str
    names: tuple[str, ...]
    branches: tuple[Branch, ...]
    pending: Pending[tuple[Scored, ...]]


class _Asked:
    """One call on its way. It owns the pending result: cancels go to the decisions of its current stage."""

    def __init__(
        self,
        engine: "Engine",
        state: str,
        inquiries: Mapping[str, Inquiry],
        prior: Prior | None,
        calibration: "Calibration | None",
        limit: float | None,
    ) -> None:
        self._engine = engine
        self._state = state
        self._inquiries = inquiries
        self._prior = prior
        self._calibration = calibration
        self._limit = limit
        self._began = time.perf_counter()
        self._channel = Channel()
        self._stage: list[_Part] = []
        self._timings: list[Timing] = []
        self._cancelled = False

    def start(self, wait: bool) -> Pending[Answers]:
        """Submit the first stage and go on in the background."""
        self._submit(wait)
        first = self._stage[0].pending
        tokens = sum(part.pending.prompt_tokens for part in self._stage)
        handle: Pending[Answers] = Pending(first.id, self._channel, self, tokens)
        threading.Thread(target=self._run, name="lanes-ask", daemon=True).start()
        return handle

    # --- what the pending result needs of its owner -------------------------------------------------------------

    def cancel(self, id: int) -> None:
        """Give the whole call up."""
        self._cancelled = True
        for part in self._stage:
            part.pending.cancel()

    def locate(self, id: int) -> str | None:
        """Where the current stage is; between two stages it is queued."""
        if self._channel.end:
            return None
        waiting = (part.pending for part in self._stage if not part.pending.done)
        return next((pending.state for pending in waiting), "queued")

    # --- the stages ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._stage:
                self._hear()
                self._submit(True)
            self._end("answered", self._answers())
        except LanesError as error:
            self._end(_reason(error), error=error)
        except Exception as error:  # whatever happened, somebody waits for an end
            self._end("error", error=failure("the answers could not be put together", error))

    def _submit(self, wait: bool) -> None:
        """Ask what is to be asked next, if anything is."""
        self._stage = []
        orders = {name: inquiry.next_orders() for name, inquiry in self._inquiries.items()}
        pairs = [(name, order) for name, own in orders.items() for order in own]
        try:
            if pairs:
                self._decide(self._state, pairs, wait)
            for state in self._prior.states if self._prior else ():
                missing = [pair for pair in pairs if self._key(state, *pair) not in self._known]
                if missing:
                    self._decide(state, missing, wait)
            if self._cancelled:
                raise Cancelled("the questions were cancelled before all answers were there")
        except BaseException:
            for part in self._stage:
                part.pending.cancel()
            raise

    def _decide(self, state: str, pairs: Sequence[tuple[str, Order]], wait: bool) -> None:
        engine, context = self._engine, self._engine.info.context
        branches = tuple(
            engine.use_tokenizer(lambda it, pair=pair: put(it, self._inquiries[pair[0]], state, pair[1], context))
            for pair in pairs
        )
        left = None if self._limit is None else max(1e-3, self._limit - time.monotonic())
        prompts, labels = [branch.prompt for branch in branches], [branch.labels for branch in branches]
        pending = engine.decide_bound(prompts, labels, TOP, left, wait)
        self._stage.append(_Part(state, tuple(name for name, _ in pairs), branches, pending))

    def _hear(self) -> None:
        """Wait for the stage, and sort what it gave into the inquiries; priors first, as they may be shared."""
        for part in reversed(self._stage):
            results = part.pending.result()
            own = part is self._stage[0]
            for name, branch, result in zip(part.names, part.branches, results, strict=True):
                heard = branch.hear(result)
                if own:
                    self._inquiries[name].heard.append(heard)
                    self._inquiries[name].priors += self._prior_logs(name, branch.order)
                else:
                    self._known[self._key(part.state, name, branch.order)] = heard.logs
            if part.pending.timing:
                self._timings.append(part.pending.timing)

    def _prior_logs(self, name: str, order: Order) -> list[np.ndarray]:
        if self._prior is None:
            return []
        return [np.mean([self._known[self._key(state, name, order)] for state in self._prior.states], axis=0)]

    @property
    def _known(self) -> dict[tuple[Any, ...], np.ndarray]:
        return _priors.setdefault(self._engine, {})

    def _key(self, state: str, name: str, order: Order) -> tuple[Any, ...]:
        inquiry = self._inquiries[name]
        return state, inquiry.question.fingerprint, inquiry.manner.method, inquiry.manner.abstain, order

    # --- the end ------------------------------------------------------------------------------------------------

    def _answers(self) -> Answers:
        answers = {name: self._answer(inquiry) for name, inquiry in self._inquiries.items()}
        return Answers(answers, time.perf_counter() - self._began)

    def _answer(self, inquiry: Inquiry) -> Answer:
        question = inquiry.question
        found = self._calibration.for_(question.type, len(question.keys)) if self._calibration else None
        top = inquiry.heard[0].result.top
        texts = self._engine.texts([token for token, _ in top])
        likelier = [(text, p) for text, (_, p) in zip(texts, top, strict=True)]
        kind = self._prior.kind if self._prior else "none"
        return inquiry.answer(found or 1.0, kind, self._engine.info.fingerprint, likelier)

    def _end(self, reason: Reason, result: Answers | None = None, error: LanesError | None = None) -> None:
        for part in self._stage:
            part.pending.cancel()
            with suppress(LanesError, TimeoutError):
                part.pending.wait(60.0)
            if part.pending.timing:
                self._timings.append(part.pending.timing)
        self._channel.finish(End(reason, _whole(self._timings), result, error))


def _whole(timings: Sequence[Timing]) -> Timing:
    """From the first submit to the last end."""
    return Timing(
        submitted=min((one.submitted for one in timings), default=0.0),
        admitted=min((one.admitted for one in timings if one.admitted is not None), default=None),
        finished=max((one.finished for one in timings if one.finished is not None), default=None),
        evictions=sum(one.evictions for one in timings),
    )


def _reason(error: LanesError) -> Reason:
    if isinstance(error, Cancelled):
        return "cancelled"
    if isinstance(error, DeadlineExceeded):
        return "deadline"
    return "closed" if isinstance(error, EngineClosed) else "error"
