"""The one record of what happened, round by round; board, timeline, metrics, receipts and traces are drawn from it.

The engine's thread appends to `Rounds`; any thread reads it at any time.
"""

from lanes.record.compare import Comparison, compare
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
from lanes.record.story import Story, Wait
from lanes.record.tolls import Toll
from lanes.record.totals import Counts, Totals

__all__ = [
    "Admitted",
    "Comparison",
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
    "Story",
    "Submitted",
    "Summary",
    "Timing",
    "Toll",
    "Totals",
    "Wait",
    "Waiting",
    "compare",
]
