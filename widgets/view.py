"""The widget around panels: traits that the publisher alone writes, and messages that come back."""

import asyncio
import secrets
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from lanes import checks
from lanes.errors import EngineClosed, InvalidRequest
from lanes_widgets import cells, front, publisher
from lanes_widgets.acts import Acts, Command
from lanes_widgets.panel import MakePanel, Panel, Record, joined, made

if TYPE_CHECKING:
    from lanes import Engine

LOOK_S = 0.02
"""Between two looks at what became of an act."""
SHARE = 0.01
"""Of the time, what drawing frames may take: while a frame takes long there are fewer of them."""


class View(anywidget.AnyWidget):
    """A live widget over one engine, made of panels. It is shown by being the last value of a cell.

    Closing it, closing its engine or running its cell again ends it; its last picture stays. `record()` is the same as
    text and plain HTML, to be kept in a saved notebook.
    """

    frame = traitlets.Dict().tag(sync=True)
    """{"seq", "closed", "trouble", "acts"} and each panel's picture by its name."""
    panels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    _publisher: publisher.Publisher | None = None
    _parts: Sequence[Panel] = ()

    def __init__(self, engine: "Engine", panels: Sequence[MakePanel], hz: float = publisher.HZ) -> None:
        self._period = 1 / checks.positive("hz", hz)
        self._parts = made(engine, panels)
        self._acts = Acts({"again": self._again, **self._commands()})
        self._writing = threading.RLock()
        self._seq = 0
        self.due = 0.0
        names = [panel.name for panel in self._parts]
        self._esm, self._css = front.module(*names), front.style()
        super().__init__(frame=self._next(), panels=names)
        self.on_msg(self._take)
        self._publisher = publisher.join(self, engine)
        cells.own(self)

    # --- what comes back: any thread ----------------------------------------------------------------------------

    def _take(self, _: Any, message: Any, buffers: Any) -> None:
        self._acts.put(message)
        if writer := self._publisher:
            writer.ring()

    async def act(self, do: str, **given: Any) -> None:
        """Do what a person does in it, by the command's name; returns once that is done.

        Raises InvalidRequest with the reason where it is refused, EngineClosed where nobody is left to do it.
        """
        id = secrets.token_hex(8)
        self._take(self, {"id": id, "do": do, "with": given}, [])
        while True:
            told = next((act for act in self.frame["acts"] if act["id"] == id), None)
            if told and told["state"] == "refused":
                raise InvalidRequest(f"{do} was refused: {told['why']}")
            if told and told["state"] == "done":
                return
            if self._publisher is None:
                raise EngineClosed(f"{do} was not done: the widget or its engine is closed")
            await asyncio.sleep(LOOK_S)

    def _commands(self) -> dict[str, Command]:
        pairs = [pair for panel in self._parts for pair in panel.commands.items()]
        commands = dict(pairs)
        assert len(commands) == len(pairs), "two panels of one widget have a command of one name"
        return commands

    def _again(self, panel: str, tape: str, have: int) -> None:
        """A front end has only so many items of a panel's tape: it is new, or lost a message."""
        for part in self._parts:
            if part.name == panel and tape in part.tapes:
                part.tapes[tape].rewind(have)

    # --- what is shown: the publisher's thread ------------------------------------------------------------------

    def publish(self, now: float) -> None:
        """Do what came back, and write a frame where it is time and there is something new."""
        if now < self.due and not self._acts.waiting:
            return
        self.due = now + self._period
        self._acts.work()  # before the lock is taken: a command may take as long as a round
        begun = time.thread_time()
        with self._writing:
            if self.comm is not None:
                self._write(self._next())
        self.due = max(self.due, now + (time.thread_time() - begun) / SHARE)

    def _write(self, frame: dict[str, Any]) -> None:
        if frame != self.frame:
            self._seq += 1
            self.frame = {**frame, "seq": self._seq}

    def _next(self) -> dict[str, Any]:
        """The frame to be shown now; what cannot be drawn says so and leaves the rest alone."""
        frame: dict[str, Any] = {"seq": self._seq, "trouble": "", "closed": self._parts[0].engine.closed}
        for panel in self._parts:
            try:
                frame[panel.name] = panel.picture()
            except Exception as error:  # a widget that fails must not end the thread that writes the others
                frame["trouble"] = f"{panel.name}: {type(error).__name__}: {error}"
        return {**frame, "acts": self._acts.to_list()}

    def settle(self) -> None:
        """Show the engine's end, and be written no more once all that was under way has ended with it."""
        over = not any(panel.open for panel in self._parts)  # seen before the picture, which then shows it
        self.due = 0.0
        self.publish(time.monotonic())
        if over:
            self._part()

    # --- its end: any thread ------------------------------------------------------------------------------------

    def _part(self) -> None:
        writer, self._publisher = self._publisher, None
        if writer:
            writer.leave(self)

    def close(self) -> None:
        """Take the widget away; closing twice is fine."""
        self._part()
        if self._parts:  # one that was refused at the door has nothing to close
            with self._writing:
                super().close()
                self.layout.close()  # a widget of its own, which ipywidgets would keep
            for part in self._parts:
                part.close()
            self._parts, self._acts = (), Acts({})

    # --- its other forms ----------------------------------------------------------------------------------------

    def record(self) -> Record:
        """What it shows now, as text and as HTML without scripts."""
        return joined(self._parts)

    def __repr__(self) -> str:
        if not self._parts:
            return f"{type(self).__name__}(closed)"
        return f"{type(self).__name__}({self._parts[0].engine!r})"

    def _repr_mimebundle_(self, **_: Any) -> Any:
        bundle = super()._repr_mimebundle_()
        if bundle is None or not self._parts:
            return bundle
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        record = self.record()
        return {**data, "text/plain": repr(self), "text/html": record.html}, metadata
