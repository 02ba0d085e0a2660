"""Typed questions about one state: yes or no, one of several options, a level on a scale.

A question is plain, frozen data. What the model reads of it is written in `lanes.decisions.render`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from lanes.errors import InvalidRequest
from lanes.prompts import checked_text

Value: TypeAlias = str | Mapping[str, Any] | Sequence[Any]
"""A text, or an object or array that is shown as JSON."""

MOST_OPTIONS = 255
MOST_LEVELS = 10
MOST_QUESTIONS = 400


@dataclass(frozen=True, slots=True)
class Option:
    """One possible answer: its key in the results, byte-exact, and what describes it ("" for nothing)."""

    key: str
    text: str = ""


@dataclass(frozen=True)
class Question:
    """What all questions have: instructions, criteria, and the options that follow from them."""

    type: ClassVar[str] = ""

    instructions: Value
    criteria: Any = None

    def __post_init__(self) -> None:
        shown(self.instructions, f"the instructions of a {self.type}")
        _ = self.options

    @property
    def options(self) -> tuple[Option, ...]:
        """The possible answers in the caller's order."""
        raise NotImplementedError

    @property
    def keys(self) -> tuple[str, ...]:
        """The options' keys, as answers name them."""
        return tuple(option.key for option in self.options)

    @property
    def fingerprint(self) -> str:
        """A sha256 (hex) of all that a model may be shown of it; equal for equal questions under any name."""
        shape = [self.type, shown(self.instructions, "instructions"), [[o.key, o.text] for o in self.options]]
        return hashlib.sha256(json.dumps(shape, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Noul(Question):
    """Yes or no. criteria: what counts as true and as false, {"true": ..., "false": ...}; either side may be absent.

    The answer's keys are "true" and "false". Raises InvalidRequest for other criteria.
    """

    type: ClassVar[str] = "noul"

    criteria: Mapping[Any, Value | None] | None = None

    @property
    def options(self) -> tuple[Option, ...]:
        criteria = {} if self.criteria is None else self.criteria
        if not isinstance(criteria, Mapping):
            raise InvalidRequest('the criteria of a noul must be {"true": ..., "false": ...}, one of them, or None')
        sides = {_truth(key): text for key, text in criteria.items()}
        if len(sides) < len(criteria) or not sides.keys() <= {"true", "false"}:
            raise InvalidRequest(f'a noul has the criteria "true" and "false", not {list(criteria)}')
        return tuple(Option(key, _text(sides.get(key), f"the criterion {key!r}")) for key in ("true", "false"))


@dataclass(frozen=True)
class Choice(Question):
    """One of 2 to 255 options. criteria: option -> what it means (None: the name says it), or a list of options.

    The answer's keys are the options, byte-exact. Raises InvalidRequest for too few, too many, equal or empty ones.
    """

    type: ClassVar[str] = "choice"

    criteria: Mapping[str, Value | None] | Sequence[str] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        options = _options(self.criteria)
        if not 2 <= len(options) <= MOST_OPTIONS:
            raise InvalidRequest(f"a choice has 2 to {MOST_OPTIONS} options, not {len(options)}")
        keys = [option.key for option in options]
        twice = next((key for at, key in enumerate(keys) if key in keys[:at]), None)
        if twice is not None:
            raise InvalidRequest(f"the option {twice!r} is there twice: leave one out")
        return options


@dataclass(frozen=True)
class Score(Question):
    """A level on a scale. criteria: a list of 2 to 10 descriptions, from the lowest level to the highest.

    The answer's keys are "0", "1", ...; its value is the expected level. Raises InvalidRequest for other criteria.
    """

    type: ClassVar[str] = "score"

    criteria: Sequence[Value] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        if isinstance(self.criteria, str | bytes | Mapping) or not isinstance(self.criteria, Sequence):
            raise InvalidRequest("the criteria of a score must be a list of levels, from the lowest to the highest")
        if not 2 <= len(self.criteria) <= MOST_LEVELS:
            raise InvalidRequest(f"a score has 2 to {MOST_LEVELS} levels, not {len(self.criteria)}")
        return tuple(Option(str(at), shown(text, f"level {at}")) for at, text in enumerate(self.criteria))


def checked_questions(questions: Any) -> dict[str, Question]:
    """Questions by name; InvalidRequest where they are no mapping of 1 to 400 names (texts) to questions."""
    if not isinstance(questions, Mapping) or not questions:
        raise InvalidRequest('questions must be a mapping of at least one, such as {"team": lanes.Choice(...)}')
    if len(questions) > MOST_QUESTIONS:
        raise InvalidRequest(f"there are {len(questions)} questions: ask at most {MOST_QUESTIONS} at once")
    for name, question in questions.items():
        checked_text(name, f"the name of question {name!r:.80}")
        if not isinstance(question, Question):
            raise InvalidRequest(f"question {name!r:.80} must be a lanes.Noul, Choice or Score, not {question!r:.80}")
    return dict(questions)


def shown(value: Any, what: str) -> str:
    """A text itself; an object or array as JSON. Raises InvalidRequest for anything else, and for an empty text."""
    if isinstance(value, str):
        return checked_text(value, what)
    if not isinstance(value, Mapping | list | tuple):
        raise InvalidRequest(f"{what} must be a text, an object or an array, not {type(value).__name__}")
    try:
        return checked_text(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain), what)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(
            f"{what} cannot be written as JSON ({error}): use texts, numbers, lists and dicts"
        ) from None


def _plain(value: Any) -> Any:
    """What JSON does not know, in words that it knows: other mappings, and numpy's numbers."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _truth(key: Any) -> Any:
    return str(key).lower() if isinstance(key, bool) else key


def _text(value: Any, what: str) -> str:
    return "" if value is None else shown(value, what)


def _options(criteria: Any) -> tuple[Option, ...]:
    if isinstance(criteria, Mapping):
        pairs = [(key, text) for key, text in criteria.items()]
    elif isinstance(criteria, list | tuple):
        pairs = [(key, None) for key in criteria]
    else:
        raise InvalidRequest("the criteria of a choice must be {option: description or None}, or a list of options")
    return tuple(
        Option(checked_text(key, "an option"), _text(text, f"the description of {key!r}")) for key, text in pairs
    )
