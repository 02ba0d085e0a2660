"""Rounds as a plotly figure to look into: decisions from submit to answer, slots to scale, the gaps of every stream.

Plotly is loaded here and nowhere else in the record. Its figures need scripts: `timeline` is the still form beside it.
"""

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from lanes.record.drawing import COLOURS, WORDS, summary
from lanes.record.gaps import Gap, gaps_by_round
from lanes.record.lives import lives
from lanes.record.shapes import RequestId, Round
from lanes.record.source import Run
from lanes.record.stays import Work, cells, stays
from lanes.record.tolls import quiet_gap

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

WIDTH, LANE, STRIP, HEAD, FOOT = 960, 28, 46, 40, 70
"""Pixels: the figure's width; the height of a slot or a row of decisions, of a strip of gaps; above and below them."""
BAR = 0.6
"""Of a lane that its bars take."""
FAINT, EVICTED = "#808080", "#c62828"
Ending = tuple[Round, Gap]
"""A gap and the round that it ends in."""


def figure(rounds: Sequence[Round], slots: int, title: str = "") -> "Figure":
    """One run, its seconds counted from its first round on. Raises ModuleNotFoundError where plotly is missing."""
    return stacked([Run(tuple(rounds), slots)], [title or summary(rounds)])


def stacked(runs: Sequence[Run], titles: Sequence[str]) -> "Figure":
    """Runs under each other on one axis of time, each from its own first round on."""
    page = _Page(_plotly().Figure())
    for run, title in zip(runs, titles, strict=True):
        page.add(run, title)
    return page.done()


class _Page:
    """A figure that grows downwards; heights are pixels until it is done."""

    def __init__(self, plot: "Figure") -> None:
        self.plot = plot
        self.used = 0
        self.places: list[tuple[int, int]] = []
        """From where to where each axis goes."""
        self.heads: list[tuple[int, str]] = []
        self.legend: set[str] = set()
        self.length = 0.0

    def add(self, run: Run, title: str) -> None:
        """One more run: its decisions and slots, and below them a strip of gaps for each slot that had streams."""
        zero = run.rounds[0].start if run.rounds else 0.0
        self.length = max(self.length, run.rounds[-1].end - zero if run.rounds else 0.0)
        self.heads.append((self.used + HEAD // 2, title))
        self.used += HEAD
        own = lives(run.rounds, "decision")
        up = 1 + max((life.row for life in own), default=-1)
        axis = self._axis(LANE * (up + run.slots))
        names = [*["decisions"][:up], *[""] * (up - 1), *(f"slot {slot}" for slot in range(run.slots))]
        axis.update(range=[len(names) - 0.5, -0.5], tickvals=list(range(len(names))), ticktext=names, showgrid=False)
        self._decisions(run, zero)
        self._work(run, zero, up)
        found = list(gaps_by_round(run.rounds))
        for slot, endings in _by_slot(found):
            self._gaps(slot, endings, quiet_gap(found), zero)

    def done(self) -> "Figure":
        """The figure, its axes in their places."""
        inside = max(1, self.used)
        for number, (top, low) in enumerate(self.places, 1):
            domain = [1 - low / inside, 1 - top / inside]
            self.plot.layout[f"yaxis{number}"].update(domain=domain, zeroline=False)
        for middle, title in self.heads:
            self.plot.add_annotation(
                text=f"<b>{escape(title)}</b>", xref="paper", yref="paper", x=0, y=1 - middle / inside,
                xanchor="left", yanchor="middle", showarrow=False,
            )  # fmt: skip
        last = f"y{len(self.places)}" if len(self.places) > 1 else "y"
        across = {"title": "seconds since the first round", "range": [0, self.length or 1.0]}
        self.plot.update_xaxes(**across, anchor=last, zeroline=False)
        return self.plot.update_layout(
            template="plotly_white", width=WIDTH, height=inside + FOOT, barmode="overlay", hovermode="closest",
            margin={"l": 80, "r": 20, "t": 0, "b": FOOT},
            legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        )  # fmt: skip

    def _axis(self, height: int) -> Any:
        """The next axis downwards, of so many pixels."""
        self.places.append((self.used, self.used + height))
        self.used += height
        name = f"yaxis{len(self.places)}"
        self.plot.update_layout({name: {}})
        return self.plot.layout[name]

    def _bars(self, name: str, colour: str, **values: Any) -> None:
        """Boxes on the lowest axis; its kind is in the legend once."""
        self.plot.add_bar(
            name=name, legendgroup=name, showlegend=name not in self.legend, marker={"color": colour, "line_width": 0},
            yaxis=f"y{len(self.places)}" if len(self.places) > 1 else "y", **values,
        )  # fmt: skip
        self.legend.add(name)

    def _decisions(self, run: Run, zero: float) -> None:
        """Each decision from its submit to its end, or to the last round."""
        own = lives(run.rounds, "decision")
        if not own:
            return
        until = run.rounds[-1].end
        self._bars(
            "decision, from submit to end", COLOURS["branch"], orientation="h", width=BAR / 2,
            base=[_at(life.start, zero) for life in own], y=[life.row for life in own],
            x=[_at(until if life.end is None else life.end, life.start) for life in own],
            customdata=[[life.id, life.reason or "not ended"] for life in own],
            hovertemplate="decision %{customdata[0]}<br>%{x:.4f} s, %{customdata[1]}<extra></extra>",
        )  # fmt: skip

    def _work(self, run: Run, zero: float, up: int) -> None:
        """What each slot did in each round, one trace a kind of work; evictions as marks."""
        boxes: dict[Work, list[tuple[float, float, float, float, int, str]]] = defaultdict(list)
        for done in run.rounds:
            holders = {seat.slot: f"{seat.kind} {seat.id}" for seat in done.seats}
            for cell in cells(done):
                height = BAR / len(cell.works)
                for place, work in enumerate(cell.works):
                    y = up + cell.slot - BAR / 2 + height * (place + 0.5)
                    box = (_at(done.start, zero), _at(done.end, done.start), round(y, 3), height, done.index)
                    boxes[work].append((*box, holders.get(cell.slot, "request")))
        for work, words in WORDS.items():
            if not boxes[work]:
                continue
            starts, lengths, ys, heights, numbers, names = zip(*boxes[work], strict=True)
            self._bars(
                words, COLOURS[work], orientation="h", base=starts, x=lengths, y=ys, width=heights,
                customdata=list(zip(numbers, names, strict=True)),
                hovertemplate="round %{customdata[0]}<br>%{customdata[1]}<br>%{x:.4f} s<extra>" + work + "</extra>",
            )  # fmt: skip
        out = [stay for stay in stays(run.rounds) if stay.ending == "evicted"]
        if out:
            self.plot.add_scatter(
                name="evicted", x=[_at(stay.end, zero) for stay in out], y=[up + stay.slot for stay in out],
                mode="markers", marker={"symbol": "x", "color": EVICTED, "size": 9},
                showlegend="evicted" not in self.legend,
                legendgroup="evicted", yaxis=f"y{len(self.places)}" if len(self.places) > 1 else "y",
                customdata=[stay.id for stay in out], hovertemplate="decision %{customdata} was evicted<extra></extra>",
            )  # fmt: skip
            self.legend.add("evicted")

    def _gaps(self, slot: int, endings: Sequence[Ending], usual: float | None, zero: float) -> None:
        """The gaps of one slot's streams, each as wide as it lasted and as high; the quiet one as a line."""
        axis = self._axis(STRIP)
        worst = round(max(gap.seconds for _, gap in endings) * 1e3, 1)
        axis.update(
            range=[0, worst * 1.05], tickvals=[worst], title={"text": f"gaps {slot}<br>ms", "font": {"size": 10}}
        )
        self.places[-1] = (self.places[-1][0] + 8, self.places[-1][1])
        for name, colour, beside in (("gap", COLOURS["decode"], False), ("gap beside a piece", COLOURS["piece"], True)):
            own = [(done, gap) for done, gap in endings if (done.piece is not None) is beside]
            if own:
                self._bars(
                    name, colour, x=[_at(done.end - gap.seconds / 2, zero) for done, gap in own],
                    y=[round(gap.seconds * 1e3, 3) for _, gap in own], width=[round(gap.seconds, 6) for _, gap in own],
                    customdata=[[gap.id, done.index] for done, gap in own],
                    hovertemplate="stream %{customdata[0]}<br>%{y:.1f} ms to round %{customdata[1]}<extra></extra>",
                )  # fmt: skip
        if usual is not None:
            yref = f"y{len(self.places)}"
            self.plot.add_hline(y=usual * 1e3, yref=yref, line={"color": FAINT, "width": 1, "dash": "dot"})


def _by_slot(found: Sequence[tuple[Round, dict[RequestId, Gap]]]) -> list[tuple[int, list[Ending]]]:
    """The gaps of the streams in each slot that had one: a live stream never changes its slot."""
    strips: dict[int, list[Ending]] = defaultdict(list)
    for done, own in found:
        for seat in done.seats:
            if gap := own.get(seat.id):
                strips[seat.slot].append((done, gap))
    return sorted(strips.items())


def _at(seconds: float, zero: float) -> float:
    """Microseconds are enough, and short."""
    return round(seconds - zero, 6)


def _plotly() -> Any:
    try:
        import plotly.graph_objects as go
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "plotly":
            raise
        remedy = "run `pip install plotly`, or take the still picture: engine.rounds.timeline(), Comparison.svg()"
        raise ModuleNotFoundError(
            f"this figure needs plotly, which is not installed: {remedy}", name="plotly"
        ) from None
    return go
