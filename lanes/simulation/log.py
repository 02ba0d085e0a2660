"""Simulated rounds in the shape of an engine's record, so that the two can be compared and drawn alike."""

from lanes.jobs import Held
from lanes.plan import Plan, Rules, Slots
from lanes.record import Admitted, Evicted, Finished, Kind, Piece, Round, RowsOf, Seat, State, Submitted


def log_round(
    rules: Rules,
    index: int,
    span: tuple[float, float],
    planned: Plan,
    slots: Slots,
    after: Slots,
    submitted: tuple[Submitted, ...],
    finished: tuple[Finished, ...],
    waiting: tuple[int, int],
) -> Round:
    """The round that `planned` made of the settled `slots`; `span` is its start and end (s)."""
    seats = {slot: item for slot, item in enumerate(slots) if item}
    kinds: dict[int, Kind] = {item.job.id: item.job.kind for item in seats.values()}
    return Round(
        index,
        *span,
        width=rules.width,
        groups=len(planned.groups),
        rows=tuple(
            _rows(slot, rows, planned.before_rows(slot, seats[slot]), after[slot])
            for group in planned.groups
            for slot, rows in group
        ),
        piece=None if planned.piece is None else _piece(planned, planned.piece, seats[planned.piece], rules.piece),
        submitted=submitted,
        admitted=tuple(Admitted(slot, id, kinds[id]) for slot, id in planned.admit),
        evicted=tuple(Evicted(slot, id) for slot, id in planned.evict),
        finished=finished,
        seats=tuple(Seat(slot, item.job.id, item.job.kind, _state(item)) for slot, item in seats.items()),
        waiting_streams=waiting[0],
        waiting_decisions=waiting[1],
    )


def _piece(planned: Plan, slot: int, item: Held, piece: int) -> Piece:
    return Piece(slot, item.job.id, item.position(piece), piece, part=planned.part.number, parts=planned.part.of)


def _rows(slot: int, rows: int, before: Held, after: Held | None) -> RowsOf:
    if before.live:
        return RowsOf(slot, before.job.id, "decode", rows, 1)
    first = int(after is not None and after.live)
    return RowsOf(slot, before.job.id, "branch" if before.leg else "tail", rows, first)


def _state(item: Held) -> State:
    if item.live:
        return "live"
    return "branch" if item.leg else "filling"
