"""A label report as text, and as HTML without scripts, in light and dark."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from lanes.decisions.bars import FAINT, TEXT, WARN, bars, remark
from lanes.inspecting.advice import share
from lanes.record.show import html_table, text_table

if TYPE_CHECKING:
    from lanes.inspecting.report import Label, LabelReport
    from lanes.inspecting.spellings import Spelling, Verdict

HEAD = ("label", "spelling", "tokens", "first", "whole", "")
_WIDE = 40  # characters of a text in a table
_MANY = 6  # tokens of a spelling in a table


def text(report: "LabelReport") -> str:
    """The table of spellings, then what it means, line by line."""
    lines = [f"LabelReport: {title(report)}", text_table(HEAD, rows(report))]
    lines += [f"likeliest: {', '.join(f'{one.text!r} {share(one.probability)}' for one in report.top)}"]
    lines += [f"prompt: {line}" for line in prompt_lines(report)]
    lines += [f"note: {note}" for note in notes(report)]
    lines += [f"suggestion: {suggestion}" for suggestion in report.suggestions]
    return "\n".join(lines)


def html(report: "LabelReport") -> str:
    """The same, with the likeliest tokens as bars."""
    side = bars(((repr(one.text), one.probability or 0.0) for one in report.top), "the likeliest tokens")
    blocks = "".join(
        f'<div style="margin:4px 16px 4px 0">{part}</div>' for part in (html_table(HEAD, rows(report)), side)
    )
    return (
        f'<div style="color:{TEXT}"><div><b>{escape(title(report))}</b></div>'
        f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{blocks}</div>'
        f"{_paragraphs(prompt_lines(report), FAINT)}{_paragraphs(notes(report), WARN)}"
        f"{_paragraphs((f'→ {suggestion}' for suggestion in report.suggestions), TEXT)}</div>"
    )


def title(report: "LabelReport") -> str:
    """How many labels, and how much of the model's belief they have."""
    count = len(report.labels)
    usable = sum(label.usable for label in report.labels)
    able = "none can be used" if not usable else "" if usable == count else f"{usable} can be used"
    masses = f"label mass {share(report.label_mass)} (whole labels {share(report.whole_mass)})"
    best = f"with the best spellings {share(report.best_label_mass)} ({share(report.best_whole_mass)})"
    counted = f"{count} label{'s' * (count != 1)} after {report.prompt_tokens} tokens"
    return ", ".join(filter(None, (counted, able, masses, best)))


def remark_on(label: str, verdict: "Verdict") -> str:
    """What is to be said of a label among the others, "" for nothing."""
    if verdict.fault or not verdict.begins:
        return verdict.fault
    others = ", ".join(map(repr, verdict.begins))
    return f"{label!r} is the beginning of {others}: the model's end token tells them apart"


def rows(report: "LabelReport") -> Iterator[tuple[str, ...]]:
    """A row of `HEAD` for each spelling of each label."""
    for label in report.labels:
        for at, one in enumerate(label.variants):
            name = "" if at else _short(label.text)
            yield name, _short(one.text), _tokens(one), share(one.first), share(one.whole), _mark(label, at, one)


def _mark(label: "Label", at: int, one: "Spelling") -> str:
    problem = one.problem if at else label.verdict.problem
    best = "best" if one.usable and one.text == label.best else ""
    return ", ".join(filter(None, ("given" if at == 0 else "", best, problem)))


def _tokens(one: "Spelling") -> str:
    pairs = list(zip(one.pieces, one.tokens, strict=True))
    more = f" and {len(pairs) - _MANY} more" if len(pairs) > _MANY else ""
    return " ".join(f"{piece!r} ({token})" for piece, token in pairs[:_MANY]) + more or "-"


def prompt_lines(report: "LabelReport") -> list[str]:
    """How the prompt ends, and what can be seen of that."""
    return [f"ends in {' '.join(f'{one.text!r} ({one.id})' for one in report.ending)}", *report.remarks]


def notes(report: "LabelReport") -> Iterator[str]:
    """What is wrong with the labels, each thing once."""
    told: dict[str, None] = {}
    for label in report.labels:
        if said := remark_on(label.text, label.verdict):
            told[said] = None
    if report.refusal and all(label.usable for label in report.labels):
        told[report.refusal] = None
    yield from told
    if any(one.usable and one.whole is None for label in report.labels for one in label.variants):
        yield "a dash under whole: not measured, as it would take too many rows or leave the context"


def _paragraphs(lines: Iterable[str], colour: str) -> str:
    return "".join(remark(line, colour) for line in lines)


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= _WIDE else f"{shown[: _WIDE - 1]}…"
