"""The rounds as a pandas frame, one row a round, the same columns and dtypes however many there are.

The index is the round's number. `start_s` and `end_s` are seconds since the engine's start, `seconds` the round's
length; every other number is a count. `*_rows` count packed rows by kind, `idle_rows` the dummy ones; `tokens` were
gained by streams; `piece_*` are missing in rounds without a piece; `submitted` to `finished` count events; `streams`
and `decisions` count the slots that they held; `waiting_*` the requests left in the queue; `error` is missing in
rounds that went well.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from lanes.record.shapes import Kind, Round

COLUMNS: dict[str, tuple[str, Callable[[Round], Any]]] = {
    "start_s": ("float64", lambda done: done.start),
    "end_s": ("float64", lambda done: done.end),
    "seconds": ("float64", lambda done: done.seconds),
    "groups": ("int64", lambda done: done.groups),
    "width": ("int64", lambda done: done.width),
    "decode_rows": ("int64", lambda done: done.count("decode")),
    "draft_rows": ("int64", lambda done: done.count("draft")),
    "tail_rows": ("int64", lambda done: done.count("tail")),
    "branch_rows": ("int64", lambda done: done.count("branch")),
    "idle_rows": ("int64", lambda done: done.idle_rows),
    "tokens": ("int64", lambda done: done.tokens),
    "piece_slot": ("Int64", lambda done: done.piece and done.piece.slot),
    "piece_id": ("object", lambda done: done.piece and done.piece.id),
    "piece_start": ("Int64", lambda done: done.piece and done.piece.start),
    "piece_tokens": ("Int64", lambda done: done.piece and done.piece.tokens),
    "piece_part": ("Int64", lambda done: done.piece and done.piece.part),
    "piece_parts": ("Int64", lambda done: done.piece and done.piece.parts),
    "submitted": ("int64", lambda done: len(done.submitted)),
    "admitted": ("int64", lambda done: len(done.admitted)),
    "evicted": ("int64", lambda done: len(done.evicted)),
    "finished": ("int64", lambda done: len(done.finished)),
    "streams": ("int64", lambda done: _held(done, "stream")),
    "decisions": ("int64", lambda done: _held(done, "decision")),
    "waiting_streams": ("int64", lambda done: done.waiting_streams),
    "waiting_decisions": ("int64", lambda done: done.waiting_decisions),
    "error": ("string", lambda done: done.error),
}


def to_frame(rounds: Sequence[Round]) -> pd.DataFrame:
    """The frame of these rounds, in their order."""
    index = pd.Index([done.index for done in rounds], dtype="int64", name="round")
    return pd.DataFrame(
        {name: pd.Series([read(done) for done in rounds], index, dtype) for name, (dtype, read) in COLUMNS.items()},
        index=index,
    )


def _held(done: Round, kind: Kind) -> int:
    return sum(seat.kind == kind for seat in done.seats)
