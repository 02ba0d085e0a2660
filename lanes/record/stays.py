"""Who held which slot from when to when, and what each round did there: plain values that pictures are drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from lanes.record.shapes import Kind, RequestId, Round

Work: TypeAlias = Literal["decode", "draft", "piece", "tail", "branch", "held"]


class Cell(NamedTuple):
    """What one slot did in one round, times in seconds; the only work is `held` where its request had no turn."""

    slot: int
    start: float
    end: float
    works: tuple[Work, ...]


@dataclass(frozen=True, slots=True)
class Stay:
    """One request's time in a slot, in seconds; an evicted decision has several.

    `ending` is the reason of its end, or "evicted"; None while it goes on. `asked` is when it was submitted, None where
    that is not among the rounds.
    """

    slot: int
    id: RequestId
    kind: Kind
    start: float
    end: float
    ending: str | None = None
    asked: float | None = None

    @property
    def seconds(self) -> float | None:
        """From submit to end; None while that is not known."""
        return None if self.asked is None or self.ending in (None, "evicted") else self.end - self.asked


def cells(done: Round) -> list[Cell]:
    """The work of every held slot in one round, lowest slot first."""
    works: dict[int, list[Work]] = {seat.slot: [] for seat in done.seats}
    if done.piece:
        works.setdefault(done.piece.slot, []).append("piece")
    for row in done.rows:
        works.setdefault(row.slot, []).append(row.kind)
    return [Cell(slot, done.start, done.end, tuple(works[slot]) or ("held",)) for slot in sorted(works)]


def stays(rounds: Sequence[Round]) -> list[Stay]:
    """Every request's time in every slot, in the order in which they began."""
    over: list[Stay] = []
    held: dict[tuple[int, RequestId], Stay] = {}
    asked: dict[RequestId, float] = {}
    for done in rounds:
        asked.update((request.id, request.at) for request in done.submitted)
        evicted = {(event.slot, event.id) for event in done.evicted}
        ends: dict[tuple[int | None, RequestId], str] = {(end.slot, end.id): end.reason for end in done.finished}
        seats: dict[tuple[int, RequestId], Kind] = {(seat.slot, seat.id): seat.kind for seat in done.seats}
        # Who is not seated left before the round's forward: evicted, cancelled or too late.
        for place in [place for place in held if place in evicted or place not in seats]:
            over.append(replace(held.pop(place), ending="evicted" if place in evicted else ends.get(place)))
        for place, kind in seats.items():
            old = held.get(place) or Stay(*place, kind, done.start, done.end, asked=asked.get(place[1]))
            held[place] = replace(old, end=done.end)
            if place in ends:
                over.append(replace(held.pop(place), ending=ends[place]))
    return sorted([*over, *held.values()], key=lambda stay: (stay.start, stay.slot))


def waiters(done: Round) -> tuple[int, int]:
    """The streams and the decisions that waited through the whole round: who came during it does not count yet."""
    came = [request.kind for request in done.submitted if request.at > done.start]
    return done.waiting_streams - came.count("stream"), done.waiting_decisions - came.count("decision")
