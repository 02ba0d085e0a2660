"""The small shapes: a round cannot be changed, a timing says what was waited for."""

from dataclasses import FrozenInstanceError

import pytest

from lanes.record import Round, Timing


def test_a_round_is_immutable():
    with pytest.raises(FrozenInstanceError):
        Round(0, 0.0, 0.5, 8).end = 3.0  # pyright: ignore[reportAttributeAccessIssue]


def test_timing_says_what_was_waited_for():
    timing = Timing(submitted=1.0, admitted=1.5, first_token=2.0, finished=4.0)
    assert (timing.waited, timing.ttft, timing.served, timing.seconds) == (0.5, 1.0, 2.5, 3.0)
    assert timing.tokens_per_s(5) == 2.0
    assert timing.tokens_per_s(1) is None


def test_timing_of_a_request_under_way_has_no_end():
    timing = Timing(submitted=1.0)
    assert (timing.waited, timing.ttft, timing.served, timing.seconds) == (None, None, None, None)
    assert timing.tokens_per_s(5, now=9.0) is None
    assert Timing(1.0, 1.0, 2.0).tokens_per_s(5, now=6.0) == 1.0
