"""The engine's state as others see it: an immutable snapshot, and where one request is."""

from collections.abc import Iterable

from lanes.engine.state import State, seat_state
from lanes.engine.work import StreamWork, Work
from lanes.jobs import Held
from lanes.record import SlotView, Snapshot, Waiting


def picture(state: State, inbox: Iterable[Work], *, paused: bool, pace: float | None) -> Snapshot:
    """A snapshot of slots, queues and totals; `inbox` are requests that no round has seen yet."""
    now = state.record.now()
    return Snapshot(
        time=now,
        round=state.record.next_index,
        slots=tuple(_view(state, slot, held, now) for slot, held in enumerate(state.slots)),
        waiting=tuple(_waiting(state, list(inbox), now)),
        totals=state.record.totals,
        policy=state.rules.policy,
        paused=paused,
        pace=pace,
        width=state.rules.width,
        piece=state.rules.piece,
    )


def locate(state: State, id: int) -> str | None:
    """queued, filling, branch or live; None for a request that is not open."""
    slot = state.slot_of(id)
    held = None if slot is None else state.slots[slot]
    if held:
        return seat_state(held)
    return "queued" if id in state.works else None


def _waiting(state: State, inbox: list[Work], now: float) -> Iterable[Waiting]:
    """The queues, heads first, streams before decisions."""
    queued = [state.works[job.id] for job in (*state.streams, *state.decisions)]
    for kind in ("stream", "decision"):
        for work in (*queued, *inbox):
            if work.job.kind == kind:
                yield Waiting(work.job.id, kind, work.prompt_tokens, now - work.timing.submitted)


def _view(state: State, slot: int, held: Held | None, now: float) -> SlotView:
    reason = state.last_reasons[slot]
    if held is None:
        return SlotView(slot, finish_reason=reason)
    work, piece = state.works[held.job.id], state.rules.piece
    total = sum(len(segment.tokens) for segment in work.segments)
    drawn = len(work.drawn) if isinstance(work, StreamWork) else 0
    used = total if held.live else work.segments[held.leg].start + held.at(piece)
    return SlotView(
        index=slot,
        state=seat_state(held),
        kind=held.job.kind,
        id=held.job.id,
        prompt_tokens=total,
        filled=min(held.filled(piece), total),
        generated=drawn,
        context_fill=min(1.0, (used + drawn) / state.context),
        tokens_per_s=work.timing.tokens_per_s(drawn, now),
        ttft=work.timing.ttft,
        finish_reason=reason,
    )
