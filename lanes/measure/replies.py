"""Requests that come all at once: what each of them got, and when. Times are in seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from lanes.record import Round

if TYPE_CHECKING:
    from lanes.engine import Engine, Stream


@dataclass(frozen=True)
class Reply:
    """What one request got: its token ids, and for each the time since all requests came.

    A token is there when the thread that computes has its number: at the end of the round, or of mlx-lm's step.
    `digests` are the sha256 of the logits behind the tokens, where they were kept.
    """

    tokens: tuple[int, ...]
    times: tuple[float, ...]
    digests: tuple[str, ...] = ()

    @property
    def ttft(self) -> float:
        """The time to the first token, waiting included."""
        return self.times[0]

    @property
    def gaps(self) -> tuple[float, ...]:
        """The times between its tokens."""
        return tuple(after - before for before, after in pairwise(self.times))


def same_tokens(first: Sequence[Reply], others: Sequence[Reply]) -> int:
    """How many of the others have the very tokens of the first ones, reply by reply."""
    return sum(one.tokens == other.tokens for one, other in zip(first, others, strict=False))


async def at_once(engine: "Engine", prompts: Sequence[str], tokens: int, digests: bool = False) -> tuple[Reply, ...]:
    """A stream of `tokens` tokens for each prompt, all submitted together; returns when all have ended.

    Raises what a stream raises; then the others are cancelled.
    """
    first, begin = engine.rounds.next_index, engine.rounds.now()
    streams = [engine.stream(prompt, max_tokens=tokens, ignore_eos=True, digests=digests) for prompt in prompts]
    try:
        for stream in streams:
            await stream
    except BaseException:
        for stream in streams:
            stream.cancel()
        raise
    return replies(engine.rounds.since(first).rounds, streams, begin)


def replies(rounds: Sequence[Round], streams: Sequence["Stream"], begin: float) -> tuple[Reply, ...]:
    """Streams that have ended, with the times of their tokens out of the record, counted from `begin` on."""
    times: dict[object, list[float]] = {stream.id: [] for stream in streams}
    for done in rounds:
        for id, gained in done.gains:
            if id in times:
                times[id] += [done.end - begin] * gained
    return tuple(Reply(stream.tokens, tuple(times[stream.id]), stream.digests) for stream in streams)
