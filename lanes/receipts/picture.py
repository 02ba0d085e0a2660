"""Samples and figures as small SVG elements: no scripts, nothing from outside, in the page's own colours."""

from collections.abc import Iterator, Sequence
from html import escape

from lanes.receipts.shapes import Arm, Sample
from lanes.record.show import span

WIDTH, LEFT, RIGHT, ROW, TOP = 640, 170, 20, 26, 30
INK = "var(--jp-ui-font-color1, currentColor)"
RULE = "var(--jp-border-color2, rgba(128, 128, 128, 0.4))"
MARK = "var(--jp-brand-color1, #1976d2)"
FAINT = "var(--jp-ui-font-color3, #8a8a8a)"
BAD = "var(--jp-error-color1, #c62828)"


def samples(arms: Sequence[Arm], found: Sequence[Sample]) -> str:
    """The seconds of every attempt, an arm a line: hollow for a warm-up, a cross at the left end for a failure."""
    most = max((sample.seconds for sample in found if sample.ok), default=1.0)
    rows = [(arm.name, [sample for sample in found if sample.arm == arm.name]) for arm in arms]
    title = "; ".join(["Seconds of every attempt", *_marks(found)])
    parts = list(_frame(title, [name for name, _ in rows], most))
    for line, (_, own) in enumerate(rows):
        for sample in own:
            parts.append(_attempt(sample, _y(line), most))
    return element(title, parts, len(rows))


def _marks(found: Sequence[Sample]) -> Iterator[str]:
    """What the marks that are drawn mean, beside a dot."""
    if any(sample.warmup and sample.ok for sample in found):
        yield "hollow: a warm-up, which counts for nothing"
    if any(not sample.ok for sample in found):
        yield "cross: it failed"


def dots(title: str, rows: Sequence[tuple[str, float, float | None, float | None]]) -> str:
    """A figure a line: its name, its value, and the least and greatest of what it is the middle of, where known."""
    most = max((high if high is not None else value for _, value, _, high in rows), default=1.0)
    parts = list(_frame(title, [name for name, *_ in rows], most, seconds=False))
    for line, (name, value, low, high) in enumerate(rows):
        y = _y(line)
        if low is not None and high is not None:
            parts.append(f'<path d="M{_x(low, most):.1f} {y}H{_x(high, most):.1f}" stroke="{MARK}" stroke-width="2"/>')
        words = f"{name}: {value:.4g}"
        spot = f'cx="{_x(value, most):.1f}" cy="{y}" r="5"'
        parts.append(f'<circle {spot} fill="{MARK}"><title>{escape(words)}</title></circle>')
    return element(title, parts, len(rows))


def element(title: str, parts: Sequence[str], rows: int) -> str:
    """The SVG element around its parts."""
    height = TOP + rows * ROW + 30
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    font = "font-family:system-ui,sans-serif;max-width:100%;height:auto"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" {size} style="{font}">'
    return f"{head}{''.join(parts)}</svg>"


def _frame(title: str, names: Sequence[str], most: float, seconds: bool = True) -> Iterator[str]:
    bottom = TOP + len(names) * ROW
    yield _text(0, 16, title, "start", 13)
    for share in (0, 0.25, 0.5, 0.75, 1):
        x = _x(share * most, most)
        yield f'<path d="M{x:.1f} {TOP - 4}V{bottom + 4}" stroke="{RULE}" stroke-width="0.5"/>'
        yield _text(x, bottom + 18, span(share * most) if seconds else f"{share * most:.3g}", "middle", 10)
    for line, name in enumerate(names):
        yield _text(LEFT - 10, _y(line) + 4, name if len(name) <= 24 else f"{name[:23]}…", "end", 11)


def _attempt(sample: Sample, y: float, most: float) -> str:
    what = f"{sample.arm}, repeat {sample.repeat}{', warm-up' if sample.warmup else ''}"
    if not sample.ok:
        cross = f'<path d="M{LEFT - 4} {y - 4}l8 8m0 -8l-8 8" stroke="{BAD}" stroke-width="2">'
        return f"{cross}<title>{escape(f'{what}: {sample.error}')}</title></path>"
    seconds = sample.seconds
    look = f'fill="none" stroke="{FAINT}"' if sample.warmup else f'fill="{MARK}" fill-opacity="0.6"'
    spot = f'<circle cx="{_x(seconds, most):.1f}" cy="{y}" r="4" {look}>'
    return f"{spot}<title>{escape(f'{what}: {span(seconds)}')}</title></circle>"


def _text(x: float, y: float, words: str, anchor: str, size: int) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {place} fill="{INK}">{escape(words)}</text>'


def _x(value: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (value / most if most > 0 else 0.0)


def _y(line: int) -> float:
    return TOP + line * ROW + ROW / 2
