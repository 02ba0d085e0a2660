"""Where ipywidgets is not installed: the same call shows the same panels as they are now, and nothing moves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanes import checks
from lanes.errors import InvalidRequest
from lanes_widgets.panel import MakePanel, Panel, Record, joined, made
from lanes_widgets.publisher import HZ

if TYPE_CHECKING:
    from lanes import Engine

REMEDY = "This picture stands still: install ipywidgets and anywidget to see it live."


class Still:
    """Stands for `View`: shown, it is what its panels have to show at that moment, as text and as plain HTML."""

    _parts: Sequence[Panel] = ()

    def __init__(self, engine: "Engine", panels: Sequence[MakePanel], hz: float = HZ) -> None:
        checks.positive("hz", hz)
        self._parts = made(engine, panels)

    async def act(self, do: str, **given: Any) -> None:
        """Raises InvalidRequest: nobody is there to do it."""
        raise InvalidRequest(f"{do} was refused: {REMEDY}")

    def record(self) -> Record:
        """What there is to see now; see `View.record`."""
        return joined(self._parts)

    def close(self) -> None:
        """Give up the panels; closing twice is fine."""
        for part in self._parts:
            part.close()
        self._parts = ()

    def __repr__(self) -> str:
        return f"{self.record().text}\n{REMEDY}" if self._parts else f"{type(self).__name__}(closed)"

    def _repr_html_(self) -> str:
        return f"{self.record().html}<p><i>{REMEDY}</i></p>" if self._parts else f"<p>{self!r}</p>"
