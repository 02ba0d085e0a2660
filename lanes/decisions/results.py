"""What a decision found: one frozen result with its numbers, read like a mapping from label to probability."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lanes import checks
from lanes.decisions.bars import bars
from lanes.decisions.labels import BoundLabels
from lanes.decisions.trie import ROOT
from lanes.errors import EngineFailed
from lanes.record import Timing


@dataclass(frozen=True, eq=False, repr=False)
class Scored(Mapping[str, float]):
    """How likely each label is after one prompt; `result[label]` is its probability.

    `logits` ([n], float32, as read) are those of each label's first token after the prompt, `logsumexp` that of the
    whole vocabulary there. `probabilities` ([n], float64) are the labels' alone, at `temperature`: the softmax of the
    logits for labels of one token, the product over the token trie for longer ones; `log_probabilities` are their
    logarithms, of use where probabilities round to 0. `label_mass` is the share of the model's whole belief, at
    temperature 1, that lies on the labels' first tokens: exact for labels of one token, an upper bound for longer ones.
    `choice` is the likeliest label, the first of equals. `top` are the vocabulary's likeliest tokens after the prompt,
    with their probabilities at temperature 1: what the model would rather have said (`engine.texts` gives them as
    text); () unless they were asked for. `cached_tokens` of the `prompt_tokens` came from the prefix cache.
    """

    labels: tuple[str, ...]
    logits: np.ndarray
    logsumexp: float
    log_probabilities: np.ndarray
    probabilities: np.ndarray
    label_mass: float
    choice: str
    temperature: float = 1.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    timing: Timing | None = None
    top: tuple[tuple[int, float], ...] = ()

    def __getitem__(self, label: str) -> float:
        try:
            return float(self.probabilities[self.labels.index(label)])
        except ValueError:
            raise KeyError(f"{label!r} is not among the labels {self.labels}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def confidence(self) -> float:
        """`(max p - 1/n) / (1 - 1/n)`: 0 for the uniform distribution, 1 for certainty and for a single label."""
        n = len(self.labels)
        return 1.0 if n == 1 else float((np.max(self.probabilities) - 1 / n) / (1 - 1 / n))

    @property
    def entropy(self) -> float:
        """`-sum(p log p)` in nats, from 0 to `log(n)`."""
        positive = self.probabilities[self.probabilities > 0]
        return float(abs(np.sum(positive * np.log(positive))))

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON; the probabilities as a list in the order of the labels."""
        return {
            "labels": list(self.labels),
            "logits": [float(logit) for logit in self.logits],
            "logsumexp": self.logsumexp,
            "log_probabilities": [float(value) for value in self.log_probabilities],
            "probabilities": [float(p) for p in self.probabilities],
            "label_mass": self.label_mass,
            "choice": self.choice,
            "confidence": self.confidence,
            "entropy": self.entropy,
            "temperature": self.temperature,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "timing": None if self.timing is None else asdict(self.timing),
            "top": [{"token": token, "probability": p} for token, p in self.top],
        }

    def __repr__(self) -> str:
        shares = ", ".join(f"{label!r}: {p:.4f}" for label, p in self.items())
        return f"Scored({self.choice!r}, {{{shares}}}, label_mass={self.label_mass:.4f})"

    def _repr_html_(self) -> str:
        foot = f"label mass {self.label_mass:.4f} · temperature {self.temperature:g}"
        return bars(((repr(label), p) for label, p in self.items()), foot)


def scored(
    bound: BoundLabels,
    logits: Mapping[int, np.ndarray],
    logsumexp: float,
    *,
    temperature: float = 1.0,
    prompt_tokens: int = 0,
    cached_tokens: int = 0,
    timing: Timing | None = None,
    top: Sequence[tuple[int, float]] = (),
) -> Scored:
    """The result from what was read: for each of the trie's nodes, by id, the logits (float32) at its `tokens`.

    `logsumexp` is the one over the whole vocabulary at the root, `top` its largest logits as (token, logit). Raises
    EngineFailed for a number that is not finite, InvalidRequest for a temperature that is not a finite number above 0.
    """
    check_temperature(temperature)
    _check_finite(logits, logsumexp)
    trie = bound.trie
    root = np.asarray(logits[ROOT], dtype=np.float32)
    first = root[list(trie.first)]
    logs = trie.log_probabilities(logits, temperature)
    plain = logs if temperature == 1 else trie.log_probabilities(logits)
    # Tempering can round distinct logits to one probability: the plain value, then the logit, tells them apart.
    likeliest = max(range(len(bound.texts)), key=lambda i: (logs[i], plain[i], first[i]))
    mass = float(np.sum(np.exp(root.astype(np.float64) - logsumexp)))
    return Scored(
        labels=bound.texts,
        logits=_frozen(first),
        logsumexp=float(logsumexp),
        log_probabilities=_frozen(logs),
        probabilities=_frozen(np.exp(logs)),
        label_mass=min(mass, 1.0),  # a logsumexp rounded to float32 can leave it a little above
        choice=bound.texts[likeliest],
        temperature=float(temperature),
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        timing=timing,
        top=tuple((token, float(np.exp(logit - logsumexp))) for token, logit in top),
    )


def check_temperature(temperature: float) -> None:
    """Raise InvalidRequest where a decision's temperature is not a finite number above 0."""
    checks.positive("temperature", temperature)


def _check_finite(logits: Mapping[int, np.ndarray], logsumexp: float) -> None:
    if np.isfinite(logsumexp) and all(np.all(np.isfinite(values)) for values in logits.values()):
        return
    raise EngineFailed(
        "the model gave logits that are not finite, which is no answer: its weights or its number format are broken; "
        "run `lanes doctor`, or load it in float32"
    )


def _frozen(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values
