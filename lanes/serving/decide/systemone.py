"""System One: from its questions to `lanes.ask`, and back."""

from typing import Any

from lanes.decisions.answers import Answer, Answers
from lanes.decisions.questions import Choice, Noul, Question, Score
from lanes.serving.decide.dialect import Asked, Dialect, Put, at, extras, shares
from lanes.serving.wire import systemone as wire

UNSAID = {"noul": "Which of these is so?", "choice": "Which of these fits best?", "score": "Which level fits best?"}
"""Instructions of a question that has none: its criteria say what is asked."""


def asked(body: wire.SystemOneRequest) -> Asked:
    """The questions in the order of the body."""
    questions = tuple(_put(name, question) for name, question in body.questions.items())
    return Asked(body.state, "state", questions, body)


def told(body: wire.SystemOneRequest, answers: Answers, model: str) -> wire.SystemOneResponse:
    """The answers by name."""
    pairs = zip(body.questions.items(), answers.values(), strict=True)
    return wire.SystemOneResponse(
        model=model,
        answers={name: _told(question, answer) for (name, question), answer in pairs},
        usage=wire.Usage(input_tokens=answers.prompt_tokens, output_tokens=0, x_cached_tokens=answers.cached_tokens),
    )


def _put(name: str, question: Any) -> Put:
    where = ("questions", name, question.type)
    with at(where):
        return Put(_question(question), where)


def _question(question: Any) -> Question:
    instructions = UNSAID[question.type] if question.instructions is None else question.instructions
    if isinstance(question, wire.NoulQuestion):
        return Noul(instructions, question.criteria and question.criteria.model_dump())
    if isinstance(question, wire.ChoiceQuestion):
        return Choice(instructions, question.criteria)
    return Score(instructions, question.criteria)


def _told(question: Any, answer: Answer) -> wire.NoulAnswer | wire.ChoiceAnswer | wire.ScoreAnswer:
    beside = {**extras(answer), "x_label_mass": answer.label_mass}
    if isinstance(question, wire.NoulQuestion):
        return wire.NoulAnswer(type="noul", noul=answer.value, **beside)
    beside = {"confidence": answer.confidence, "probabilities": shares(answer), **beside}
    if isinstance(question, wire.ChoiceQuestion):
        return wire.ChoiceAnswer(type="choice", choice=answer.choice, **beside)
    legend = {str(level): text for level, text in enumerate(question.criteria)}
    return wire.ScoreAnswer(type="score", score=answer.value, legend=legend, **beside)


SYSTEM_ONE = Dialect("detail", wire.SystemOneRequest, asked, told, tags=True)
