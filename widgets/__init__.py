"""Jupyter widgets that show an engine's slots, tokens and decisions as they happen."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lanes_widgets.board import Board
    from lanes_widgets.desk import Desk
    from lanes_widgets.streams import Streams
    from lanes_widgets.timeline import Timeline
    from lanes_widgets.workbench import Workbench

__all__ = ["Board", "Desk", "Streams", "Timeline", "Workbench"]

_HOME = {name: name.lower() for name in __all__}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
