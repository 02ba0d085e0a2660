"""The workbench: slots, streams, decisions and rounds of one engine in one widget, written in one message a frame."""

from typing import TYPE_CHECKING

from lanes_widgets.board import BoardPanel
from lanes_widgets.desk import DeskPanel, WithDesk
from lanes_widgets.publisher import HZ
from lanes_widgets.streams import StreamsPanel
from lanes_widgets.timeline import TimelinePanel

if TYPE_CHECKING:
    from lanes import Engine


class Workbench(WithDesk):
    """All of an engine's widgets together: the board, the timeline, the streams and the desk.

    hz: frames a second at most. Raises InvalidRequest for anything but an engine.
    """

    def __init__(self, engine: "Engine", hz: float = HZ) -> None:
        super().__init__(engine, (BoardPanel, TimelinePanel, StreamsPanel, DeskPanel), hz)
