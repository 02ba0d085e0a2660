"""The IPython around this code, where there is one, and its hooks."""

import sys
import weakref
from collections.abc import Callable
from typing import Any


class Hook:
    """A function for one of IPython's events; it gets the shell, and what IPython says of the event."""

    def __init__(self, event: str, call: Callable[[Any, Any], None]) -> None:
        self._event = event
        self._call = call
        self._shells: weakref.WeakSet[Any] = weakref.WeakSet()

    def attach(self) -> Any:
        """Register with the shell that runs this code, once; that shell, or None outside of IPython."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython else None
        if shell is not None and shell not in self._shells:
            self._shells.add(shell)
            shell.events.register(self._event, lambda told: self._call(shell, told))
        return shell
