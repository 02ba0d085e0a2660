"""What the inspection of a prompt's labels found: frozen plain values, shown as text, HTML, a frame or a dict."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lanes.inspecting import views
from lanes.inspecting.advice import Suggestion
from lanes.inspecting.spellings import Spelling, Verdict

if TYPE_CHECKING:
    import pandas as pd


class Token(NamedTuple):
    """A token of the vocabulary, as text by itself; `probability` is that after the prompt, where it was asked for."""

    id: int
    text: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """One label: what is to be said of it, its variants (the first is the label as given), and the likeliest of them.

    `best` is a text: the usable variant that the model says with the highest probability.
    """

    text: str
    verdict: Verdict
    variants: tuple[Spelling, ...]
    best: str

    @property
    def usable(self) -> bool:
        """Whether it can be used as it is."""
        return not self.verdict.problem

    @property
    def tokens(self) -> tuple[int, ...]:
        """Its token ids in this prompt."""
        return self.variants[0].tokens


@dataclass(frozen=True, repr=False)
class LabelReport:
    """How labels do after one prompt.

    `prompt` is the text that the model sees (messages are rendered), of `prompt_tokens` tokens; `ending` are its last
    tokens, `remarks` are on its end. `labels` stand in the caller's order. `refusal` is why `engine.score` would refuse
    them together, "" where it would not. `top` are the likeliest tokens after the prompt, whatever the labels.
    `label_mass` is the share of the model's belief on the first tokens of the labels as given, those that can be used:
    what `Scored.label_mass` is. `whole_mass` is the probability that the model goes on with one of them to its end.
    `best_label_mass` and `best_whole_mass` are those of the best variant of each label (no two need be written alike).
    A mass is None where no label can be used, or where it was not measured.
    `suggestions` say what to change, from what was measured; () where nothing is wrong or nothing better was found.
    """

    prompt: str
    prompt_tokens: int
    ending: tuple[Token, ...]
    remarks: tuple[str, ...]
    labels: tuple[Label, ...]
    refusal: str
    top: tuple[Token, ...]
    label_mass: float | None
    whole_mass: float | None
    best_label_mass: float | None
    best_whole_mass: float | None
    suggestions: tuple[Suggestion, ...]
    model: str = ""
    """The model's fingerprint, as `engine.info.fingerprint`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values ready for JSON."""
        plain = asdict(self)
        return {**plain, "ending": [one._asdict() for one in self.ending], "top": [one._asdict() for one in self.top]}

    def to_frame(self) -> "pd.DataFrame":
        """A row for each variant of each label.

        Columns: label, spelling, styles, given and best (bool), tokens and pieces (tuples), first and whole
        (probabilities; NaN where there is none), problem, fault.
        """
        import pandas as pd

        rows = [
            {
                "label": label.text,
                "spelling": one.text,
                "styles": "; ".join(one.styles),
                "given": at == 0,
                "best": one.usable and one.text == label.best,
                "tokens": one.tokens,
                "pieces": one.pieces,
                "first": one.first,
                "whole": one.whole,
                "problem": one.problem if at else label.verdict.problem,
                "fault": one.fault if at else label.verdict.fault,
            }
            for label in self.labels
            for at, one in enumerate(label.variants)
        ]
        return pd.DataFrame(rows).astype({"first": float, "whole": float})

    def __repr__(self) -> str:
        return views.text(self)

    def _repr_html_(self) -> str:
        return views.html(self)
