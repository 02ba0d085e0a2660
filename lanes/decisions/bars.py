"""Probabilities as bars, in HTML without a script: one look for results and answers, in light and dark."""

from collections.abc import Iterable
from html import escape

TEXT = "var(--jp-ui-font-color1, inherit)"
FAINT = "var(--jp-ui-font-color2, #808080)"
WARN = "var(--jp-warn-color0, #b26a00)"
_TRACK = "var(--jp-layout-color2, rgba(128, 128, 128, 0.2))"
_BAR = "var(--jp-brand-color1, #1976d2)"
_SHOWN = 20  # bars in one table


def bars(shares: Iterable[tuple[str, float]], foot: str) -> str:
    """A table of names and probabilities, the likeliest first, at most 20 of them; `foot` is a line of text below."""
    order = sorted(shares, key=lambda pair: -pair[1])
    rows = "".join(_bar(name, probability) for name, probability in order[:_SHOWN])
    more = f"{len(order) - _SHOWN} labels more · " if len(order) > _SHOWN else ""
    return (
        f'<div style="color:{TEXT}"><table style="border-collapse:collapse">{rows}</table>'
        f"{remark(more + foot, FAINT)}</div>"
    )


def remark(text: str, colour: str) -> str:
    """A line of small text."""
    return f'<div style="color:{colour};font-size:smaller">{escape(text)}</div>'


def _bar(name: str, probability: float) -> str:
    return (
        f'<tr><td style="text-align:right;padding:1px 8px;white-space:pre">{escape(name)}</td>'
        f'<td style="padding:1px 0"><div style="width:160px;background:{_TRACK}">'
        f'<div style="width:{100 * probability:.1f}%;height:0.8em;background:{_BAR}"></div></div></td>'
        f'<td style="text-align:right;padding:1px 8px">{100 * probability:.1f} %</td></tr>'
    )
