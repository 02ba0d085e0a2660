"""Sets of labels that could be used together, and the likeliest of them, from spellings that are measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lanes.inspecting.rows import whole_mass
from lanes.inspecting.spellings import STYLES, Spelling, variants

Binds = Callable[[Sequence[str]], bool]
"""Whether labels can be used together after the prompt in question."""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels with the probability that the model goes on with one of them, whole; None where it was not measured.

    `single`: each label is one token, so this is the label mass that `Scored` has.
    """

    labels: tuple[str, ...]
    mass: float | None
    single: bool

    @classmethod
    def of(cls, spelled: Mapping[str, Spelling], labels: Sequence[str]) -> "LabelSet":
        """The set of these labels, each of which is among the spellings."""
        spellings = [spelled[label] for label in labels]
        return cls(tuple(labels), whole_mass(spellings), all(len(one.tokens) == 1 for one in spellings))


def best(spelled: Mapping[str, Spelling], labels: Sequence[str], binds: Binds) -> LabelSet | None:
    """The likeliest way to write all labels in one style, or else each in its own; None where none can be used.

    `spelled` has all variants of all labels, measured. Labels that are empty or there twice are left out.
    """
    kept = tuple(dict.fromkeys(filter(None, labels)))
    alike = dict.fromkeys([kept, *(tuple(style.write(label) for label in kept) for style in STYLES)])
    mixed = tuple(likeliest(spelled, label) for label in kept)
    sets = [*_likeliest_first(spelled, alike), *_likeliest_first(spelled, [mixed])]
    return next((one for one in sets if binds(one.labels)), None)


def likeliest(spelled: Mapping[str, Spelling], label: str) -> str:
    """The usable variant of a label that the model says with the highest probability; itself where none is usable."""
    usable = [text for text in variants(label) if spelled[text].usable]
    return max(usable, key=lambda text: (spelled[text].whole or 0.0, spelled[text].first or 0.0), default=label)


def _likeliest_first(spelled: Mapping[str, Spelling], candidates: Iterable[tuple[str, ...]]) -> list[LabelSet]:
    fitting = [texts for texts in candidates if texts and _fits(spelled, texts)]
    return sorted((LabelSet.of(spelled, texts) for texts in fitting), key=lambda one: -(one.mass or 0.0))


def _fits(spelled: Mapping[str, Spelling], texts: tuple[str, ...]) -> bool:
    measured = all(spelled[text].whole is not None for text in texts)
    return measured and len(set(texts)) == len(texts)
