"""What a person composed at the desk, as frozen plain values: a raw prompt with labels, or typed questions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from typing_extensions import TypedDict

from lanes.asking import ask
from lanes.decisions.questions import Choice, Noul, Question, Score, Value
from lanes.errors import InvalidRequest
from lanes.prompts import Text

if TYPE_CHECKING:
    from lanes import Engine
    from lanes.engine.handles import Pending

TOP = 8
"""Likeliest tokens that are read with every raw decision."""
_SHORT = 60  # characters of a question in a table


class OptionForm(TypedDict):
    """One option as the front end sends it: a key (unused for a level of a score) and a description, "" for none."""

    key: str
    text: str


class QuestionForm(TypedDict):
    """One question as the front end sends it."""

    name: str
    kind: Literal["noul", "choice", "score"]
    instructions: str
    options: list[OptionForm]


@dataclass(frozen=True, slots=True)
class Raw:
    """A prompt, a text or messages of (role, content), and its labels."""

    kind: ClassVar[str] = "raw"

    prompt: str | tuple[tuple[str, str], ...]
    labels: tuple[str, ...]

    @classmethod
    def read(cls, prompt: str | Sequence[Mapping[str, str]], labels: Sequence[str]) -> "Raw":
        """From what the front end sent; InvalidRequest for messages without a role and a content."""
        if isinstance(prompt, str):
            return cls(prompt, tuple(labels))
        if any(set(message) != {"role", "content"} for message in prompt):
            raise InvalidRequest("a message has a role and a content, and nothing else")
        return cls(tuple((message["role"], message["content"]) for message in prompt), tuple(labels))

    @property
    def text(self) -> Text:
        """The prompt as `Engine.score` takes it."""
        if isinstance(self.prompt, str):
            return self.prompt
        return [{"role": role, "content": content} for role, content in self.prompt]

    @property
    def short(self) -> str:
        """What it asks, in a few characters: the end of the prompt, where the question mostly is."""
        words = self.prompt if isinstance(self.prompt, str) else self.prompt[-1][1]
        return _clipped(words, end=True)

    def ask(self, engine: "Engine") -> "Pending[Any]":
        """Ask it; raises what `Engine.score` raises."""
        return engine.score(self.text, list(self.labels), top=TOP)

    def to_dict(self) -> dict[str, Any]:
        """As the front end sends it."""
        return {"prompt": self.text, "labels": list(self.labels)}


@dataclass(frozen=True, slots=True)
class Typed:
    """A state, questions about it by name, and the manner they are asked in, as for `lanes.ask`."""

    kind: ClassVar[str] = "typed"

    state: Value
    questions: tuple[tuple[str, Question], ...]
    method: str
    orders: int | str
    prior: str | None
    abstain: bool
    form: dict[str, Any]
    """What the front end sent."""

    @classmethod
    def read(
        cls,
        state: str,
        as_json: bool,
        questions: Sequence[QuestionForm],
        method: str,
        orders: int | str,
        prior: str | None,
        abstain: bool,
    ) -> "Typed":
        """From what the front end sent; InvalidRequest for what cannot be a state or a question."""
        form = {
            "state": state,
            "as_json": as_json,
            "questions": list(questions),
            "method": method,
            "orders": orders,
            "prior": prior,
            "abstain": abstain,
        }
        made = tuple((one["name"], _question(one)) for one in questions)
        names = [name for name, _ in made]
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise InvalidRequest(f"two questions have the name {twice!r}: rename one")
        return cls(_parsed(state) if as_json else state, made, method, orders, prior, abstain, form)

    @property
    def short(self) -> str:
        """What it asks, in a few characters."""
        first = self.questions[0][1].instructions if self.questions else ""
        more = f" and {len(self.questions) - 1} more" if len(self.questions) > 1 else ""
        return _clipped(str(first)) + more

    def ask(self, engine: "Engine") -> "Pending[Any]":
        """Ask it; raises what `lanes.ask` raises."""
        return ask(
            engine,
            self.state,
            dict(self.questions),
            method=self.method,
            orders=self.orders,
            prior=self.prior,
            abstain=self.abstain,
        )

    def to_dict(self) -> dict[str, Any]:
        """As the front end sends it."""
        return self.form


Wish: TypeAlias = Raw | Typed


def _question(form: QuestionForm) -> Question:
    instructions, options = form["instructions"], form["options"]
    if form["kind"] == "noul":
        return Noul(instructions, {one["key"]: one["text"] for one in options if one["text"]} or None)
    if form["kind"] == "score":
        return Score(instructions, [one["text"] for one in options])
    keys = [one["key"] for one in options]
    if len(set(keys)) < len(keys):
        return Choice(instructions, keys)  # which says that one is there twice
    return Choice(instructions, {one["key"]: one["text"] or None for one in options})


def _parsed(state: str) -> Value:
    try:
        return json.loads(state)
    except ValueError as error:
        raise InvalidRequest(f"the state is no JSON ({error}): mend it, or send it as a text") from None


def _clipped(text: str, end: bool = False) -> str:
    """The beginning or the end of a text, at whole words where there are some."""
    words = " ".join(text.split())
    if len(words) <= _SHORT:
        return words
    if end:
        cut = words[1 - _SHORT :]
        return f"…{cut.partition(' ')[2] or cut}"
    cut = words[: _SHORT - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"
