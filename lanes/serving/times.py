"""How long requests took, heard from the rounds one after the other; plain values in and out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lanes.record import RequestId, Round

Span = Literal["ttft", "gap", "stream", "queue", "decision"]


@dataclass
class _Open:
    """A request that has not ended."""

    submitted: float
    admitted: bool = False
    token: float | None = None
    """When its latest token came."""


class Times:
    """Follows every request from the round that took it on; one that began before is left out."""

    def __init__(self) -> None:
        self._open: dict[RequestId, _Open] = {}

    def hear(self, done: Round) -> Iterator[tuple[Span, float]]:
        """What is known once this round is over: spans in seconds."""
        for new in done.submitted:
            self._open[new.id] = _Open(new.at)
        for seat in done.admitted:
            one = self._open.get(seat.id)
            if one and not one.admitted:
                one.admitted = True
                if seat.kind == "stream":
                    yield "queue", max(0.0, done.start - one.submitted)
        for id, _ in done.gains:  # tokens of one round come together: between them is no gap
            if one := self._open.get(id):
                yield ("ttft", done.end - one.submitted) if one.token is None else ("gap", done.end - one.token)
                one.token = done.end
        for end in done.finished:
            one = self._open.pop(end.id, None)
            if one and end.reason in ("stop", "length"):
                yield "stream", done.end - one.submitted
            elif one and end.reason == "answered":
                yield "decision", done.end - one.submitted
