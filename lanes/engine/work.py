"""A request as the engine's thread knows it: its segments, how far it is, and the channel to its caller."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lanes.decisions.program import Read, Segment
from lanes.engine.channel import Channel, End
from lanes.engine.turn import Draw, Drawn, Found
from lanes.errors import LanesError
from lanes.jobs import Job, stretch
from lanes.record import Reason, Timing
from lanes.sampling import Sampling
from lanes.text import TextStream


@dataclass(slots=True)
class Work:
    """What streams and decisions have in common. Only the engine's thread changes it once it was taken."""

    job: Job
    channel: Channel
    segments: tuple[Segment, ...]
    room: int
    prompt_tokens: int
    timing: Timing
    cached: int = 0

    @property
    def marks(self) -> tuple[int, ...]:
        """Positions that a later segment starts from again."""
        return tuple({segment.start for segment in self.segments[1:]})

    def admit(self, now: float, cached: int) -> None:
        """It got a slot, at `now` seconds."""
        self.timing = replace(self.timing, admitted=now)
        self.cached = self.channel.cached = cached

    def evict(self) -> None:
        """Its slot was taken back; it starts again, with its age kept."""
        self.timing = replace(self.timing, evictions=self.timing.evictions + 1)

    def end(self, reason: Reason, now: float, result: Any = None, error: LanesError | None = None) -> End:
        """How it ended, for its channel."""
        self.timing = replace(self.timing, finished=now)
        return End(reason, self.timing, result, error)


@dataclass(slots=True)
class StreamWork(Work):
    """A stream: after its prompt it draws a token each round, until a stop, `max_tokens` or the context's end."""

    sampling: Sampling = field(default_factory=Sampling)
    text: TextStream | None = None
    max_tokens: int = 1
    digest: bool = False
    logprobs: int | None = None
    drawn: list[int] = field(default_factory=list)

    def next_draw(self) -> Draw:
        """What to do with the logits of its newest row."""
        return Draw(self.sampling, self.prompt_tokens + len(self.drawn), self.digest, self.logprobs)

    def take(self, drawn: Drawn, now: float) -> tuple[Reason | None, Callable[[], None]]:
        """Note a token: the reason if the stream ends with it, and how to tell the caller."""
        assert self.text is not None
        self.drawn.append(drawn.token)
        if self.timing.first_token is None:
            self.timing = replace(self.timing, first_token=now)
        text = self.text.push(drawn.token)
        say = partial(self.channel.push, drawn.token, text, self.timing, drawn.digest, drawn.logprob)
        if self.text.finished:
            return "stop", say
        return "length" if len(self.drawn) >= self.max_tokens else None, say

    def rest(self) -> str:
        """What was held back because it could have become a stop string or the rest of a character."""
        with suppress(Exception):  # a tokenizer that fails here costs the last characters, not the slot
            return "" if self.text is None or self.text.finished else self.text.flush()
        return ""


@dataclass(slots=True)
class DecisionWork(Work):
    """A decision: it reads logits on its way, and `answer` turns them into the result."""

    answer: Callable[[list[dict[int, Found]], Timing, int], Any] = lambda found, timing, cached: found
    branches: int = 1
    found: list[dict[int, Found]] = field(default_factory=list)

    def admit(self, now: float, cached: int) -> None:
        """It got a slot: whatever it had read before an eviction is void."""
        Work.admit(self, now, cached)
        self.found = [{} for _ in range(self.branches)]

    def take(self, read: Read, found: Found) -> None:
        """Note what one row gave."""
        self.found[read.branch][read.node] = found


def prompt_segment(ids: tuple[int, ...], piece: int, packed: bool) -> Segment:
    """A stream's prompt, whose last row is drawn from."""
    return Segment(0, ids, stretch(0, len(ids), piece, packed), ((len(ids) - 1, None),))
