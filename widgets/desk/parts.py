"""Results as plain values, one part for each answer: what the desk shows, keeps and puts into a frame."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lanes.decisions.answers import Answer, Answers
from lanes.decisions.results import Scored

MOST_BARS = 40
"""Options of one answer that the front end is sent, the likeliest."""


@dataclass(frozen=True, slots=True)
class Token:
    """A likely token as text, its probability, and whether it is a label ("label"), begins one ("begins"), or ""."""

    text: str
    probability: float
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One answer. `name` is the question's, "" for a raw decision; `shares` are options and probabilities, in order.

    `label_mass` and `abstain` are probabilities, `value` and `confidence` as in `lanes` (None where there is none),
    `likelier` the likeliest tokens: always for a raw decision, for a typed question where its label mass is low.
    `prompt` is what the model read, of the first order.
    """

    name: str
    type: str
    choice: str
    shares: tuple[tuple[str, float], ...]
    label_mass: float
    value: float | None
    confidence: float | None
    abstain: float | None
    abstained: bool
    orders: int
    flips: int
    prompt_tokens: int
    cached_tokens: int
    likelier: tuple[Token, ...]
    warnings: tuple[str, ...]
    prompt: str

    @property
    def probability(self) -> float:
        """That of the choice."""
        return dict(self.shares)[self.choice]

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the prompt, with the likeliest options alone where there are many."""
        plain = {**asdict(self), "p": self.probability, "options": len(self.shares)}
        if len(self.shares) > MOST_BARS:
            kept = {key for key, _ in sorted(self.shares, key=lambda pair: -pair[1])[:MOST_BARS]}
            plain["shares"] = [pair for pair in self.shares if pair[0] in kept]
        del plain["prompt"]
        return plain


def raw_part(result: Scored, texts: Sequence[str], begins: Mapping[int, str], prompt: str) -> Part:
    """A raw decision's. texts: those of `result.top`; begins: what the tokens that labels begin with are to them."""
    tops = zip(texts, result.top, strict=True)
    return Part(
        name="",
        type="raw",
        choice=result.choice,
        shares=tuple(result.items()),
        label_mass=result.label_mass,
        value=None,
        confidence=result.confidence,
        abstain=None,
        abstained=False,
        orders=1,
        flips=0,
        prompt_tokens=result.prompt_tokens,
        cached_tokens=result.cached_tokens,
        likelier=tuple(Token(text, p, begins.get(token, "")) for text, (token, p) in tops),
        warnings=(),
        prompt=prompt,
    )


def typed_parts(answers: Answers) -> tuple[Part, ...]:
    """Those of a typed decision, in the order of its questions."""
    return tuple(_typed(name, answer) for name, answer in answers.items())


def _typed(name: str, answer: Answer) -> Part:
    return Part(
        name=name,
        type=answer.type,
        choice=answer.choice,
        shares=tuple(answer.items()),
        label_mass=answer.label_mass,
        value=answer.value,
        confidence=answer.confidence,
        abstain=answer.abstain,
        abstained=answer.abstained,
        orders=answer.orders,
        flips=answer.flips,
        prompt_tokens=answer.prompt_tokens,
        cached_tokens=answer.cached_tokens,
        likelier=tuple(Token(text, p, "label" if text in answer.labels else "") for text, p in answer.likelier),
        warnings=answer.warnings,
        prompt=answer.prompt,
    )
