"""What to change, from what was measured alone: other spellings of the labels, another end of the prompt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lanes.decisions.inquiry import LOW_MASS
from lanes.inspecting.sets import LabelSet

WORTH = 0.05
"""A change is worth a sentence where it at least doubles the mass, and adds this much."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One thing to change: the sentence, and what to pass instead; `prompt` is None where it stays.

    `before` and `after` are probabilities that the model goes on with one of the labels, whole: as given (None where
    those labels are refused), and with the change. For labels of one token that is the label mass.
    """

    text: str
    labels: tuple[str, ...]
    prompt: str | None
    before: float | None
    after: float

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Ending:
    """Another prompt to try: what is done to the end of the given one, and the whole text."""

    change: str
    prompt: str


def endings(prompt: str) -> Iterator[Ending]:
    """Other ends of a prompt of raw text."""
    kept = prompt.rstrip()
    if not kept:
        return
    if kept != prompt:
        yield Ending(f"take {prompt[len(kept) :]!r} off the prompt's end", kept)
    if kept[-1].isalnum():
        yield Ending("end the prompt with ':'", f"{kept}:")
    if kept[-1] != ":":
        yield Ending(r"end the prompt with '\nAnswer:'", f"{kept}\nAnswer:")


def remarks(prompt: str, labels: Sequence[str]) -> Iterator[str]:
    """What can be seen of where a prompt of raw text ends and the labels begin."""
    kept = prompt.rstrip()
    if kept != prompt:
        why = ": many tokenizers keep a space with the word after it" if prompt[-1] == " " else ""
        yield f"it ends in white space, {prompt[len(kept) :]!r}{why}"
        return
    if kept[-1].isalnum():
        yield f"it ends in a word ({kept.split()[-1][-20:]!r}), without a colon or another mark after it"
    bare = [label for label in labels if label and not label[0].isspace()]
    if bare:
        yield f"no space stands between it and {', '.join(map(repr, bare))}"


def respell(given: LabelSet | None, here: LabelSet | None) -> Suggestion | None:
    """The suggestion to write the labels otherwise. given: None where they are refused; here: the best there is."""
    if here is None or here == given or not _is_better(given, here):
        return None
    return _suggestion(f"use {list(here.labels)!r}", given, here, None)


def reword(
    given: LabelSet | None, here: LabelSet | None, tried: Sequence[tuple[Ending, LabelSet]]
) -> Suggestion | None:
    """The suggestion to end the prompt otherwise, where the best of what was tried beats all labels after this one."""
    if not tried:
        return None
    ending, other = max(tried, key=lambda pair: pair[1].mass or 0.0)
    if not _is_better(given, other) or not (_is_better(here, other) or (given is None and _is_likelier(here, other))):
        return None
    same = given is not None and other.labels == given.labels
    labels = "keep the labels" if same else f"use {list(other.labels)!r}"
    return _suggestion(f"{ending.change} and {labels}", given, other, ending.prompt)


def is_low(labels: LabelSet | None) -> bool:
    """Whether the model would rather say something else than one of these labels."""
    return labels is None or (labels.mass is not None and labels.mass < LOW_MASS)


def _is_better(given: LabelSet | None, other: LabelSet) -> bool:
    """Labels that can be used are better than none; else they must be so much likelier that it matters."""
    if given is None or given.mass is None or other.mass is None:
        return given is None
    return is_low(given) and other.mass >= max(2 * given.mass, given.mass + WORTH)


def _is_likelier(here: LabelSet | None, other: LabelSet) -> bool:
    """Whether it is likelier at all: where something must be changed anyway, the likelier way is worth a sentence."""
    return here is None or (other.mass or 0.0) > (here.mass or 0.0)


def _suggestion(change: str, given: LabelSet | None, other: LabelSet, prompt: str | None) -> Suggestion:
    before, after = given and given.mass, other.mass or 0.0
    name = "label mass" if other.single and (given is None or given.single) else "mass of the whole labels"
    gain = f"{share(before)} -> {share(after)}" if given else f"{share(after)}, and as given they are refused"
    return Suggestion(f"{change}: {name} {gain}", other.labels, prompt, before, after)


def share(p: float | None) -> str:
    """A probability in a few digits, a dash for None."""
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= 0.00005 or p == 0 else f"{p:.1e}"
