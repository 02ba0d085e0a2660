"""A round in sentences: what it did, and why what waits still waits."""

from collections.abc import Iterator, Mapping

from lanes.record.shapes import Kind, Piece, Reason, RequestId, Round, RowKind
from lanes.record.show import listed

WORK: dict[RowKind, str] = {
    "draft": "verified {rows} of the tokens proposed for it",
    "tail": "ran {rows} of the last tokens of its prompt, in rows that were free",
    "branch": "ran {rows} of its branches' tokens, in rows that were free",
}
"""What rows other than decode rows did; those of all streams share a sentence."""
ENDS: dict[Reason, str] = {
    "stop": "came to its end",
    "length": "has all the tokens it asked for",
    "answered": "is answered",
    "cancelled": "was cancelled",
    "deadline": "was not done by its deadline",
    "error": "failed",
    "closed": "ended with the engine",
}
WHY = {
    "off": 'policy "off" lets none run',
    "idle": 'policy "idle" lets them run only when no stream is left',
    "beside": "no slot is free for them",
}
"""Why decisions wait under each policy."""


def words(done: Round, policy: str) -> list[str]:
    """The round's sentences in the order in which things happened; times are left to those who have the round."""
    return [sentence[0].upper() + sentence[1:] for sentence in (*_came(done), *_ran(done), *_left(done, policy))]


def _came(done: Round) -> Iterator[str]:
    for event in done.evicted:
        yield f"decision {event.id} gave slot {event.slot} back, as a stream waited for one; it will start again."
    for event in done.admitted:
        known = f", with {event.cached} prompt tokens from the cache" if event.cached else ""
        yield f"{event.kind} {event.id} took slot {event.slot}{known}."


def _ran(done: Round) -> Iterator[str]:
    kinds: dict[RequestId, Kind] = {seat.id: seat.kind for seat in done.seats}
    failed = {end.id for end in done.finished if end.reason == "error"}  # nothing came of what was run for them
    rows = [row for row in done.rows if row.id not in failed]
    if done.piece and done.piece.id not in failed:
        yield _filled(done.piece, kinds)
    if drew := [row for row in rows if row.kind == "decode"]:
        yield f"{listed('slot', (row.slot for row in drew))} drew a token{' each' * (len(drew) > 1)}."
    for row in rows:
        if row.kind != "decode":
            work = WORK[row.kind].format(rows=row.rows)
            yield f"slot {row.slot}, {kinds.get(row.id, 'request')} {row.id}, {work}."
    if done.error is not None:
        yield f"the forward failed: {done.error}"


def _filled(piece: Piece, kinds: Mapping[RequestId, Kind]) -> str:
    last = piece.start + piece.tokens - 1
    who = f"{kinds.get(piece.id, 'request')} {piece.id}"
    what = "filled" if piece.parts == 1 else f"computed part {piece.part} of {piece.parts} of"
    return f"slot {piece.slot} {what} a piece of {who}: prompt tokens {piece.start} to {last}."


def _left(done: Round, policy: str) -> Iterator[str]:
    for end in done.finished:
        yield f"{end.kind} {end.id} {ENDS[end.reason]}."
    if done.waiting_streams:
        yield f"{_count(done.waiting_streams, 'stream')}: no slot is free."
    if done.waiting_decisions:
        yield f"{_count(done.waiting_decisions, 'decision')}: {WHY[policy]}."


def _count(number: int, noun: str) -> str:
    return f"1 {noun} waits" if number == 1 else f"{number} {noun}s wait"
