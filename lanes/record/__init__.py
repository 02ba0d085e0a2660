"""The one record of what happened, round by round; board, timeline, metrics, receipts and traces are drawn from it.

The engine's thread appends to `Rounds`; any thread reads it at any time.
"""

from lanes.record.gaps import Summary
from lanes.record.rounds import Rounds, Since
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
    SlotState,
    State,
    Submitted,
    Timing,
)
from lanes.record.snapshot import SlotView, Snapshot, Waiting
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
    "Rounds",
    "RowKind",
    "RowsOf",
    "Seat",
    "Since",
    "SlotState",
    "SlotView",
    "Snapshot",
    "State",
    "Submitted",
    "Summary",
    "Timing",
    "Totals",
    "Waiting",
]
