"""From a body to answers: which dialect it is in, what it asks, and where in it the fault is."""

import asyncio
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from lanes.asking import prepare
from lanes.decisions.answers import Answers
from lanes.decisions.binding import put
from lanes.decisions.inquiry import Inquiry
from lanes.decisions.inquiry import Manner as Own
from lanes.decisions.questions import shown
from lanes.errors import InvalidRequest
from lanes.serving.decide.decisions import OPENAI
from lanes.serving.decide.dialect import Asked, Body, Dialect, field
from lanes.serving.decide.options import OPTIONS
from lanes.serving.decide.systemone import SYSTEM_ONE
from lanes.serving.errors import Refusal, invalid, missing
from lanes.serving.fitting import check_text, code_of
from lanes.serving.models import check_model
from lanes.serving.reading import parse

if TYPE_CHECKING:
    from lanes.engine import Engine

ALIAS = "jev-latest"
"""What clients of System One call the model that there is."""
ANY_STATE = "N/A"
"""Stands for a state that is as short as can be."""


def dialect_of(body: Mapping[str, Any]) -> Dialect[Any]:
    """System One has a state, or its questions by name; SGLang's questions have an `id` or a `question`."""
    questions = body.get("questions")
    if "state" in body or isinstance(questions, dict):
        return SYSTEM_ONE
    listed = questions if isinstance(questions, list) else []
    third = any(isinstance(one, dict) and one.keys() & {"id", "question"} for one in listed)
    return OPTIONS if third else OPENAI


def read(dialect: Dialect[Body], raw: Mapping[str, Any]) -> tuple[Body, Asked]:
    """The body as its dialect's schema, and what it asks. Raises Refusal, naming the field as the dialect names it."""
    try:
        body = parse(dialect.body, raw)
    except Refusal as error:
        if not dialect.tags:
            error.where = field(raw, error.where, error.code == "missing")
        raise
    return body, dialect.asked(body)


def check_served(engine: "Engine", model: str) -> None:
    """Raise a Refusal where this engine answers no decisions, or none for a model of this name."""
    if engine.options["policy"] == "off":
        raise missing('this engine serves no decisions: it was made with policy="off"')
    check_model(None if model == ALIAS else model, engine.model)


class Asking:
    """Questions on their way, from before they are tokenized: `await` gives the answers.

    Questions are called by their places: what a client calls them is nothing to the engine.
    """

    def __init__(self, engine: "Engine", asked: Asked, deadline: float | None) -> None:
        manner = asked.manner
        self._call = prepare(
            engine,
            asked.state,
            {str(place): one.question for place, one in enumerate(asked.questions)},
            method=manner.x_method,
            orders=manner.x_orders,
            prior=manner.x_prior,
            abstain=manner.x_abstain,
            deadline=deadline,
        )

    def cancel(self) -> None:
        """Give all of it up."""
        self._call.cancel()

    def __await__(self) -> Generator[Any, None, Answers]:
        return self._answers().__await__()

    async def _answers(self) -> Answers:
        return await (await asyncio.to_thread(self._call.start, True))


def check_lengths(engine: "Engine", asked: Asked, most: int) -> None:
    """Raise a Refusal where the state or a question is so long that it need not be put to the model to be refused."""
    check_text(engine, shown(asked.state, asked.field), most, (asked.field,))
    for one in asked.questions:
        options = [text for option in one.question.options for text in (option.key, option.text)]
        check_text(engine, "\n".join([shown(one.question.instructions, "instructions"), *options]), most, one.where)


def blame(engine: "Engine", asked: Asked, error: InvalidRequest) -> Refusal:
    """The error, and the field: a question that could not be put about any state, or the state, which is too long."""
    own = Own.read(asked.manner.x_method, asked.manner.x_orders, asked.manner.x_abstain)
    for one in asked.questions:
        inquiry = Inquiry(one.question, own)
        order = inquiry.next_orders()[0]
        try:
            engine.use_tokenizer(lambda it, q=inquiry, o=order: put(it, q, ANY_STATE, o, engine.info.context))
        except InvalidRequest:
            return invalid(str(error), one.where, code_of(error))
    return invalid(str(error), (asked.field,), code_of(error))
