"""`lanes.inspect_labels`: spells the labels, asks the engine, and puts the report together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lanes import deadlines
from lanes.decisions.results import Scored
from lanes.errors import InvalidRequest
from lanes.inspecting import advice
from lanes.inspecting.report import Label, LabelReport, Token
from lanes.inspecting.rows import MOST_ROWS, Rows, label_mass, measured, whole_mass
from lanes.inspecting.sets import LabelSet, best, likeliest
from lanes.inspecting.spellings import Spelling, Verdict, judge, refusal, spell, variants
from lanes.prompts import Prompt, Text, check_fits, pieces, read

if TYPE_CHECKING:
    from lanes.engine import Engine

TOP = 10
"""Likeliest tokens in a report."""
_ENDING = 8  # tokens of the prompt's end in a report


def inspect_labels(
    engine: "Engine", prompt: Text, labels: Sequence[str], *, deadline: float | None = None
) -> LabelReport:
    """What becomes of labels after a prompt: tokens, faults, likelier spellings, and what to change.

    prompt: text, or chat messages, as for `Engine.score`. labels: texts as they would follow it, also such as
    `Engine.score` would refuse; a label's fault is then in the report. deadline: seconds from now. Waits for the
    engine: one decision, and a second one that tries other ends of a raw text where the labels have less than half of
    the model's belief.

    Raises InvalidRequest for a prompt that cannot be served and for labels that are no list of texts, and what
    `Engine.score` raises.
    """
    texts = _texts(labels)
    end = deadlines.end_of(deadline)
    whole = engine.use_tokenizer(lambda tokenizer: read(tokenizer, prompt))
    check_fits(len(whole.ids), 0, engine.info.context)
    here, top = _measure(engine, [whole], texts, end)
    refused = engine.use_tokenizer(lambda tokenizer: refusal(tokenizer, whole, texts, engine.info.context))
    given = None if refused else LabelSet.of(here[0].spelled, texts)
    likely = here[0].best(engine, texts)
    tried = []
    if isinstance(prompt, str) and advice.is_low(likely) and advice.is_low(given):
        tried = _try_endings(engine, prompt, texts, end)
    suggestions = (advice.respell(given, likely), advice.reword(given, likely, tried))
    return _report(engine, here[0], texts, top, refused, tuple(filter(None, suggestions)), isinstance(prompt, str))


@dataclass(frozen=True)
class _Place:
    """A prompt, and all spellings of the labels after it."""

    prompt: Prompt
    spelled: dict[str, Spelling]

    def best(self, engine: "Engine", texts: Sequence[str]) -> LabelSet | None:
        """The best labels that can be used together here."""
        context = engine.info.context

        def binds(labels: Sequence[str]) -> bool:
            return engine.use_tokenizer(lambda tokenizer: not refusal(tokenizer, self.prompt, labels, context))

        return best(self.spelled, texts, binds)


def _texts(labels: Any) -> tuple[str, ...]:
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence):
        raise InvalidRequest(f"labels must be a list of strings, got {type(labels).__name__}: write [' yes', ' no']")
    if not labels:
        raise InvalidRequest("there are no labels: pass at least one")
    for index, label in enumerate(labels):
        if not isinstance(label, str):
            raise InvalidRequest(f"label {index} is not text but {type(label).__name__}: pass a string")
    return tuple(labels)


def _measure(
    engine: "Engine", prompts: Sequence[Prompt], texts: Sequence[str], end: float | None
) -> tuple[list[_Place], tuple[tuple[int, float], ...]]:
    """All prompts in one decision; with the first one's likeliest tokens."""
    places = [_Place(prompt, _spell(engine, prompt, texts)) for prompt in prompts]
    share = MOST_ROWS // len(places)
    plans = [Rows.of(place.prompt, place.spelled.values(), engine.info.context, share) for place in places]
    results = _ask(engine, plans, end)
    found: list[_Place] = []
    at = 0
    for place, plan in zip(places, plans, strict=True):
        logs = plan.logs(results[at : at + len(plan.nexts)])
        at += len(plan.nexts)
        found.append(_Place(place.prompt, {text: measured(one, logs) for text, one in place.spelled.items()}))
    return found, results[0].top


def _spell(engine: "Engine", prompt: Prompt, texts: Sequence[str]) -> dict[str, Spelling]:
    """Every variant of every label, the labels as given first, then those of few tokens.

    The tokenizer is held for one at a time.
    """
    wanted = dict.fromkeys([*texts, *(text for label in texts for text in variants(label))])
    found = [engine.use_tokenizer(lambda tokenizer, text=text: spell(tokenizer, prompt, text)) for text in wanted]
    return {one.text: one for one in sorted(found, key=lambda one: (one.text not in texts, len(one.tokens)))}


def _ask(engine: "Engine", plans: Sequence[Rows], end: float | None) -> tuple[Scored, ...]:
    prompts, bound = zip(*(branch for plan in plans for branch in plan.branches()), strict=True)
    pending = engine.decide_bound(prompts, bound, TOP, deadlines.left_until(end), True)
    try:
        return pending.result()
    finally:
        pending.cancel()  # an interrupted wait leaves nothing behind


def _try_endings(
    engine: "Engine", prompt: str, texts: Sequence[str], end: float | None
) -> list[tuple[advice.Ending, LabelSet]]:
    endings = list(advice.endings(prompt))
    prompts = [engine.use_tokenizer(lambda tokenizer, text=one.prompt: read(tokenizer, text)) for one in endings]
    fitting = [at for at, one in enumerate(prompts) if len(one.ids) <= engine.info.context]
    if not fitting:
        return []
    places, _ = _measure(engine, [prompts[at] for at in fitting], texts, end)
    pairs = [(endings[at], place.best(engine, texts)) for at, place in zip(fitting, places, strict=True)]
    return [(ending, found) for ending, found in pairs if found is not None]


def _report(
    engine: "Engine",
    place: _Place,
    texts: Sequence[str],
    top: Sequence[tuple[int, float]],
    refused: str,
    suggestions: tuple[advice.Suggestion, ...],
    raw: bool,
) -> LabelReport:
    prompt, spelled = place.prompt, place.spelled
    labels = tuple(_label(engine, place, texts, index) for index in range(len(texts)))
    ending = prompt.ids[-_ENDING:]
    shown = engine.use_tokenizer(lambda tokenizer: pieces(tokenizer, [*ending, *(token for token, _ in top)]))
    usable = [spelled[text] for text in texts if spelled[text].usable]
    likely = [spelled[label.best] for label in labels if spelled[label.best].usable]
    return LabelReport(
        prompt=prompt.text,
        prompt_tokens=len(prompt.ids),
        ending=tuple(map(Token, ending, shown)),
        remarks=tuple(advice.remarks(prompt.text, [label.text for label in labels])) if raw else (),
        labels=labels,
        refusal=refused,
        top=tuple(Token(token, text, p) for (token, p), text in zip(top, shown[len(ending) :], strict=True)),
        label_mass=label_mass(usable) if usable else None,
        whole_mass=whole_mass(usable) if usable else None,
        best_label_mass=label_mass(likely) if likely else None,
        best_whole_mass=whole_mass(likely) if likely else None,
        suggestions=suggestions,
        model=engine.info.fingerprint,
    )


def _label(engine: "Engine", place: _Place, texts: Sequence[str], index: int) -> Label:
    def verdict(tokenizer: Any) -> Verdict:
        return judge(tokenizer, place.prompt, texts, place.spelled, index)

    text = texts[index]
    ways = tuple(replace(place.spelled[one], styles=styles) for one, styles in variants(text).items())
    return Label(text, engine.use_tokenizer(verdict), ways, likeliest(place.spelled, text))
