"""What a decision costs the streams beside it: the gaps between their tokens, and the steps that make them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lanes.record.shapes import RequestId, Round


@dataclass(frozen=True, slots=True)
class Summary:
    """Gaps and steps over some rounds, in seconds; None where nothing was measured.

    A quiet step is a round with decode rows and no piece; a piece round has both, a lone piece no packed row.
    Percentiles interpolate linearly between the nearest ranks.
    """

    rounds: int
    gaps: int
    gap_p50_s: float | None
    gap_p99_s: float | None
    gap_worst_s: float | None
    quiet_s: float | None
    piece_s: float | None
    lone_piece_s: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """The time between two tokens of a stream, the second at the end of a round; in seconds.

    For `stood` of it the engine stood still between rounds: idle, paused or at a pace.
    """

    id: RequestId
    seconds: float
    stood: float


def gaps_by_round(rounds: Iterable[Round]) -> Iterator[tuple[Round, dict[RequestId, Gap]]]:
    """Each round with the gaps that end in it, by stream."""
    clocks: dict[RequestId, tuple[float, float]] = {}
    stood, before = 0.0, None
    for done in rounds:
        stood, before = stood + done.start - (done.start if before is None else before), done.end
        found: dict[RequestId, Gap] = {}
        for stream in dict.fromkeys(stream for stream, _ in done.gains):
            if last := clocks.get(stream):
                found[stream] = Gap(stream, done.end - last[0], stood - last[1])
            clocks[stream] = (done.end, stood)
        yield done, found


def gaps(rounds: Sequence[Round]) -> dict[RequestId, list[float]]:
    """Seconds between the tokens of each stream, by its id, in order.

    A token's time is the end of its round. Tokens that arrive together (accepted drafts) have one time and no gap
    between them. A gap holds whatever happened in it, a pause too. A stream with one token has an empty list.
    """
    # Not by way of `gaps_by_round`, which makes three times as much: a live view asks ten times a second.
    found: dict[RequestId, list[float]] = {}
    clocks: dict[RequestId, float] = {}
    for done in rounds:
        for id in dict.fromkeys(id for id, _ in done.gains):
            if id in clocks:
                found[id].append(done.end - clocks[id])
            else:
                found[id] = []
            clocks[id] = done.end
    return found


def summarise(rounds: Sequence[Round]) -> Summary:
    """Gaps of all streams together, and the median steps."""
    every = [gap for own in gaps(rounds).values() for gap in own]
    quiet = [done.seconds for done in rounds if done.piece is None and done.decode_rows]
    beside = [done.seconds for done in rounds if done.piece is not None and done.decode_rows]
    alone = [done.seconds for done in rounds if done.piece is not None and not done.rows]
    return Summary(
        rounds=len(rounds),
        gaps=len(every),
        gap_p50_s=_percentile(every, 50),
        gap_p99_s=_percentile(every, 99),
        gap_worst_s=_percentile(every, 100),
        quiet_s=_percentile(quiet, 50),
        piece_s=_percentile(beside, 50),
        lone_piece_s=_percentile(alone, 50),
    )


def _percentile(values: list[float], rank: float) -> float | None:
    return float(np.percentile(values, rank)) if values else None
