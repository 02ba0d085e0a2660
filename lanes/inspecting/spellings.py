"""Labels and their spellings after a prompt: with and without a space, in other cases; their tokens and faults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lanes.decisions.labels import bind
from lanes.decisions.trie import Tokens
from lanes.errors import InvalidRequest
from lanes.prompts import Prompt, Tokenizer, checked_text, encode_text, pieces


class Style(NamedTuple):
    """A way to write a label: what stands before its words, and their case."""

    name: str
    lead: str
    case: Callable[[str], str]

    def write(self, label: str) -> str:
        """The label in this style; one of white space alone stays as it is."""
        core = label.lstrip()
        return self.lead + self.case(core) if core else label


GIVEN = "as given"
STYLES = tuple(
    Style(f"{lead_name}{case_name}", lead, case)
    for lead_name, lead in (("no space", ""), ("space", " "))
    for case_name, case in (
        ("", str),
        (", capitalised", str.capitalize),
        (", lower", str.lower),
        (", upper", str.upper),
    )
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """A text right after the prompt.

    `styles` are the names of what it is to its label. `tokens` are the ids that it adds to the prompt, `pieces` each of
    them as text; where it merges, they stand from where the prompt's tokens change, and `replaces` are the pieces of
    the prompt that they replace. `problem` is a word, `fault` the whole reason why it is no label here; "" where it is
    one. `first` is the probability of its first token after the prompt, out of the whole vocabulary; `whole` that of
    all its tokens, the product of their plain conditional probabilities: normalised over nothing else, whatever
    follows. None where there is nothing to measure, or where that would take too many rows.
    """

    text: str
    styles: tuple[str, ...] = ()
    tokens: Tokens = ()
    pieces: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    problem: str = ""
    fault: str = ""
    first: float | None = None
    whole: float | None = None

    @property
    def usable(self) -> bool:
        """Whether it can be a label after this prompt."""
        return not self.problem


def variants(label: str) -> dict[str, tuple[str, ...]]:
    """The texts that a label can be spelled as, the label itself first, and the names of the styles that give each."""
    names: dict[str, list[str]] = {label: [GIVEN]}
    for style in STYLES:
        names.setdefault(style.write(label), []).append(style.name)
    return {text: tuple(styles) for text, styles in names.items()}


def spell(tokenizer: Tokenizer, prompt: Prompt, text: str) -> Spelling:
    """The text's tokens after this prompt, with what is wrong with them; nothing is measured yet."""
    try:
        checked_text(text, "the label")
    except InvalidRequest as error:
        return Spelling(text, problem="half a character" if text else "empty", fault=str(error))
    joint = encode_text(tokenizer, prompt.text + text, prompt.special)
    pairs = zip(prompt.ids, joint, strict=False)
    ends = min(len(prompt.ids), len(joint))
    same = next((index for index, (one, other) in enumerate(pairs) if one != other), ends)
    own, replaced = joint[same:], prompt.ids[same:]
    fault = refusal(tokenizer, prompt, [text])
    return Spelling(
        text,
        tokens=own,
        pieces=pieces(tokenizer, own),
        replaces=pieces(tokenizer, replaced),
        problem=fault and ("merges" if replaced else "changed" if own else "dropped"),
        fault=fault,
    )


def refusal(tokenizer: Tokenizer, prompt: Prompt, labels: Sequence[str], context: int | None = None) -> str:
    """Why these cannot be the labels of this prompt, or "" where they can."""
    try:
        bind(tokenizer, prompt, labels, context)
    except InvalidRequest as error:
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a label among the others.

    `begins` are the labels that it is the beginning of. Then the model's end token tells them apart, or `problem` and
    `fault` say why not; else they are those of its spelling, or of a label that is there twice.
    """

    problem: str = ""
    fault: str = ""
    begins: tuple[str, ...] = ()


def judge(
    tokenizer: Tokenizer, prompt: Prompt, labels: Sequence[str], spelled: Mapping[str, Spelling], index: int
) -> Verdict:
    """The verdict on the label at this index."""
    own = spelled[labels[index]]
    if own.problem:
        return Verdict(own.problem, own.fault)
    if own.text in labels[:index]:
        return Verdict("twice", refusal(tokenizer, prompt, [own.text, own.text]))
    begins = tuple(other for other in dict.fromkeys(labels) if _is_beginning(own, spelled[other]))
    faults = (refusal(tokenizer, prompt, [own.text, other]) for other in begins)
    fault = next(filter(None, faults), "")
    return Verdict("beginning of another" if fault else "", fault, begins)


def _is_beginning(own: Spelling, other: Spelling) -> bool:
    longer = other.usable and len(other.tokens) > len(own.tokens)
    return longer and other.tokens[: len(own.tokens)] == own.tokens
