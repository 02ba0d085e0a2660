"""Answers to typed questions: frozen results with all their numbers, read like mappings from option to probability."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np

from lanes.decisions.bars import FAINT, TEXT, WARN, bars, remark
from lanes.decisions.trie import log_softmax
from lanes.record import Timing


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Mapping[str, float]):
    """The answer to one question; `answer[option]` is an option's probability.

    `options` are the question's keys: "true" and "false", a choice's options, or a score's levels "0", "1", ...
    `logs` ([n], float64) are their log-probabilities at temperature 1, normalised over the options: averaged over
    `orders` orders of the options (`flips` of them alone chose something else), the `prior` taken out. `temperature`
    divides them in `probabilities`. `label_mass` is the share of the model's whole belief that lies on the codes or
    labels it could answer with (mean over the orders), `likelier` what it would rather have said (tokens as text, with
    probabilities). `abstain` is the mass of none-of-these, outside the others; None where that was not offered.
    `prompt` is the text of the first order, and `labels` are what was read after it, option by option; the token counts
    are sums over all orders.
    """

    type: str
    options: tuple[str, ...]
    logs: np.ndarray
    label_mass: float
    temperature: float = 1.0
    abstain: float | None = None
    orders: int = 1
    flips: int = 0
    method: str = "codes"
    prior: str = "none"
    prompt: str = ""
    labels: tuple[str, ...] = ()
    prompt_tokens: int = 0
    cached_tokens: int = 0
    timing: Timing | None = None
    likelier: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()
    model: str = ""
    """The model's fingerprint: the sha256 (hex) that `engine.info.fingerprint` has."""

    def __getitem__(self, option: str) -> float:
        try:
            return float(self.probabilities[self.options.index(option)])
        except ValueError:
            raise KeyError(f"{option!r} is not among the options {self.options}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    @property
    def probabilities(self) -> np.ndarray:
        """`softmax(logs / temperature)`, [n], float64; they sum to 1 whatever `abstain` is."""
        return np.exp(log_softmax(self.logs, self.temperature))

    @property
    def choice(self) -> str:
        """The likeliest option, the first of equals."""
        return self.options[int(np.argmax(self.logs))]

    @property
    def runner_up(self) -> str:
        """The second likeliest option."""
        return self.options[int(np.argsort(-self.logs, kind="stable")[1])]

    @property
    def margin(self) -> float:
        """The probability of the choice less that of the runner-up."""
        first, second = np.sort(self.probabilities)[::-1][:2]
        return float(first - second)

    @property
    def entropy(self) -> float:
        """`-sum(p log p)` in nats, from 0 to `log(n)`."""
        positive = self.probabilities[self.probabilities > 0]
        return float(abs(np.sum(positive * np.log(positive))))

    @property
    def value(self) -> float:
        """For yes or no the probability of yes, for a score the expected level, for a choice that of the likeliest."""
        p = self.probabilities
        if self.type == "score":
            return float(p @ np.arange(len(p)))
        return float(p[self.options.index("true")] if self.type == "noul" else p.max())

    @property
    def confidence(self) -> float | None:
        """0 for no idea, 1 for certainty; None for yes or no, whose probability says it all.

        For a choice `(max p - 1/n) / (1 - 1/n)`. For a score `max(0, 1 - sum(p_i |i - k|) / D)`, where k is the
        likeliest level, and D the same for the uniform distribution around its middle, `sum(|i - (n - 1) / 2|) / n`.
        These are the formulas of System One (section 4.5 of the specification that jevcompat tests).
        """
        p = self.probabilities
        n = len(p)
        if self.type == "choice":
            return max(0.0, float((p.max() - 1 / n) / (1 - 1 / n)))  # rounding can leave it a little below
        if self.type == "score":
            levels = np.arange(n)
            away, even = np.abs(levels - int(np.argmax(p))), np.abs(levels - (n - 1) / 2).mean()
            return max(0.0, float(1 - (p @ away) / even))
        return None

    @property
    def abstained(self) -> bool:
        """Whether none-of-these was offered and is likelier than the likeliest option."""
        return self.abstain is not None and bool(abstains(self.probabilities.max(), self.abstain))

    @property
    def raw(self) -> "Answer":
        """The same answer at temperature 1: calibration switched off."""
        return self.at(1.0)

    def at(self, temperature: float) -> "Answer":
        """The same answer at another temperature."""
        return replace(self, temperature=temperature)

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        return {
            "type": self.type,
            "choice": self.choice,
            "value": self.value,
            "confidence": self.confidence,
            "probabilities": dict(self),
            "logs": [float(value) for value in self.logs],
            "label_mass": self.label_mass,
            "entropy": self.entropy,
            "margin": self.margin,
            "runner_up": self.runner_up,
            "abstain": self.abstain,
            "temperature": self.temperature,
            "orders": self.orders,
            "flips": self.flips,
            "method": self.method,
            "prior": self.prior,
            "labels": list(self.labels),
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "likelier": [list(pair) for pair in self.likelier],
            "warnings": list(self.warnings),
            "timing": None if self.timing is None else asdict(self.timing),
            "model": self.model,
        }

    def __repr__(self) -> str:
        shares = ", ".join(f"{option!r}: {p:.4f}" for option, p in self.items())
        outside = "" if self.abstain is None else f", abstain={self.abstain:.4f}"
        return f"Answer({self.choice!r}, {{{shares}}}, label_mass={self.label_mass:.4f}{outside})"

    def _repr_html_(self) -> str:
        return bars(self.items(), self._foot()) + "".join(remark(warning, WARN) for warning in self.warnings)

    def _foot(self) -> str:
        parts = [f"label mass {self.label_mass:.4f}", f"temperature {self.temperature:g}", self.method]
        if self.type == "score":
            parts.insert(0, f"expected level {self.value:.2f}")
        if self.orders > 1:
            parts.append(f"{self.orders} orders, {self.flips} of them flipped")
        if self.abstain is not None:
            parts.append(f"none of these {100 * self.abstain:.1f} %" + (": abstains" if self.abstained else ""))
        return " · ".join(parts)


@dataclass(frozen=True, eq=False, repr=False)
class Answers(Mapping[str, Answer]):
    """The answers of one `ask`, by the questions' names, in the caller's order.

    `seconds` is the time from the call to the result, on the caller's clock. `prompt_tokens` are those of the questions
    on this state, in all orders; what the questions of a stage share counts once, what a prior asks does not count.
    `cached_tokens` of them came from the prefix cache.
    """

    answers: Mapping[str, Answer]
    seconds: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0

    def __getitem__(self, name: str) -> Answer:
        return self.answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        return {name: answer.to_dict() for name, answer in self.items()}

    def __repr__(self) -> str:
        lines = "".join(f"\n  {name!r}: {answer!r}," for name, answer in self.items())
        return f"Answers({{{lines}\n}})"

    def _repr_html_(self) -> str:
        blocks = "".join(
            f'<div style="margin:0.4em 0"><b style="color:{TEXT}">{escape(name)}</b> '
            f'<span style="color:{FAINT}">{answer.type}</span>{answer._repr_html_()}</div>'
            for name, answer in self.items()
        )
        return f"<div>{blocks}</div>"


def abstains(likeliest: Any, outside: Any) -> Any:
    """Whether the mass outside the options is larger than what the likeliest has of the rest; NaN: no such mass."""
    return outside > (1 - outside) * likeliest
