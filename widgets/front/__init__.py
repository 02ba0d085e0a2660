"""The widgets' front end: one ES module a widget, put together from the files here, which are read once.

The text is handed over, not a path: anywidget keeps a widget whose module is a path alive for ever.
"""

from functools import cache
from importlib.resources import files


@cache
def module(*panels: str) -> str:
    """The ES module that shows these panels: what all share, the panels, and the shell around them."""
    own = (name for panel in panels for name in (*_below(panel), f"{panel}.mjs"))
    return "\n".join(map(_read, ("common.mjs", *own, "shell.mjs")))


@cache
def style() -> str:
    """The CSS of all widgets: what they share, then what each has of its own."""
    own = sorted(entry.name for entry in files(__name__).iterdir() if entry.name.endswith(".css"))
    return "\n".join(map(_read, sorted(own, key="style.css".__ne__)))


def _below(panel: str) -> list[str]:
    """The files that a panel's own is built on: those named after it, with a part of their own."""
    return sorted(entry.name for entry in files(__name__).iterdir() if entry.name.startswith(f"{panel}_"))


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
