"""In a notebook: a cell that is run again takes away the widgets that it made before.

ipywidgets keeps every widget until it is closed, and the widget its engine: model, thread and all.
"""

import sys
import weakref
from typing import Any

_made: dict[str, "weakref.WeakSet[Any]"] = {}
_shells: "weakref.WeakSet[Any]" = weakref.WeakSet()
_running: list[str] = []


def own(view: Any) -> None:
    """The cell that runs now owns this widget; nothing outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    if shell not in _shells:
        _shells.add(shell)
        shell.events.register("pre_run_cell", _begin)
        _running[:] = [_name(shell)]
    for name in _running:
        _made.setdefault(name, weakref.WeakSet()).add(view)


def _begin(cell: Any) -> None:
    """Before a cell: whatever it made when it ran last goes."""
    name = cell.cell_id or cell.raw_cell
    _running[:] = [name]
    for view in list(_made.pop(name, ())):
        view.close()


def _name(shell: Any) -> str:
    """The cell that runs while the first widget is made, before any hook of ours has seen one begin."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell_id = parent.get("metadata", {}).get("cellId") if parent else None
    code = parent.get("content", {}).get("code", "") if parent else ""
    return cell_id or code
