"""An evaluation's pictures as small SVG elements: no scripts, nothing from outside, in the page's own colours."""

from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lanes.evaluation.measures import Evaluation

_WIDTH, _HEIGHT = 320, 290
_LEFT, _TOP, _SIDE = 58, 30, 210
_INK = "var(--jp-ui-font-color1, currentColor)"
_RULE = "var(--jp-border-color2, rgba(128, 128, 128, 0.4))"
_MARK = "var(--jp-brand-color1, #1976d2)"
_NAMED = 20  # keys that have room for their names
_LONG = 9  # characters of a key that have room


def reliability(found: "Evaluation") -> str:
    """How often answers are right against how likely they said they were; bars are intervals, areas counts."""
    most = max(line.rows for line in found.bins)
    parts = [*_grid("Reliability", "probability of the answer", "share right"), _line([(0, 0), (1, 1)], dashed=True)]
    for line in found.bins:
        if line.confidence is None or line.accuracy is None or line.low is None or line.high is None:
            continue
        parts.append(_line([(line.confidence, line.low), (line.confidence, line.high)]))
        radius = 2 + 5 * (line.rows / most) ** 0.5
        words = f"{line.rows} rows, probability {line.confidence:.3f}, right {line.accuracy:.3f}"
        spot = f'cx="{_x(line.confidence):.1f}" cy="{_y(line.accuracy):.1f}" r="{radius:.1f}"'
        parts.append(f'<circle {spot} fill="{_MARK}"><title>{words}</title></circle>')
    return _element("Reliability", parts)


def risk_coverage(found: "Evaluation") -> str:
    """The share that is wrong against the share of rows answered, taken by falling probability."""
    top = _ceiling(float(found.curve.risk.max()))
    points = list(zip(found.curve.coverage.tolist(), (found.curve.risk / top).tolist(), strict=True))
    grid = _grid("Risk and coverage", "share of rows answered", "share of those wrong", top)
    return _element("Risk and coverage", [*grid, _line([(0.0, points[0][1]), *points])])


def confusion(found: "Evaluation") -> str:
    """Rows by gold (down) and choice (across); cells without rows stay empty."""
    n = len(found.keys)
    side, most = _SIDE / n, found.confusion_counts.max()
    named = n <= _NAMED
    parts = [*_frame("Confusion", "chosen", "gold")]
    for at, key in enumerate(found.keys if named else ()):
        middle = (at + 0.5) * side
        parts.append(_text(_LEFT - 4, _TOP + middle + 3, _short(key), "end", 9))
        parts.append(_text(_LEFT + middle, _TOP + _SIDE + 12, _short(key, side), "middle", 9))
    for gold, chosen in np.argwhere(found.confusion_counts).tolist():
        count = int(found.confusion_counts[gold, chosen])
        x, y = _LEFT + chosen * side, _TOP + gold * side
        words = f"gold {escape(found.keys[gold])}, chosen {escape(found.keys[chosen])}: {count}"
        size = f'x="{x:.2f}" y="{y:.2f}" width="{side:.2f}" height="{side:.2f}"'
        shade = 0.08 + 0.5 * count / most
        parts.append(f'<rect {size} fill="{_MARK}" fill-opacity="{shade:.3f}"><title>{words}</title></rect>')
        if n <= 12:
            parts.append(_text(x + side / 2, y + side / 2 + 4, str(count), "middle", 11))
    return _element("Confusion", parts)


KINDS: dict[str, Callable[["Evaluation"], str]] = {
    "reliability": reliability,
    "risk_coverage": risk_coverage,
    "confusion": confusion,
}


def _element(title: str, parts: list[str]) -> str:
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    font = "font-family:system-ui,sans-serif;max-width:100%"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" {size} style="{font}">'
    return f"{head}{''.join(parts)}</svg>"


def _frame(title: str, across: str, up: str) -> Iterator[str]:
    yield _text(_LEFT, 18, title, "start", 13)
    yield f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_RULE}"/>'
    yield _text(_LEFT + _SIDE / 2, _HEIGHT - 10, across, "middle", 11)
    turned = f'transform="rotate(-90 12 {_TOP + _SIDE / 2:g})"'
    yield _text(12, _TOP + _SIDE / 2, up, "middle", 11, turned)


def _grid(title: str, across: str, up: str, top: float = 1.0) -> Iterator[str]:
    """A frame with ticks from 0 to 1 across and from 0 to `top` upwards."""
    yield from _frame(title, across, up)
    for share in (0, 0.25, 0.5, 0.75, 1):
        x, y = _x(share), _y(share)
        yield f'<path d="M{x:.1f} {_TOP}v{_SIDE}M{_LEFT} {y:.1f}h{_SIDE}" stroke="{_RULE}" stroke-width="0.5"/>'
        yield _text(x, _TOP + _SIDE + 14, f"{share:g}", "middle", 10)
        yield _text(_LEFT - 5, y + 3, f"{share * top:g}", "end", 10)


def _line(points: list[tuple[float, float]], dashed: bool = False) -> str:
    path = "L".join(f"{_x(x):.1f} {_y(y):.1f}" for x, y in points)
    look = f'stroke="{_INK}" stroke-dasharray="4 4" stroke-opacity="0.5"' if dashed else f'stroke="{_MARK}"'
    return f'<path d="M{path}" fill="none" stroke-width="1.5" {look}/>'


def _text(x: float, y: float, words: str, anchor: str, size: int, more: str = "") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} fill="{_INK}" {more}>{escape(words)}</text>'


def _x(share: float) -> float:
    return _LEFT + _SIDE * share


def _y(share: float) -> float:
    return _TOP + _SIDE * (1 - share)


def _ceiling(risk: float) -> float:
    """The end of the axis: the first of a few round numbers that holds the risk."""
    return next(top for top in (0.04, 0.1, 0.2, 0.4, 1.0) if risk <= top)


def _short(key: str, room: float = 50) -> str:
    most = min(_LONG, max(1, int(room / 5)))
    return key if len(key) <= most else key[: most - 1] + "…"
