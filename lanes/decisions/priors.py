"""What a model answers before it has seen anything: reference states whose mean log-probabilities are taken out.

Dividing by the answer to content-free input is contextual calibration (Zhao et al. 2021, arXiv:2102.09690); random
words of the domain in its place are domain-context calibration (Fei et al. 2023, arXiv:2305.19148); the mean over an
unlabelled batch is batch calibration (Zhou et al. 2023, arXiv:2309.17249). Here all three are means of logarithms.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from lanes import checks
from lanes.decisions.questions import Value, shown
from lanes.errors import InvalidRequest

CONTENT_FREE = ("N/A", "[MASK]", "...")


@dataclass(frozen=True)
class Prior:
    """The states whose answers stand for knowing nothing; make one with `contextual`, `domain` or `batch`.

    Their answers are computed once for each question and order, and kept as long as the engine is.
    """

    kind: str
    states: tuple[str, ...]

    @classmethod
    def contextual(cls, states: Iterable[Value] = CONTENT_FREE) -> "Prior":
        """Content-free states."""
        return cls("contextual", _texts(states))

    @classmethod
    def domain(cls, texts: Iterable[str], *, count: int = 5, words: int = 20, seed: int = 0) -> "Prior":
        """`count` states of `words` words each, drawn at random from texts of the domain."""
        pool = " ".join(_texts(texts)).split()
        drawn = random.Random(seed)
        sizes = range(checks.whole("count", count, 1, 1000))
        length = checks.whole("words", words, 1, 1000)
        return cls("domain", tuple(" ".join(drawn.choices(pool, k=length)) for _ in sizes))

    @classmethod
    def batch(cls, states: Iterable[Value]) -> "Prior":
        """States as they really come, without labels: what is taken out is their mean answer."""
        return cls("batch", _texts(states))

    def __repr__(self) -> str:
        return f"Prior({self.kind!r}, {len(self.states)} states)"


def read_prior(prior: "Prior | str | None") -> Prior | None:
    """The prior that a caller means; InvalidRequest for a name that needs texts, or that nobody knows."""
    if prior is None or prior == "none":
        return None
    if prior == "contextual":
        return Prior.contextual()
    if isinstance(prior, Prior):
        return prior
    if prior in ("domain", "batch"):
        raise InvalidRequest(f"the {prior} prior needs texts of your own: pass lanes.Prior.{prior}([...])")
    raise InvalidRequest(f'prior must be None, "contextual" or a lanes.Prior, not {prior!r}')


def _texts(states: Iterable[Value]) -> tuple[str, ...]:
    if isinstance(states, str | bytes):
        raise InvalidRequest("a prior needs a list of states, not one text")
    texts = tuple(shown(state, "a prior's state") for state in states)
    if not texts:
        raise InvalidRequest("a prior needs at least one state")
    return texts
