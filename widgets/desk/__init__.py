"""The desk: compose decisions and see them answered, beside whatever streams run."""

from typing import TYPE_CHECKING

from lanes_widgets.desk.panel import DeskPanel
from lanes_widgets.desk.past import Entry, Past
from lanes_widgets.publisher import HZ
from lanes_widgets.shown import View

if TYPE_CHECKING:
    import pandas as pd

    from lanes import Engine

__all__ = ["Desk", "DeskPanel", "Entry", "Past", "WithDesk"]


class WithDesk(View):
    """A widget with a desk in it, whose history can be read, also once it is closed."""

    _past = Past()

    @property
    def past(self) -> Past:
        """The decisions that have ended, as frozen values."""
        return next((panel.past for panel in self._parts if isinstance(panel, DeskPanel)), self._past)

    @property
    def last(self) -> Entry | None:
        """The decision that ended last; `last.result` is what `engine.score` or `lanes.ask` gives."""
        entries = self.past.entries
        return entries[-1] if entries else None

    @property
    def history(self) -> "pd.DataFrame":
        """The decisions that have ended as a pandas frame; `Past.to_frame` describes its columns."""
        return self.past.to_frame()

    def close(self) -> None:
        """See `View.close`; the history stays."""
        self._past = self.past
        super().close()


class Desk(WithDesk):
    """Compose a decision, raw or typed, see its tokens and faults while typing, ask it, compare answers.

    Keys: Ctrl+Enter (or Cmd+Enter) in the composer asks. Closing the desk gives up what it still has on its way; its
    history stays. hz: frames a second at most. Raises InvalidRequest for anything but an engine.
    """

    def __init__(self, engine: "Engine", hz: float = HZ) -> None:
        super().__init__(engine, (DeskPanel,), hz)
