"""Orders of options: each with its reverse, far apart first, and when to stop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanes
from lanes.decisions.orders import MOST, sequence, settled, wanted


@pytest.mark.parametrize("count", [2, 3, 4, 6, 10, 255])
def test_the_callers_order_is_first_and_every_order_is_followed_by_its_reverse(count: int) -> None:
    found = sequence(count)
    assert found[0] == tuple(range(count))
    assert len(set(found)) == len(found) == (2 * count if count > 2 else 2)
    assert all(back == order[::-1] for order, back in zip(found[::2], found[1::2], strict=True))
    for place in range(count):
        places = [order[place] for order in found]
        assert {places.count(option) for option in range(count)} == {len(found) // count}, "as often at every place"


def test_the_second_rotation_is_far_from_the_first() -> None:
    assert [order[0] for order in sequence(8)[::2]] == [0, 4, 2, 6, 1, 5, 3, 7]
    assert sequence(2) == ((0, 1), (1, 0))


def test_how_many_orders_are_asked() -> None:
    assert wanted(1, 6) == (1, 1)
    assert wanted(4, 6) == (4, 4)
    assert wanted(100, 6) == (12, 12)
    assert wanted("auto", 2) == (2, 2)
    assert wanted("auto", 4) == (2, 8)
    assert wanted("auto", 255) == (2, MOST)
    for bad in (0, -1, 1.5, True, "all", None):
        with pytest.raises(lanes.InvalidRequest, match="orders"):
            wanted(bad, 6)  # pyright: ignore[reportArgumentType]


def logs(rows: list[list[float]]) -> np.ndarray:
    return np.log(np.array(rows))


def test_one_order_is_never_enough_and_two_that_agree_are() -> None:
    assert not settled(logs([[0.9, 0.1]]))
    assert settled(logs([[0.9, 0.1], [0.6, 0.4]]))
    assert not settled(logs([[0.9, 0.1], [0.2, 0.8]]))


def test_a_steady_lead_settles_even_where_single_orders_disagree() -> None:
    steady = [[0.9, 0.1], [0.45, 0.55]]
    assert not settled(logs(steady * 2)), "too few"
    assert settled(logs(steady * 3))
    assert not settled(logs([*steady * 3, [0.9, 0.1]])), "a pair is not whole"
    assert not settled(logs([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9], [0.6, 0.4], [0.45, 0.55]]))


@given(st.permutations(range(5)))
def test_a_bias_for_places_is_gone_after_all_orders(places: list[int]) -> None:
    option = np.log([0.1, 0.15, 0.3, 0.25, 0.2])
    bias = np.array(places, dtype=float)
    heard = np.zeros((10, 5))
    for row, order in zip(heard, sequence(5), strict=True):
        row[list(order)] = option[list(order)] + bias
    assert heard.mean(axis=0) - heard.mean() == pytest.approx(option - option.mean())
