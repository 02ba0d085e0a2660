"""Many receipts at once: which hold, and the same claim's figures side by side, from several machines and commits."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lanes.errors import InvalidRequest
from lanes.paths import replaced
from lanes.receipts import door, picture
from lanes.receipts.canonical import encode
from lanes.receipts.receipt import read
from lanes.receipts.shapes import Record
from lanes.receipts.show import digits, figures_of, passed_of
from lanes.receipts.verdict import Verdict
from lanes.receipts.verify import verify
from lanes.record.show import html_page, html_table, text_table

if TYPE_CHECKING:
    import pandas as pd

LIST = ("receipt", "made", "machine", "commit", "checks", "verdict")
FIGURES = ("figure", "receipt", "machine", "commit", "value", "least", "greatest", "n")


class Figure(NamedTuple):
    """A figure of one receipt: a ratio with its least and greatest, or an arm's median seconds."""

    name: str
    value: float
    least: float | None
    greatest: float | None
    n: int


@dataclass(frozen=True)
class Entry:
    """One file of a folder: its record where it has one, and what a verification found, or why it cannot be read."""

    name: str
    record: Record | None
    verdict: Verdict | None
    error: str | None

    @property
    def label(self) -> str:
        """The receipt in a few characters."""
        return self.name[:8]

    @property
    def says(self) -> str:
        """The verdict in a few words."""
        if self.verdict is None:
            return f"cannot be read: {self.error}"
        first = f"does not hold: {self.verdict.findings[0].field}" if self.verdict.findings else "holds"
        more = len(self.verdict.findings) - 1
        return first if more < 1 else f"{first} and {more} more"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Receipts by claim and parameters, oldest first. `frame()` has their figures as a table to compute with."""

    entries: tuple[Entry, ...]

    @property
    def ok(self) -> bool:
        """Whether every one of them holds."""
        return all(entry.verdict is not None and entry.verdict.ok for entry in self.entries)

    def claims(self) -> Iterator[tuple[str, list[Entry]]]:
        """Each claim in words, with its receipts."""
        known = [(_claim(entry.record), entry) for entry in self.entries if entry.record]
        for claim, members in groupby(sorted(known, key=_place), key=lambda pair: pair[0]):
            yield claim, [entry for _, entry in members]

    def frame(self) -> "pd.DataFrame":
        """A row for each figure of each receipt."""
        import pandas as pd

        rows = [
            {
                "topic": entry.record.topic,
                "claim": claim,
                "receipt": entry.name,
                "made": entry.record.made.at,
                "cpu": entry.record.environment.cpu,
                "device": entry.record.environment.device,
                "commit": entry.record.project.commit,
                "holds": entry.verdict is not None and entry.verdict.ok,
                **figure._asdict(),
            }
            for claim, entries in self.claims()
            for entry in entries
            if entry.record
            for figure in figures(entry.record)
        ]
        head = ["topic", "claim", "receipt", "made", "cpu", "device", "commit", "holds", *Figure._fields]
        return pd.DataFrame(rows, columns=pd.Index(head))

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values for JSON: a mapping for each receipt."""
        return [
            {
                "name": entry.name,
                "topic": entry.record.topic if entry.record else None,
                "commit": entry.record.project.commit if entry.record else None,
                "error": entry.error,
                "ok": entry.verdict is not None and entry.verdict.ok,
                "findings": [finding._asdict() for finding in entry.verdict.findings] if entry.verdict else [],
                "figures": [figure._asdict() for figure in figures(entry.record)] if entry.record else [],
            }
            for entry in self.entries
        ]

    def save(self, path: str | Path) -> Path:
        """Write it as a page that needs nothing from outside; its path. Raises InvalidRequest where it cannot."""
        head = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Receipts</title>'
        style = "<style>:root{color-scheme:light dark}body{font-family:system-ui,sans-serif;margin:24px}</style></head>"
        path, page = Path(path), f"{head}{style}<body>{self._repr_html_()}</body></html>\n"
        try:
            with replaced(path) as part:
                part.write_text(page, encoding="utf-8")
        except OSError as error:
            raise InvalidRequest(f"{path.name} cannot be written: {error.strerror or error}") from None
        return path

    def __repr__(self) -> str:
        parts = []
        for claim, entries in self.claims():
            parts += [claim, text_table(LIST, map(_line, entries))]
            parts += [text_table(FIGURES, rows)] if (rows := list(_rows(entries))) else []
        return "\n\n".join([*parts, *_unread(self.entries)])

    def _repr_html_(self) -> str:
        parts = []
        for claim, entries in self.claims():
            rows = list(_rows(entries))
            tables = [html_table(LIST, map(_line, entries)), html_table(FIGURES, rows) if rows else ""]
            pictures = [f'<div style="margin:8px 0">{drawn}</div>' for drawn in _pictures(entries)]
            parts.append(html_page(claim, *tables, *pictures))
        parts += [f"<div>{escape(line)}</div>" for line in _unread(self.entries)]
        return f"<div>{''.join(parts)}</div>"


def compare(paths: str | Path | Iterable[str | Path]) -> Comparison:
    """Receipts side by side: those of a folder, or of a list of files. They may be of any commit.

    Raises InvalidRequest where there are none.
    """
    if not isinstance(paths, str | Path | Iterable):
        raise InvalidRequest(f"give a folder of receipts, or a list of files, not {type(paths).__name__}")
    found = _files(door.path(paths)) if isinstance(paths, str | Path) else list(map(door.path, paths))
    if not found:
        raise InvalidRequest("there are no receipts: give a folder with files named by their sha256, or such files")
    return Comparison(tuple(map(_entry, found)))


def figures(record: Record) -> list[Figure]:
    """What is worth comparing: the ratios, and the median seconds of each arm with their least and greatest."""
    found = [Figure(own.name, own.value, own.min, own.max, own.n) for own in record.ratios]
    for arm, value, own in figures_of(record):
        if value == "seconds":
            found.append(Figure(f"{arm}, median seconds", own.median, own.min, own.max, own.n))
    return found


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InvalidRequest(f"there is no folder {folder.name}: give one that holds receipts")
    return sorted(path for path in folder.glob("*.json") if len(path.stem) == 64)


def _entry(path: Path) -> Entry:
    try:
        verdict = verify(path, any_commit=True)
    except InvalidRequest as error:
        return Entry(path.name, None, None, str(error))
    with suppress(InvalidRequest):  # the verdict says what is wrong with it
        return Entry(path.name, read(path).record, verdict, None)
    return Entry(path.name, None, verdict, None)


def _claim(record: Record) -> str:
    """What is compared: the same claim with the same parameters."""
    given = f" (with {encode(record.parameters).decode()})" if record.parameters else ""
    return f"{record.topic}: {record.claim}{given}"


def _place(pair: tuple[str, Entry]) -> tuple[str, str, str]:
    claim, entry = pair
    return claim, entry.record.made.at if entry.record else "", entry.name


def _line(entry: Entry) -> tuple[str, ...]:
    record = entry.record
    assert record is not None
    return entry.label, record.made.at, *_where(record), passed_of(record), entry.says


def _where(record: Record) -> tuple[str, str]:
    changed = "+" if record.project.dirty else ""
    device = record.environment.device.partition(" ")[0]
    return f"{record.environment.cpu} ({device})", f"{(record.project.commit or 'unknown')[:8]}{changed}"


def _rows(entries: Sequence[Entry]) -> Iterator[tuple[str, ...]]:
    for name, own in _by_figure(entries).items():
        for entry, figure in own:
            assert entry.record is not None
            numbers = (digits(part) for part in (figure.value, figure.least, figure.greatest))
            yield name, entry.label, *_where(entry.record), *numbers, str(figure.n)


def _pictures(entries: Sequence[Entry]) -> Iterator[str]:
    """A picture for each figure that several receipts have."""
    for name, own in _by_figure(entries).items():
        if len(own) > 1:
            yield picture.dots(name, [(entry.label, one.value, one.least, one.greatest) for entry, one in own])


def _by_figure(entries: Sequence[Entry]) -> dict[str, list[tuple[Entry, Figure]]]:
    found: dict[str, list[tuple[Entry, Figure]]] = {}
    for entry in entries:
        for figure in figures(entry.record) if entry.record else ():
            found.setdefault(figure.name, []).append((entry, figure))
    return found


def _unread(entries: Sequence[Entry]) -> list[str]:
    return [f"{entry.name}: {entry.says}" for entry in entries if entry.record is None]
