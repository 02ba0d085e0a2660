"""What a record says, held against itself: every figure, ratio and check is made again from the samples and evidence.

Pure: no file, no clock, no git.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pydantic import BaseModel

from lanes.errors import InvalidRequest
from lanes.receipts import door
from lanes.receipts.aggregates import aggregates, figure, ratio
from lanes.receipts.arms import schedule, unlike
from lanes.receipts.canonical import MISSING, differences, encode, sha256
from lanes.receipts.evidence import again
from lanes.receipts.fields import one_line
from lanes.receipts.shapes import PromptFacts, Range, Ratio, Record, Sample


class Finding(NamedTuple):
    """Something that does not hold: the field's path, and what is wrong with it."""

    field: str
    says: str

    def __str__(self) -> str:
        return one_line(f"{self.field}: {self.says}")


def audit(record: Record) -> tuple[Finding, ...]:
    """All that does not follow, in the order in which a reader looks."""
    return tuple(_findings(record))


def _findings(record: Record) -> Iterator[Finding]:
    yield from _names(record)
    yield from _seeds(record)
    plan = [*_groups(record), *_complete(record)]
    yield from plan
    yield from () if plan else _order(record)
    for at, sample in enumerate(record.samples):
        yield from _sample(f"samples.{at}", sample)
    yield from _figures(record)
    ratios = []
    for at, own in enumerate(record.ratios):
        yield from _ratio(f"ratios.{at}", own, record, ratios)
    yield from _checks(record, ratios)
    for at, prompt in enumerate(record.prompts):
        yield from _prompt(f"prompts.{at}", prompt)


def _names(record: Record) -> Iterator[Finding]:
    """Names that come twice: a figure or a check could be meant by either."""
    for kind in ("checks", "arms", "ratios", "prompts", "replies"):
        counts = Counter(own.name for own in getattr(record, kind))
        for name in (name for name, count in counts.items() if count > 1):
            yield Finding(kind, f"the name {name!r} comes {counts[name]} times")


def _seeds(record: Record) -> Iterator[Finding]:
    for path, there, here in differences(record.seeds, door.seeds(record.parameters), "seeds"):
        yield Finding(path, f"recorded {shown(there)}, the parameters give {shown(here)}")


def _groups(record: Record) -> Iterator[Finding]:
    """Arms that took turns have one plan, and groups are counted in the order in which they ran."""
    for at, (group, members) in enumerate(groupby(record.arms, key=lambda arm: arm.group)):
        own = list(members)
        if group != at:
            yield Finding("arms", f"the group {group} of {own[0].name!r} should be {at}")
        if len({(arm.repeats, arm.warmups) for arm in own}) > 1:
            yield Finding("arms", f"{own[0].name!r} and those that took turns with it have different plans")


def _complete(record: Record) -> Iterator[Finding]:
    """Every planned attempt is there, failed ones too, and no other; positions have no holes."""
    counts = Counter(sample.arm for sample in record.samples)
    for arm in record.arms:
        planned, there = arm.repeats + arm.warmups, counts.pop(arm.name, 0)
        if there != planned:
            plan = f"{arm.repeats} repeats and {arm.warmups} warm-ups were planned"
            yield Finding("samples", f"the arm {arm.name!r} has {there} attempts, {plan}")
    for name, there in counts.items():
        yield Finding("samples", f"{there} attempts are of {name!r}, which is none of the arms")
    for at, sample in enumerate(record.samples):
        if sample.position != at:
            yield Finding(f"samples.{at}.position", f"recorded {sample.position}, its place is {at}")
            return


def _order(record: Record) -> Iterator[Finding]:
    """The arms took turns as declared."""
    for at, (sample, turn) in enumerate(zip(record.samples, schedule(record.arms), strict=True)):
        for name in turn._fields:
            there, planned = getattr(sample, name), getattr(turn, name)
            if there != planned:
                yield Finding(f"samples.{at}.{name}", f"recorded {shown(there)}, the order gives {shown(planned)}")
                return


def _sample(path: str, sample: Sample) -> Iterator[Finding]:
    if sample.ok == (sample.error is not None):
        yield Finding(f"{path}.error", "an attempt failed with an error, or did not and has none")
    if not sample.ok:
        if sample.values:
            yield Finding(f"{path}.values", "a failed attempt has no values")
        return
    if not sample.seconds > 0:
        yield Finding(f"{path}.values.seconds", "an attempt takes more than 0 seconds, and says how many")
        return
    for name, why in unlike(sample.values):
        yield Finding(f"{path}.values.{name}", why)


def _figures(record: Record) -> Iterator[Finding]:
    try:
        found = aggregates(record.arms, record.samples)
    except (ValueError, OverflowError) as error:
        yield Finding("samples", f"no figures follow from them: {error}")
        return
    yield from _unlike("aggregates", _dumped(record.aggregates), _dumped(found), "the samples give")


def _ratio(path: str, own: Ratio, record: Record, ratios: list[Ratio]) -> Iterator[Finding]:
    """A ratio made again; what it gives goes into `ratios`."""
    try:
        found = ratio(own.name, own.numerator, own.denominator, own.kind, record.arms, record.samples)
    except (ValueError, OverflowError) as error:
        yield Finding(path, str(error))
        return
    ratios.append(found)
    yield from _unlike(path, _dumped(own), _dumped(found), "the samples give")


def _checks(record: Record, ratios: Sequence[Ratio]) -> Iterator[Finding]:
    if not record.checks:
        yield Finding("checks", "there are none, so the claim rests on nothing")
    try:
        found = aggregates(record.arms, record.samples)
    except (ValueError, OverflowError):
        found = {}
    for at, check in enumerate(record.checks):
        if isinstance(check.evidence, Range):
            yield from _range(f"checks.{at}.evidence", check.evidence)
        try:
            right = again(check, lambda path: figure(path, found, ratios))
        except InvalidRequest as error:
            yield Finding(f"checks.{at}.evidence.figure", str(error))
            continue
        for path, there, here in differences(_dumped(check), _dumped(right), f"checks.{at}"):
            says = f"recorded {shown(there)}, the evidence gives {shown(here)}"
            yield Finding(path, f"{says} ({check.name})")
        if not (check.passed and right.passed):
            told = f"expected {shown(right.expected)}, observed {shown(right.observed)}"
            yield Finding(f"checks.{at}.passed", f"{check.name!r} did not pass: {told}")


def _range(path: str, own: Range) -> Iterator[Finding]:
    try:
        door.check_range(own.low, own.high)
    except InvalidRequest as error:
        yield Finding(path, str(error))


def _prompt(path: str, own: PromptFacts) -> Iterator[Finding]:
    """A prompt whose words were kept has their hash and length."""
    if own.text is not None:
        found = {"sha256": sha256(own.text), "characters": len(own.text)}
        there = {"sha256": own.sha256, "characters": own.characters}
        yield from _unlike(path, there, found, "the text gives")


def _unlike(path: str, there: Any, here: Any, source: str) -> Iterator[Finding]:
    for field, a, b in differences(there, here, path):
        yield Finding(field, f"recorded {shown(a)}, {source} {shown(b)}")


def _dumped(shape: Any) -> Any:
    """Shapes as plain values."""
    if isinstance(shape, BaseModel):
        return shape.model_dump(mode="json")
    return {key: _dumped(own) for key, own in shape.items()} if isinstance(shape, dict) else shape


def shown(value: Any) -> str:
    """A plain value in a finding, in short."""
    text = repr(value) if value is MISSING else encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
