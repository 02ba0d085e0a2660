"""What the order of the options and a prior do to choices: the same messages asked in two orders, and figures of it."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lanes.decisions.questions import Choice, Question

if TYPE_CHECKING:
    from lanes.decisions.answers import Answers
    from lanes.engine import Engine, Pending


@dataclass(frozen=True)
class Outcome:
    """One question in one way of asking: shares of messages that flip and that are right, orders asked on average."""

    question: str
    orders: int | str
    messages: int
    flipped: float
    right: float
    asked: float


@dataclass(frozen=True)
class Favour:
    """The choices of one question over some messages: the option chosen most, its share, and the share that is right.

    `mass` is the mean share of the model's belief that lies on the options at all.
    """

    question: str
    favourite: str
    share: float
    right: float
    mass: float


def listed(question: Question, seed: int | None) -> Choice:
    """The same question as a choice between its options, as they are written (seed None) or in another order."""
    options = list(question.options)
    while seed is not None and tuple(options) == question.options:
        random.Random(seed).shuffle(options)
        seed += 1000
    return Choice(question.instructions, {option.key: option.text or None for option in options})


def ask_twice(
    engine: "Engine", messages: Sequence[str], questions: Mapping[str, Question], **manner: Any
) -> "list[tuple[Pending[Answers], Pending[Answers]]]":
    """Ask the questions about each message, as they are written and with their options shuffled.

    Returns pairs of pending answers at once; `manner` is passed to `lanes.ask`.
    """
    import lanes

    def asked(message: str, shuffle: int | None) -> "Pending[Answers]":
        own = {name: listed(question, shuffle) for name, question in questions.items()}
        return lanes.ask(engine, message, own, **manner)

    return [(asked(message, None), asked(message, seed)) for seed, message in enumerate(messages)]


def outcomes(
    pairs: "Sequence[tuple[Answers, Answers]]", gold: Mapping[str, Sequence[str]], orders: int | str
) -> list[Outcome]:
    """For each question how often the two answers differ; `gold` are the right keys, message by message."""
    return [_outcome([(one[name], other[name]) for one, other in pairs], name, gold[name], orders) for name in gold]


def _outcome(pairs: Sequence[tuple[Any, Any]], name: str, gold: Sequence[str], orders: int | str) -> Outcome:
    return Outcome(
        name,
        orders,
        len(pairs),
        flipped=fmean(one.choice != other.choice for one, other in pairs),
        right=fmean(one.choice == own for (one, _), own in zip(pairs, gold, strict=True)),
        asked=fmean(answer.orders for pair in pairs for answer in pair),
    )


def favours(answers: "Sequence[Answers]", gold: Mapping[str, Sequence[str]]) -> list[Favour]:
    """For each question which option is chosen most, the first of equals by name."""
    return [_favour([one[name] for one in answers], name, gold[name]) for name in gold]


def _favour(answers: Sequence[Any], name: str, gold: Sequence[str]) -> Favour:
    choices = [answer.choice for answer in answers]
    counts = Counter(choices)
    favourite = min(counts, key=lambda key: (-counts[key], key))
    return Favour(
        name,
        favourite,
        share=counts[favourite] / len(choices),
        right=fmean(choice == own for choice, own in zip(choices, gold, strict=True)),
        mass=fmean(answer.label_mass for answer in answers),
    )
