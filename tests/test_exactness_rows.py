"""A row's logits, bit by bit: they depend on the row's own sequence, never on its place, its mates or the load."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import mlx.core as mx
import numpy as np
import pytest
from company import fill, raw, rows_alone, tokens
from hypothesis import given, settings
from hypothesis import strategies as st

import lanes
from lanes.forward import Packed, Row, Single
from lanes.models import Loaded

PIECE = 32
WIDTH = 8
# Prompts on both sides of a piece's border, and of 256 keys; the tokens after them are decoded.
LENGTHS = (300, 5, 255, 33, 257, 64, 1)
AFTER = 8
PACKED = ("llama", "qwen3", "qwen3_moe", "gemma3")


@pytest.fixture(scope="module", params=PACKED)
def loaded(request: pytest.FixtureRequest) -> Loaded:
    return lanes.load(lanes.tiny(request.param, seed=1))


@pytest.fixture(scope="module")
def llama() -> Loaded:
    return lanes.load(lanes.tiny("llama", seed=1))


@dataclass
class Lane:
    """A sequence in a slot, and how far it is."""

    slot: int
    rest: list[int]
    at: int
    want: np.ndarray
    done: int = 0

    def take(self, rows: int) -> list[Row]:
        fed = self.rest[self.done : self.done + rows]
        made = [Row(self.slot, self.at + self.done + i, token) for i, token in enumerate(fed)]
        self.done += len(fed)
        return made


def references(forward: Packed, lengths: tuple[int, ...], after: int = AFTER) -> list[np.ndarray]:
    """The rows of each sequence, run alone."""
    return [rows_alone(forward, tokens(n, n), tokens(after, n + 1), PIECE) for n in lengths]


def mingle(forward: Packed, lengths: tuple[int, ...], wants: list[np.ndarray], rng: Random, after: int = AFTER) -> int:
    """Run sequences in rounds of random rows: they join, leave and fill as it comes. Returns the rows compared."""
    waiting = list(zip(lengths, wants, strict=True))
    rng.shuffle(waiting)
    free = list(range(len(forward.slots)))
    rng.shuffle(free)
    lanes_in: list[Lane] = []
    compared = 0
    while waiting or lanes_in:
        if waiting and free and rng.random() < 0.6:
            length, want = waiting.pop()
            ids, slot = tokens(length, length), free.pop()
            body = fill(forward, slot, ids, PIECE)
            lanes_in.append(Lane(slot, [*ids[body:], *tokens(after, length + 1)], body, want))
        rng.shuffle(lanes_in)
        taken: list[tuple[Lane, int, list[Row]]] = []
        spare = forward.width
        for lane in lanes_in[: rng.randint(1, len(lanes_in))] if lanes_in else []:
            first = lane.done
            rows = lane.take(rng.randint(1, max(1, spare // 2)))
            taken.append((lane, first, rows))
            spare -= len(rows)
            if not spare:
                break
        if not taken:
            continue
        got = raw(forward.rows([row for _, _, rows in taken for row in rows]))
        at = 0
        for lane, first, rows in taken:
            np.testing.assert_array_equal(got[at : at + len(rows)], lane.want[first : first + len(rows)])
            at += len(rows)
            compared += len(rows)
        for lane in [lane for lane in lanes_in if lane.done == len(lane.rest)]:
            lanes_in.remove(lane)
            free.append(lane.slot)
    return compared


def test_rows_in_ragged_random_company_have_the_bits_of_the_same_rows_alone(loaded: Loaded) -> None:
    forward = Packed(loaded, 6, WIDTH)
    wants = references(forward, LENGTHS)
    total = sum(map(len, wants))
    for seed in range(2):
        assert mingle(forward, LENGTHS, wants, Random(seed)) == total


@settings(max_examples=8, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 330), min_size=2, max_size=6, unique=True),
    width=st.sampled_from([4, 8]),
    slots=st.integers(1, 5),
    rng=st.randoms(use_true_random=False),
)
def test_any_mix_of_any_sequences_at_width_4_and_8(
    llama: Loaded, lengths: list[int], width: int, slots: int, rng: Random
) -> None:
    forward = Packed(llama, slots, width)
    wants = references(forward, tuple(lengths), after=4)
    assert mingle(forward, tuple(lengths), wants, rng, after=4) == sum(map(len, wants))


def test_the_embedded_model_has_the_same_bits_in_company_and_alone(default_loaded: Loaded) -> None:
    # The tiny models are weak witnesses: their products are too small for the classes of kernels that real ones meet.
    forward = Packed(default_loaded, 3, WIDTH)
    lengths = (258, 40, 3)
    wants = references(forward, lengths, after=3)
    assert mingle(forward, lengths, wants, Random(2), after=3) == sum(map(len, wants))


def test_every_place_among_the_rows_gives_the_same_bits(loaded: Loaded) -> None:
    forward = Packed(loaded, WIDTH, WIDTH)
    starts = [fill(forward, slot, tokens(n, slot), PIECE) for slot, n in enumerate((290, 5, 270, 65, 258, 33, 7, 130))]
    rows = [Row(slot, start, 7 + slot) for slot, start in enumerate(starts)]
    wants = [raw(forward.rows([row]))[0] for row in rows]
    for turn in range(WIDTH):
        order = rows[turn:] + rows[:turn]
        got = raw(forward.rows(order))
        for place, row in enumerate(order):
            np.testing.assert_array_equal(got[place], wants[row.slot], err_msg=f"slot {row.slot} as row {place}")


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 1e30])
def test_a_mate_whose_state_is_broken_changes_no_bit_of_the_others(loaded: Loaded, poison: float) -> None:
    forward = Packed(loaded, 2, WIDTH)
    starts = [fill(forward, slot, tokens(n, slot), PIECE) for slot, n in enumerate((290, 100))]
    want = raw(forward.rows([Row(0, starts[0], 9)]))[0]
    broken = forward.slots[1]
    broken.values[:] = [mx.full(array.shape, poison) for array in broken.values]
    got = raw(forward.rows([Row(1, starts[1], 9), Row(0, starts[0], 9)]))
    assert not np.isfinite(got[0].view(np.float32)).all() or poison == 1e30
    np.testing.assert_array_equal(got[1], want)


@pytest.mark.parametrize("cut", [(1,) * 12, (8, 4), (5, 7), (3, 3, 3, 3), (2, 8, 1, 1)])
def test_the_tail_of_a_prompt_may_be_dealt_to_rounds_in_any_way(loaded: Loaded, cut: tuple[int, ...]) -> None:
    forward = Packed(loaded, 2, WIDTH)
    ids = tokens(256 + 12, 3)
    want = rows_alone(forward, ids, (), PIECE)
    at = fill(forward, 1, ids, PIECE)
    for rows in cut:
        block = [Row(1, at + i, token) for i, token in enumerate(ids[at : at + rows])]
        np.testing.assert_array_equal(raw(forward.rows(block))[:rows], want[at - 256 : at - 256 + rows])
        at += rows


def test_a_round_touches_only_the_slots_that_have_rows_in_it(loaded: Loaded) -> None:
    forward = Packed(loaded, 3, WIDTH)
    for slot in range(3):
        fill(forward, slot, tokens(70, slot), PIECE)

    def state(slot: int) -> list[bytes]:
        mx.eval(forward.state(slot))
        return [np.array(array).tobytes() for array in forward.state(slot)]

    before = [state(slot) for slot in range(3)]
    raw(forward.rows([Row(1, 64, 9), Row(1, 65, 10)]))
    raw(forward.fill(2, 64, tokens(PIECE, 5)))
    assert state(0) == before[0]
    assert state(1) != before[1]
    assert state(2) != before[2]
    middle = state(2)
    raw(forward.rows([Row(1, 66, 11)]))
    assert state(2) == middle


def test_a_piece_has_the_same_bits_whatever_runs_between_the_pieces(loaded: Loaded) -> None:
    forward = Packed(loaded, 3, WIDTH)
    ids = tokens(320, 4)
    quiet = []
    forward.open(0, 400)
    for start in range(0, 320, PIECE):
        quiet.append(raw(forward.fill(0, start, ids[start : start + PIECE])))
    fill(forward, 1, tokens(280, 5), PIECE)
    forward.open(2, 400)
    for turn, start in enumerate(range(0, 320, PIECE)):
        raw(forward.rows([Row(1, 256 + turn, 40 + turn)]))
        got = raw(forward.fill(2, start, ids[start : start + PIECE]))
        np.testing.assert_array_equal(got, quiet[turn])


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_a_piece_in_parts_has_the_bits_of_a_whole_one_whatever_runs_between_them(loaded: Loaded, parts: int) -> None:
    forward = Packed(loaded, 2, WIDTH)
    ids, after = tokens(300, 5), tokens(AFTER, 6)
    want = rows_alone(forward, ids, after, PIECE)
    whole = [raw(forward.fill(0, start, ids[start : start + PIECE]))[0] for start in (0, 256)]
    mate = fill(forward, 1, tokens(40, 7), PIECE)
    forward.open(0, len(ids) + 64)
    body = (len(ids) - 1) // PIECE * PIECE
    for start in range(0, body, PIECE):
        logits, stations = forward.begin(0, start, ids[start : start + PIECE], parts)
        assert len(stations) == parts - 1
        for station in stations:
            mx.eval(station)
            raw(forward.rows([Row(1, mate, 9)]))
        mx.eval(logits, forward.state(0))
        if start in (0, 256):
            assert np.array_equal(raw(logits)[0], whole[start // 256])
    rest = [*ids[body:], *after]
    got = np.stack([raw(forward.rows([Row(0, body + at, token)]))[0] for at, token in enumerate(rest)])
    assert np.array_equal(got, want)


def test_a_slot_that_held_something_longer_before_and_has_more_room_gives_the_same_bits(loaded: Loaded) -> None:
    ids, after = tokens(70, 6), tokens(4, 7)
    want = rows_alone(Packed(loaded, 1, WIDTH), ids, after, PIECE)
    used = Packed(loaded, 1, WIDTH)
    rows_alone(used, tokens(290, 8), tokens(9, 9), PIECE)
    np.testing.assert_array_equal(rows_alone(used, ids, after, PIECE), want)
    roomy = Packed(loaded, 1, WIDTH)
    at = fill(roomy, 0, ids, PIECE, room=3000)
    for step, token in enumerate([*ids[at:], *after]):
        np.testing.assert_array_equal(raw(roomy.rows([Row(0, at + step, token)]))[0], want[step])


def test_two_forwards_of_one_model_may_take_turns(loaded: Loaded) -> None:
    ids, after = tokens(40, 6), tokens(6, 7)
    want = rows_alone(Packed(loaded, 1, WIDTH), ids, after, PIECE)
    pair = [Packed(loaded, 1, WIDTH) for _ in range(2)]
    at, _ = (fill(forward, 0, ids, PIECE) for forward in pair)
    for step, token in enumerate([*ids[at:], *after]):
        for forward in pair:
            np.testing.assert_array_equal(raw(forward.rows([Row(0, at + step, token)]))[0], want[step])


def test_going_back_in_a_sequence_forgets_what_came_after(loaded: Loaded) -> None:
    forward = Packed(loaded, 1, WIDTH)
    ids = tokens(270, 10)
    want = rows_alone(forward, ids, (21, 22), PIECE)[-2:]
    rows_alone(forward, ids, tokens(20, 11), PIECE)
    got = [raw(forward.rows([Row(0, 270, 21)]))[0], raw(forward.rows([Row(0, 271, 22)]))[0]]
    np.testing.assert_array_equal(got, want)


Make = Callable[[Loaded], Packed | Single]
MAKES: dict[str, Make] = {"packed": lambda loaded: Packed(loaded, 2, WIDTH), "single": lambda loaded: Single(loaded, 2)}


@pytest.mark.parametrize(
    ("arch", "route"), [("llama", "packed"), ("gemma3", "packed"), ("qwen3_5", "single"), ("gemma3", "single")]
)
def test_a_state_that_was_saved_and_loaded_goes_on_with_the_same_bits(arch: str, route: str) -> None:
    loaded = lanes.load(lanes.tiny(arch, seed=1))
    forward = MAKES[route](loaded)
    ids = tokens(300, 12)
    want = rows_alone(forward, ids, (), PIECE)
    fill(forward, 0, ids, PIECE)
    saved = forward.save(0, 288)
    mx.eval(saved)
    rows_alone(forward, tokens(300, 13), (), PIECE)  # the slot that it came from goes on: the copy must not follow
    fill(forward, 1, tokens(150, 14), PIECE)
    for _ in range(2):  # what was loaded goes on too, and must leave the saved state as it was
        forward.open(1, 310)
        forward.load(1, saved, 288)
        got = [raw(forward.rows([Row(1, 288 + at, token)]))[0] for at, token in enumerate(ids[288:])]
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("arch", ["qwen3_5", "gemma3", "llama"])
def test_the_single_route_goes_back_to_a_mark_with_the_same_bits(arch: str) -> None:
    forward = Single(lanes.load(lanes.tiny(arch, seed=1)), 1)
    ids = tokens(96, 15)

    def tail(end: list[int]) -> np.ndarray:
        return raw(forward.fill(0, 64, end))

    wants = []
    for seed in (16, 17):
        fill(forward, 0, ids[:65], PIECE)
        wants.append(tail(tokens(9, seed)))
    forward.open(0, 100, marks=[64])
    for start in (0, 32):
        mx.eval(forward.fill(0, start, ids[start : start + PIECE]), forward.state(0))
    for turn in (0, 1, 0, 1):
        np.testing.assert_array_equal(tail(tokens(9, 16 + turn)), wants[turn])


def test_the_single_route_keeps_slots_apart() -> None:
    forward = Single(lanes.load(lanes.tiny("qwen3_5", seed=1)), 3)
    lengths = (40, 290, 7)
    after = tokens(6, 18)
    wants = [rows_alone(forward, tokens(n, n), after, PIECE) for n in lengths]
    starts = [fill(forward, slot, tokens(n, n), PIECE) for slot, n in enumerate(lengths)]
    rest = [[*tokens(n, n)[start:], *after] for n, start in zip(lengths, starts, strict=True)]
    for step in range(max(map(len, rest))):
        slots = [slot for slot in (2, 0, 1) if step < len(rest[slot])]
        got = raw(forward.rows([Row(slot, starts[slot] + step, rest[slot][step]) for slot in slots]))
        for row, slot in enumerate(slots):
            np.testing.assert_array_equal(got[row], wants[slot][step])
