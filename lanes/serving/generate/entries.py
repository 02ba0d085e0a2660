"""Log-probabilities of tokens beside the text they are in."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lanes.engine.turn import Logprob
from lanes.serving.generate.spelling import Spelled

LEAST = -9999.0
"""What OpenAI's API gives for a token that cannot be: JSON has no infinity."""


class Entry(NamedTuple):
    """A drawn token, how likely it and the likeliest ones were (nats), and where in the text it begins (characters)."""

    token: Spelled
    logprob: float
    top: tuple[tuple[Spelled, float], ...]
    offset: int


class Entries:
    """Makes the entries of one reply, in order: where a token begins depends on those before it."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._at = 0

    def make(self, logprobs: Iterable[Logprob], spelled: Mapping[int, Spelled]) -> tuple[Entry, ...]:
        """The entries of the next tokens."""
        return tuple(self._next(one, spelled) for one in logprobs)

    def _next(self, one: Logprob, spelled: Mapping[int, Spelled]) -> Entry:
        token, at = spelled[one.token], self._at
        self._at += len(self._decoder.decode(token.raw))
        top = tuple((spelled[each], max(value, LEAST)) for each, value in one.top)
        return Entry(token, max(one.logprob, LEAST), top, at)


def tokens_of(logprobs: Iterable[Logprob]) -> set[int]:
    """All tokens that are named."""
    return {token for one in logprobs for token in (one.token, *(token for token, _ in one.top))}
