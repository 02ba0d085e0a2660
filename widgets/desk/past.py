"""The decisions that were asked at a desk and have ended: frozen entries, the last of them kept."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanes.decisions.answers import Answers
from lanes.decisions.results import Scored
from lanes.record import Timing
from lanes.record.show import html_page, html_table, text_table
from lanes_widgets.desk.parts import Part
from lanes_widgets.desk.wishes import Wish
from lanes_widgets.panel import Record

if TYPE_CHECKING:
    import pandas as pd

KEEP = 50
"""Entries that a desk keeps."""
MOST_TEXT = 16_000
"""Characters of what was asked that a front end is sent: what is longer stays in the kernel."""
HEAD = ("decision", "kind", "question", "choice", "p", "label mass", "state")


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision that has ended.

    `number` counts what was asked at the desk, `id` is the decision's number in the engine's record (for typed
    questions that of the first stage, as is `slot`; None where it never had one). `at` is when it was asked, in seconds
    since 1970; `timing` has its stations in seconds since the engine's start. `state` is answered, or why there is no
    answer, with the `error` in words. `result` is what `engine.score` or `lanes.ask` gave, `parts` the same as plain
    values.
    """

    number: int
    wish: Wish
    at: float
    id: int
    state: str
    error: str
    timing: Timing | None
    slot: int | None
    parts: tuple[Part, ...]
    result: Scored | Answers | None

    @property
    def choice(self) -> str:
        """What was chosen, question by question; "" without an answer."""
        return ", ".join(f"{part.name}: {part.choice}" if part.name else part.choice for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """As the front end reads it; times in seconds."""
        asked = self.wish.to_dict()
        timing = self.timing
        return {
            "number": self.number,
            "kind": self.wish.kind,
            "short": self.wish.short,
            "asked": asked if len(repr(asked)) <= MOST_TEXT else None,
            "at": self.at,
            "id": self.id,
            "state": self.state,
            "error": self.error,
            "slot": self.slot,
            "waited": timing and timing.waited,
            "served": timing and timing.served,
            "total": timing and timing.seconds,
            "evictions": timing.evictions if timing else 0,
            "parts": [part.to_dict() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Past:
    """The last entries, oldest first, and how many before them are gone. Frozen: `and_then` gives the next one."""

    entries: tuple[Entry, ...] = ()
    gone: int = 0

    def and_then(self, entry: Entry) -> "Past":
        """With one more."""
        entries = (*self.entries, entry)
        return Past(entries[-KEEP:], self.gone + max(0, len(entries) - KEEP))

    def forgotten(self) -> "Past":
        """With nothing left."""
        return Past((), self.gone + len(self.entries))

    def find(self, number: int) -> Entry | None:
        """The entry with this number."""
        return next((entry for entry in self.entries if entry.number == number), None)

    def to_frame(self) -> "pd.DataFrame":
        """A row for each answer, oldest first; one without answers for a decision that has none.

        Columns: number (of the decision), at (seconds since 1970), id (in the engine's record), kind (raw or typed),
        question (in short), name (of a typed question, else ""), choice, probability, probabilities (a dict),
        label_mass, confidence, abstain, orders, flips, prompt_tokens, cached_tokens, waited_s, served_s, total_s, slot,
        state, error. Numbers are missing where there is no answer.
        """
        import pandas as pd

        lines = [(entry, part) for entry in self.entries for part in entry.parts or (None,)]
        columns = {
            name: pd.Series([read(entry, part) for entry, part in lines], dtype=dtype)
            for name, (dtype, read) in COLUMNS.items()
        }
        return pd.DataFrame(columns)

    def record(self) -> Record:
        """The last answer and the table, as text and as HTML; no times, so that the same work gives the same text."""
        if not self.entries:
            said = "Desk: nothing has been asked yet"
            return Record(said, html_page(said))
        last = self.entries[-1]
        title = f"Desk: decision {last.number}, {last.wish.short}"
        text = repr(last.result) if last.result is not None else f"{last.state}: {last.error}"
        html = (
            last.result._repr_html_()
            if last.result is not None
            else html_table(("state", ""), [(last.state, last.error)])
        )
        table = [_cells(entry) for entry in self.entries]
        return Record(f"{title}\n{text}\n\n{text_table(HEAD, table)}", html_page(title, html, html_table(HEAD, table)))


def _cells(entry: Entry) -> tuple[str, ...]:
    shares = ", ".join(f"{part.probability:.4f}" for part in entry.parts) or "-"
    masses = ", ".join(f"{part.label_mass:.4f}" for part in entry.parts) or "-"
    choice = repr(entry.choice) if entry.parts and entry.wish.kind == "raw" else entry.choice  # its spaces count
    return str(entry.number), entry.wish.kind, entry.wish.short, choice or "-", shares, masses, entry.state


Read = Callable[[Entry, Part | None], Any]


def _of(name: str) -> Read:
    return lambda _, part: None if part is None else getattr(part, name)


def _time(name: str) -> Read:
    return lambda entry, _: None if entry.timing is None else getattr(entry.timing, name)


COLUMNS: dict[str, tuple[str, Read]] = {
    "number": ("int64", lambda entry, _: entry.number),
    "at": ("float64", lambda entry, _: entry.at),
    "id": ("int64", lambda entry, _: entry.id),
    "kind": ("object", lambda entry, _: entry.wish.kind),
    "question": ("object", lambda entry, _: entry.wish.short),
    "name": ("object", lambda _, part: part.name if part else ""),
    "choice": ("object", _of("choice")),
    "probability": ("float64", _of("probability")),
    "probabilities": ("object", lambda _, part: dict(part.shares) if part else None),
    "label_mass": ("float64", _of("label_mass")),
    "confidence": ("float64", _of("confidence")),
    "abstain": ("float64", _of("abstain")),
    "orders": ("Int64", _of("orders")),
    "flips": ("Int64", _of("flips")),
    "prompt_tokens": ("Int64", _of("prompt_tokens")),
    "cached_tokens": ("Int64", _of("cached_tokens")),
    "waited_s": ("float64", _time("waited")),
    "served_s": ("float64", _time("served")),
    "total_s": ("float64", _time("seconds")),
    "slot": ("Int64", lambda entry, _: entry.slot),
    "state": ("object", lambda entry, _: entry.state),
    "error": ("object", lambda entry, _: entry.error),
}
