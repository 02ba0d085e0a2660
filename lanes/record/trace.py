"""The rounds in Chrome's trace format (JSON object form), which ui.perfetto.dev and chrome://tracing open.

One track for the rounds, one for the queue and one for each slot; a request's life from submit to end is an async
slice; waiting requests and packed rows are counters. Timestamps are whole microseconds since the engine's start.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lanes.paths import replaced
from lanes.record.shapes import Admitted, Evicted, Finished, RequestId, Round, RowKind, Submitted

Event = dict[str, Any]

PROCESS = 1
ROUNDS_TRACK = 1
QUEUE_TRACK = 2
FIRST_SLOT_TRACK = 10
ROW_KINDS: tuple[RowKind, ...] = ("decode", "draft", "tail", "branch")


def write_trace(rounds: Sequence[Round], path: str | Path, slots: int, started: float) -> Path:
    """Write the trace to `path` and return it; a file that was there is replaced whole or not at all.

    `started` is the wall clock (seconds since 1970) of the rounds' zero. Raises OSError as writing a file does.
    """
    path = Path(path)
    head = {
        "displayTimeUnit": "ms",
        "otherData": {"zero": datetime.fromtimestamp(started, timezone.utc).isoformat(), "rounds": len(rounds)},
    }
    with replaced(path) as part, part.open("x", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        for number, event in enumerate(events(rounds, slots)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")
    return path


def events(rounds: Iterable[Round], slots: int) -> Iterator[Event]:
    """The trace's events: each track's in the order of time, a slot's slices never overlapping."""
    yield from _names(slots)
    open_ids: set[RequestId] = set()
    for done in rounds:
        start, end = _micros(done.start), _micros(done.end)
        yield from _lives(done, end, open_ids)
        for news in (done.submitted, done.evicted, done.admitted):
            yield from (_instant(event, start) for event in news)
        yield _slice(ROUNDS_TRACK, f"round {done.index}", start, end, _round_args(done))
        for slot, work in _work(done).items():
            yield _slice(FIRST_SLOT_TRACK + slot, " + ".join(work), start, end, {"round": done.index})
        yield from _counters(done, start)
        yield from (_instant(event, end) for event in done.finished)


def _micros(seconds: float) -> int:
    # Whole numbers: the end of one slice and the start of the next stay equal, whatever the float's last bit.
    return int(seconds * 1e6)


def _names(slots: int) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "args": {"name": "lanes"}}
    tracks = {ROUNDS_TRACK: "rounds", QUEUE_TRACK: "queue"}
    tracks |= {FIRST_SLOT_TRACK + slot: f"slot {slot}" for slot in range(slots)}
    for track, name in tracks.items():
        yield {"ph": "M", "name": "thread_name", "pid": PROCESS, "tid": track, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": PROCESS, "tid": track, "args": {"sort_index": track}}


def _slice(track: int, name: str, start: int, end: int, args: Event) -> Event:
    return {"ph": "X", "name": name, "pid": PROCESS, "tid": track, "ts": start, "dur": end - start, "args": args}


def _instant(event: Submitted | Evicted | Admitted | Finished, at: int) -> Event:
    slot = None if isinstance(event, Submitted) else event.slot
    track = QUEUE_TRACK if slot is None else FIRST_SLOT_TRACK + slot
    name = f"{type(event).__name__.lower()} {event.id}"
    return {"ph": "i", "s": "t", "name": name, "pid": PROCESS, "tid": track, "ts": at, "args": event._asdict()}


def _work(done: Round) -> dict[int, list[str]]:
    """What each slot did in the round, in words."""
    work: dict[int, list[str]] = {}
    if done.piece:
        piece = done.piece
        part = f" (part {piece.part} of {piece.parts})" if piece.parts > 1 else ""
        work[piece.slot] = [f"piece {piece.start}-{piece.start + piece.tokens} of {piece.id}{part}"]
    for row in done.rows:
        work.setdefault(row.slot, []).append(f"{row.kind} {row.rows} of {row.id}")
    return work


def _round_args(done: Round) -> Event:
    args = {"groups": done.groups, "rows": done.used_rows, "idle_rows": done.idle_rows, "tokens": done.tokens}
    return args if done.error is None else {**args, "error": done.error}


def _counters(done: Round, at: int) -> Iterator[Event]:
    waiting = {"streams": done.waiting_streams, "decisions": done.waiting_decisions}
    rows = {kind: done.count(kind) for kind in ROW_KINDS}
    for name, args in (("waiting", waiting), ("rows", rows)):
        yield {"ph": "C", "name": name, "pid": PROCESS, "tid": 0, "ts": at, "args": args}


def _lives(done: Round, end: int, open_ids: set[RequestId]) -> Iterator[Event]:
    """The begin and end of each request's async slice; one whose begin is forgotten gets none."""
    for new in done.submitted:
        open_ids.add(new.id)
        yield _life("b", new.kind, new.id, _micros(new.at))
    for old in done.finished:
        if old.id in open_ids:
            open_ids.remove(old.id)
            yield _life("e", old.kind, old.id, end)


def _life(phase: str, kind: str, id: RequestId, at: int) -> Event:
    return {"ph": phase, "cat": kind, "name": kind, "id": str(id), "pid": PROCESS, "tid": QUEUE_TRACK, "ts": at}
