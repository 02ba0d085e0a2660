"""Streams as text and as HTML without scripts: their words, and in the HTML every token with what is known of it."""

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from lanes.decisions.bars import FAINT, TEXT, remark
from lanes.record.show import number
from lanes_widgets.gained import Gain, Gains, speed
from lanes_widgets.panel import Record

if TYPE_CHECKING:
    from lanes.engine.recent import StreamView

MARKED = 300
"""Tokens of a stream that are marked; what follows is plain text, so that a saved notebook stays small."""
_TINT = ";background:rgba(128, 128, 128, 0.18)"


def record(streams: "Sequence[tuple[StreamView, Gains | None]]") -> Record:
    """The streams, oldest first. The text says nothing that differs between two runs of the same work."""
    if not streams:
        return Record("No streams yet.", f'<p style="color:{TEXT}">No streams yet.</p>')
    text = "\n\n".join(f"{_title(view)}\n{view.text}" for view, _ in streams)
    return Record(text, "".join(_html(view, gains) for view, gains in streams))


def _title(view: "StreamView") -> str:
    return f"Stream {view.id}, {view.state}: {view.prompt_tokens} prompt tokens, {len(view.tokens)} tokens"


def _html(view: "StreamView", gains: Gains | None) -> str:
    count, ttft = len(view.tokens), view.timing.ttft if view.timing else None
    pace = number(speed(view, gains), "{:.1f}")
    figures = f"{pace} tokens/s · TTFT {number(ttft, '{:.3f} s')} · seed {view.seed}"
    rounds = gains.tokens if gains else []
    marked = "".join(_token(view, at, rounds[at] if at < len(rounds) else None) for at in range(min(count, MARKED)))
    rest = "".join(view.pieces[MARKED:]) + view.rest
    cut = remark(f"The first {MARKED} of {count} tokens are marked.", FAINT) if count > MARKED else ""
    return (
        f'<div style="color:{TEXT};margin:0 0 12px"><b>{escape(_title(view))}</b>{remark(figures, FAINT)}'
        f"{remark(view.prompt, FAINT)}"
        f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{marked}{escape(rest)}</div>{cut}'
        f"{remark(view.error, FAINT) if view.error else ''}</div>"
    )


def _token(view: "StreamView", at: int, gain: Gain | None) -> str:
    """One token; every second one has a tint, so that its bounds can be seen."""
    piece = view.pieces[at]
    facts = [f"token {view.tokens[at]}", repr(piece) if piece else "adds no text"]
    if at < len(view.logprobs):
        facts.append(f"{100 * math.exp(view.logprobs[at].logprob):.2f} %")
    if gain:
        facts.append(f"round {gain.round}" + (", a draft" if gain.draft else ""))
    tint = _TINT if at % 2 else ""
    return f'<span title="{escape(" · ".join(facts))}" style="white-space:pre-wrap{tint}">{escape(piece)}</span>'
