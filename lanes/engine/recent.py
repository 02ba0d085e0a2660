"""The latest streams of an engine as plain values: what anyone may read of them without their callers' handles.

It holds what the streams said, never the engine or a handle: whoever drops those still lets them go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

from lanes.engine.channel import Channel
from lanes.engine.turn import Logprob
from lanes.prompts import Text
from lanes.record import Timing

KEEP = 32
"""Streams that are remembered; one that has not ended always is."""
MOST_TOKENS = 1 << 17
"""Tokens of all ended streams together beyond which the oldest are forgotten: some 20 MB."""
BEGINNING = 200
"""Characters of a prompt."""

Locate = Callable[[int], "str | None"]
"""Where an unfinished request is: queued, filling or live; None for any other."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """One stream at one moment.

    `state` is queued, filling or live, or how it ended. `prompt` is the beginning of what was given: of messages, the
    last one's. `pieces` has for each of `tokens` what it added to the text: "" for an end token, for half a character,
    and for what may become a stop string; a later token adds that, or `rest` does when the stream ends. `logprobs` has
    one for each token, or none. Times are seconds on the record's clock; `timing` is None before the first token.
    """

    id: int
    state: str
    done: bool
    prompt: str
    prompt_tokens: int
    seed: int
    tokens: tuple[int, ...]
    pieces: tuple[str, ...]
    rest: str
    logprobs: tuple[Logprob, ...]
    timing: Timing | None
    error: str | None

    @property
    def text(self) -> str:
        """The text so far, as `Stream.text`."""
        return "".join(self.pieces) + self.rest


class Note(NamedTuple):
    """What is remembered of a stream: what it was asked, and where its words arrive."""

    id: int
    prompt: str
    prompt_tokens: int
    seed: int
    channel: Channel

    def view(self, locate: Locate) -> StreamView:
        """How it is now. Between its last round and its end it still counts as live."""
        where = None if self.channel.end else locate(self.id)
        heard = self.channel.heard()
        end = heard.end
        return StreamView(
            id=self.id,
            state=end.reason if end else where or "live",
            done=end is not None,
            prompt=self.prompt,
            prompt_tokens=self.prompt_tokens,
            seed=self.seed,
            tokens=heard.tokens,
            pieces=heard.texts,
            rest=heard.rest,
            logprobs=heard.logprobs,
            timing=heard.timing,
            error=str(end.error) if end and end.error else None,
        )


class Recent:
    """The latest `keep` streams and all unfinished ones, by their ids. Safe on any thread."""

    def __init__(self, keep: int = KEEP, most_tokens: int = MOST_TOKENS) -> None:
        self._keep, self._most = keep, most_tokens
        self._notes: dict[int, Note] = {}
        self._lock = Lock()

    def add(self, note: Note) -> None:
        """Remember a stream."""
        with self._lock:
            self._notes[note.id] = note
            self._forget()

    def views(self, locate: Locate, last: int) -> tuple[StreamView, ...]:
        """The unfinished streams, and of the others the latest ones, so that there are `last` where there can be."""
        with self._lock:
            self._forget()
            ended = self._ended()
            dropped = set(ended[: max(0, min(len(ended), len(self._notes) - last))])
            notes = [self._notes[id] for id in sorted(self._notes) if id not in dropped]
        return tuple(note.view(locate) for note in notes)

    def _ended(self) -> list[int]:
        """The ended streams, oldest first."""
        return [id for id in sorted(self._notes) if self._notes[id].channel.end]

    def _forget(self) -> None:
        ended = self._ended()
        tokens = sum(len(self._notes[id].channel.tokens) for id in ended)
        for id in ended:
            # The latest one stays, however long it is.
            if len(self._notes) <= self._keep and (tokens <= self._most or id == ended[-1]):
                break
            tokens -= len(self._notes.pop(id).channel.tokens)


def beginning(prompt: Text) -> str:
    """The first characters of a prompt that was read; of chat messages, those of the last one's text."""
    if isinstance(prompt, str):
        return prompt[:BEGINNING]
    content = prompt[-1]["content"]
    parts = [content] if isinstance(content, str) else content
    return "".join(part if isinstance(part, str) else part["text"] for part in parts)[:BEGINNING]
