"""The board: every slot, the queue and the totals, live; and the engine's rounds in a person's hands."""

from collections.abc import Mapping
from html import escape
from itertools import takewhile
from statistics import median
from typing import TYPE_CHECKING, Any

from lanes.record import Round, SlotView
from lanes.record.gaps import gaps
from lanes.record.words import words
from lanes_widgets.acts import Command
from lanes_widgets.panel import Panel, Record
from lanes_widgets.publisher import HZ
from lanes_widgets.shown import View

if TYPE_CHECKING:
    from lanes import Engine

SLOWEST, FIRST, FASTEST = 0.25, 8.0, 64.0
"""Paces in rounds a second; beyond the fastest there is no limit."""
STEP_S = 5.0
"""How long one round may take to come back before the button is free again."""
RECENT_S = 2.0
"""What the rounds a second are counted over."""
LOOK_BACK = 4096
"""Rounds that are looked at for that, at most."""
GAP_ROUNDS = 32
"""Rounds that a stream's median gap is taken over."""


class BoardPanel(Panel):
    """Slots, queue, totals, the last round in words; pause, one round, resume, slower, faster, cancel."""

    name = "board"

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
        rounds = self.engine.rounds
        recent = rounds.since(max(0, rounds.next_index - LOOK_BACK)).rounds
        own = gaps(recent[-GAP_ROUNDS - 1 :])
        view = self.engine.snapshot()
        since = view.time - RECENT_S
        still = view.time - recent[-1].end if recent else 0.0
        lately = sum(1 for _ in takewhile(lambda done: done.end > since, reversed(recent)))
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
                "speed": _rounded(_speed(slot, still), 1),
                "gap": _rounded(median(found) if slot.id is not None and (found := own.get(slot.id)) else None, 3),
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
            "rate": lately / RECENT_S,
            "slots": slots,
            "waiting": waiting,
            "tokens": view.totals.tokens,
            "streams": view.totals.streams.submitted,
            "decisions": view.totals.decisions.submitted,
            "said": _said(rounds.last, view.policy),
        }

    def record(self) -> Record:
        """See `Panel.record`: the snapshot, and the last round in words without its time."""
        view, done = self.engine.snapshot(), self.engine.rounds.last
        if done is None:
            return Record(repr(view), view._repr_html_())
        said = f"Round {done.index}: {' '.join(words(done, view.policy))}"
        return Record(f"{view!r}\n{said}", f"{view._repr_html_()}<p>{escape(said)}</p>")


class Board(View):
    """Every slot of an engine, live: state, holder, prompt, context, speed, gaps; the queue; the last round in words.

    Keys, while the board has the focus: space pauses and resumes, `.` runs one round, `-` and `+` change the pace.
    hz: frames a second at most. Raises InvalidRequest for anything but an engine.
    """

    def __init__(self, engine: "Engine", hz: float = HZ) -> None:
        super().__init__(engine, (BoardPanel,), hz)


def _speed(slot: SlotView, still: float) -> float | None:
    """Tokens a second up to the last round, which ended `still` seconds ago: a pause does not slow a stream down."""
    if slot.tokens_per_s is None:
        return None
    followed = slot.generated - 1
    return followed / (followed / slot.tokens_per_s - max(0.0, still))


def _said(done: Round | None, policy: str) -> list[str]:
    return [] if done is None else [f"Round {done.index}, {done.seconds * 1e3:.0f} ms.", *words(done, policy)]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
