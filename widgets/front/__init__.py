"""The widgets' front end: one ES module a widget, put together from the files here, which are read once.

The text is handed over, not a path: anywidget keeps a widget whose module is a path alive for ever.
"""

from functools import cache
from importlib.resources import files


@cache
def module(*panels: str) -> str:
    """The ES module that shows these panels: what all share, the panels, and the shell around them."""
    return "\n".join(_read(f"{name}.mjs") for name in ("common", *panels, "shell"))


@cache
def style() -> str:
    """The CSS of all widgets."""
    return _read("style.css")


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
