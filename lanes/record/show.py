"""Text and script-free HTML for the record's shapes, in JupyterLab's colours with fallbacks."""

from collections.abc import Iterable, Sequence
from html import escape

from lanes.record.totals import Totals

COLOURS: dict[str, str] = {
    "free": "var(--jp-ui-font-color3, #757575)",
    "filling": "var(--jp-warn-color1, #b26a00)",
    "branch": "var(--jp-info-color1, #00838f)",
    "live": "var(--jp-success-color1, #2e7d32)",
}
_CELL = "padding:2px 8px;text-align:left;border-bottom:1px solid var(--jp-border-color2, #e0e0e0)"
_PAGE = "color:var(--jp-ui-font-color1, #212121);font-size:var(--jp-ui-font-size1, 13px)"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, two spaces between them, no trailing blanks."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with inline styles only; every text is escaped, the name of a slot's state gets its colour."""
    top = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def html_page(title: str, *parts: str) -> str:
    """A titled block around tables."""
    return f'<div style="{_PAGE}"><div><b>{escape(title)}</b></div>{"".join(parts)}</div>'


def number(value: float | None, form: str) -> str:
    """A number in the given format, such as "{:.1f}", a dash for None."""
    return "-" if value is None else form.format(value)


def many(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(noun: str, names: Iterable[object]) -> str:
    """Things by their names: "slot 1", "slots 1, 2 and 3"."""
    *first, last = map(str, names)
    return f"{noun}s {', '.join(first)} and {last}" if first else f"{noun} {last}"


def span(seconds: float | None) -> str:
    """A length of time, in milliseconds below a second; a dash for None."""
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.1f} ms" if abs(seconds) < 1 else f"{seconds:.2f} s"


def totals_rows(totals: Totals) -> list[tuple[str, str, str]]:
    """The requests by what became of them: name, streams, decisions."""
    names = ("submitted", "open", "stop", "length", "answered", "cancelled", "deadline", "error", "closed", "evicted")
    pairs = [(name, getattr(totals.streams, name), getattr(totals.decisions, name)) for name in names]
    return [(name, str(streams), str(decisions)) for name, streams, decisions in pairs if streams or decisions]


def _html_cell(text: str) -> str:
    style = f"{_CELL};color:{COLOURS[text]}" if text in COLOURS else _CELL
    return f'<td style="{style}">{escape(text)}</td>'
