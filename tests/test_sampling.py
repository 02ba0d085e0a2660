"""Draws: their distribution, their support, and that seed and position alone decide them."""

import math
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm import sample_utils

from lanes.errors import InvalidRequest
from lanes.sampling import Sampling, draw, draw_rows, key

LOGITS = mx.array([1.0, 0.5, -1.0, 2.0, 0.0, -3.0, 1.9, -0.2])


def softmax(logits, temperature=1.0):
    scaled = np.array(logits, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return weights / weights.sum()


def draws(sampling, n, logits=LOGITS, start=0):
    return np.array(mx.stack([draw(logits, sampling, start + position) for position in range(n)]))


def support(sampling, logits=LOGITS, n=400):
    """Tokens that come up at a temperature that makes all that are kept about equally likely."""
    return set(draws(sampling, n, logits).tolist())


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_frequencies_follow_the_softmax_at_the_temperature(temperature):
    n = 4000
    expected = softmax(LOGITS, temperature) * n
    counts = np.bincount(draws(Sampling(temperature, seed=7), n), minlength=8)
    usual = expected > 5
    chi_square = np.sum((counts - expected)[usual] ** 2 / expected[usual])
    assert chi_square < 24.3  # the 0.1 % point for 7 degrees of freedom
    assert counts[~usual].sum() <= 5 + 3 * expected[~usual].sum()


def test_draws_at_one_position_over_many_seeds_follow_the_softmax_too():
    n = 4000
    tokens = mx.stack([draw(LOGITS, Sampling(1.0, seed=seed), 3) for seed in range(n)])
    counts, expected = np.bincount(np.array(tokens), minlength=8), softmax(LOGITS) * n
    assert np.sum((counts - expected) ** 2 / expected) < 24.3


@pytest.mark.parametrize("top_k", range(1, 9))
def test_top_k_keeps_exactly_the_k_likeliest(top_k):
    likeliest = np.argsort(-np.array(LOGITS), kind="stable")[:top_k]
    assert support(Sampling(1e6, top_k=top_k, seed=1)) == set(likeliest.tolist())


def test_top_k_keeps_k_among_equals():
    assert len(support(Sampling(1.0, top_k=3, seed=1), mx.zeros((8,)))) == 3


@pytest.mark.parametrize("top_p", [1e-9, 0.2, 0.4, 0.55, 0.8, 0.9, 0.97, 0.999, 1.0])
def test_top_p_keeps_the_fewest_that_reach_p(top_p):
    order = np.argsort(-np.array(LOGITS), kind="stable")
    mass = np.cumsum(softmax(LOGITS)[order])
    kept = order[: 1 + np.sum(mass[:-1] < top_p)]
    assert support(Sampling(1e6, top_p=top_p, seed=2)) == set(kept.tolist())


def test_top_p_that_is_reached_exactly_needs_no_more():
    assert len(support(Sampling(1.0, top_p=0.5, seed=2), mx.zeros((4,)))) == 2


@pytest.mark.parametrize("min_p", [0.0, 0.001, 0.05, 0.3, 0.9, 1.0])
def test_min_p_keeps_those_with_this_share_of_the_likeliest(min_p):
    probabilities = softmax(LOGITS)
    kept = np.flatnonzero(probabilities >= min_p * probabilities.max())
    assert support(Sampling(1e6, min_p=min_p, seed=3)) == set(kept.tolist())


@settings(max_examples=20)
@given(
    top_p=st.sampled_from([0.3, 0.6, 0.9, 1.0]),
    top_k=st.integers(0, 9),
    min_p=st.sampled_from([0.0, 0.02, 0.2, 0.5, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_filters_together_keep_what_mlx_lm_keeps(top_p, top_k, min_p, seed):
    logits = mx.random.normal((8,), key=mx.random.key(seed)) * 2
    kept = logits - mx.logsumexp(logits)
    kept = sample_utils.apply_top_p(kept, top_p) if top_p < 1 else kept
    kept = sample_utils.apply_min_p(kept, min_p) if min_p else kept
    kept = sample_utils.apply_top_k(kept, top_k) if 0 < top_k < 8 else kept
    expected = set(np.flatnonzero(np.isfinite(np.array(kept))).tolist())
    assert support(Sampling(1e6, top_p, top_k, min_p, seed), logits, n=200) == expected


def test_a_greedy_draw_is_the_argmax_and_needs_no_seed():
    assert draw(LOGITS, Sampling(), 5).item() == 3
    assert draw(mx.array([1.0, 3.0, 3.0]), Sampling(), 5).item() == 1


def test_a_draw_without_a_seed_is_an_error():
    with pytest.raises(ValueError, match="needs a seed"):
        draw(LOGITS, Sampling(1.0), 0)


@pytest.mark.parametrize("temperature", [1e-320, 1e-30, 1e-3])
def test_a_tiny_temperature_takes_the_likeliest(temperature):
    assert set(draws(Sampling(temperature, seed=4), 50).tolist()) == {3}


@pytest.mark.parametrize("temperature", [1e30, 1e300])
def test_a_huge_temperature_makes_what_is_kept_equally_likely(temperature):
    assert support(Sampling(temperature, top_k=3, seed=4)) == {0, 3, 6}


def test_draws_are_decided_by_seed_and_position_alone():
    sampling = Sampling(1.0, top_p=0.95, seed=11)
    alone = draws(sampling, 30)
    mx.random.seed(99)
    elsewhere = [mx.random.normal((4,)), draw(LOGITS, Sampling(1.0, seed=5), 3)]
    backwards = [draw(LOGITS, sampling, position).item() for position in reversed(range(30))]
    mx.eval(elsewhere)
    assert backwards[::-1] == alone.tolist()


def test_draws_leave_the_global_random_state_alone():
    mx.random.seed(1)
    expected = mx.random.normal((3,)).tolist()
    mx.random.seed(1)
    draws(Sampling(1.0, top_p=0.9, top_k=4, min_p=0.01, seed=3), 5)
    assert mx.random.normal((3,)).tolist() == expected


def test_rows_draw_what_they_draw_alone_whatever_their_company():
    rows = mx.random.normal((6, 50), key=mx.random.key(0))
    kinds = [Sampling(), Sampling(0.8, seed=1), Sampling(1.0, top_p=0.9, seed=2), Sampling(1.0, top_k=5, seed=2)]
    picks = [(row, kinds[(row + shift) % 4], 100 + row) for shift in range(4) for row in (5, 0, 3, 3, 1)]
    alone = [draw(rows[row], sampling, position).item() for row, sampling, position in picks]
    tokens = draw_rows(rows, picks)
    assert tokens.dtype == mx.int32
    assert tokens.tolist() == alone
    assert draw_rows(rows, picks[::-1]).tolist() == alone[::-1]


def test_greedy_rows_share_one_argmax():
    rows = mx.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    tokens = draw_rows(rows, [(2, Sampling(), 0), (1, Sampling(), 0)])
    assert (tokens.tolist(), tokens.dtype) == ([1, 0], mx.int32)


def test_keys_differ_between_positions_and_between_seeds():
    keys = {tuple(np.array(key(seed, position))) for seed in (0, 1, 2, 2**64 - 1) for position in range(500)}
    assert len(keys) == 2000


def test_keys_follow_the_written_rule():
    # SplitMix64 from state 0 gives 0xE220A8397B1DCDAF first (Vigna's reference program).
    first = 0xE220A8397B1DCDAF
    mixed = (first + 5 + 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    mixed ^= mixed >> 31
    assert key(0, 5).tolist() == [mixed >> 32, mixed & 0xFFFFFFFF]


def test_neighbouring_positions_draw_independently():
    tokens = draws(Sampling(1.0, seed=8), 4000, mx.zeros((4,)))
    pairs = np.bincount(tokens[:-1] * 4 + tokens[1:], minlength=16)
    assert np.sum((pairs - 3999 / 16) ** 2 / (3999 / 16)) < 37.7  # the 0.1 % point for 15 degrees of freedom


def test_numpy_numbers_are_taken():
    numbers: dict[str, Any] = {"temperature": np.float32(0.5), "top_k": np.int32(3), "seed": np.int64(2**63 - 1)}
    sampling = Sampling(**numbers)
    assert draw(LOGITS, sampling, 1).item() == draw(LOGITS, Sampling(0.5, top_k=3, seed=2**63 - 1), 1).item()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("temperature", [-0.1, math.nan, math.inf, True, "1", None]),
        ("top_p", [0, 0.0, -1, 1.1, math.nan, False, "x"]),
        ("min_p", [-0.1, 1.1, math.nan, True]),
        ("top_k", [-1, 1.5, True, math.nan, "3"]),
        ("seed", [-1, 2**64, 1.0, True, "7"]),
    ],
)
def test_numbers_that_make_no_sense_are_refused(field, values):
    for value in values:
        with pytest.raises(InvalidRequest, match=f"{field} must be .* got"):
            Sampling(**{field: value})
