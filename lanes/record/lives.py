"""Requests from submit to end, in rows where no two overlap: the upper part of every picture of rounds."""

from collections.abc import Sequence
from dataclasses import dataclass

from lanes.record.shapes import Kind, RequestId, Round


@dataclass(frozen=True, slots=True)
class Life:
    """One request's way, in seconds: `end` and `reason` are None while it goes on; `row` is where it is drawn."""

    id: RequestId
    kind: Kind
    start: float
    end: float | None
    reason: str | None
    row: int


def lives(rounds: Sequence[Round], kind: Kind) -> list[Life]:
    """Every request of a kind whose submit is among the rounds, in the order in which they came."""
    came = sorted((new for done in rounds for new in done.submitted if new.kind == kind), key=lambda new: new.at)
    ends = {end.id: (done, end.reason) for done in rounds for end in done.finished}
    free: list[float] = []
    found: list[Life] = []
    for new in came:
        done, reason = ends.get(new.id, (None, None))
        end = None if done is None else max(new.at, done.end)
        row = next((row for row, until in enumerate(free) if until <= new.at), len(free))
        free[row : row + 1] = [float("inf") if end is None else end]
        found.append(Life(new.id, kind, new.at, end, reason, row))
    return found
