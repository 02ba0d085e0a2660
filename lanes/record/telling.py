"""A request's story in sentences, in the order in which it happened; with times, or without where runs are compared."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from lanes.record.shapes import RequestId
from lanes.record.show import listed, many, span
from lanes.record.stays import Stay
from lanes.record.tolls import Toll
from lanes.record.words import ENDS, WHY

if TYPE_CHECKING:
    from lanes.record.story import Story, Wait

NAMED = 6
"""Ids that are listed; of more, the number is told."""


def tell(story: "Story", policy: str | None, times: bool) -> list[str]:
    """The sentences; without `times` they hold nothing that depends on the machine's speed but counts of rounds."""
    return [
        *_came(story, times),
        *_held(story, policy, times),
        *_worked(story),
        *_ended(story, times),
        *_cost(story, times),
    ]


def _came(story: "Story", times: bool) -> Iterator[str]:
    name = f"{story.kind.capitalize()} {story.id}"
    if story.submitted is None:
        yield f"{name} came before the rounds that are kept, so how long it waited is not known."
        return
    yield f"{name}, {many(story.prompt_tokens or 0, 'prompt token')}, came{_at(story.submitted, times)}."


def _held(story: "Story", policy: str | None, times: bool) -> Iterator[str]:
    """Waits and stays in turn: a wait comes before each stay, but for one whose beginning is forgotten."""
    waits = story.waits if story.submitted is not None else (None, *story.waits)
    for wait, stay in zip_longest(waits, story.stays):
        if wait:
            yield _wait(wait, story, policy, times)
        if stay:
            yield _stay(stay, story, times)


def _wait(wait: "Wait", story: "Story", policy: str | None, times: bool) -> str:
    still, took = wait.end is None, _took(wait.start, wait.end, times)
    if not wait.rounds:
        return "It waits for the next round." if still else f"It waited less than a round{took}."
    head = f"It {'waits, so far' if still else 'waited'} through {many(wait.rounds, 'round')}{took}"
    return f"{head}: {'; '.join(_why(wait, story, policy))}."


def _why(wait: "Wait", story: "Story", policy: str | None) -> Iterator[str]:
    if wait.full:
        part = "" if wait.full == wait.rounds else f"in {wait.full} of them "
        holders = [_ids(kind, ids) for kind, ids in (("stream", wait.streams), ("decision", wait.decisions)) if ids]
        yield f"{part}every slot was held, by {' and '.join(holders)}"
    if free := wait.rounds - wait.full:
        part = "" if not wait.full else f"in {free} "
        if story.kind == "decision" and policy in ("off", "idle"):
            yield f"{part}a slot was free, but {WHY[policy]}"
        else:
            yield f"{part}a slot was free, but the rules gave it none"


def _stay(stay: Stay, story: "Story", times: bool) -> str:
    known = story.cached if stay is story.stays[-1] else None  # it is that of the latest admission
    cached = f", with {many(known, 'prompt token')} from the cache" if known else ""
    head = f"It took slot {stay.slot}{_at(stay.start, times)}{cached}"
    if stay.ending == "evicted":
        return f"{head}, and gave it back{_at(stay.end, times)}, as a stream waited for one."
    return f"{head}."


def _worked(story: "Story") -> Iterator[str]:
    if story.pieces:
        what = "A piece" if len(story.pieces) == 1 else "Pieces"
        yield f"{what} of its prompt ran in {_rounds(story.pieces)}."
    if story.tails:
        yield f"The end of its prompt ran in rows that were free, in {_rounds(story.tails)}."
    if story.branches:
        yield f"Its branches ran in rows that were free, in {_rounds(story.branches)}."
    if story.drew:
        yield f"It drew {many(story.tokens, 'token')} in {_rounds(story.drew)}."


def _ended(story: "Story", times: bool) -> Iterator[str]:
    if times and story.first_token is not None and story.submitted is not None:
        yield f"Its first token came {span(story.first_token - story.submitted)} after it."
    if story.reason is None:
        yield "It has not ended."
    else:
        after = f", {span(story.seconds)} after it came" if times and story.seconds is not None else ""
        yield f"It {ENDS[story.reason]}{after}."


def _cost(story: "Story", times: bool) -> Iterator[str]:
    if not story.pieces:
        yield "It needed no piece, so no stream paid for it."
    elif not story.tolls:
        yield "No stream was live beside its pieces, so none paid for them."
    elif not times:
        yield f"Beside its pieces {_ids('stream', [toll.id for toll in story.tolls])} went on."
    elif story.quiet_s is None:
        yield "What that cost the streams beside it is not known: there is no gap of a round without a piece."
    else:
        paid = ", ".join(map(_toll, story.tolls))
        yield f"Beside its pieces, gaps were longer than the quiet {span(story.quiet_s)}: {paid}."
        if story.cost_s is not None and len(story.tolls) > 1:
            yield f"That makes {span(story.cost_s)}, all streams together."


def _toll(toll: Toll) -> str:
    unknown = f" ({many(toll.unknown, 'round')} not known)" if toll.unknown else ""
    if toll.seconds is None:
        return f"stream {toll.id} by what is not known"
    return f"stream {toll.id} by {span(toll.seconds)} in {many(toll.rounds, 'round')}{unknown}"


def _ids(kind: str, ids: Sequence[RequestId]) -> str:
    if len(ids) > NAMED:
        return f"{len(ids)} {kind}s"
    return listed(kind, ids)


def _rounds(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return f"round {first}"
    if last - first + 1 == len(numbers):
        return f"rounds {first} to {last}"
    return f"{len(numbers)} rounds from {first} to {last}"


def _at(seconds: float, times: bool) -> str:
    return f" at {seconds:.3f} s" if times else ""


def _took(start: float, end: float | None, times: bool) -> str:
    return f", {span(end - start)}" if times and end is not None else ""
