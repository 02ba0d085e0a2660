"""The streams: their text as it comes, token by token, with what is known of each; and a form to start one."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanes.errors import InvalidRequest
from lanes_widgets.acts import Command, Running
from lanes_widgets.gained import Gained, Gains, speed
from lanes_widgets.panel import Panel, Record
from lanes_widgets.publisher import HZ
from lanes_widgets.shown import View
from lanes_widgets.streams_record import record
from lanes_widgets.tape import Tape

if TYPE_CHECKING:
    from lanes import Engine, Stream
    from lanes.engine.recent import StreamView

SHOWN = 12
"""Streams in the picture; one that has not ended is shown even so."""
MOST = 24
"""Streams in the picture at most: of the queue only its head, where it is longer."""
TOKENS = 480
"""New tokens in one frame at most, shared among the streams that have some: some 16 kB."""
HELD = 32
"""Streams from the form whose handles are kept."""


class StreamsPanel(Panel):
    """The latest streams with their tokens; `start` one, `drop` one."""

    name = "streams"

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.started: deque[Stream] = deque(maxlen=HELD)
        """The streams that the form began, oldest first."""
        self._gained = Gained()
        self._own: dict[int, str] = {}
        """Texts of tokens by themselves, as far as they were asked for."""

    @property
    def commands(self) -> Mapping[str, Command]:
        """See `Panel.commands`."""
        return {"start": self.start, "drop": self.drop}

    def start(
        self,
        prompt: str,
        chat: bool,
        max_tokens: int,
        temperature: float,
        top_p: float,
        seed: str,
        logprobs: bool,
    ) -> Running:
        """Begin a stream on a raw text, or on it as a user's message. `seed` is written out; empty for a fresh one."""
        stream = self.engine.stream(
            [{"role": "user", "content": prompt}] if chat and prompt else prompt,
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=_seed(seed),
            logprobs=0 if logprobs else None,
        )
        self.started.append(stream)
        return stream

    def drop(self, id: int) -> None:
        """Give up the stream with this number, in a slot or in the queue."""
        if not any(view.id == id and not view.done for view in self.engine.streams(0)):
            raise ValueError(f"stream {id} has ended already")
        self.engine.cancel(id)

    @property
    def open(self) -> bool:
        """See `Panel.open`."""
        return not all(view.done for view in self.engine.streams(0))

    def picture(self) -> dict[str, Any]:
        """See `Panel.picture`: the streams, newest first, each with its new tokens."""
        views = self.engine.streams(SHOWN)
        self._gained.read(self.engine.rounds)  # later than the views: so it has every token of theirs
        shown = _shown(views)
        self._gained.forget_but(view.id for view in views)
        self.tapes = {name: self.tapes.get(name) or Tape(TOKENS) for name in (_tape(view) for view in shown)}
        behind = sum(self.tapes[_tape(view)].sent < len(view.tokens) for view in shown)
        share = TOKENS // max(1, behind)
        filled = {slot.id: slot.filled for slot in self.engine.snapshot().slots if slot.state == "filling"}
        return {
            "hidden": len(views) - len(shown),
            "streams": [self._picture(view, share, filled.get(view.id)) for view in reversed(shown)],
        }

    def _picture(self, view: "StreamView", share: int, filled: int | None) -> dict[str, Any]:
        gains, timing, count = self._gained.of(view.id), view.timing, len(view.tokens)
        pace = speed(view, gains)
        ttft = timing.ttft if timing else None
        tried = gains.drafted + gains.rejected if gains else 0
        return {
            "id": view.id,
            "state": view.state,
            "done": view.done,
            "prompt": view.prompt,
            "size": view.prompt_tokens,
            "filled": filled,
            "count": count,
            "seed": str(view.seed),  # JavaScript's numbers are too short for it
            "speed": None if pace is None else round(pace, 1),
            "ttft": None if ttft is None else round(ttft, 4),
            "drafts": [gains.drafted, tried] if gains and tried else None,
            "rest": view.rest,
            "error": view.error if view.state == "error" else None,
            "tape": self._cut(view, gains, share),
        }

    def _cut(self, view: "StreamView", gains: Gains | None, share: int) -> dict[str, Any]:
        """A share of the new tokens; none, but from where, once all were sent: who lacks some will ask."""
        tape, count = self.tapes[_tape(view)], len(view.tokens)
        if tape.sent >= count:
            return {"from": tape.sent, "items": [], "gone": 0}
        return tape.cut(Tokens(view, gains, self._text, min(count, tape.sent + share)))

    def _text(self, token: int) -> str:
        """A token by itself; the tokenizer takes long for what never changes, so it is asked once."""
        if token not in self._own:
            [self._own[token]] = self.engine.texts([token])
        return self._own[token]

    def record(self) -> Record:
        """See `Panel.record`: every stream's text, with its tokens in the HTML."""
        views, gained = self.engine.streams(SHOWN), Gained()
        gained.read(self.engine.rounds)
        return record([(view, gained.of(view.id)) for view in _shown(views)])


class Streams(View):
    """The text of an engine's latest streams, live and token by token, whoever began them; and a form to begin one.

    Pointing at a token, or walking to it with the arrow keys, tells its id, text, probability (where it was kept) and
    round. `started` are the streams that the form began. hz: frames a second at most. Raises InvalidRequest for
    anything but an engine.
    """

    def __init__(self, engine: "Engine", hz: float = HZ) -> None:
        super().__init__(engine, (StreamsPanel,), hz)

    @property
    def started(self) -> "tuple[Stream, ...]":
        """The latest streams that the form began, oldest first; () once the widget is closed."""
        return tuple(stream for part in self._parts if isinstance(part, StreamsPanel) for stream in part.started)


class Tokens(Sequence[list[Any]]):
    """The first `count` tokens of a stream as the front end reads them, made when they are cut.

    Each is [id, piece, logprob or None, round or None], and where there is more to say, an object: "own" is the text of
    a token that added none, "draft" is 1 for an accepted draft.
    """

    def __init__(self, view: "StreamView", gains: Gains | None, text: Callable[[int], str], count: int) -> None:
        self._view, self._text, self._count = view, text, count
        self._gains = gains.tokens if gains else []

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        places = range(self._count)[at]
        return [self._item(place) for place in places] if isinstance(at, slice) else self._item(places)

    def _item(self, at: int) -> list[Any]:
        view, gains = self._view, self._gains
        token, piece = view.tokens[at], view.pieces[at]
        gain = gains[at] if at < len(gains) else None
        logprob = round(view.logprobs[at].logprob, 5) if at < len(view.logprobs) else None
        more: dict[str, Any] = {} if piece else {"own": self._text(token)}
        if gain and gain.draft:
            more["draft"] = 1
        return [token, piece, logprob, gain and gain.round, *([more] if more else [])]


def _tape(view: "StreamView") -> str:
    return f"stream {view.id}"


def _shown(views: "Sequence[StreamView]") -> "list[StreamView]":
    """The picture's streams by id: of too many the newest that are past the queue, and the queue's head."""
    seated = [view for view in views if view.state != "queued"][-MOST:]
    queued = [view for view in views if view.state == "queued"][: MOST - len(seated)]
    return sorted([*seated, *queued], key=lambda view: view.id)


def _seed(written: str) -> int | None:
    if not written.strip():
        return None
    if not written.strip().isdecimal() or len(written) > 40:
        raise InvalidRequest(f"seed must be a whole number from 0 on, or empty for a fresh one; got {written[:40]!r}")
    return int(written)
