"""The figures of the workbench's measurement, and the table that people read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

_QUOTES = "'"


@dataclass(frozen=True)
class Messages:
    """What one widget published while streams ran; kB are 1000 bytes on the wire."""

    tokens: int
    tokens_per_s: float
    messages: int
    mean_per_s: float
    worst_per_s: int
    largest_kb: float
    opening_kb: float
    """The one message that brings the front end's code, when the widget is made."""
    worst_kb_per_s: float
    faults: list[str]
    """Where the last frame was not exact."""
    warnings: list[str]
    """What the kernel said on stderr."""


@dataclass(frozen=True)
class Speed:
    """Tokens a second of all streams without and with a workbench, run by run in turn."""

    model: str
    streams: int
    without: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    """How much of a core the thread that writes the widgets took."""

    @property
    def ratio(self) -> float:
        """The median of the pairs' ratios: neighbours in time share the machine's mood."""
        return median(self.ratios)

    @property
    def ratios(self) -> list[float]:
        """Shown over without, pair by pair."""
        return [shown / without for shown, without in zip(self.shown, self.without, strict=True)]


@dataclass(frozen=True)
class Clicks:
    """Seconds from the send of each click to the submit of what it asked for; how many came before the cell ended."""

    what: str
    cell: str
    route: str
    seconds: list[float]
    in_time: int


def table(counted: Messages, speeds: Sequence[Speed], clicks: Sequence[Clicks]) -> str:
    """The figures as Markdown, each with how many measurements it comes from."""
    exact = "yes" if not counted.faults else "NO: " + "; ".join(counted.faults)
    kb = f"{counted.largest_kb:.1f}; {counted.worst_kb_per_s:.0f}; {counted.opening_kb:.0f}"
    rows = [
        ("messages a second: most, mean", f"{counted.worst_per_s}, {counted.mean_per_s:.1f}", f"{counted.messages}"),
        ("largest message; most in a second; the opening, kB", kb, ""),
        ("last frame exact; lines on stderr", f"{exact}; {len(counted.warnings)}", ""),
    ]
    for one in speeds:
        found = f"{median(one.without):.0f}, {median(one.shown):.0f}: {one.ratio:.3f}x"
        spread = f"{len(one.ratios)} pairs, {min(one.ratios):.3f} to {max(one.ratios):.3f}"
        what = f"{one.streams} streams, {one.model.strip(_QUOTES)}"
        rows.append((f"tokens/s, {what}: without, with a workbench", found, spread))
        rows.append(
            (f"the widgets' thread, {what}: share of a core", f"{median(one.shares):.3f}", f"{len(one.shares)}")
        )
    for one in clicks:
        ms = [1000 * seconds for seconds in one.seconds]
        rows.append(
            (
                f"`{one.what}` clicked during {'an' if one.cell == 'await' else 'a'} {one.cell} cell, {one.route}, "
                "to enqueued: median, worst, ms",
                f"{median(ms):.1f}, {max(ms):.1f}",
                f"{len(ms)}, {one.in_time} before the cell ended",
            )
        )
    title = f"{counted.tokens} tokens at {counted.tokens_per_s:.0f} tokens/s, 8 streams"
    lines = [(title, "", "n"), ("---",) * 3, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
