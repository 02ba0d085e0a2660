"""What is not as it was frozen, and what of that another machine may do otherwise (README.md lists it in words)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import shorten
from typing import Any, NamedTuple

from golden.shapes import Machine, Values


class Absent:
    """Stands for what one of the two sides does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Allowed:
    """How far results may lie apart.

    logit: by how much each logit of a row may differ. probability: by how much a share of 1 may. A token whose lead is
    below `lead`, twice a logit's difference, is open: it and all that follows it in its stream may be others.
    """

    logit: float
    probability: float

    @property
    def lead(self) -> float:
        """Below this lead a token is open."""
        return 2 * self.logit


ELSEWHERE = Allowed(logit=0.01, probability=0.005)
"""On another machine class than that of the record; on the same one nothing may differ."""


class Difference(NamedTuple):
    """One place where the two are not equal; `record` is the frozen dict that it belongs to."""

    path: Path
    frozen: Any
    observed: Any
    record: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The name of the value that differs, or of the list it is in."""
        return next(str(step) for step in reversed(self.path) if isinstance(step, str))

    @property
    def index(self) -> int:
        """Its place in that list; 0 for what is in none."""
        return next((step for step in self.path[::-1] if isinstance(step, int)), 0)

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")
        return f"{place}: frozen {shorten(repr(self.frozen), 80)}, now {shorten(repr(self.observed), 80)}"


def allowed(recorded: Machine | None, here: Machine | None) -> Allowed | None:
    """What may differ here from what was recorded there; None for nothing."""
    return None if recorded == here else ELSEWHERE


def differences(frozen: Values | None, observed: Values, allowed: Allowed | None = None) -> list[Difference]:
    """All that differs and may not, in the order of what was frozen."""
    found = _differences(ABSENT if frozen is None else frozen, observed, ("gave",), {})
    return [one for one in found if allowed is None or not _may(one, allowed)]


def _differences(frozen: Any, observed: Any, path: Path, record: Mapping[str, Any]) -> Iterator[Difference]:
    if isinstance(frozen, dict) and isinstance(observed, dict):
        for key in {**frozen, **observed}:
            yield from _differences(frozen.get(key, ABSENT), observed.get(key, ABSENT), (*path, key), frozen)
    elif isinstance(frozen, list) and isinstance(observed, list):
        for at, (one, other) in enumerate(zip_longest(frozen, observed, fillvalue=ABSENT)):
            yield from _differences(one, other, (*path, at), record)
    elif frozen != observed or isinstance(frozen, bool) != isinstance(observed, bool):
        yield Difference(path, frozen, observed, record)


def _may(one: Difference, allowed: Allowed) -> bool:
    """Whether this may be so: what is there must be there, whatever it is."""
    rule = RULES.get(one.key)
    return ABSENT not in (one.frozen, one.observed) and rule is not None and rule(one, allowed)


Rule = Callable[[Difference, Allowed], bool]


def _close(one: Difference, within: float) -> bool:
    numbers = (one.frozen, one.observed)
    return all(isinstance(number, int | float) for number in numbers) and abs(one.frozen - one.observed) <= within


def _logit(one: Difference, allowed: Allowed) -> bool:
    return _close(one, allowed.logit)


def _share(one: Difference, allowed: Allowed) -> bool:
    return _close(one, allowed.probability)


def _logprob(one: Difference, allowed: Allowed) -> bool:
    """A logit less a logsumexp: both may differ."""
    return _token(one, allowed) or _close(one, 2 * allowed.logit)


def _token(one: Difference, allowed: Allowed) -> bool:
    return one.index >= first_open(one.record, allowed)


def _text(one: Difference, allowed: Allowed) -> bool:
    return first_open(one.record, allowed) < len(one.record["tokens"])


def _any(_: Difference, __: Allowed) -> bool:
    """Whatever it is: it only stands for bits."""
    return True


def _choice(one: Difference, allowed: Allowed) -> bool:
    """Between two that were as good as equally likely."""
    options = one.record.get("options") or one.record["labels"]
    shares = dict(zip(options, one.record["probabilities"], strict=True))
    return one.observed in shares and max(shares.values()) - shares[one.observed] <= 2 * allowed.probability


def _value(one: Difference, allowed: Allowed) -> bool:
    """A mean of levels: the last weighs most."""
    return _close(one, allowed.probability * len(one.record["options"]) ** 2 / 2)


def _top(one: Difference, allowed: Allowed) -> bool:
    """Between neighbours that are as good as equally likely; the last one's next neighbour is not known."""
    shares = [2.0, *one.record["top_probabilities"], -1.0]
    around = shares[one.index : one.index + 3]
    last = one.index == len(one.record["top"]) - 1
    return last or min(around[0] - around[1], around[1] - around[2]) <= 2 * allowed.probability


def _warning(one: Difference, _: Allowed) -> bool:
    """The same words with other figures."""
    return _words(one.frozen) == _words(one.observed)


def _words(text: str) -> str:
    return re.sub(r"[\d.]+", "#", text)


RULES: Mapping[str, Rule] = {
    "bits": _any,
    "leads": _any,
    "tokens": _token,
    "text": _text,
    "logprobs": _logprob,
    "logits": _logit,
    "logsumexp": _logit,
    "probabilities": _share,
    "label_mass": _share,
    "abstain": _share,
    "value": _value,
    "choice": _choice,
    "top": _top,
    "top_probabilities": _share,
    "warnings": _warning,
}


def first_open(record: Mapping[str, Any], allowed: Allowed) -> int:
    """The index of a stream's first token that could have come out otherwise; their number where none could."""
    leads: Sequence[float | None] = record["leads"]
    return next((at for at, lead in enumerate(leads) if lead is None or lead < allowed.lead), len(leads))
