"""An evaluation in words: a table of text, and of HTML without scripts, in light and dark."""

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from lanes.evaluation import svg
from lanes.evaluation.bootstrap import Figure
from lanes.record.show import html_page, html_table, text_table

if TYPE_CHECKING:
    from lanes.evaluation.measures import Evaluation

NAMES = {
    "accuracy": "accuracy",
    "brier": "Brier score (0 to 2)",
    "nll": "NLL (nats)",
    "kl": "KL to gold (nats)",
    "ece": "ECE",
    "ece_floor": "ECE if calibrated",
    "aurc": "AURC",
    "coverage_at_5": "coverage at 5 % error",
    "wrong_above_80": "wrong above 0.8",
    "wrong_above_90": "wrong above 0.9",
    "rps": "RPS (0 to 1)",
    "mae": "MAE (levels)",
    "flip_rate": "rows with order flips",
    "flips_per_order": "flips per order",
    "abstained": "abstained",
    "seconds_p50": "p50 (s)",
    "seconds_p95": "p95 (s)",
}
"""What each figure is called, with its unit; those without one are shares or pure numbers."""

_FAINT = "color:var(--jp-ui-font-color2, #808080);font-size:smaller"


def text(found: "Evaluation") -> str:
    """The figures that are there, one a line, with their intervals."""
    return f"Evaluation: {title(found)}\n{text_table(_head(found), _lines(found))}"


def html(found: "Evaluation") -> str:
    """The same table, and the three pictures beside it."""
    pictures = "".join(f'<div style="margin:4px">{draw(found)}</div>' for draw in svg.KINDS.values())
    table = f'<div style="margin:4px">{html_table(_head(found), _lines(found))}</div>'
    beside = f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start">{table}{pictures}</div>'
    return html_page(title(found), beside, f'<div style="{_FAINT}">{escape(foot(found))}</div>')


def html_lines(*lines: str) -> str:
    """Lines of text as HTML, escaped."""
    return "".join(f"<div>{escape(line)}</div>" for line in lines)


def title(found: "Evaluation") -> str:
    """What was evaluated, and on how much."""
    name = found.type if found.question is None else f"{found.question} ({found.type})"
    heat = "own temperatures" if found.temperature is None else f"temperature {found.temperature:g}"
    left = [(found.unlabelled, "without gold"), (found.failed, "failed")]
    out = "".join(f", {count} {why}" for count, why in left if count)
    return f"{name}, {len(found.keys)} keys, {found.rows} rows{out}, {heat}"


def foot(found: "Evaluation") -> str:
    """What the intervals are."""
    return (
        f"Intervals: bootstrap over rows, {100 * found.level:g} %; for the ECE if calibrated, where it would lie. "
        "Bars on the reliability picture: Wilson intervals."
    )


def _head(found: "Evaluation") -> list[str]:
    return ["figure", "value", f"{100 * found.level:g} % interval"]


def _lines(found: "Evaluation") -> Iterator[tuple[str, str, str]]:
    for name, figure in found.figures.items():
        if figure is not None:
            yield NAMES[name], f"{figure.value:.4f}", span(figure)


def span(figure: Figure) -> str:
    """An interval in words; a dash where there is none."""
    return "-" if figure.low is None else f"{figure.low:.4f} to {figure.high:.4f}"
