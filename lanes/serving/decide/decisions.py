"""OpenAI's Decisions: from its questions to `lanes.ask`, and back."""

import json
from collections.abc import Sequence
from typing import Any

from lanes.decisions.answers import Answer, Answers
from lanes.decisions.questions import Choice, Noul, Question, Score, Value
from lanes.serving.decide.dialect import Asked, Dialect, Put, at, extras
from lanes.serving.wire import decisions as wire
from lanes.serving.wire import items


def asked(body: wire.DecisionRequest) -> Asked:
    """The questions in the order of the body. A list of messages is judged as it is, a text as a text."""
    questions = tuple(_put(place, question) for place, question in enumerate(body.questions))
    return Asked(_state(body.input), "input", questions, body)


def told(body: wire.DecisionRequest, answers: Answers, model: str) -> wire.Decision:
    """The answers in the order of the questions."""
    pairs = zip(body.questions, answers.values(), strict=True)
    count = answers.prompt_tokens
    return wire.Decision(
        model=model,
        answers=[_told(question, answer) for question, answer in pairs],
        usage=wire.Usage(
            input_tokens=count,
            input_tokens_details=wire.InputTokens(cached_tokens=answers.cached_tokens, cache_write_tokens=0),
            output_tokens=0,
            output_tokens_details=wire.OutputTokens(reasoning_tokens=0),
            total_tokens=count,
        ),
    )


# --- what is asked --------------------------------------------------------------------------------------------------


def _state(given: str | list[Any]) -> Value:
    return given if isinstance(given, str) else [_item(item) for item in given]


def _item(item: Any) -> dict[str, Any]:
    """What a model should see of an item: who said or did what. Ids and hints are left out."""
    if isinstance(item, items.Message):
        return {"role": item.role, "content": _text(item.content)}
    if isinstance(item, items.FunctionCall):
        return {"type": item.type, "name": item.name, "arguments": item.arguments}
    if isinstance(item, items.CustomToolCall):
        return {"type": item.type, "name": item.name, "input": item.input}
    return {"type": item.type, "output": _text(item.output)}


def _text(content: str | list[Any]) -> str:
    """Parts one below the other."""
    return content if isinstance(content, str) else "\n".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if isinstance(part, items.TextPart):
        return part.text
    return part.refusal if isinstance(part, items.RefusalPart) else json.dumps(part.data, ensure_ascii=False)


def _put(place: int, question: Any) -> Put:
    where = ("questions", place)
    with at((*where, "instructions")):
        instructions = _text(question.instructions)
        Noul(instructions)  # an empty text is refused here, by its name
    with at(where):
        return Put(_question(question, instructions), where)


def _question(question: Any, instructions: str) -> Question:
    if isinstance(question, wire.PredicateQuestion):
        return Noul(instructions)
    if isinstance(question, wire.ChoiceQuestion):
        values = [one.value for one in question.choices]
        described = [one.description or None for one in question.choices]
        return Choice(instructions, dict(zip(names(values), described, strict=True)))
    return Score(instructions, [_level(level) for level in question.levels])


def _level(level: wire.Level) -> str:
    return f"{level.label}: {level.description}" if level.description else level.label


def names(values: Sequence[str | bool]) -> list[str]:
    """What a model reads for each value: a text as it is; true and false as JSON has them, unless a text says so."""
    taken = {value for value in values if isinstance(value, str)}
    return [value if isinstance(value, str) else _free(json.dumps(value), taken) for value in values]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += " (boolean)"
    return name


# --- what is told ---------------------------------------------------------------------------------------------------


def _told(question: Any, answer: Answer) -> wire.PredicateAnswer | wire.ChoiceAnswer | wire.ScoreAnswer:
    beside = {"name": question.name, **extras(answer), "x_label_mass": answer.label_mass}
    if isinstance(question, wire.PredicateQuestion):
        return wire.PredicateAnswer(type="predicate", probability=answer.value, **beside)
    sure, shares = answer.confidence or 0.0, answer.probabilities.tolist()  # only a predicate has none
    if isinstance(question, wire.ChoiceQuestion):
        values = [one.value for one in question.choices]
        each = [wire.ChoiceProbability(value=value, probability=p) for value, p in zip(values, shares, strict=True)]
        chosen = values[answer.options.index(answer.choice)]
        return wire.ChoiceAnswer(type="choice", choice=chosen, confidence=sure, probabilities=each, **beside)
    levels = [
        wire.LevelProbability(value=value, label=level.label, probability=p)
        for value, (level, p) in enumerate(zip(question.levels, shares, strict=True))
    ]
    return wire.ScoreAnswer(type="score", score=answer.value, confidence=sure, probabilities=levels, **beside)


OPENAI = Dialect("openai", wire.DecisionRequest, asked, told, tags=False)
