"""The one way from the engine's thread to whoever waits for a request: text as it comes, then one end."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, RLock
from typing import Any, NamedTuple

from lanes.engine.turn import Logprob
from lanes.errors import LanesError
from lanes.record import Reason, Timing


@dataclass(frozen=True, slots=True)
class End:
    """How a request ended: its result, or the error that says why there is none."""

    reason: Reason
    timing: Timing
    result: Any = None
    error: LanesError | None = None


class Heard(NamedTuple):
    """What a channel has said so far, all of one moment; `texts` has what each of `tokens` added."""

    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    rest: str
    logprobs: tuple[Logprob, ...]
    timing: Timing | None
    end: End | None


class Part(NamedTuple):
    """What a stream said since somebody looked last: tokens, the text that is safe to show now, how likely they were.

    A token's text may come with a later part: half a character waits for its other half, and what may become a stop
    string for what follows. `logprobs` has one for each token, or none.
    """

    tokens: tuple[int, ...]
    text: str
    logprobs: tuple[Logprob, ...]


class Channel:
    """What one request has to say. One thread writes, any thread or event loop reads; the first end counts."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._wakers: list[Callable[[], None]] = []
        self.pieces: list[str] = []
        self.tokens: list[int] = []
        self.texts: list[str] = []
        """What each token added to the text; "" where it was held back, is half a character or is no text."""
        self.rest = ""
        """What was still held back when the request ended: the text after the last token's."""
        self.digests: list[str] = []
        self.logprobs: list[Logprob] = []
        self.cached = 0
        """Prompt tokens that were kept from before; known once the request has a slot."""
        self.timing: Timing | None = None
        self.end: End | None = None
        self.on_end: Callable[[], None] | None = None

    def push(
        self, token: int, text: str, timing: Timing, digest: str | None = None, logprob: Logprob | None = None
    ) -> None:
        """A token was drawn, and this text is safe to show with it."""
        with self._lock:
            if self.end:
                return
            self.timing = timing
            if text:
                self.pieces.append(text)
            if digest is not None:
                self.digests.append(digest)
            if logprob is not None:
                self.logprobs.append(logprob)
            self.texts.append(text)
            self.tokens.append(token)
            self._wake()

    def finish(self, end: End, text: str = "") -> bool:
        """The request ended; `text` is what was still held back. False where it had ended before."""
        with self._lock:
            if self.end:
                return False
            if text:
                self.pieces.append(text)
            self.rest = text
            self.end = end
            self.timing = end.timing
            self._wake()
            done, self.on_end = self.on_end, None
        if done:
            done()
        return True

    def heard(self) -> Heard:
        """What was said so far."""
        with self._lock:
            said = (tuple(self.tokens), tuple(self.texts), self.rest, tuple(self.logprobs))
            return Heard(*said, self.timing, self.end)

    def since(self, tokens: int, pieces: int) -> tuple[Part, int]:
        """What came after so many tokens and pieces of text, all of one moment; and how many pieces there are now."""
        with self._lock:
            part = Part(tuple(self.tokens[tokens:]), "".join(self.pieces[pieces:]), tuple(self.logprobs[tokens:]))
            return part, len(self.pieces)

    def _wake(self) -> None:
        self._changed.notify_all()
        wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def wait(self, seen: int | None = None, timeout: float | None = None) -> bool:
        """Wait for the end, or for more than `seen` pieces of text; False where `timeout` seconds passed before."""
        with self._lock:
            return self._changed.wait_for(lambda: self._news(seen), timeout)

    def _news(self, seen: int | None) -> bool:
        return self.end is not None or (seen is not None and len(self.pieces) > seen)

    async def changed(self, seen: int | None = None) -> None:
        """As `wait`, for an event loop."""
        loop = asyncio.get_running_loop()
        while True:
            woken = asyncio.Event()

            def wake(woken: asyncio.Event = woken) -> None:
                # A loop that was closed in the meantime has nobody left to wake.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(woken.set)

            with self._lock:
                if self._news(seen):
                    return
                self._wakers.append(wake)
            try:
                await woken.wait()
            finally:
                with self._lock, contextlib.suppress(ValueError):
                    self._wakers.remove(wake)
