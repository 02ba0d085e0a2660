"""uvicorn's HTTP/1.1 connection, with an end for clients that are slow, deaf or silent."""

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Protocol(H11Protocol):
    """One connection. It is dropped, with whatever was not sent yet, where the client keeps it waiting too long.

    That is: `patience` seconds for the head of a request, for what is left of a body after its answer, and for taking
    what was written (when some 64 KiB of it wait). Where there are more than `most` connections, the one that has been
    without a request for longest is dropped: whoever opens many and says nothing shuts nobody out.
    """

    patience: ClassVar[float] = 30.0
    most: ClassVar[int] = 512
    silent_since: float = 0.0
    """When, on the loop's clock, this connection was made or its latest answer was complete."""
    _head: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.silent_since = self.loop.time()
        self._attend()
        self._make_room()

    @property
    def silent(self) -> bool:
        """Whether there is no request that the application works on."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        there: list[Protocol] = [one for one in self.connections if not one.transport.is_closing()]  # type: ignore[misc]
        if len(there) > self.most and (silent := [one for one in there if one.silent]):
            min(silent, key=lambda one: one.silent_since).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._attend()

    def _attend(self) -> None:
        """Let the clock run while nobody but the client can go on."""
        if not self.silent:
            _stop(self._head)
            self._head = None
        elif self._head is None:
            self._head = self.loop.call_later(self.patience, self.transport.abort)

    def on_response_complete(self) -> None:
        self.silent_since = self.loop.time()
        _stop(self._head)
        self._head = None
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:  # it was answered before it had said everything
            self._attend()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        _stop(self._taking)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        _stop(self._head)
        _stop(self._taking)
        super().connection_lost(exc)


def patient(seconds: float, most: int) -> type[Protocol]:
    """The connection with this patience, one of so many."""
    return type("PatientProtocol", (Protocol,), {"patience": seconds, "most": most})


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
