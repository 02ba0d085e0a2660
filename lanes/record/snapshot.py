"""An immutable picture of the engine between two rounds: slots, queues, totals."""

from dataclasses import asdict, dataclass
from typing import Any, get_args

from lanes.record.shapes import Kind, Reason, RequestId, SlotState
from lanes.record.show import html_page, html_table, number, text_table, totals_rows
from lanes.record.totals import Totals


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot: who holds it and how far that request is; times in seconds, None where there is nothing to say.

    `filled` of `prompt_tokens` are in the cache, `generated` were drawn, `context_fill` is the used part of the context
    window (0 to 1). `finish_reason` is that of the last request that ended here.
    """

    index: int
    state: SlotState = "free"
    kind: Kind | None = None
    id: RequestId | None = None
    prompt_tokens: int = 0
    filled: int = 0
    generated: int = 0
    context_fill: float = 0.0
    tokens_per_s: float | None = None
    ttft: float | None = None
    finish_reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request in the queue; age in seconds since it was submitted (an eviction does not reset it)."""

    id: RequestId
    kind: Kind
    prompt_tokens: int
    age: float


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """The engine at `time` (seconds since its start), after `round` rounds.

    `waiting` is the queue, heads first, streams before decisions. `pace` is the limit in rounds per second, None for
    none. `width` (packed rows a round) and `piece` (tokens a piece) are the engine's own.
    """

    time: float
    round: int
    slots: tuple[SlotView, ...]
    waiting: tuple[Waiting, ...]
    totals: Totals
    policy: str
    paused: bool
    pace: float | None
    width: int
    piece: int

    @property
    def waiting_streams(self) -> tuple[Waiting, ...]:
        """The streams in the queue, oldest first."""
        return tuple(item for item in self.waiting if item.kind == "stream")

    @property
    def waiting_decisions(self) -> tuple[Waiting, ...]:
        """The decisions in the queue, oldest first."""
        return tuple(item for item in self.waiting if item.kind == "decision")

    def count(self, state: SlotState) -> int:
        """The number of slots in this state."""
        return sum(slot.state == state for slot in self.slots)

    @property
    def load(self) -> float:
        """The share of the time since the start that rounds took, filling included (0 to 1)."""
        return min(1.0, self.totals.busy_s / self.time) if self.time > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The picture as nested dicts and lists, ready for JSON."""
        lists = {"slots": [asdict(slot) for slot in self.slots], "waiting": [asdict(item) for item in self.waiting]}
        return {**asdict(self), **lists}

    def __repr__(self) -> str:
        """A line and a table of facts that do not depend on the machine's speed; speeds are in the HTML form."""
        return f"{self._title()}\n{text_table(_FACTS, map(_facts, self.slots))}"

    def _repr_html_(self) -> str:
        rows = [(*_facts(slot), *_speeds(slot)) for slot in self.slots]
        parts = [html_table((*_FACTS, *_SPEEDS), rows)]
        if self.waiting:
            queue = [(item.kind, str(item.id), str(item.prompt_tokens), f"{item.age:.1f} s") for item in self.waiting]
            parts.append(html_table(("waiting", "id", "prompt", "age"), queue))
        if counts := totals_rows(self.totals):
            parts.append(html_table(("totals", "streams", "decisions"), counts))
        return html_page(self._title(), *parts)

    def _title(self) -> str:
        states = ", ".join(f"{self.count(state)} {state}" for state in get_args(SlotState) if self.count(state))
        queues = f"waiting: {len(self.waiting_streams)} streams, {len(self.waiting_decisions)} decisions"
        mode = f"policy {self.policy}" + (", paused" if self.paused else "")
        return f"Snapshot after round {self.round}: {len(self.slots)} slots ({states}); {queues}; {mode}"


_FACTS = ("slot", "state", "kind", "id", "prompt", "generated", "context", "last end")
_SPEEDS = ("tokens/s", "TTFT")


def _facts(slot: SlotView) -> tuple[str, ...]:
    if slot.state == "free":
        return (str(slot.index), "free", "-", "-", "-", "-", "-", slot.finish_reason or "-")
    prompt = f"{slot.filled}/{slot.prompt_tokens}"
    used = f"{slot.context_fill:.0%}"
    held = (str(slot.kind), str(slot.id), prompt, str(slot.generated), used)
    return (str(slot.index), slot.state, *held, slot.finish_reason or "-")


def _speeds(slot: SlotView) -> tuple[str, ...]:
    return number(slot.tokens_per_s, "{:.1f}"), number(slot.ttft, "{:.3f} s")
