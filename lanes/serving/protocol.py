"""uvicorn's HTTP/1.1 connection, with an end for those that say nothing, and a way to hang up on one."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SILENCE_S = 30.0
"""Seconds for the head of the first request of a connection."""


class Protocol(H11Protocol):
    """One connection. `scope["state"]["abort"]` drops it at once, whatever was not sent yet."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "abort": transport.abort}
        self._silent: Any = self.loop.call_later(SILENCE_S, self._hang_up)

    def _hang_up(self) -> None:
        if self.cycle is None:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silent.cancel()
        super().connection_lost(exc)
