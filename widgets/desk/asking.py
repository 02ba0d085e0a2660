"""One decision of the desk on its way: read on a thread of its own, then followed through the engine to its entry."""

import time
from typing import TYPE_CHECKING, Any

from lanes_widgets.desk.errand import Errand
from lanes_widgets.desk.looking import label_marks
from lanes_widgets.desk.parts import Part, raw_part, typed_parts
from lanes_widgets.desk.past import Entry
from lanes_widgets.desk.wishes import Raw, Wish

if TYPE_CHECKING:
    from lanes import Engine
    from lanes.engine.handles import Pending


class Asking:
    """What a command returns for a decision. Any thread may use it; `superseded` says that a newer one replaced it."""

    def __init__(self, engine: "Engine", wish: Wish, number: int, live: bool) -> None:
        self.number = number
        self.wish = wish
        self.live = live
        self.at = time.time()
        self.superseded = False
        self._pending: Pending[Any] | None = None
        self._prompt, self._begins = "", dict[int, str]()
        self._dropped = False
        self._errand = Errand(lambda: self._submit(engine))

    def _submit(self, engine: "Engine") -> None:
        self._pending = self.wish.ask(engine)
        if self._dropped:  # it came before there was anything to cancel
            self._pending.cancel()
        if isinstance(self.wish, Raw):
            self._prompt, self._begins = label_marks(engine, self.wish)

    @property
    def id(self) -> int | None:
        """Its number in the engine's record; None while it is being read."""
        return self._pending.id if self._pending else None

    @property
    def done(self) -> bool:
        """Whether it was refused, or has ended."""
        return self._errand.done and (self._pending is None or self._pending.done)

    @property
    def state(self) -> str:
        """queued, filling or branch; once it has ended, the reason."""
        return self._pending.state if self._pending else "queued"

    @property
    def error(self) -> Exception | None:
        """Why there is no result, or None."""
        return self._pending.error if self._pending else self._errand.error

    def cancel(self) -> None:
        """Give it up."""
        self._dropped = True
        if self._pending:
            self._pending.cancel()

    def to_dict(self, slot: int | None) -> dict[str, Any]:
        """As the front end reads it while it is on its way."""
        tokens = self._pending.prompt_tokens if self._pending else None
        return {
            "number": self.number,
            "kind": self.wish.kind,
            "short": self.wish.short,
            "at": self.at,
            "id": self.id,
            "state": self.state,
            "slot": slot,
            "tokens": tokens,
        }

    def entry(self, engine: "Engine", slot: int | None) -> Entry | None:
        """What became of it, once it is done; None where it was refused before it came to anything, or superseded."""
        if self._pending is None or self.superseded:
            return None
        error = self._pending.error
        result = None if error else self._pending.result(0)
        return Entry(
            number=self.number,
            wish=self.wish,
            at=self.at,
            id=self._pending.id,
            state=self._pending.state,
            error=str(error) if error else "",
            timing=self._pending.timing,
            slot=slot,
            parts=self._parts(engine, result) if result is not None else (),
            result=result,
        )

    def _parts(self, engine: "Engine", result: Any) -> tuple[Part, ...]:
        if not isinstance(self.wish, Raw):
            return typed_parts(result)
        texts = engine.texts([token for token, _ in result.top])
        return (raw_part(result, texts, self._begins, self._prompt),)
