"""What the demo found: the evidence of its runs, the figures drawn from it, and the table that people read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from lanes.measure.figures import (
    Asked,
    middle,
    piece_costs,
    quiet_gaps,
    same_answers,
    same_rows,
    tokens_per_s,
    worst_gap,
)
from lanes.measure.workload import Run
from lanes.record import Round

Rounds: TypeAlias = Sequence[Round]


@dataclass(frozen=True)
class DecisionSeconds:
    """Median seconds of a decision: on an idle engine, beside live streams, behind them (policy="idle")."""

    idle: float | None
    beside: float | None
    behind: float | None


@dataclass(frozen=True)
class StreamSpeed:
    """Tokens a second of all live streams together: the median of the runs of each kind."""

    alone: float | None
    with_decisions: float | None


@dataclass(frozen=True)
class GapSeconds:
    """Seconds between two tokens of a stream.

    quiet: the median over rounds that only decode. worst: the largest of a run with decisions, the median of the runs.
    piece: what the median piece of a prompt adds to quiet rounds, all its parts together.
    """

    quiet: float | None
    worst: float | None
    piece: float | None


@dataclass(frozen=True)
class EqualBits:
    """Whether a stream's rows alone and in company, and a decision's answers idle and beside, have the same bits."""

    stream: bool | None
    decision: bool | None


@dataclass(frozen=True)
class LongPrompt:
    """A decision with a long prompt beside the streams: prompt tokens, its seconds, and the gaps of its run."""

    prompt_tokens: int
    decision_s: float | None
    gap_s: GapSeconds


@dataclass(frozen=True)
class Evidence:
    """What the runs gave. `streams` were live at once; every run in `alone` has a partner in `beside`."""

    streams: int
    solo: tuple[str, ...]
    idle: tuple[Asked, ...]
    alone: tuple[Run, ...]
    beside: tuple[Run, ...]
    behind: Run


@dataclass(frozen=True)
class Demo:
    """The demo's figures; None stands for what was not measured."""

    model: str
    device: str
    width: int
    exact: bool
    decision_s: DecisionSeconds
    streams_tokens_per_s: StreamSpeed
    gap_s: GapSeconds
    equal_bits: EqualBits
    long_prompt: LongPrompt | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `long_prompt` only where it was asked for."""
        values = asdict(self)
        if self.long_prompt is None:
            del values["long_prompt"]
        return values

    def __str__(self) -> str:
        decision, speed, equal = self.decision_s, self.streams_tokens_per_s, self.equal_bits
        beside = f"beside {_s(decision.beside)}{_times(decision.beside, decision.idle)}"
        behind = f"behind {_s(decision.behind)}{_times(decision.behind, decision.idle)}"
        slowed = f"with decisions {_n(speed.with_decisions)}{_times(speed.with_decisions, speed.alone)}"
        rows = [
            ("decision, seconds", f"idle {_s(decision.idle)}", beside, behind),
            ("all streams, tokens/s", f"alone {_n(speed.alone)}", slowed, ""),
            ("gap between tokens, seconds", *_gap_cells(self.gap_s)),
        ]
        if long := self.long_prompt:
            rows.append((f"  as {long.prompt_tokens} tokens fill", *_gap_cells(long.gap_s)))
            rows.append(("  until their decision", _s(long.decision_s), "", ""))
        rows.append(("the same bits", f"streams {_yes(equal.stream)}", f"decisions {_yes(equal.decision)}", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join(lines)


def decisions(evidence: Evidence) -> DecisionSeconds:
    """Medians over every decision of each kind."""
    beside = [asked for run in evidence.beside for asked in run.asked]
    return DecisionSeconds(_seconds(evidence.idle), _seconds(beside), _seconds(evidence.behind.asked))


def speeds(evidence: Evidence) -> StreamSpeed:
    """Medians over the runs; each run over the time in which all its streams were live."""
    return StreamSpeed(_speed(evidence.alone, evidence.streams), _speed(evidence.beside, evidence.streams))


def gaps_of(evidence: Evidence) -> GapSeconds:
    """Quiet gaps of all runs of the first engine, the worst and the pieces of those with decisions."""
    beside = [run.rounds for run in evidence.beside]
    return _gap_seconds([*(run.rounds for run in evidence.alone), *beside], beside, evidence.streams)


def long_prompt(run: Run, streams: int) -> LongPrompt | None:
    """What one long decision cost in its run; None where the streams ended before it could arrive."""
    if not run.asked:
        return None
    return LongPrompt(
        run.asked[0].prompt_tokens, run.asked[0].seconds, _gap_seconds([run.rounds], [run.rounds], streams)
    )


def equal_bits(evidence: Evidence) -> EqualBits:
    """The first stream alone against all its runs in company; every decision idle against beside and behind."""
    runs = (*evidence.alone, *evidence.beside, evidence.behind)
    # Alone it ran for its first tokens only; after these, what the first run gave is the measure for the others.
    reference = (*evidence.solo, *runs[0].digests[len(evidence.solo) :])
    stream, _ = same_rows(reference, [run.digests for run in runs])
    decision, _ = same_answers(evidence.idle, [asked for run in runs for asked in run.asked])
    return EqualBits(stream, decision)


def _gap_seconds(rounds: Sequence[Rounds], beside: Sequence[Rounds], streams: int) -> GapSeconds:
    quiet = middle(gap for run in rounds for gap in quiet_gaps(run, streams))
    worst = [gap for run in beside if (gap := worst_gap(run)) is not None]
    return GapSeconds(
        quiet=quiet,
        worst=middle(worst),
        piece=None if quiet is None else middle(cost for run in beside for cost in piece_costs(run, streams, quiet)),
    )


def _seconds(asked: Sequence[Asked]) -> float | None:
    return middle(one.seconds for one in asked)


def _speed(runs: Sequence[Run], streams: int) -> float | None:
    return middle(speed for run in runs if (speed := tokens_per_s(run.rounds, streams)) is not None)


def _s(seconds: float | None) -> str:
    return "not measured" if seconds is None else f"{seconds:.3f}"


def _n(number: float | None) -> str:
    return "not measured" if number is None else f"{number:.1f}"


def _times(value: float | None, of: float | None) -> str:
    return f" ({value / of:.2g}x)" if value is not None and of else ""


def _gap_cells(gap: GapSeconds) -> tuple[str, str, str]:
    return f"quiet {_s(gap.quiet)}", f"worst {_s(gap.worst)}", f"a piece adds {_s(gap.piece)}"


def _yes(verdict: bool | None) -> str:
    return "not compared" if verdict is None else "yes" if verdict else "NO"
