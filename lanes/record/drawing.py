"""Rounds as one SVG element: colours follow JupyterLab's theme where it is there, else the reader's light or dark.

No scripts, nothing from outside. Everything is drawn on a card of its own, so it can be read on any page.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import accumulate, groupby, pairwise
from typing import get_args

from lanes.record.axis import CUT, Axis, axis
from lanes.record.shapes import Kind, Round
from lanes.record.show import many
from lanes.record.stays import Stay, Work, cells, stays, waiters

WIDTH, LEFT, RIGHT = 960, 58, 18
TOP, FOOT = 66, 34
LABEL, BAR, LANE, FREE_LANE = 13, 14, 34, 20
"""Heights in a lane: its names, its bar, the whole; and the whole of a lane that nobody held."""
FINE = 2.0
"""Rounds narrower than this many pixels are drawn without a gap between them."""

WORDS: dict[Work, str] = {
    "decode": "decode: a stream's next token",
    "draft": "draft: proposed tokens",
    "piece": "piece: a stretch of a prompt",
    "tail": "tail: the end of a prompt",
    "branch": "branch of a decision",
    "held": "held, no work",
}
COLOURS: dict[Work, str] = {
    "decode": "#2a9d7f",
    "draft": "#8fcfbd",
    "piece": "#e0701a",
    "tail": "#f0b429",
    "branch": "#8957d6",
    "held": "#9aa4af",
}
STYLE = """
.lanes-timeline{--card:var(--jp-layout-color0,#fff);--ink:var(--jp-ui-font-color1,#1f2328);
--faint:var(--jp-ui-font-color2,#59636e);--track:var(--jp-layout-color2,#eff2f5);--rule:var(--jp-border-color2,#d1d9e0);
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
@media (prefers-color-scheme:dark){.lanes-timeline{--card:var(--jp-layout-color0,#0d1117);
--ink:var(--jp-ui-font-color1,#e6edf3);--faint:var(--jp-ui-font-color2,#9198a1);--track:var(--jp-layout-color2,#1c2128);
--rule:var(--jp-border-color2,#3d444d)}}
.lanes-timeline text{fill:var(--ink)}.lanes-timeline .faint{fill:var(--faint)}.lanes-timeline .small{font-size:11px}
.lanes-timeline .title{font-weight:600;font-size:14px}.lanes-timeline .strong{font-weight:600}
.lanes-timeline .card{fill:var(--card);stroke:var(--rule)}.lanes-timeline .track{fill:var(--track)}
.lanes-timeline .rule{stroke:var(--rule)}
.lanes-timeline .decision{fill:#8957d6}.lanes-timeline .stream{fill:#9aa4af}
""" + "".join(f".lanes-timeline .{work}{{fill:{colour}}}" for work, colour in COLOURS.items())


def svg(rounds: Sequence[Round], slots: int) -> str:
    """The rounds as one SVG element, 960 units wide, with a title and a description in words."""
    return element(summary(rounds), *body(rounds, slots, axis(rounds, LEFT, WIDTH - RIGHT) if rounds else None))


def element(label: str, parts: Sequence[str], height: float) -> str:
    """The SVG element around what `body` gave."""
    head = f'xmlns="http://www.w3.org/2000/svg" class="lanes-timeline" role="img" aria-label="{escape(label)}"'
    size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" style="max-width:100%;height:auto"'
    return f"<svg {head} {size}><style>{STYLE}</style>{''.join(parts)}</svg>"


def body(rounds: Sequence[Round], slots: int, time: Axis | None, title: str = "") -> tuple[list[str], float]:
    """What is drawn of the rounds on an axis (None where there are none), and its height; a title other than usual."""
    held = stays(rounds)
    waiting = [waiters(done) for done in rounds]
    heights = [LANE if any(stay.slot == slot for stay in held) else FREE_LANE for slot in range(slots)]
    first = TOP + (LANE if any(map(any, waiting)) else 0)
    *tops, bottom = accumulate(heights, initial=first)
    bars = [top + height - LANE + LABEL for top, height in zip(tops, heights, strict=True)]
    parts = [*_frame(rounds, held, bottom + FOOT, title or summary(rounds)), *_tracks(bars)]
    if time:
        parts += [*_grid(time, bottom), *_bars(rounds, time, bars), *_names(held, time, bars)]
        parts += _queue(rounds, waiting, time) if any(map(any, waiting)) else []
    return parts, bottom + FOOT


def summary(rounds: Sequence[Round]) -> str:
    """The rounds in numbers: what was run, drawn, filled and answered."""
    answered = sum(end.reason == "answered" for done in rounds for end in done.finished)
    counts = (
        (sum(done.computed for done in rounds), "round", ""),
        (sum(done.tokens for done in rounds), "token", " drawn"),
        (sum(done.filled for done in rounds), "prompt token", " filled"),
        (answered, "decision", " answered"),
    )
    return " · ".join(f"{many(count, noun)}{rest}" for count, noun, rest in counts)


def _words(stay: Stay) -> list[str]:
    """What there is to say of a stay, the most important first."""
    words = [f"{stay.kind} {stay.id}"]
    if stay.ending == "answered" and stay.seconds is not None:
        words.append(f"{stay.seconds:.2f} s")
    elif stay.ending not in (None, "answered", "stop", "length"):
        words.append(stay.ending)
    return words


def _frame(rounds: Sequence[Round], held: Sequence[Stay], height: int, title: str) -> Iterator[str]:
    """Title, description for those who do not see the picture, card and legend."""
    story = " ".join(f"Slot {stay.slot}: {', '.join(_words(stay))}." for stay in held) or "No slot was held."
    yield f"<title>{escape(title)}</title><desc>{escape(story)}</desc>"
    yield f'<rect class="card" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
    yield f'<text class="title" x="16" y="26">{escape(title)}</text>'
    used = {work for done in rounds for cell in cells(done) for work in cell.works}
    legend = (f'<tspan class="{work}">\u25a0</tspan> {words}' for work, words in WORDS.items() if work in used)
    yield f'<text class="faint" x="16" y="48">{"&#160;&#160; ".join(legend)}</text>'


def _tracks(bars: Sequence[int]) -> Iterator[str]:
    for slot, y in enumerate(bars):
        yield f'<text class="faint" x="16" y="{y + 11}">slot {slot}</text>'
        yield f'<rect class="track" x="{LEFT}" y="{y}" width="{WIDTH - RIGHT - LEFT}" height="{BAR}" rx="2"/>'


def _grid(time: Axis, bottom: int) -> Iterator[str]:
    for x, words in time.ticks():
        yield f'<path class="rule" d="M{x:.1f} {bottom}v5"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{bottom + 19}" text-anchor="middle">{words}</text>'
    for x, width, seconds in time.cuts():
        yield f'<path class="rule" stroke-dasharray="2 3" d="M{x:.1f} {TOP}V{bottom}"/>'
        if width >= CUT:
            yield f'<text class="faint small" x="{x:.1f}" y="{TOP - 4}" text-anchor="middle">{seconds:.1f} s</text>'


def _bars(rounds: Sequence[Round], time: Axis, bars: Sequence[int]) -> Iterator[str]:
    """One path a kind of work: a rectangle for each slot and round, or for a run of rounds too narrow to tell apart."""
    paths: dict[Work, list[str]] = defaultdict(list)
    every = sorted((cell for done in rounds for cell in cells(done)), key=lambda cell: (cell.slot, cell.start))
    for (slot, works), run in groupby(every, key=lambda cell: (cell.slot, cell.works)):
        height = BAR / len(works)
        for left, right in _columns((time.x(cell.start), time.x(cell.end)) for cell in run):
            for place, work in enumerate(works):
                paths[work].append(f"M{left:.1f} {bars[slot] + place * height:g}H{right:.1f}v{height:g}H{left:.1f}z")
    for work, shapes in paths.items():
        yield f'<path class="{work}" d="{"".join(shapes)}"/>'


def _columns(rounds: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Where each round is drawn, with a gap after it; those below FINE become one with the neighbours they touch."""
    runs: list[tuple[float, float]] = []
    for left, right in rounds:
        if runs and left - runs[-1][1] < 1 and right - left < FINE:
            runs[-1] = (runs[-1][0], right)
        else:
            runs.append((left, right))
    return ((left, right - min(1.0, (right - left) / 4)) for left, right in runs)


def _names(held: Sequence[Stay], time: Axis, bars: Sequence[int]) -> Iterator[str]:
    """Over each stay its request's name, and more where there is room before the next name; before it, its wait."""
    for slot, own in groupby(sorted(held, key=lambda stay: stay.slot), key=lambda stay: stay.slot):
        run, y = list(own), bars[slot]
        starts = [*(time.x(stay.start) for stay in run), float(WIDTH - RIGHT)]
        free = float(LEFT)
        for stay, (left, limit) in zip(run, pairwise(starts), strict=True):
            words, right = _words(stay), time.x(stay.end)
            if stay.asked is not None and left - (asked := max(free, time.x(stay.asked))) > 1:
                yield f'<path class="{stay.kind}" d="M{asked:.1f} {y + BAR / 2 - 1:g}H{left:.1f}v2H{asked:.1f}z"/>'
            if stay.kind == "decision":
                yield f'<path class="decision" d="M{left:.1f} {y + BAR + 1}H{right - 1:.1f}v2H{left:.1f}z"/>'
            texts = (" · ".join(words[:count]) for count in range(len(words), 0, -1))
            if name := next((text for text in texts if 6.2 * len(text) < limit - left), None):
                strong = " strong" if stay.kind == "decision" else ""
                yield f'<text class="small{strong}" x="{left:.1f}" y="{y - 3}">{escape(name)}</text>'
            free = right


def _queue(rounds: Sequence[Round], waiting: Sequence[tuple[int, int]], time: Axis) -> Iterator[str]:
    """A lane for those who waited through whole rounds: streams at the bottom, decisions on them."""
    unit, floor = (LANE - 8) / max(map(sum, waiting)), TOP + LANE - 6
    yield f'<text class="faint" x="16" y="{floor - 3}">queue</text>'
    for counts, run in groupby(zip(rounds, waiting, strict=True), key=lambda pair: pair[1]):
        for left, right in _columns((time.x(done.start), time.x(done.end)) for done, _ in run):
            y = float(floor)
            for kind, count in zip(get_args(Kind), counts, strict=True):
                if count:
                    y -= unit * count
                    yield f'<path class="{kind}" d="M{left:.1f} {y:.1f}H{right:.1f}v{unit * count:.1f}H{left:.1f}z"/>'
