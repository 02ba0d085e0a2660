"""Labels without a trie: every label alone, token by token, in plain floats. The slow way, to compare with.

For labels `t_1 ... t_n` of tokens: `log P(label)` is the sum over its tokens of the log-softmax of the token's logit
among the tokens with which any label goes on after the same beginning, `logit(beginning, token) / temperature`.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from lanes.decisions.labels import BoundLabels
from lanes.decisions.trie import Tokens
from lanes.inspecting.rows import Rows
from lanes.prompts import Prompt

if TYPE_CHECKING:
    from lanes.engine import Engine

Logit: TypeAlias = Callable[[Tokens, int], float]
"""The logit of a token after some tokens of a label."""


def log_probabilities(
    labels: Sequence[Tokens], logit: Logit, temperature: float = 1.0, terminator: int | None = None
) -> list[float]:
    """Each label's log-probability (nats); a label that begins another one is ended by the terminator."""
    ended = with_ends(labels, terminator)
    return [
        sum(_log(ended, label[:depth], label[depth], logit, temperature) for depth in range(len(label)))
        for label in ended
    ]


def with_ends(labels: Sequence[Tokens], terminator: int | None) -> list[Tokens]:
    """The labels, those that begin another one with the terminator behind them."""
    begins = {label for label in labels for other in labels if other != label and other[: len(label)] == label}
    if begins and terminator is None:
        raise ValueError(f"{begins} begin other labels: a terminator is needed to tell them apart")
    return [(*label, terminator) if label in begins and terminator is not None else label for label in labels]


def _log(labels: Sequence[Tokens], prefix: Tokens, token: int, logit: Logit, temperature: float) -> float:
    scaled = {rival: logit(prefix, rival) / temperature for rival in rivals(labels, prefix)}
    highest = max(scaled.values())
    return scaled[token] - highest - math.log(math.fsum(math.exp(value - highest) for value in scaled.values()))


def rivals(labels: Sequence[Tokens], prefix: Tokens) -> list[int]:
    """The tokens with which labels go on after a beginning, each once."""
    depth = len(prefix)
    return list(dict.fromkeys(label[depth] for label in labels if label[:depth] == prefix and len(label) > depth))


async def alone(
    engine: "Engine", prompt: Prompt, labels: Sequence[Tokens], terminator: int | None = None
) -> tuple[dict[tuple[Tokens, int], float], int]:
    """Logits by beginning and token, each beginning of each label as a whole prompt of its own; and how many were run.

    Nothing is shared: a beginning that several labels have is run for each of them, one decision after the other, and
    must give the same numbers every time. Use an engine that keeps no beginnings (prefix_bytes=0).
    """
    found: dict[tuple[Tokens, int], float] = {}
    ended = with_ends(labels, terminator)
    runs = [label[:depth] for label in ended for depth in range(len(label))]
    for prefix in runs:
        tokens = tuple(rivals(ended, prefix))
        [(whole, bound)] = Rows(prompt, {prefix: tokens}).branches()
        [result] = await engine.decide_bound([whole], [bound], 0, None, True)
        for token, logit in zip(tokens, result.logits, strict=True):
            if found.setdefault((prefix, token), float(logit)) != float(logit):
                raise ValueError(f"the token {token} after {prefix} had another logit the second time")
    return found, len(runs)


def bound_to(engine: "Engine", prompt: str, labels: Sequence[str]) -> tuple[Prompt, BoundLabels, int | None]:
    """A prompt and labels as the engine reads them, and the token that ends a label which begins another one."""
    from lanes.decisions.labels import bind
    from lanes.prompts import read

    def work(tokenizer: object) -> tuple[Prompt, BoundLabels, int | None]:
        whole = read(tokenizer, prompt)
        return whole, bind(tokenizer, whole, labels), tokenizer.eos_token_id  # type: ignore[attr-defined]

    return engine.use_tokenizer(work)
