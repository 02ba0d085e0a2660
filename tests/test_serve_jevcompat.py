"""The conformance suite of the System One API, against a server over a tiny model, with and without a key."""

from collections.abc import Iterator

import pytest
from jevcompat.runner import Report, run
from jevcompat.spec import REQUIREMENTS
from rigs import WAIT
from serving import serving

import lanes

KEY = "a-key-of-its-own"
LONG = 16_384
"""Tokens of context: 255 options with descriptions take half of that in the tiny tokenizer, a sixth in a real one."""


@pytest.fixture(scope="module", params=[None, KEY], ids=["no key", "a key"])
def report(request: pytest.FixtureRequest) -> Iterator[Report]:
    """What the suite found, all of its cases run."""
    keys = () if request.param is None else (request.param,)
    model = lanes.tiny("llama", max_position_embeddings=LONG)
    with lanes.Engine(model) as engine, serving(engine, api_keys=keys) as server:
        yield run(server.url, key=request.param, timeout=WAIT)


def test_the_server_is_conformant(report: Report):
    wrong = [f"{one.id}: {found.case} {found.message}" for one in report.results for found in one.findings]
    assert not wrong
    assert not (report.aborted or report.case_errors or report.inconclusive)
    assert report.verdict == "conformant"


def test_everything_that_applies_was_tested(report: Report):
    keyed = any(exchange.case.startswith("auth") for exchange in report.exchanges)
    skipped = {one.id for one in report.results if one.status == "skip"}
    assert skipped == ({"auth.ignored-when-off"} if keyed else {"auth.bearer", "auth.missing", "auth.invalid"})
    tested = {level: report.summary()[level]["passed"] for level in ("MUST", "SHOULD")}
    assert tested == {"MUST": 32, "SHOULD": 15 if keyed else 13}
    assert len(REQUIREMENTS) == 48, "another version of the suite: see what it asks anew"
    assert report.info["limits"] == {"choice options accepted up to": 255, "score levels accepted up to": 10}
