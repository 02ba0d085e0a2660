"""Where ipywidgets is not installed: the same call shows the engine as a table, and nothing moves."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanes import Engine

_REMEDY = "This picture stands still: install ipywidgets and anywidget to see it live."


class Still:
    """Stands for every widget: what the engine looked like when the cell ended."""

    def __init__(self, engine: "Engine", **_: Any) -> None:
        self._picture = engine.snapshot()

    def record(self) -> "Still":
        """Itself: it is a record already."""
        return self

    def close(self) -> None:
        """Nothing is open."""

    def __repr__(self) -> str:
        return f"{self._picture!r}\n{_REMEDY}"

    def _repr_html_(self) -> str:
        return f"{self._picture._repr_html_()}<p><i>{_REMEDY}</i></p>"
