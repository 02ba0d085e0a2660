"""In a notebook: an engine ends when its variable gets another one.

A kernel keeps whatever a cell has shown (`Out`, `_`), so an engine that is made again by a rerun cell would live on,
model and all, although nothing can be seen of it any more.
"""

import weakref
from typing import Any

from lanes.ipython import Hook

_engines: "weakref.WeakSet[Any]" = weakref.WeakSet()
_names: dict[str, "weakref.ref[Any]"] = {}


def watch(engine: Any) -> None:
    """Close this engine once the variable that holds it holds another engine; nothing outside of IPython."""
    if _after_cell.attach() is not None:
        _engines.add(engine)


def _settle(shell: Any, _: Any) -> None:
    """After a cell: find the engines that lost their variable to another engine and have no other one."""
    bound = {name: value for name, value in list(shell.user_ns.items()) if name[:1] != "_" and _is_engine(value)}
    for name, engine in bound.items():
        before = _names.get(name)
        old = before() if before else None
        if old is not None and old is not engine and all(value is not old for value in bound.values()):
            old.close()
    _names.clear()
    _names.update({name: weakref.ref(engine) for name, engine in bound.items()})


def _is_engine(value: Any) -> bool:
    return any(value is engine for engine in _engines)


_after_cell = Hook("post_run_cell", _settle)
