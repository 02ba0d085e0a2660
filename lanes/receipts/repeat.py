"""Two receipts of one notebook: what has to be equal, what may differ, and by how much. Pure."""

from collections.abc import Iterator

from lanes.receipts.audit import Finding, shown
from lanes.receipts.canonical import differences
from lanes.receipts.environment import unlike
from lanes.receipts.evidence import range_words
from lanes.receipts.shapes import Check, Digests, Range, Record
from lanes.receipts.show import figures_of

EQUAL = ("format", "topic", "claim", "notebook", "parameters", "seeds", "arms", "prompts")
"""What every run has to state alike, on whatever machine."""
REPLY = ("prompt_sha256", "prompt_tokens", "tokens", "finish_reason", "token_sha", "text")
"""What every machine has to give alike of a reply: token ids, never bits."""


def differing(there: Record, here: Record) -> Iterator[Finding]:
    """What had to be equal in a rerun and is not. Bits have to be where nothing that can change them is another."""
    a, b = (record.model_dump(mode="json", include=set(EQUAL)) for record in (there, here))
    for name in EQUAL:
        yield from _unlike(name, a[name], b[name])
    models = ({name: own.model.fingerprint for name, own in record.engines.items()} for record in (there, here))
    yield from _unlike("engines.fingerprint", *models)
    yield from _named(there, here, "checks")
    yield from _named(there, here, "ratios")
    yield from _named(there, here, "replies")
    bits = not apart(there, here)
    mine = {check.name: check for check in here.checks}
    for at, check in enumerate(there.checks):
        if own := mine.get(check.name):
            yield from _check(f"checks.{at}", check, own, bits)
    said = {reply.name: reply for reply in here.replies}
    for at, reply in enumerate(there.replies):
        if own := said.get(reply.name):
            names = {*REPLY, "logits_sha256"} if bits else {*REPLY}
            texts = (reply.model_dump(mode="json", include=names), own.model_dump(mode="json", include=names))
            yield from _unlike(f"replies.{at}", *texts)


def apart(there: Record, here: Record) -> list[str]:
    """What can change bits and is another, in words; nothing: the same bits are to be expected."""
    found = unlike(there.environment, here.environment)
    if there.project.sources_sha256 != here.project.sources_sha256:
        found.append(f"code: {there.project.sources_sha256[:12]} there, {here.project.sources_sha256[:12]} here")
    return found


def remarks(there: Record, here: Record) -> Iterator[str]:
    """What may differ: how far times and ratios lie apart, and why bits were not compared."""
    if other := apart(there, here):
        yield f"rerun: bits were not compared, as something that can change them is another ({'; '.join(other)})"
    else:
        yield "rerun: digests are equal bit for bit where the findings do not say otherwise"
    ranges = {check.evidence.figure: check.evidence for check in there.checks if isinstance(check.evidence, Range)}
    mine = {ratio.name: ratio for ratio in here.ratios}
    for ratio in there.ratios:
        if own := mine.get(ratio.name):
            stated = ranges.get((ratio.name,))
            ends = f"stated {range_words(stated.low, stated.high)}" if stated else "no range stated"
            yield f"rerun: {ratio.name}: {ratio.value:.4g} there, {own.value:.4g} here ({ends})"
    seconds = {arm: own.median for arm, value, own in figures_of(here) if value == "seconds"}
    for arm, value, own in figures_of(there):
        if value == "seconds" and arm in seconds:
            yield f"rerun: {arm}, median seconds: {own.median:.4g} there, {seconds[arm]:.4g} here"
    if there.not_run != here.not_run:
        yield f"rerun: not run here: {'; '.join(here.not_run) or 'nothing was left out'}"


def _named(there: Record, here: Record, kind: str) -> Iterator[Finding]:
    names = ([own.name for own in getattr(record, kind)] for record in (there, here))
    yield from _unlike(f"{kind}.name", *names)


def _check(path: str, there: Check, here: Check, bits: bool) -> Iterator[Finding]:
    """Outcomes have to be equal, digests too where bits are; figures have to stay in the recorded range."""
    if there.passed != here.passed:
        told = f"expected {shown(here.expected)}, observed {shown(here.observed)}"
        yield Finding(f"{path}.passed", f"{there.name!r}: recorded {shown(there.passed)}, the rerun {told}")
    if isinstance(there.evidence, Digests) and isinstance(here.evidence, Digests) and bits:
        for side in ("first", "second"):
            a, b = list(getattr(there.evidence, side)), list(getattr(here.evidence, side))
            yield from _unlike(f"{path}.evidence.{side}", a, b)
    if isinstance(there.evidence, Range):
        yield from _unlike(f"{path}.expected", there.expected, here.expected)


def _unlike(path: str, there: object, here: object) -> Iterator[Finding]:
    for field, a, b in differences(there, here, path):
        yield Finding(field, f"recorded {shown(a)}, the rerun gave {shown(b)}")
