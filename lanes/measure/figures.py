"""From rounds and answers to figures: pure functions, times in seconds, None where nothing was measured."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from lanes.record import Round
from lanes.record.gaps import gaps


@dataclass(frozen=True, eq=False)
class Asked:
    """What a decision gave: which question it was, seconds from the call to its result, and the bits of its answer."""

    question: int
    prompt_tokens: int
    seconds: float
    logits: np.ndarray
    logsumexp: float

    @property
    def bits(self) -> bytes:
        """The label logits (float32) and the logsumexp (float32) as bytes."""
        return self.logits.tobytes() + np.float32(self.logsumexp).tobytes()


def middle(values: Iterable[float]) -> float | None:
    """The median."""
    found = list(values)
    return median(found) if found else None


def together(rounds: Sequence[Round], streams: int) -> Sequence[Round]:
    """The rounds from the first to the last in which so many streams were live."""
    full = [at for at, done in enumerate(rounds) if done.decode_rows == streams]
    return rounds[full[0] : full[-1] + 1] if full else ()


def tokens_per_s(rounds: Sequence[Round], streams: int) -> float | None:
    """Tokens that streams gained a second, over the time in which `streams` of them were live; all waits included."""
    whole = together(rounds, streams)
    if len(whole) < 2:
        return None
    return sum(done.tokens for done in whole[1:]) / (whole[-1].end - whole[0].end)


def quiet_gaps(rounds: Sequence[Round], streams: int) -> list[float]:
    """Gaps between the tokens of `streams` live streams, over rounds that did nothing else."""
    return [
        after.end - before.end
        for before, after in pairwise(together(rounds, streams))
        if after.piece is None and after.used_rows == after.decode_rows == streams
    ]


def piece_costs(rounds: Sequence[Round], streams: int, quiet: float) -> list[float]:
    """What each whole piece added to gaps of `quiet` seconds between the tokens of `streams` live streams.

    A piece in parts added to as many gaps; one that was begun before all were live, or never ended, is left out.
    """
    found: list[float] = []
    added, parts = 0.0, 0
    for before, after in pairwise(together(rounds, streams)):
        if after.piece is None or after.decode_rows != streams:
            continue
        added, parts = (added, parts) if after.piece.part > 1 else (0.0, 0)
        added, parts = added + after.end - before.end - quiet, parts + 1
        if parts == after.piece.parts:
            found.append(added)
    return found


def worst_gap(rounds: Sequence[Round]) -> float | None:
    """The largest gap between two tokens of any stream, from its first token to its last."""
    return max((gap for own in gaps(rounds).values() for gap in own), default=None)


def same_answers(first: Iterable[Asked], others: Iterable[Asked]) -> tuple[bool | None, int]:
    """Whether each of the others has the bits that the same question had first, and how many were compared."""
    known = {asked.question: asked.bits for asked in first}
    verdicts = [asked.bits == known[asked.question] for asked in others if asked.question in known]
    return (all(verdicts) if verdicts else None), len(verdicts)


def same_rows(solo: Sequence[str], others: Iterable[Sequence[str]]) -> tuple[bool | None, int]:
    """Whether the digests of the others begin with those of the solo stream, and how many rows were compared."""
    pairs = [pair for other in others for pair in zip(solo, other, strict=False)]
    return (all(mine == theirs for mine, theirs in pairs) if pairs else None), len(pairs)
