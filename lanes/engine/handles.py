"""What a caller holds of a request: a `Stream` of text, or a `Pending` result. Any thread may use them."""

import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any, Generic, Protocol, TypeVar

from lanes import checks
from lanes.engine.channel import Channel, End, Part
from lanes.engine.turn import Logprob
from lanes.errors import Cancelled
from lanes.prompts import Text
from lanes.record import Reason, Timing

Result = TypeVar("Result")


class Owner(Protocol):
    """The engine, as far as a handle needs it."""

    def cancel(self, id: int) -> None: ...

    def locate(self, id: int) -> str | None: ...


class Handle(Generic[Result]):
    """A request in flight or done.

    It keeps the engine alive until the request has ended. `id` is the request's number in the engine's record.
    """

    kind = "request"

    def __init__(self, id: int, channel: Channel, owner: Owner, prompt_tokens: int) -> None:
        self.id = id
        self.prompt_tokens = prompt_tokens
        self._channel = channel
        self._owner: Owner | None = owner
        # Held by the handle alone, or an engine whose handles are gone could never be collected.
        release = weakref.WeakMethod(self._release)
        channel.on_end = lambda: (method := release()) and method()
        if channel.end:
            self._release()

    def _release(self) -> None:
        self._owner = None

    @property
    def done(self) -> bool:
        """Whether the request has ended, in whatever way."""
        return self._channel.end is not None

    @property
    def state(self) -> str:
        """queued, filling, branch or live; once it has ended, the reason (answered, stop, length, cancelled, ...)."""
        end, owner = self._channel.end, self._owner
        where = owner.locate(self.id) if owner and not end else None
        return where or self._end().reason

    @property
    def timing(self) -> Timing | None:
        """When the request passed its stations, seconds since the engine's start; None before it was taken up."""
        return self._channel.timing

    @property
    def error(self) -> Exception | None:
        """Why there is no result, or None."""
        end = self._channel.end
        return end.error if end else None

    def cancel(self) -> None:
        """Give the request up. Nothing happens to one that has ended."""
        owner = self._owner
        if owner is not None and not self.done:
            owner.cancel(self.id)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most `timeout` seconds; whether it came."""
        return self._channel.wait(timeout=checks.timeout(timeout))

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result, at most `timeout` seconds (None: for ever).

        Raises TimeoutError when the time is up, after which the request goes on, and otherwise the error that the
        request ended with (Cancelled, DeadlineExceeded, EngineClosed, EngineFailed, DeviceStalled, ...).
        """
        if not self.wait(timeout):
            raise TimeoutError(
                f"{self.kind} {self.id} has no result after {timeout} s, but goes on: ask again, or cancel"
            )
        return self._outcome()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._arrive().__await__()

    async def _arrive(self) -> Result:
        try:
            await self._channel.changed()
        except BaseException:
            self.cancel()  # nobody waits any more: a cancelled task, or a loop that ends
            raise
        return self._outcome()

    def _end(self) -> End:
        self._channel.wait()
        assert self._channel.end is not None
        return self._channel.end

    def _outcome(self) -> Result:
        end = self._end()
        if end.error:
            # One error is raised once for each waiter: a traceback must not grow with every one of them.
            raise end.error.with_traceback(None)
        return end.result


class Pending(Handle[Result]):
    """A decision on its way: `result(timeout)`, `await`, `cancel()`."""

    kind = "decision"

    def __repr__(self) -> str:
        return f"Pending({self.id}, {self.state}, {self.prompt_tokens} prompt tokens)"


class Stream(Handle[str]):
    """Text on its way. Iterate it (also with `async for`) for pieces of text, or wait for the whole.

    `prompt` is what it was asked, `seed` what its draws depend on. Each iteration starts at the beginning of the text.
    Leaving one early cancels the stream. An iteration of a cancelled stream simply ends (`finish_reason` says so);
    `result()` and `await` raise Cancelled then. Any other error is raised in both.
    """

    kind = "stream"

    def __init__(self, id: int, channel: Channel, owner: Owner, prompt_tokens: int, seed: int, prompt: Text) -> None:
        super().__init__(id, channel, owner, prompt_tokens)
        self.seed = seed
        self.prompt = prompt

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._channel.pieces.copy())

    @property
    def tokens(self) -> tuple[int, ...]:
        """The token ids drawn so far, a stop token included."""
        return tuple(self._channel.tokens)

    @property
    def digests(self) -> tuple[str, ...]:
        """For a stream made with digests=True: the sha256 of each drawn token's logits row (float32), in hex."""
        return tuple(self._channel.digests)

    @property
    def logprobs(self) -> tuple[Logprob, ...]:
        """For a stream made with logprobs=n: each drawn token's log-probability, and the n likeliest with theirs."""
        return tuple(self._channel.logprobs)

    @property
    def finish_reason(self) -> Reason | None:
        """stop, length, cancelled, deadline, error or closed; None while it goes on."""
        end = self._channel.end
        return end.reason if end else None

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that were kept from earlier prompts with this beginning; 0 before the stream has a slot."""
        return self._channel.cached

    def __iter__(self) -> Iterator[str]:
        seen = 0
        try:
            while True:
                self._channel.wait(seen)
                yield from (fresh := self._channel.pieces[seen:])
                seen += len(fresh)
                if self.done and seen == len(self._channel.pieces):
                    break
        finally:
            self.cancel()
        self._raise_unless_cancelled()

    async def __aiter__(self) -> AsyncIterator[str]:
        seen = 0
        try:
            while True:
                await self._channel.changed(seen)
                for piece in (fresh := self._channel.pieces[seen:]):
                    yield piece
                seen += len(fresh)
                if self.done and seen == len(self._channel.pieces):
                    break
        finally:
            self.cancel()
        self._raise_unless_cancelled()

    async def parts(self) -> AsyncGenerator[Part, None]:
        """Tokens, text and log-probabilities as they come, for an event loop; otherwise as `async for` on the stream.

        Each part has all that waits, so whoever reads slowly gets fewer and larger ones. Together they have every token
        and the whole text; only the last one may have no text.
        """
        tokens = pieces = 0
        try:
            while True:
                await self._channel.changed(pieces)
                over = self.done  # asked first: nothing comes after the end
                part, pieces = self._channel.since(tokens, pieces)
                tokens += len(part.tokens)
                if part.tokens or part.text:
                    yield part
                if over:
                    break
        finally:
            self.cancel()
        self._raise_unless_cancelled()

    def _outcome(self) -> str:
        super()._outcome()
        return self.text

    def _raise_unless_cancelled(self) -> None:
        error = self.error
        if error and not isinstance(error, Cancelled):
            raise error.with_traceback(None)

    def __repr__(self) -> str:
        reason = self.finish_reason or self.state
        return f"Stream({self.id}, {reason}, {len(self._channel.tokens)} tokens: {self.text[:60]!r})"
