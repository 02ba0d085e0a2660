"""What the endpoints of one server share."""

import asyncio
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from starlette.requests import Request

from lanes.serving.fitting import most_characters
from lanes.serving.generate.spelling import Speller
from lanes.serving.metrics import Metrics
from lanes.serving.settings import Settings

if TYPE_CHECKING:
    from lanes.engine import Engine


@dataclass
class Counters:
    """What a server counts of its own; only its event loop writes them."""

    requests: dict[tuple[str, int], int] = field(default_factory=dict)
    """Answers by path and status."""
    open: int = 0
    """Requests that are being answered now."""
    gone: int = 0
    """Clients that left before their answer was there."""

    def answered(self, path: str, status: int) -> None:
        """Count one answer."""
        self.requests[path, status] = self.requests.get((path, status), 0) + 1


@dataclass
class Context:
    """What the endpoints work with; `stopping` is set once open requests must end."""

    engine: "Engine"
    settings: Settings
    counters: Counters = field(default_factory=Counters)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.engine, self.counters)
        self.speller = Speller(self.engine)

    @cached_property
    def most_characters(self) -> int:
        """How many characters a prompt can have; not for the event loop, as it may wait for the tokenizer."""
        return most_characters(self.engine)


def context(request: Request) -> Context:
    """The context of the server that got this request."""
    return request.app.state.context
