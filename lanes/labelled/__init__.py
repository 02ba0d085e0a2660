"""A labelled example set that ships with the package: customers' messages, three typed questions, and the gold answers.

README.md beside this file says how the messages were written, labelled and meant; LICENSE is theirs alone.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from math import floor
from typing import TYPE_CHECKING

from lanes import checks
from lanes.decisions.questions import Choice, Noul, Question, Score
from lanes.errors import InvalidRequest
from lanes.record.show import html_page, html_table, text_table

if TYPE_CHECKING:
    from pandas import DataFrame

TEAM = Choice(
    "Which team has to act on the customer's message? Judge by the cause of the trouble, not by the remedy asked for.",
    {
        "billing": "Charges, bills, payments, debts and credits: the money itself is the trouble or the question.",
        "technical": "Connection, telephone, television, equipment or app: faults, setting up, how to use them.",
        "delivery": "Parcels and visits by fitters: dates, places, late, lost, damaged or wrong goods, returns.",
        "account": "Signing in, security, personal data and settings; moving, pausing or ending a contract.",
        "sales": "What could be bought or changed to: products, plans, prices, offers, and where they can be had.",
        "other": "Anything else: thanks, press, jobs, spam, jokes, vans and works in the street, strangers' messages.",
    },
)
REFUND = Noul(
    "Does the customer ask for money back?",
    {
        "true": "The customer wants money that was paid, taken or spent to come back: as a refund, a credit, a charge "
        "reversed, compensation or costs repaid.",
        "false": "No money is asked back: nothing about it, a question about refunds in general, an amount that is not "
        "paid yet, or thanks for a refund that has come.",
    },
)
URGENCY = Score(
    "How soon must somebody act? Judge by what happens if nobody does, not by the tone.",
    [
        "Can wait: nothing gets worse within a week, as with questions, wishes, thanks and spam; or the customer says "
        "that there is no hurry.",
        "This week: a fault, a mistake, a nuisance or a charge to put right, a notice to confirm, or a date within ten "
        "days; the customer can manage until then.",
        "Today: a service is wholly down, safety is at risk, an account or personal data is in the wrong hands now, or "
        "something is due today or tomorrow.",
    ],
)

_SHOWN = 5  # messages in the HTML form


@dataclass(frozen=True, eq=False, repr=False)
class Examples:
    """Messages with gold answers to typed questions.

    `frame`: one row a message; `id` and `message` are texts, and each question's column holds its gold answer as a
    plain value: `team` a text, `refund` a bool, `urgency` an integer (0 to 2). `questions`: the questions by the name
    of their column. `licence` is an SPDX identifier, `source` says where the messages come from.
    """

    frame: "DataFrame"
    questions: Mapping[str, Question]
    licence: str
    source: str

    def __len__(self) -> int:
        return len(self.frame)

    def gold(self, name: str) -> list[str]:
        """The right answers to one question, in the order of the rows, spelled like the keys of its answers.

        Raises InvalidRequest for a name that is no question's.
        """
        if name not in self.questions:
            raise InvalidRequest(f"there is no question {name!r} here: ask for one of {', '.join(self.questions)}")
        return [_key(value) for value in self.frame[name].tolist()]

    def split(self, fraction: float = 0.5, seed: int = 0) -> tuple["Examples", "Examples"]:
        """Two parts without a row in common: `fraction` of the rows and the rest, each in the order it had.

        Stratified by team: each team gives its share within one row. The same seed (a whole number from 0 on) gives
        the same parts on every machine. Raises InvalidRequest for a fraction that leaves a part empty.
        """
        seed = checks.whole("seed", seed, 0)
        share = checks.positive("fraction", fraction)
        size = floor(len(self) * share)
        if not 0 < size < len(self):
            raise InvalidRequest(
                f"fraction {fraction} of {len(self)} rows leaves one part empty: choose one between 0 and 1 that "
                "gives each part a row"
            )
        ids, teams = self.frame["id"].tolist(), self.frame["team"].tolist()
        order = sorted(range(len(self)), key=lambda row: (teams[row], _rank(seed, ids[row])))
        # Evenly spaced along the teams, laid end to end: the whole and every team are within one row of their share.
        first = {row for at, row in enumerate(order) if floor((at + 1) * share) > floor(at * share)}
        return self._rows(sorted(first)), self._rows(sorted(set(order) - first))

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(_HEAD, self._counts())}"

    def _repr_html_(self) -> str:
        columns = ("id", "message", *self.questions)
        shown = [tuple(map(_key, row)) for row in self.frame[list(columns)].head(_SHOWN).itertuples(index=False)]
        texts = {(name, option.key): option.text for name, asked in self.questions.items() for option in asked.options}
        counts = [(*row, texts[row[0], row[1]]) for row in self._counts()]
        return html_page(self._title(), html_table((*_HEAD, "means"), counts), html_table(columns, shown))

    def _title(self) -> str:
        return f"Examples: {len(self)} messages, {len(self.questions)} questions, {self.licence}; {self.source}"

    def _counts(self) -> list[tuple[str, str, str]]:
        """How often each option of each question is the right one: question, option, rows."""
        counts = {name: Counter(self.gold(name)) for name in self.questions}
        return [(name, key, str(counts[name][key])) for name, asked in self.questions.items() for key in asked.keys]

    def _rows(self, rows: list[int]) -> "Examples":
        return replace(self, frame=self.frame.iloc[rows].reset_index(drop=True))


_HEAD = ("question", "option", "rows")


def examples() -> Examples:
    """The example set: 300 messages to a made-up internet provider, each with its team, refund and urgency.

    Read anew on every call, so the frame is the caller's own.
    """
    import pandas as pd

    text = (files("lanes.labelled") / "support.jsonl").read_text(encoding="utf-8")
    return Examples(
        frame=pd.DataFrame([json.loads(line) for line in text.splitlines()]),
        questions={"team": TEAM, "refund": REFUND, "urgency": URGENCY},
        licence="CC0-1.0",
        source="made up for this project by a language model",
    )


def _key(value: object) -> str:
    """A gold value as the answers' keys spell it: "true" and "false" for bools, "0" and so on for levels."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rank(seed: int, name: str) -> bytes:
    """A place in a shuffled order, the same in every version of every library, whatever other rows there are."""
    return hashlib.sha256(f"{seed} {name}".encode()).digest()
