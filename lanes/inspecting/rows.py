"""The plain probabilities of spellings: which beginnings to run after a prompt, and what their logits give.

Each beginning is the prompt of a branch of its own, whose logits and logsumexp give the probabilities of the tokens
after it out of the whole vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lanes.decisions.labels import BoundLabels
from lanes.decisions.results import Scored
from lanes.decisions.trie import Tokens, Trie
from lanes.inspecting.spellings import Spelling
from lanes.prompts import Prompt

MOST_ROWS = 256
"""Rows that the inner tokens of one decision's spellings may take: a spelling of n tokens takes n (n - 1) / 2."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What to run after one prompt: for each beginning, parents first, the tokens to read after it."""

    prompt: Prompt
    nexts: Mapping[Tokens, tuple[int, ...]]

    @classmethod
    def of(cls, prompt: Prompt, spellings: Iterable[Spelling], context: int, most: int = MOST_ROWS) -> "Rows":
        """The first token of every usable spelling, and the others in turn as far as `most` rows and the context go."""
        nexts: dict[Tokens, dict[int, None]] = {(): {}}
        left = most
        for tokens in (spelling.tokens for spelling in spellings if spelling.usable):
            nexts[()][tokens[0]] = None
            inner = [tokens[:depth] for depth in range(1, len(tokens))]
            cost = sum(len(prefix) for prefix in inner if prefix not in nexts)
            if cost > left or len(prompt.ids) + len(tokens) - 1 > context:
                continue
            left -= cost
            for prefix in inner:
                nexts.setdefault(prefix, {})[tokens[len(prefix)]] = None
        nexts[()] = nexts[()] or {prompt.ids[-1]: None}  # something must be read, or nothing is run
        return cls(prompt, {prefix: tuple(tokens) for prefix, tokens in nexts.items()})

    def branches(self) -> list[tuple[Prompt, BoundLabels]]:
        """A branch for each beginning, in order."""
        return [(self._prompt(prefix), _labels(tokens)) for prefix, tokens in self.nexts.items()]

    def logs(self, results: Sequence[Scored]) -> dict[Tokens, float]:
        """The log-probability (float64) of every run of tokens that was read, from the branches' results."""
        logs: dict[Tokens, float] = {(): 0.0}
        for (prefix, tokens), result in zip(self.nexts.items(), results, strict=True):
            plain = result.logits.astype(np.float64) - result.logsumexp
            logs.update({(*prefix, token): logs[prefix] + float(log) for token, log in zip(tokens, plain, strict=True)})
        return logs

    def _prompt(self, prefix: Tokens) -> Prompt:
        return Prompt(self.prompt.text, self.prompt.ids + prefix, self.prompt.special)


def measured(spelling: Spelling, logs: Mapping[Tokens, float]) -> Spelling:
    """The spelling with the probabilities that were read."""
    if not spelling.usable:
        return spelling
    return replace(
        spelling, first=_probability(logs.get(spelling.tokens[:1])), whole=_probability(logs.get(spelling.tokens))
    )


def label_mass(spellings: Iterable[Spelling]) -> float:
    """The probability of the first tokens of usable spellings, each counted once: what `Scored.label_mass` is."""
    firsts = {spelling.tokens[0]: spelling.first or 0.0 for spelling in spellings if spelling.usable}
    return min(sum(firsts.values()), 1.0)


def whole_mass(spellings: Iterable[Spelling]) -> float | None:
    """The probability that the model goes on with one of the usable spellings; None where one was not measured."""
    wholes = {spelling.tokens: spelling.whole for spelling in spellings if spelling.usable}
    beginnings = (tokens for tokens in wholes if not any(tokens[:depth] in wholes for depth in range(1, len(tokens))))
    found = [wholes[tokens] for tokens in beginnings]
    known = [whole for whole in found if whole is not None]
    return min(sum(known), 1.0) if len(known) == len(found) else None


def _labels(tokens: tuple[int, ...]) -> BoundLabels:
    singles = tuple((token,) for token in tokens)
    return BoundLabels(tuple(map(str, tokens)), singles, Trie.build(singles))


def _probability(log: float | None) -> float | None:
    return None if log is None else min(float(np.exp(log)), 1.0)  # a logsumexp rounded to float32 can leave it above
