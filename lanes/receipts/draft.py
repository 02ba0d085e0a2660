"""A receipt in the making: what a notebook calls, step by step, until it is sealed into one file."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import ValidationError

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.prompts import Text
from lanes.receipts import door, evidence, show
from lanes.receipts.arms import Work
from lanes.receipts.canonical import plain
from lanes.receipts.circumstances import EngineFacts, Made
from lanes.receipts.environment import Watch, environment
from lanes.receipts.measured import Measured
from lanes.receipts.models import engine_facts
from lanes.receipts.receipt import Receipt
from lanes.receipts.said import prompt_facts, reply_facts
from lanes.receipts.shapes import FORMAT, Check, PromptFacts, Ratio, Record, Reply
from lanes.receipts.source import notebook as notebook_
from lanes.receipts.source import project
from lanes.receipts.spread import Spread, spread

if TYPE_CHECKING:
    from lanes.engine import Engine, Stream

Named = TypeVar("Named", Check, Ratio, PromptFacts, Reply)


def begin(
    topic: str,
    claim: str,
    *,
    engine: "Engine | None" = None,
    parameters: Mapping[str, Any] | None = None,
    notebook: str | None = None,
    keep_text: bool = False,
) -> "Draft":
    """Begin a receipt for one claim; `close` seals it.

    topic: a short name of lower letters, digits and _. claim: one sentence. engine: what the claim is about (`uses`
    adds others). parameters: what the notebook was run with, by the names of its variables; those named *seed* are kept
    as seeds too. notebook: the name of the notebook's file. keep_text: keep the words of prompts and replies, not only
    their hashes and lengths. Raises InvalidRequest.
    """
    return Draft(topic, claim, engine, parameters or {}, notebook, checks.flag("keep_text", keep_text))


class Draft:
    """A receipt that is not sealed yet. Everything that is checked, measured or left out is told to it, once."""

    def __init__(
        self,
        topic: str,
        claim: str,
        engine: "Engine | None",
        parameters: Mapping[str, Any],
        notebook: str | None,
        keep_text: bool,
    ) -> None:
        self._watch = Watch()
        self._topic, self._claim = topic, claim
        self._parameters = door.parameters(parameters)
        self._notebook = None if notebook is None else notebook_(notebook)
        self._keep_text = keep_text
        self._project = project()  # now, as the code that was loaded is the one that is there now
        self._engine = engine
        self._engines: dict[str, EngineFacts] = {}
        self._checks: list[Check] = []
        self._measured = Measured()
        self._prompts: list[PromptFacts] = []
        self._replies: list[Reply] = []
        self._not_run: list[str] = []
        self._sealed: Receipt | None = None
        self._sealing = threading.Lock()
        if engine is not None:
            self.uses("engine", engine)
        self.record()  # refuse a wrong topic or claim now, not after an hour of measuring

    # --- what is checked --------------------------------------------------------------------------------------------

    def uses(self, name: str, engine: "Engine") -> None:
        """Put another engine on record, under a name of its own."""
        self._open()
        if name in self._engines:
            raise InvalidRequest(f"there is an engine {name!r} already: give this one another name")
        door.has("an engine is a lanes.Engine", engine, "options", "use_tokenizer")
        self._engines[self._line("an engine's name", name)] = engine_facts(engine)

    def check(self, name: str, expected: Any, observed: Any) -> bool:
        """Check that two plain values are equal (1 and 1.0 are, 1 and True are not); whether they are."""
        own = evidence.plain_check(self._line("name", name), plain("expected", expected), plain("observed", observed))
        return self._add(self._checks, "check", own).passed

    def equal(self, name: str, first: Iterable[str], second: Iterable[str]) -> bool:
        """Check that two rows of digests are equal; both are kept. Whether they are.

        Raises InvalidRequest for a row without digests: two of them are equal and prove nothing.
        """
        rows = door.digests("first", first), door.digests("second", second)
        own = evidence.equal_check(self._line("name", name), *rows)
        return self._add(self._checks, "check", own).passed

    def within(
        self,
        name: str,
        figure: str | Sequence[str],
        *,
        low: float | None = None,
        high: float | None = None,
    ) -> bool:
        """Check that a figure lies from `low` to `high`, ends included; whether it does.

        figure: the name of a ratio, or (arm, value, figure), or (arm, value) for its median. Figures are median, p50,
        p95, p99, min, max, n and failed.
        """
        low, high = door.ends(low, high)
        path = door.figure(figure)
        own = evidence.range_check(self._line("name", name), path, low, high, self._measured.figure(path))
        return self._add(self._checks, "check", own).passed

    # --- what is measured -------------------------------------------------------------------------------------------

    async def measure(
        self, arms: Mapping[str, Work], *, repeats: int, warmups: int = 1, timeout: float = 600.0
    ) -> None:
        """Run arms in turns: `warmups` rounds of all that count for nothing, then `repeats` that count.

        arms: async functions without arguments, by name. Each gives a mapping of names to numbers, or None; a list is
        many numbers of one name, such as the seconds of each request. `seconds` is how long it took, unless it says so
        itself; where it gives `tokens`, `tokens_per_s` is added; any value `x_per_s` has to be `x` over `seconds`. The
        order rotates with every repeat. An attempt that raises, or takes longer than `timeout` seconds, is kept with
        its error. An arm is measured once in a receipt.
        """
        self._open()
        await self._measured.run(arms, repeats, warmups, timeout, self._watch.waiting())

    def ratio(
        self,
        name: str,
        numerator: tuple[str, str],
        denominator: tuple[str, str],
        *,
        kind: Literal["pairs", "medians"] = "pairs",
    ) -> float:
        """Put a ratio of two values on record, each (arm, value); returns it.

        pairs: the median of the ratios within a repeat. medians: the ratio of the medians.
        """
        own = self._measured.ratio(self._line("name", name), numerator, denominator, kind)
        return self._add(self._measured.ratios, "ratio", own).value

    def spread(self, value: str, arms: Sequence[str] = ()) -> Spread:
        """Every number of one value so far, as a picture and in words: all arms that have it, or those named."""
        return spread(self.record(), value, arms)

    # --- what was said, and what was not done -----------------------------------------------------------------------

    def reply(self, name: str, stream: "Stream") -> None:
        """Put a stream that has ended on record: hashes and lengths of what it was asked and what it said."""
        door.has("a reply is a stream", stream, "finish_reason", "tokens", "prompt")
        self._add(self._replies, "reply", reply_facts(self._line("name", name), stream, self._keep_text))

    def prompt(self, name: str, text: Text) -> None:
        """Put a prompt on record: its hash and its lengths."""
        self._add(self._prompts, "prompt", prompt_facts(self._line("name", name), text, self._engine, self._keep_text))

    def not_run(self, sentence: str) -> None:
        """Say what was left out, and why."""
        self._open()
        self._not_run.append(self._line("sentence", sentence, 2000))

    # --- seal and show ----------------------------------------------------------------------------------------------

    def close(self, folder: str | Path = "receipts") -> Path:
        """Seal it: write `<folder>/<sha256>.json`, and return its path. Afterwards nothing can be added.

        Raises InvalidRequest where it is larger than 1 MiB, while arms run, and where the folder takes no file.
        """
        with self._sealing:
            if self._sealed is None:
                self._measured.refuse_running("it cannot be sealed")
                self._sealed = Receipt.seal(self.record())
        return self._sealed.save(folder)

    def record(self) -> Record:
        """All that was told so far, in the shape that is sealed. Raises InvalidRequest for what has no such shape."""
        if self._sealed is not None:
            return self._sealed.record
        try:
            return Record(
                format=FORMAT,
                topic=self._topic,
                claim=self._claim,
                notebook=self._notebook,
                parameters=self._parameters,
                seeds=door.seeds(self._parameters),
                checks=tuple(self._checks),
                arms=tuple(self._measured.arms),
                samples=tuple(self._measured.samples),
                aggregates=self._measured.aggregates(),
                ratios=tuple(self._measured.ratios),
                prompts=tuple(self._prompts),
                replies=tuple(self._replies),
                not_run=(*self._not_run, *self._measured.interrupted),
                engines=dict(self._engines),
                environment=environment(self._watch.load()),
                project=self._project,
                made=Made(
                    at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    seconds=round(self._watch.seconds, 3),
                ),
            )
        except ValidationError as error:
            first = error.errors()[0]
            raise InvalidRequest(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    def facts(self) -> str:
        """The checks in words, and nothing that another run or machine may change as long as they pass."""
        return show.facts(self.record())

    def show(self) -> None:
        """Show all of it: as text and as HTML without scripts in a notebook, as text elsewhere."""
        show.display(repr(self), self._repr_html_())

    def __repr__(self) -> str:
        return show.text(self.record(), self._sealed and self._sealed.sha256)

    def _repr_html_(self) -> str:
        return self._sealed._repr_html_() if self._sealed else show.html(self.record(), None)

    # --- the door ---------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._sealed is not None:
            raise InvalidRequest(f"this receipt is sealed as {self._sealed.sha256[:12]}: begin a new one")

    def _line(self, what: str, text: str, longest: int = 200) -> str:
        self._open()
        return door.line(what, text, longest)

    def _add(self, kept: list[Named], kind: str, own: Named) -> Named:
        if any(other.name == own.name for other in kept):
            raise InvalidRequest(f"there is a {kind} {own.name!r} already: give this one another name")
        kept.append(own)
        return own
