"""In a notebook: a cell that is run again takes away the widgets that it made before.

ipywidgets keeps every widget until it is closed, and the widget its engine: model, thread and all.
"""

import weakref
from typing import Any

from lanes.ipython import Hook

_made: dict[str, "weakref.WeakSet[Any]"] = {}
_running: list[str] = []
"""The cell that runs, or ran last; empty until the first widget is made."""


def own(view: Any) -> None:
    """The cell that runs now owns this widget; nothing outside of IPython."""
    shell = _before_cell.attach()
    if shell is None:
        return
    if not _running:
        _running.append(_first(shell))
    _made.setdefault(_running[0], weakref.WeakSet()).add(view)


def _begin(_: Any, cell: Any) -> None:
    """Before a cell: whatever it made when it ran last goes."""
    name = cell.cell_id or cell.raw_cell
    _running[:] = [name]
    for view in list(_made.pop(name, ())):
        view.close()


def _first(shell: Any) -> str:
    """The cell that runs while the first widget is made, before any hook of ours has seen one begin."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell_id = parent.get("metadata", {}).get("cellId") if parent else None
    code = parent.get("content", {}).get("code", "") if parent else ""
    return cell_id or code


_before_cell = Hook("pre_run_cell", _begin)
