"""What a person does in a widget: checked, queued, done by the publisher's thread, and told back by its id.

A handler of messages may run on any thread, or late. So it only takes them in; everything else happens in one place.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import ConfigDict, ValidationError, validate_call

from lanes.errors import Cancelled

State: TypeAlias = Literal["queued", "running", "done", "refused"]
KEEP = 32
"""Acts whose fate is still told."""


class Running(Protocol):
    """What a command returns for something that takes time: a stream or a decision on its way."""

    @property
    def done(self) -> bool: ...
    @property
    def state(self) -> str: ...
    @property
    def error(self) -> Exception | None: ...


Command: TypeAlias = Callable[..., Running | None]


@dataclass(slots=True)
class Act:
    """One act: the id that the front end gave it, its command, how far it is, and why it was refused."""

    id: str
    do: str
    state: State
    why: str = ""
    running: Running | None = None

    def look(self) -> None:
        """See how far it is."""
        if self.running is None:
            return
        if not self.running.done:
            self.state = "queued" if self.running.state == "queued" else "running"
            return
        error, self.running = self.running.error, None
        given_up = isinstance(error, Cancelled)  # as somebody wished
        self.state, self.why = ("done", "") if error is None or given_up else ("refused", str(error))

    def to_dict(self) -> dict[str, str]:
        """As the front end reads it."""
        return {"id": self.id, "do": self.do, "state": self.state, "why": self.why}


class Acts:
    """The inbox of a widget and the fate of what came in. `put` is for any thread, the rest for the publisher's."""

    def __init__(self, commands: Mapping[str, Command]) -> None:
        self._commands = {name: validate_call(config=_STRICT)(command) for name, command in commands.items()}
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._recent: deque[Act] = deque(maxlen=KEEP)

    def put(self, message: Any) -> None:
        """Take in a message: {"id": a text, "do": a command, "with": {its arguments}}."""
        self._inbox.put(message)

    @property
    def waiting(self) -> bool:
        """Whether something has come in that is not done yet."""
        return not self._inbox.empty()

    def work(self) -> None:
        """Do what has come in, and look after what is under way."""
        while True:
            try:
                message = self._inbox.get_nowait()
            except Empty:
                break
            if isinstance(message, Mapping) and isinstance(message.get("id"), str):
                self._recent.append(self._do(message["id"][:64], message))
        for act in self._recent:
            act.look()

    def _do(self, id: str, message: Mapping[str, Any]) -> Act:
        name, given = message.get("do"), message.get("with", {})
        if not isinstance(name, str) or name not in self._commands:
            return Act(id, str(name)[:64], "refused", f"there is no such command: {', '.join(self._commands)}")
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            return Act(id, name, "refused", "the arguments must be an object")
        try:
            running = self._commands[name](**given)
        except ValidationError as error:
            return Act(id, name, "refused", _said(error))
        except Exception as error:  # whatever it is, it is the answer to this act and ends nothing else
            return Act(id, name, "refused", str(error) or type(error).__name__)
        return Act(id, name, "queued" if running else "done", running=running)

    def to_list(self) -> list[dict[str, str]]:
        """The latest acts, oldest first."""
        return [act.to_dict() for act in self._recent]


_STRICT = ConfigDict(strict=True, extra="forbid")


def _said(error: ValidationError) -> str:
    """The first fault in words, with the field's name."""
    fault = error.errors(include_url=False)[0]
    said = fault["msg"].replace("Input should be", "must be")
    return f"{'.'.join(map(str, fault['loc'])) or 'arguments'}{' ' if said.startswith('must') else ': '}{said}"
