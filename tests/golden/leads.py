"""How clearly each token of a stream was drawn: by how many logits it was ahead of the next that could have come.

Another machine's logits differ a little, so a token with a small lead may come out otherwise there, and a text differs
from then on. A draw above temperature 0 is the argmax of logits / temperature + Gumbel noise over the tokens that pass
the filters; the noise is keyed by seed and position alone, so the contest can be held again from the likeliest tokens.
"""

import math
from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from lanes.engine.turn import Logprob
from lanes.sampling import Sampling, key

LISTED = 20
"""The likeliest tokens that are looked at: as many as a stream can be asked for."""
SLACK = 0.02
"""How far (in logits, and in shares of probability) a border of a filter may lie elsewhere on another machine."""
SAFE = 99.0
"""The lead of a token that nothing else competes with."""


def leads(drawn: Sequence[Logprob], sampling: Sampling, prompt_tokens: int, vocabulary: int) -> list[float | None]:
    """For each drawn token its lead, in logits from 0 on; None where more than the listed tokens could have come.

    drawn: with their LISTED likeliest tokens (2 will do at temperature 0). vocabulary: the length of a row of logits.
    """
    if sampling.greedy:
        return [one.top[0][1] - one.top[1][1] for one in drawn]
    return [_lead(one, sampling, prompt_tokens + at, vocabulary) for at, one in enumerate(drawn)]


def _lead(drawn: Logprob, sampling: Sampling, position: int, vocabulary: int) -> float | None:
    least, most = kept(drawn.top, sampling)
    if most == len(drawn.top):
        return None
    logprobs = [logprob for _, logprob in drawn.top]
    sure = {token for token, logprob in drawn.top[:least] if logprob > logprobs[least] + SLACK}
    if drawn.token not in sure:
        return 0.0
    noise = np.array(mx.random.gumbel((vocabulary,), key=key(sampling.seed or 0, position)))
    border = logprobs[most - 1] - SLACK
    scores = {
        token: logprob + sampling.temperature * float(noise[token]) for token, logprob in drawn.top if logprob > border
    }
    others = (score for token, score in scores.items() if token != drawn.token)
    return min(SAFE, scores[drawn.token] - max(others, default=-math.inf))


def kept(top: Sequence[tuple[int, float]], sampling: Sampling) -> tuple[int, int]:
    """How many of the listed tokens pass the filters: at least, and at most, were the borders a little elsewhere."""
    least, most = (_kept(top, sampling, slack) for slack in (-SLACK, SLACK))
    return least, most


def _kept(top: Sequence[tuple[int, float]], sampling: Sampling, slack: float) -> int:
    """How many pass, with each border moved by `slack`; a border that is a number of tokens stays where it is."""
    p = np.exp([logprob for _, logprob in top])
    passed = np.arange(len(top)) < (sampling.top_k or len(top))
    if sampling.top_p < 1:
        passed &= np.cumsum(p) - p - slack < sampling.top_p
    if sampling.min_p:
        passed &= np.log(p / p[0]) >= math.log(sampling.min_p) - slack
    return max(1, int(passed.sum()))
