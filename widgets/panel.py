"""What every part of a widget is: a picture of the engine as plain values, and the commands that people give it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lanes.errors import InvalidRequest
from lanes_widgets.acts import Command
from lanes_widgets.tape import Tape

if TYPE_CHECKING:
    from lanes import Engine


@dataclass(frozen=True, slots=True, repr=False)
class Record:
    """What a widget showed at one moment, as text and as HTML without scripts: it can be saved, printed and reopened.

    A saved notebook cannot show a live widget again, so end a cell of its own with one.
    """

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


class Panel:
    """One part of a widget. The first `picture` is its maker's; all later ones and the commands are the publisher's."""

    name: ClassVar[str]
    """Of its picture in the frame, and of its file in the front end."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.tapes: dict[str, Tape] = {}
        """Lists that only grow, by name: `picture` cuts from them what front ends have not seen."""

    @property
    def commands(self) -> Mapping[str, Command]:
        """What a person may do, by name, each name in one panel only; arguments are checked by their annotations."""
        return {}

    @property
    def open(self) -> bool:
        """Whether something that it shows is still to end; the publisher's."""
        return False

    def picture(self) -> dict[str, Any]:
        """What is to be shown now, as values for JSON; equal pictures are not sent twice."""
        raise NotImplementedError

    def record(self) -> Record:
        """What is to be shown now, to be kept; on any thread."""
        raise NotImplementedError

    def close(self) -> None:
        """The widget is taken away: give up what is still on its way for it; on any thread."""


MakePanel = Callable[["Engine"], Panel]


def made(engine: "Engine", panels: Sequence[MakePanel]) -> list[Panel]:
    """The panels of a widget. Raises InvalidRequest for anything but an engine."""
    if not hasattr(engine, "snapshot"):
        raise InvalidRequest(f"a widget shows an engine, not {type(engine).__name__}: pass lanes.Engine(...)")
    return [make(engine) for make in panels]


def joined(panels: Iterable[Panel]) -> Record:
    """What panels show now, one below another."""
    parts = [panel.record() for panel in panels]
    return Record("\n\n".join(part.text for part in parts), "".join(part.html for part in parts))
