"""Prompts of a wanted length, made of plain sentences by the tokenizer at hand, each with an opening of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, TypeAlias

from lanes.prompts import encode

if TYPE_CHECKING:
    from lanes.engine import Engine

Encode: TypeAlias = Callable[[str], Sequence[int]]
"""Token ids of a text."""

LABELS = (" positive", " negative")
PROSE = (
    "The first half was slow, yet nobody in the hall looked at the clock. The music came in late and stayed quiet, "
    "and the man who played the father hardly spoke at all. Outside it had rained for most of the day. We talked about "
    "the last scene on the way home, and we did not agree on what it meant, or on whether it had to mean anything. "
    "The light on the water was the best part of it, and the worst was the price of the seats."
)
TOPICS = ("the sea at night", "how bread is made", "a walk through a forest", "the history of maps")


@dataclass(frozen=True)
class Question:
    """One decision to be asked: a prompt and its labels."""

    prompt: str
    labels: tuple[str, ...] = LABELS


def encoder(engine: "Engine") -> Encode:
    """Token ids as the engine would make them."""
    return lambda text: encode(engine._reader._tokenizer, text)


def fitted(encode: Encode, opening: str, closing: str, tokens: int) -> str:
    """Opening, prose, closing: as much prose as keeps the text within `tokens` tokens.

    It ends up a few tokens short where the next word does not fit, and longer only if opening and closing alone are.
    """

    def text(words: int) -> str:
        return " ".join([opening, *islice(cycle(PROSE.split()), words)]) + closing

    fits, too_many = 0, tokens + 1  # no word takes less than one token
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if len(encode(text(middle))) <= tokens:
            fits = middle
        else:
            too_many = middle
    return text(fits)


def questions(encode: Encode, lengths: Sequence[int]) -> list[Question]:
    """A question for each wanted length in tokens; no two begin alike."""
    return [
        Question(fitted(encode, f"{number} people wrote this review:", "\nSentiment:", length))
        for number, length in enumerate(lengths, start=2)
    ]


def topics(encode: Encode, lengths: Sequence[int]) -> list[str]:
    """A prompt for a stream of each wanted length in tokens; no two begin alike."""
    return [
        fitted(encode, f"Chapter {number}.", f"\nNow something else, {topic}:", length)
        for number, (topic, length) in enumerate(zip(cycle(TOPICS), lengths, strict=False), start=1)
    ]
