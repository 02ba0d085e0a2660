"""An evaluation's pictures as plotly figures, on a light card of their own so that they read on any page."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go

if TYPE_CHECKING:
    from lanes.evaluation.measures import Evaluation

_BLUE, _GREY = "#1976d2", "#808080"


def reliability(found: "Evaluation") -> go.Figure:
    """Share right against probability, one mark a bin with its Wilson interval; on the diagonal all is honest."""
    bins = [line for line in found.bins if line.rows]
    right = [line.accuracy or 0.0 for line in bins]
    spread = {
        "type": "data",
        "symmetric": False,
        "array": [(line.high or 0.0) - share for line, share in zip(bins, right, strict=True)],
        "arrayminus": [share - (line.low or 0.0) for line, share in zip(bins, right, strict=True)],
    }
    plot = go.Figure()
    plot.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"dash": "dash", "color": _GREY}, hoverinfo="skip", showlegend=False
    )
    plot.add_scatter(
        x=[line.confidence for line in bins],
        y=right,
        error_y=spread,
        mode="markers",
        marker={"color": _BLUE, "size": _areas([line.rows for line in bins])},
        customdata=[line.rows for line in bins],
        hovertemplate="probability %{x:.3f}<br>right %{y:.3f}<br>%{customdata} rows<extra></extra>",
        showlegend=False,
    )
    return _dressed(plot, "Reliability", "probability of the answer (mean of the bin)", "share right")


def risk_coverage(found: "Evaluation") -> go.Figure:
    """Share wrong against share of rows answered, taken by falling probability."""
    plot = go.Figure()
    plot.add_scatter(
        x=found.curve.coverage,
        y=found.curve.risk,
        mode="lines+markers" if len(found.curve.risk) < 30 else "lines",
        line={"color": _BLUE},
        customdata=found.curve.confidence,
        hovertemplate="answered %{x:.3f}<br>wrong %{y:.3f}<br>probability ≥ %{customdata:.3f}<extra></extra>",
    )
    plot.add_hline(y=0.05, line={"dash": "dash", "color": _GREY}, annotation_text="5 % error")
    plot.update_xaxes(range=[0, 1])
    plot.update_yaxes(rangemode="tozero")
    return _dressed(plot, "Risk and coverage", "share of rows answered", "share of those wrong", free=True)


def confusion(found: "Evaluation") -> go.Figure:
    """Rows by gold and choice."""
    names = list(found.keys)
    plot = go.Figure()
    plot.add_heatmap(
        z=found.confusion_counts,
        x=names,
        y=names,
        colorscale="Blues",
        texttemplate="%{z}" if len(names) <= 12 else None,
        hovertemplate="gold %{y}<br>chosen %{x}<br>%{z} rows<extra></extra>",
        colorbar={"title": "rows"},
    )
    _dressed(plot, "Confusion", "chosen", "gold", free=True)
    plot.update_xaxes(type="category")
    return plot.update_yaxes(type="category", autorange="reversed")


def _dressed(plot: go.Figure, title: str, across: str, up: str, free: bool = False) -> go.Figure:
    """Titles and a light card; both axes from 0 to 1 unless they are free."""
    plot.update_layout(template="plotly_white", title=title, width=480, height=440, showlegend=False)
    plot.update_xaxes(title=across)
    plot.update_yaxes(title=up)
    if not free:
        plot.update_xaxes(range=[0, 1])
        plot.update_yaxes(range=[0, 1.02])
    return plot


def _areas(rows: list[int]) -> list[float]:
    """Diameters (px) of marks whose areas grow with the rows."""
    most = max(rows)
    return [5 + 11 * (count / most) ** 0.5 for count in rows]
