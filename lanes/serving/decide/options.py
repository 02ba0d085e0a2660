"""The third dialect, SGLang's: from its questions to `lanes.ask`, and back."""

from typing import Any

from lanes.decisions.answers import Answer, Answers
from lanes.decisions.questions import Choice, Noul, Question, Score
from lanes.decisions.render import VERSION
from lanes.serving.decide.dialect import Asked, Dialect, Put, at, extras, shares
from lanes.serving.wire import options as wire
from lanes.serving.wire.generation import PromptTokens, Usage

YES_NO = {"yes": "true", "no": "false"}


def asked(body: wire.OptionsRequest) -> Asked:
    """The questions in the order of the body."""
    questions = tuple(_put(place, question) for place, question in enumerate(body.questions))
    return Asked(body.input, "input", questions, body)


def told(body: wire.OptionsRequest, answers: Answers, model: str) -> wire.OptionsResponse:
    """The answers by id, at the temperature of the body."""
    pairs = zip(body.questions, answers.values(), strict=True)
    count = answers.prompt_tokens
    return wire.OptionsResponse(
        object="decisions",
        model=model,
        prompt_format_version=VERSION,
        answers={question.id: _told(question, answer.at(body.temperature)) for question, answer in pairs},
        usage=Usage(
            prompt_tokens=count,
            completion_tokens=0,
            total_tokens=count,
            prompt_tokens_details=PromptTokens(cached_tokens=answers.cached_tokens),
        ),
    )


def _put(place: int, question: Any) -> Put:
    where = ("questions", place, question.type)
    with at(where):
        return Put(_question(question), where)


def _question(question: Any) -> Question:
    if isinstance(question, wire.YesNoQuestion):
        return Noul(question.question, {"true": question.yes, "false": question.no})
    if isinstance(question, wire.ChoiceQuestion):
        return Choice(question.question, {one.name: one.description for one in question.options})
    return Score(question.question, question.levels)


def _told(question: Any, answer: Answer) -> wire.ChoiceAnswer | wire.ScoreAnswer | wire.YesNoAnswer:
    each = shares(answer)
    beside = {"label_mass": answer.label_mass, **extras(answer)}
    if isinstance(question, wire.YesNoQuestion):
        return wire.YesNoAnswer(
            type="yes_no", probabilities={name: each[key] for name, key in YES_NO.items()}, **beside
        )
    beside = {"probabilities": each, "x_confidence": answer.confidence, **beside}
    if isinstance(question, wire.ChoiceQuestion):
        return wire.ChoiceAnswer(type="choice", choice=answer.choice, **beside)
    return wire.ScoreAnswer(type="score", score=answer.value, **beside)


OPTIONS = Dialect("detail", wire.OptionsRequest, asked, told, tags=True)
