"""The board: every slot, the queue and the totals, live; and the engine's rounds in a person's hands."""

from collections import deque
from collections.abc import Mapping
from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any

from lanes.record import Round
from lanes.record.words import words
from lanes_widgets.acts import Command
from lanes_widgets.panel import Panel, Record
from lanes_widgets.publisher import HZ
from lanes_widgets.view import View

if TYPE_CHECKING:
    from lanes import Engine

SLOWEST, FIRST, FASTEST = 0.25, 8.0, 64.0
"""Paces in rounds a second; beyond the fastest there is no limit."""
STEP_S = 5.0
"""How long one round may take to come back before the button is free again."""
RECENT_S = 2.0
GAPS = 32
"""Gaps of a stream that its median is taken over."""


class BoardPanel(Panel):
    """Slots, queue, totals, the last round in words; pause, one round, resume, slower, faster, cancel."""

    name = "board"

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self._seen = engine.rounds.next_index
        self._last: dict[Any, float] = {}
        self._gaps: dict[Any, deque[float]] = {}
        self._ends: deque[float] = deque(maxlen=4096)

    @property
    def commands(self) -> Mapping[str, Command]:
        """See `Panel.commands`."""
        found = (self.pause, self.step, self.resume, self.slower, self.faster, self.cancel)
        return {command.__name__: command for command in found}

    def pause(self) -> None:
        """Hold before the next round."""
        self.engine.pause(timeout=0)

    def step(self) -> None:
        """Run one round, then hold."""
        self.engine.step(1, timeout=STEP_S)

    def resume(self) -> None:
        """Go on."""
        self.engine.resume()

    def slower(self) -> None:
        """Half as many rounds a second as now, at first a few."""
        pace = self.engine.snapshot().pace
        self.engine.pace(FIRST if pace is None else max(SLOWEST, pace / 2))

    def faster(self) -> None:
        """Twice as many rounds a second as now, in the end as many as go."""
        pace = self.engine.snapshot().pace
        self.engine.pace(None if pace is None or pace >= FASTEST else pace * 2)

    def cancel(self, id: int) -> None:
        """Give up the stream or decision with this number, in a slot or in the queue."""
        if self.engine.locate(id) is None:
            raise ValueError(f"request {id} has ended already")
        self.engine.cancel(id)

    def picture(self) -> dict[str, Any]:
        """See `Panel.picture`: the snapshot, with speeds of the last seconds."""
        for done in self.engine.rounds.since(self._seen).rounds:
            self._note(done)
        view = self.engine.snapshot()
        ids = {slot.id for slot in view.slots}
        for id in [id for id in self._last if id not in ids]:
            del self._last[id]
            self._gaps.pop(id, None)
        slots = [
            {
                "index": slot.index,
                "state": slot.state,
                "kind": slot.kind,
                "id": slot.id,
                "prompt": slot.prompt_tokens,
                "filled": slot.filled,
                "generated": slot.generated,
                "context": round(slot.context_fill, 3),
                "speed": _rounded(slot.tokens_per_s, 1),
                "gap": _rounded(median(own) if (own := self._gaps.get(slot.id)) else None, 3),
                "last": slot.finish_reason,
            }
            for slot in view.slots
        ]
        waiting = [
            {"id": item.id, "kind": item.kind, "prompt": item.prompt_tokens, "age": round(item.age, 1)}
            for item in view.waiting
        ]
        return {
            "model": self.engine.model,
            "policy": view.policy,
            "paused": view.paused,
            "pace": view.pace,
            "round": view.round,
            "rate": sum(end > view.time - RECENT_S for end in self._ends) / RECENT_S,
            "slots": slots,
            "waiting": waiting,
            "tokens": view.totals.tokens,
            "streams": view.totals.streams.submitted,
            "decisions": view.totals.decisions.submitted,
            "said": self._said(view.policy),
        }

    def _note(self, done: Round) -> None:
        self._seen = done.index + 1
        self._ends.append(done.end)
        for id, _ in done.gains:
            if id in self._last:
                self._gaps.setdefault(id, deque(maxlen=GAPS)).append(done.end - self._last[id])
            self._last[id] = done.end

    def _said(self, policy: str) -> list[str]:
        done = self.engine.rounds.last
        return [] if done is None else [f"Round {done.index}, {done.seconds * 1e3:.0f} ms.", *words(done, policy)]

    def record(self) -> Record:
        """See `Panel.record`: the snapshot, and the last round in words without its time."""
        view, done = self.engine.snapshot(), self.engine.rounds.last
        said = " ".join(words(done, view.policy)) if done else ""
        html = view._repr_html_() + (f"<p>{escape(f'Round {done.index}: {said}')}</p>" if done else "")
        return Record(f"{view!r}" + (f"\nRound {done.index}: {said}" if done else ""), html)


class Board(View):
    """Every slot of an engine, live: state, holder, prompt, context, speed, gaps; the queue; the last round in words.

    Keys, while the board has the focus: space pauses and resumes, `.` runs one round, `-` and `+` change the pace.
    hz: frames a second at most. Raises InvalidRequest for anything but an engine.
    """

    def __init__(self, engine: "Engine", hz: float = HZ) -> None:
        super().__init__(engine, (BoardPanel,), hz)


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
