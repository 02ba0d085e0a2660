"""Time across a picture: seconds to pixels, with long waits between rounds cut short."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lanes.record.shapes import Round

PAUSE = 0.1
"""A wait between two rounds is cut where it is longer than this share of the time in which rounds ran."""
CUT = 28.0
"""What is left of a cut, in pixels."""
TICK = 90.0
"""About how far two marks of time are apart, in pixels."""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds [start, end] on pixels [left, right]."""

    start: float
    end: float
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Axis:
    """Spans to one scale, with a cut between any two of them; the mark "0 s" is the start of the first."""

    spans: tuple[Span, ...]
    scale: float
    """Pixels a second."""

    def x(self, at: float) -> float:
        """The pixel of a time; within a cut, and outside of all spans, the nearest end."""
        place = max(0, bisect_right([span.start for span in self.spans], at) - 1)
        span = self.spans[place]
        return span.left + (min(max(at, span.start), span.end) - span.start) * self.scale

    def cuts(self) -> Iterator[tuple[float, float, float]]:
        """The middle and the width of each cut, in pixels, and the seconds left out there."""
        for before, after in pairwise(self.spans):
            yield (before.right + after.left) / 2, after.left - before.right, after.start - before.end

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Marks of time, in pixels and in words."""
        zero = self.spans[0].start
        step = _round_step(TICK / self.scale)
        digits = max(0, -math.floor(math.log10(step)))
        for span in self.spans:
            first = math.ceil((span.start - zero) / step - 1e-9)
            last = math.floor((span.end - zero) / step + 1e-9)
            for number in range(first, last + 1):
                yield span.left + (zero + number * step - span.start) * self.scale, f"{number * step:.{digits}f} s"


def axis(rounds: Sequence[Round], left: float, right: float) -> Axis:
    """The axis of at least one round over the pixels [left, right]."""
    busy = sum(done.seconds for done in rounds) or 1e-3
    runs = [[rounds[0].start, rounds[0].end]]
    for done in rounds[1:]:
        if done.start - runs[-1][1] > PAUSE * busy:
            runs.append([done.start, done.end])
        else:
            runs[-1][1] = done.end
    shown = sum(end - start for start, end in runs) or 1e-3
    gap = min(CUT, (right - left) / (2 * len(runs)))
    scale = (right - left - gap * (len(runs) - 1)) / shown
    spans: list[Span] = []
    for start, end in runs:
        at = spans[-1].right + gap if spans else left
        spans.append(Span(start, end, at, at + (end - start) * scale))
    return Axis(tuple(spans), scale)


def _round_step(least: float) -> float:
    """The first of 1, 2, 5, 10, 20, ... times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
