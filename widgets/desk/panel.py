"""The desk's panel: what people compose, ask and look at again; and the picture of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lanes.inspecting import LabelReport, inspect_labels, views
from lanes_widgets.acts import Command
from lanes_widgets.desk.asking import Asking
from lanes_widgets.desk.looking import found, look_raw, look_typed
from lanes_widgets.desk.past import Past
from lanes_widgets.desk.seats import Seats
from lanes_widgets.desk.wishes import QuestionForm, Raw, Typed, Wish
from lanes_widgets.desk.wording import curl, python
from lanes_widgets.errand import Errand, Latest, Reins
from lanes_widgets.panel import Panel, Record
from lanes_widgets.tape import Tape

if TYPE_CHECKING:
    from lanes import Engine

VIEWS = 4
"""Drafts whose tokens are kept: one for each view of the widget."""
CUT = 4
"""Entries in one frame: each has the texts that were asked."""
MOST_ROWS = 80
"""Spellings of a report that are shown."""
Messages = list[dict[str, str]]
Labels = list[str]
Orders = Literal["auto"] | Annotated[int, Field(ge=1)]
View = Annotated[str, Field(max_length=64)]
"""What the front end calls a view and its draft: what is found for it comes back under this name."""


class DeskPanel(Panel):
    """Compose, look, ask, withdraw; the decisions on their way, and those that have ended."""

    name = "desk"

    def __init__(self, engine: "Engine") -> None:
        super().__init__(engine)
        self.tapes = {"done": Tape(CUT)}
        self.past = Past()
        """What has ended; replaced, never changed, so that any thread may read it."""
        self._open: list[Asking] = []
        self._asked = 0
        self._over = False
        self._seats = Seats(engine.rounds)
        self._looks = Latest(VIEWS)
        self._inspection: tuple[str, Reins, Errand[LabelReport]] | None = None
        self._worded: dict[str, str] | None = None

    @property
    def commands(self) -> Mapping[str, Command]:
        """See `Panel.commands`."""
        asking = (self.ask, self.ask_typed, self.withdraw, self.forget, self.word)
        looking = (self.look, self.look_typed, self.inspect, self.inspect_no_more)
        return {command.__name__: command for command in (*asking, *looking)}

    # --- asking -------------------------------------------------------------------------------------------------

    def ask(self, prompt: str | Messages, labels: Labels, live: bool = False) -> Asking:
        """Score these labels after this prompt. live: in place of the live one that is still on its way."""
        return self._ask(Raw.read(prompt, labels), live)

    def ask_typed(
        self,
        state: str,
        questions: list[QuestionForm],
        as_json: bool = False,
        method: str = "codes",
        orders: Orders = 1,
        prior: str | None = None,
        abstain: bool = False,
        live: bool = False,
    ) -> Asking:
        """Ask these questions about this state. as_json: it is read as JSON. live: as for `ask`."""
        return self._ask(Typed.read(state, as_json, questions, method, orders, prior, abstain), live)

    def _ask(self, wish: Wish, live: bool) -> Asking:
        number = self._supersede() if live else None
        if number is None:
            self._asked = number = self._asked + 1
        asking = Asking(self.engine, wish, number, live)
        self._open.append(asking)
        if self._over:  # the widget was closed meanwhile
            asking.cancel()
        return asking

    def _supersede(self) -> int | None:
        """Give up the live decision on its way; its number, which is free then."""
        for one in self._open:
            if one.live and not one.superseded and not one.done:
                one.superseded = True
                one.cancel()
                return one.number
        return None

    def withdraw(self, number: int) -> None:
        """Give up the decision of this number."""
        found = [one for one in self._open if one.number == number and not one.done]
        if not found:
            raise ValueError(f"decision {number} has ended already")
        for one in found:
            one.cancel()

    def forget(self) -> None:
        """Clear the history; what is on its way goes on."""
        self.past = self.past.forgotten()
        self.tapes["done"] = Tape(CUT)  # what it was cut last is gone

    def word(self, number: int, form: Literal["python", "curl", "prompt"], view: View) -> None:
        """Put an entry into words: as Python, as curl, or the prompts that the model read."""
        entry = self.past.find(number)
        if entry is None:
            raise ValueError(f"decision {number} is not in the history any more")
        if form == "prompt":
            text = "\n\n".join(f"{part.name}:\n{part.prompt}" if part.name else part.prompt for part in entry.parts)
        else:
            text = (python if form == "python" else curl)(entry.wish)
        self._worded = {"view": view, "form": form, "text": text}

    # --- looking ------------------------------------------------------------------------------------------------

    def look(self, view: View, draft: int, prompt: str | Messages, labels: Labels) -> None:
        """Say what can be said of a raw draft without running anything; it comes under the view's name."""
        wish = Raw.read(prompt, labels)
        self._looks.want(view, lambda: found(draft, "raw", lambda: look_raw(self.engine, wish)))

    def look_typed(
        self,
        view: View,
        draft: int,
        state: str,
        questions: list[QuestionForm],
        as_json: bool = False,
        method: str = "codes",
        orders: Orders = 1,
        prior: str | None = None,
        abstain: bool = False,
    ) -> None:
        """The same of a typed one."""

        def look() -> dict[str, Any]:
            wish = Typed.read(state, as_json, questions, method, orders, prior, abstain)
            return look_typed(self.engine, wish)

        self._looks.want(view, lambda: found(draft, "typed", look))

    def inspect(self, view: View, prompt: str | Messages, labels: Labels) -> Errand[LabelReport]:
        """The whole of `lanes.inspect_labels`, in place of one that is still on its way."""
        self.inspect_no_more()
        wish, reins = Raw.read(prompt, labels), Reins(self.engine)
        asked: Any = reins
        errand = Errand(lambda: inspect_labels(asked, wish.text, list(wish.labels)))
        self._inspection = view, reins, errand
        return errand

    def inspect_no_more(self) -> None:
        """Give up the inspection, or put its report away."""
        if self._inspection:
            self._inspection[1].cancel()
        self._inspection = None

    # --- what is shown ------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """See `Panel.open`."""
        return not all(one.done for one in self._open)

    def picture(self) -> dict[str, Any]:
        """See `Panel.picture`: entries that ended come on a tape, all others as they are now."""
        ended = [one for one in self._open if one.done]
        self._seats.read()  # after they were seen to have ended: their rounds are in the record by then
        for one in ended:
            self._open.remove(one)
            if entry := one.entry(self._seats.of(one.id)):
                self.past = self.past.and_then(entry)
            elif one.number == self._asked and not one.superseded:
                self._asked -= 1  # refused: the next one has its number
        cut = self.tapes["done"].cut(self.past.entries, self.past.gone)
        running = [one for one in self._open if not one.superseded]
        return {
            "running": [one.to_dict(self._seats.of(one.id)) for one in running],
            "done": {**cut, "items": [entry.to_dict() for entry in cut["items"]]},
            "gone": self.past.gone,
            "looks": dict(self._looks.found),
            "inspection": self._inspected(),
            "worded": self._worded,
        }

    def _inspected(self) -> dict[str, Any] | None:
        if self._inspection is None:
            return None
        view, _, errand = self._inspection
        report, error = errand.result, errand.error
        if report is None:
            return {"view": view, "running": not errand.done, "error": str(error or "")}
        return {
            "view": view,
            "running": False,
            "error": "",
            "title": views.title(report),
            "head": list(views.HEAD),
            "rows": [list(row) for row in views.rows(report)][:MOST_ROWS],
            "top": [[one.text, one.probability] for one in report.top],
            "notes": [*views.prompt_lines(report), *views.notes(report)],
            "suggestions": [
                {"text": one.text, "labels": list(one.labels), "prompt": one.prompt} for one in report.suggestions
            ],
        }

    def record(self) -> Record:
        """See `Panel.record`: the last answer, and the history."""
        return self.past.record()

    def close(self) -> None:
        """See `Panel.close`: nothing is asked for any more."""
        self._over = True
        self._looks.drop()
        self.inspect_no_more()
        for one in list(self._open):
            one.cancel()
