"""Which slot a decision was given, from the record."""

from typing import TYPE_CHECKING

from lanes.record import RequestId

if TYPE_CHECKING:
    from lanes.record import Rounds

KEEP = 1024
"""Decisions whose slot is remembered."""


class Seats:
    """Reads on in the record, and remembers who was admitted where; the latest admission counts."""

    def __init__(self, rounds: "Rounds") -> None:
        self._rounds = rounds
        self._next = rounds.next_index
        self._slots: dict[RequestId, int] = {}

    def read(self) -> None:
        """Take in what has happened since."""
        since = self._rounds.since(self._next)
        self._next = since.next
        for new in (new for done in since.rounds for new in done.admitted if new.kind == "decision"):
            self._slots[new.id] = new.slot
        for id in list(self._slots)[:-KEEP]:
            del self._slots[id]

    def of(self, id: RequestId | None) -> int | None:
        """The slot of the decision with this number; None where it had none, or so long ago that it is forgotten."""
        return None if id is None else self._slots.get(id)
