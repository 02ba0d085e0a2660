"""Every number of one value, arm by arm: a still picture with its percentiles, and the same in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from lanes.errors import InvalidRequest
from lanes.receipts.aggregates import numbers
from lanes.receipts.arms import RATE
from lanes.receipts.fields import Number
from lanes.receipts.shapes import Figures, Record
from lanes.record.drawing import WIDTH, element
from lanes.record.picture import Picture
from lanes.record.show import span, text_table

LEFT, RIGHT = 190, 620
"""Pixels between which the numbers lie; their names are on the left, their percentiles on the right."""
TOP, ROW, FOOT = 46, 26, 28
DOTS = 400
"""Dots of an arm at most: of more numbers every so many-th is drawn, the largest always."""


@dataclass(frozen=True, slots=True)
class Line:
    """One arm: every number that counts, in the order in which it came, and the figures of them."""

    arm: str
    numbers: tuple[Number, ...]
    figures: Figures


@dataclass(frozen=True, slots=True, repr=False)
class Spread(Picture):
    """One value of some arms: in a notebook a picture, elsewhere a table of p50, p95, p99 and the largest."""

    value: str
    lines: tuple[Line, ...]

    def svg(self) -> str:
        """See `Picture.svg`."""
        most = max(line.figures.max for line in self.lines) or 1
        bottom = TOP + ROW * len(self.lines)
        parts = [
            f"<title>{escape(self.value)}</title><desc>{escape(repr(self))}</desc>",
            f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{bottom + FOOT - 1}" rx="6"/>',
            f'<text class="title" x="16" y="26">{escape(self.value)}</text>',
            *self._axis(most, bottom),
        ]
        for at, line in enumerate(self.lines):
            parts += self._line(line, most, TOP + ROW * (at + 0.5))
        return element(self.value, parts, bottom + FOOT)

    def _axis(self, most: Number, bottom: float) -> Iterator[str]:
        for share in (0, 0.25, 0.5, 0.75, 1):
            x = LEFT + (RIGHT - LEFT) * share
            yield f'<path class="rule" d="M{x:.1f} {TOP}V{bottom + 4}"/>'
            words = self._said(most * share)
            yield f'<text class="faint small" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{words}</text>'

    def _line(self, line: Line, most: Number, y: float) -> Iterator[str]:
        own = line.figures
        yield f'<text x="{LEFT - 12}" y="{y + 4:g}" text-anchor="end">{escape(line.arm)}</text>'
        shown = sorted(line.numbers)[:: -(-len(line.numbers) // DOTS)]
        for number in {*shown, own.max}:
            x = LEFT + (RIGHT - LEFT) * max(0.0, number / most)
            yield f'<circle class="decode" cx="{x:.1f}" cy="{y:g}" r="3.5" fill-opacity=".5"/>'
        x = LEFT + (RIGHT - LEFT) * max(0.0, own.p50 / most)
        yield f'<path class="piece" d="M{x - 1:.1f} {y - 9:g}h2v18h-2z"/>'
        yield f'<text class="faint small" x="{WIDTH - 16}" y="{y + 4:g}" text-anchor="end">{self._words(own)}</text>'

    def _words(self, own: Figures) -> str:
        if own.n == 1:  # of one number there are no percentiles
            return f"{self._said(own.p50)} · n 1"
        return f"p50 {self._said(own.p50)} · p95 {self._said(own.p95)} · p99 {self._said(own.p99)} · n {own.n}"

    def _said(self, number: Number) -> str:
        seconds = self.value.endswith(("_s", "seconds")) and not self.value.endswith(RATE)
        return span(number) if seconds else f"{number:.4g}"

    def __repr__(self) -> str:
        """A line for each arm."""
        rows = []
        for line in self.lines:
            own = line.figures
            rows.append((line.arm, str(own.n), *(self._said(part) for part in (own.p50, own.p95, own.p99, own.max))))
        return text_table((self.value, "n", "p50", "p95", "p99", "max"), rows)


def spread(record: Record, value: str, arms: Sequence[str] = ()) -> Spread:
    """One value of a record's arms, of all that have it or of those named. Raises InvalidRequest where none has it."""
    wanted = arms or [arm.name for arm in record.arms if value in record.aggregates.get(arm.name, {})]
    missing = [arm for arm in wanted if value not in record.aggregates.get(arm, {})]
    if missing or not wanted:
        names = sorted({name for own in record.aggregates.values() for name in own})
        raise InvalidRequest(f"{missing[0] if missing else 'no arm'!r} has no {value!r}; there are {names}")
    lines = [Line(arm, numbers(record.samples, arm, value), record.aggregates[arm][value]) for arm in wanted]
    return Spread(value, tuple(lines))
