"""The one record of what happened, round by round; board, timeline, metrics, receipts and traces are drawn from it.

The engine's thread appends to `Rounds`; any thread reads it at any time.
"""

from lanes.record.shapes import (
    Admitted,
    Evicted,
    Finished,
    Kind,
    Piece,
    Reason,
    RequestId,
    Round,
    RowKind,
    RowsOf,
    Seat,
    State,
    Submitted,
    Timing,
)
from lanes.record.snapshot import SlotState, SlotView, Snapshot, Waiting
from lanes.record.totals import Counts, Totals

__all__ = [
    "Admitted",
    "Counts",
    "Evicted",
    "Finished",
    "Kind",
    "Piece",
    "Reason",
    "RequestId",
    "Round",
    "RowKind",
    "RowsOf",
    "Seat",
    "SlotState",
    "SlotView",
    "Snapshot",
    "State",
    "Submitted",
    "Timing",
    "Totals",
    "Waiting",
]
