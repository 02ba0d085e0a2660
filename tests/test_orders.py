"""Orders of options: rotations far apart first, and when to stop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanes
from lanes.decisions.orders import MOST, rotations, settled, wanted


@pytest.mark.parametrize("count", [2, 3, 4, 6, 10, 255])
def test_rotations_are_all_there_once_and_the_callers_order_is_first(count: int) -> None:
    found = rotations(count)
    assert found[0] == tuple(range(count))
    assert len(set(found)) == count
    for place in range(count):
        assert sorted(order[place] for order in found) == list(range(count)), "each option once at every place"


def test_the_second_rotation_is_far_from_the_first() -> None:
    assert [order[0] for order in rotations(8)] == [0, 4, 2, 6, 1, 5, 3, 7]
    assert rotations(2) == ((0, 1), (1, 0))


def test_how_many_orders_are_asked() -> None:
    assert wanted(1, 6) == (1, 1)
    assert wanted(4, 6) == (4, 4)
    assert wanted(100, 6) == (6, 6)
    assert wanted("auto", 6) == (2, 6)
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


def test_a_steady_lead_settles_even_where_one_order_disagrees() -> None:
    assert settled(logs([[0.9, 0.1]] * 6 + [[0.45, 0.55]]))
    assert not settled(logs([[0.55, 0.45], [0.4, 0.6], [0.6, 0.4], [0.45, 0.55]]))


@given(st.permutations(range(5)))
def test_a_bias_for_places_is_gone_after_all_rotations(places: list[int]) -> None:
    option = np.log([0.1, 0.15, 0.3, 0.25, 0.2])
    bias = np.array(places, dtype=float)
    heard = np.zeros((5, 5))
    for row, order in zip(heard, rotations(5), strict=True):
        row[list(order)] = option[list(order)] + bias
    assert heard.mean(axis=0) - heard.mean() == pytest.approx(option - option.mean())
