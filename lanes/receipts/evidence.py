"""Checks from their evidence: each is made by the same pure function that makes it again when it is verified."""

from collections.abc import Callable, Sequence
from typing import Any

from lanes.receipts.canonical import same, sha256
from lanes.receipts.fields import Number
from lanes.receipts.shapes import Check, Digests, Range, Same

Lookup = Callable[[Sequence[str]], Number]
"""The figure at a path, as `aggregates.figure` finds it."""


def plain_check(name: str, expected: Any, observed: Any) -> Check:
    """That two plain values are equal."""
    return Check(
        name=name,
        expected=expected,
        observed=observed,
        passed=same(expected, observed),
        evidence=Same(kind="value"),
    )


def equal_check(name: str, first: Sequence[str], second: Sequence[str]) -> Check:
    """That two rows of digests are equal, one by one. Rows without a digest prove nothing and never pass."""
    return Check(
        name=name,
        expected=summary(first),
        observed=summary(second),
        passed=len(first) > 0 and tuple(first) == tuple(second),
        evidence=Digests(kind="digests", first=tuple(first), second=tuple(second)),
    )


def range_check(name: str, figure: Sequence[str], low: Number | None, high: Number | None, found: Number) -> Check:
    """That a figure lies in a range, ends included."""
    return Check(
        name=name,
        expected={"low": low, "high": high},
        observed=found,
        passed=(low is None or low <= found) and (high is None or found <= high),
        evidence=Range(kind="range", figure=tuple(figure), low=low, high=high),
    )


def again(check: Check, lookup: Lookup) -> Check:
    """The check that follows from the evidence of a recorded one. Raises InvalidRequest for an unknown figure."""
    evidence = check.evidence
    if isinstance(evidence, Digests):
        return equal_check(check.name, evidence.first, evidence.second)
    if isinstance(evidence, Range):
        return range_check(check.name, evidence.figure, evidence.low, evidence.high, lookup(evidence.figure))
    return plain_check(check.name, check.expected, check.observed)


def summary(digests: Sequence[str]) -> dict[str, Any]:
    """A row of digests in short: how many, and the sha256 of them, one a line."""
    return {"count": len(digests), "sha256": sha256("\n".join(digests))}


def range_words(low: Number | None, high: Number | None) -> str:
    """A range in words."""
    if low is None:
        return "any number" if high is None else f"at most {high:g}"
    return f"at least {low:g}" if high is None else f"{low:g} to {high:g}"
