"""Two runs under each other on one axis of time, each beginning with its first round: records, or simulations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from lanes.errors import InvalidRequest
from lanes.record.axis import Axis, axis
from lanes.record.drawing import LEFT, RIGHT, WIDTH, body, element
from lanes.record.gaps import gaps
from lanes.record.lives import lives
from lanes.record.picture import Picture
from lanes.record.shapes import Round
from lanes.record.show import many, span
from lanes.record.source import Run, Source, run
from lanes.record.timeline import text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SPACE = 12
"""Between the two pictures, in pixels."""


@dataclass(frozen=True, slots=True)
class Figures:
    """A run in a few numbers; times in seconds, None where there is nothing to measure.

    `decision_p50_s` is the median from submit to answer, `gap_worst_s` the longest time between two tokens of a stream,
    `tokens_per_s` what all streams gained from the start of the first round to the end of the last.
    """

    rounds: int
    decisions: int
    decision_p50_s: float | None
    gap_worst_s: float | None
    tokens: int
    seconds: float
    tokens_per_s: float | None

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> "Figures":
        """The numbers of these rounds."""
        ended = [life for life in lives(rounds, "decision") if life.reason == "answered"]
        took = [life.end - life.start for life in ended if life.end is not None]
        every = [gap for own in gaps(rounds).values() for gap in own]
        tokens, length = sum(done.tokens for done in rounds), rounds[-1].end - rounds[0].start if rounds else 0.0
        return cls(
            sum(done.computed for done in rounds), len(took), median(took) if took else None,
            max(every, default=None), tokens, length, tokens / length if length else None,
        )  # fmt: skip

    def words(self) -> str:
        """The numbers on one line."""
        decisions = many(self.decisions, "decision")
        return " · ".join(
            (
                many(self.rounds, "round"),
                decisions if self.decision_p50_s is None else f"{decisions}, p50 {span(self.decision_p50_s)}",
                f"worst gap {span(self.gap_worst_s)}",
                "- tokens/s" if self.tokens_per_s is None else f"{self.tokens_per_s:.1f} tokens/s",
            )
        )


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Picture):
    """Two runs as one picture: in a notebook as an image, and as plain text; `figure()` is one to look into."""

    runs: tuple[Run, Run]
    names: tuple[str, str]

    @property
    def figures(self) -> tuple[Figures, Figures]:
        """Each run in a few numbers."""
        return Figures.of(self.runs[0].rounds), Figures.of(self.runs[1].rounds)

    @property
    def titles(self) -> tuple[str, str]:
        """Each run's name and numbers."""
        first, second = (f"{name}: {own.words()}" for name, own in zip(self.names, self.figures, strict=True))
        return first, second

    def svg(self) -> str:
        """See `Picture.svg`."""
        time = _shared([one.rounds for one in self.runs])
        parts: list[str] = []
        top = 0.0
        for one, title in zip(self.runs, self.titles, strict=True):
            drawn, height = body(one.rounds, one.slots, time, title)
            parts += [f'<g transform="translate(0 {top:g})">', *drawn, "</g>"]
            top += height + SPACE
        return element(" and ".join(self.names), parts, top - SPACE)

    def figure(self) -> "Figure":
        """Both runs as one plotly figure, with the gaps of each stream below the slots."""
        from lanes.record.figure import stacked

        return stacked(self.runs, self.titles)

    def __repr__(self) -> str:
        """Both runs in characters; no times, so the same rounds always give the same text."""
        pairs = zip(self.names, self.runs, strict=True)
        return "\n\n".join(f"{name}\n{text(one.rounds, one.slots)}" for name, one in pairs)


def compare(a: Source, b: Source, names: Sequence[str] = ("first", "second")) -> Comparison:
    """Two runs on one axis of time, aligned at their first rounds.

    Each is `engine.rounds`, rounds of it, or `lanes.simulate(..., record=True)`. Raises InvalidRequest for others.
    """
    if isinstance(names, str) or len(names) != 2:
        raise InvalidRequest(f"names must be two texts, one a run, not {names!r}")
    first, second = (Run(aligned(one.rounds), one.slots) for one in (run(a), run(b)))
    return Comparison((first, second), (str(names[0]), str(names[1])))


def aligned(rounds: Sequence[Round]) -> tuple[Round, ...]:
    """The same rounds on a clock whose zero is the start of the first."""
    if not rounds:
        return ()
    zero = rounds[0].start
    return tuple(
        replace(
            done,
            start=done.start - zero,
            end=done.end - zero,
            submitted=tuple(new._replace(at=new.at - zero) for new in done.submitted),
        )
        for done in rounds
    )


def _shared(runs: Sequence[Sequence[Round]]) -> Axis | None:
    """The axis of all runs at once: a wait is cut where none of them has a round; None where there is no round."""
    merged: list[list[float]] = []
    for start, end in sorted((done.start, done.end) for rounds in runs for done in rounds):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    busy = [Round(index, start, end, 0) for index, (start, end) in enumerate(merged)]
    return axis(busy, LEFT, WIDTH - RIGHT) if busy else None
