"""One decision of the desk on its way: read on a thread of its own, then followed through the engine to its entry."""

import time
from typing import TYPE_CHECKING, Any

from lanes_widgets.desk.looking import label_marks
from lanes_widgets.desk.parts import Part, raw_part, typed_parts
from lanes_widgets.desk.past import Entry
from lanes_widgets.desk.wishes import Raw, Wish
from lanes_widgets.errand import Errand

if TYPE_CHECKING:
    from lanes import Engine
    from lanes.engine.handles import Pending


class Asking:
    """What a command returns for a decision. Any thread may use it; `superseded` says that a newer one replaced it.

    Its own thread also waits for the end: the tokenizer, which makes texts of the likeliest tokens, may be busy.
    """

    def __init__(self, engine: "Engine", wish: Wish, number: int, live: bool) -> None:
        self.number = number
        self.wish = wish
        self.live = live
        self.at = time.time()
        self.superseded = False
        self._pending: Pending[Any] | None = None
        self._parts: tuple[Part, ...] = ()
        self._dropped = False
        self._errand = Errand(lambda: self._run(engine))

    def _run(self, engine: "Engine") -> None:
        self._pending = pending = self.wish.ask(engine)
        if self._dropped:  # it came before there was anything to cancel
            pending.cancel()
        prompt, begins = label_marks(engine, self.wish) if isinstance(self.wish, Raw) else ("", {})
        pending.wait()
        if pending.error:
            return
        result = pending.result()
        if isinstance(self.wish, Raw):
            self._parts = (raw_part(result, engine.texts([token for token, _ in result.top]), begins, prompt),)
        else:
            self._parts = typed_parts(result)

    @property
    def id(self) -> int | None:
        """Its number in the engine's record; None while it is being read."""
        return self._pending.id if self._pending else None

    @property
    def done(self) -> bool:
        """Whether it was refused, or has ended and is told in full."""
        return self._errand.done

    @property
    def state(self) -> str:
        """queued, filling or branch; once it has ended, the reason."""
        return self._pending.state if self._pending else "queued"

    @property
    def error(self) -> Exception | None:
        """Why there is no result, or None."""
        return self._errand.error or (self._pending.error if self._pending else None)

    def cancel(self) -> None:
        """Give it up."""
        self._dropped = True
        if self._pending:
            self._pending.cancel()

    def to_dict(self, slot: int | None) -> dict[str, Any]:
        """As the front end reads it while it is on its way."""
        return {
            "number": self.number,
            "kind": self.wish.kind,
            "short": self.wish.short,
            "at": self.at,
            "id": self.id,
            "state": self.state,
            "slot": slot,
        }

    def entry(self, slot: int | None) -> Entry | None:
        """What became of it, once it is done; None where it was refused before it came to anything, or superseded."""
        if self._pending is None or self.superseded:
            return None
        return Entry(
            number=self.number,
            wish=self.wish,
            at=self.at,
            id=self._pending.id,
            state=self._pending.state,
            error=str(self.error or ""),
            timing=self._pending.timing,
            slot=slot,
            parts=self._parts,
            result=None if self._pending.error else self._pending.result(0),
        )
