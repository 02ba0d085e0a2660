"""Where a forward's time goes: every part has a kind, the kinds add up, and the clock changes no bit."""

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

import lanes
from lanes.measure.ceilings import bare, ceilings, evaluation_seconds
from lanes.measure.parts import KINDS, Timed, products, timed

TOKENS = mx.array([[3, 5, 7, 11]])
EXPECTED = {
    "llama": {"embedding", "norms", "projections", "attention", "MLP", "head", "between"},
    "qwen3": {"embedding", "norms", "projections", "attention", "MLP", "head", "between"},
    "qwen3_moe": {"embedding", "norms", "projections", "attention", "route", "experts", "head", "between"},
    "qwen3_5": {"embedding", "norms", "projections", "attention", "recurrence", "MLP", "head", "between"},
}


@pytest.mark.parametrize("arch", EXPECTED)
def test_the_kinds_are_there_add_up_and_change_no_bit(arch: str) -> None:
    model = lanes.load(lanes.tiny(arch), progress=False).model
    before = np.array(model(TOKENS))
    seen = []
    with timed(model) as clock:
        clock.run(lambda: seen.append(model(TOKENS)) or seen[0])
        assert set(clock.seconds) <= set(KINDS)
        assert set(clock.seconds) >= EXPECTED[arch]
        assert all(seconds >= 0 for seconds in clock.seconds.values())
        assert clock.evaluations > 5
    assert np.array_equal(before, np.array(seen[0]))
    assert not [part for _, part in model.named_modules() if isinstance(part, Timed)], "a clock was left in the model"
    assert np.array_equal(before, np.array(model(TOKENS)))


def test_a_model_that_fails_under_the_clock_is_whole_again() -> None:
    model = lanes.load(lanes.tiny("llama"), progress=False).model
    with pytest.raises(ZeroDivisionError), timed(model):
        raise ZeroDivisionError
    assert not [part for _, part in model.named_modules() if isinstance(part, Timed)]


def test_the_matrices_are_those_that_every_row_meets() -> None:
    model = lanes.load(lanes.tiny("llama"), progress=False).model
    found = products(model)
    linear = [part for _, part in model.named_modules() if type(part) is nn.Linear]
    assert len(found) in (len(linear), len(linear) + 1)  # a tied head is the embedding's
    assert {one.kind for one in found} == {"projections", "MLP", "head"}


def test_ceilings_are_numbers_of_this_machine() -> None:
    peak = ceilings(megabytes=8, tries=1)
    assert peak.flops > 0 and peak.bandwidth > 0
    assert peak.seconds(peak.flops, 0) == pytest.approx(1) and peak.seconds(0, 2 * peak.bandwidth) == pytest.approx(2)
    model = lanes.load(lanes.tiny("llama"), progress=False).model
    alone = bare(products(model), rows=8, tries=1)
    assert alone.keys() == {"projections", "MLP", "head"} and all(seconds > 0 for seconds in alone.values())
    assert evaluation_seconds(tries=3) > 0
