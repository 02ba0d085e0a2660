"""The probe: does a row's logits depend on anything but its own sequence? Tried at load, on this machine, by bits.

Rows of several lengths are run in every position of the round with ever other neighbours, and each must give the very
same logits. A model that keeps more than plain keys and values, or computes its own attention, takes the single route.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import mlx.core as mx
import numpy as np

from lanes.errors import InvalidRequest, ModelError
from lanes.forward.packed import Packed, Row
from lanes.forward.single import Single
from lanes.models.loaded import Loaded

Forward: TypeAlias = Packed | Single
Check: TypeAlias = Callable[[], None]
WIDTHS = (16, 8, 4)
LENGTHS = (300, 7, 257, 64, 130, 33, 256, 200)
"""Keys before the row that is compared: short ones, and both sides of 256, where kernels and blocks change."""
CLOSE = 2e-3
"""How far packed logits may lie from mlx-lm's own, relative to their largest value, before a model is not packed."""


@dataclass(frozen=True, slots=True)
class Exactness:
    """What the probe found: the route and width in use, and whether a row's bits were free of its company.

    `tried` are the widths with their verdicts, `comparisons` the rows compared, `lengths` the keys before them.
    """

    exact: bool
    route: str
    width: int
    piece: int
    comparisons: int
    lengths: tuple[int, ...]
    tried: tuple[tuple[int, bool], ...]
    why: str

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain values, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        verdict = "exact" if self.exact else "NOT exact"
        shape = f"{self.route} route, {self.width} rows a round, pieces of {self.piece}"
        return f"Exactness({verdict}: {shape}; {self.why})"


def prepare(
    loaded: Loaded, slots: int, piece: int, width: int | None = None, check: Check = lambda: None
) -> tuple[Forward, Exactness]:
    """Choose the route and the width for a model, and prove what can be proved.

    slots: the engine's slots. piece: tokens of a piece. width: rows of a round, or None for the widest that passes.
    check: called every now and then; it raises where nobody waits for the result any more. Raises InvalidRequest for a
    width that cannot work.
    """
    if width is not None and not 1 <= width <= 64:
        raise InvalidRequest(f"width is the number of packed rows in a round, 1 to 64, not {width}")
    widths = [width] if width else [w for w in WIDTHS if w <= max(8, slots)]
    try:
        forward = Packed(loaded, max(slots, *widths), widths[0])
        _check_against_model(forward, loaded, piece)
    except (ModelError, _Differs) as reason:
        return _single(loaded, slots, piece, str(reason), check)
    tried: list[tuple[int, bool]] = []
    lengths = _fill(forward, loaded, piece, max(widths), check)
    compared = 0
    for candidate in widths:
        forward.width = candidate
        same, count = _rows_repeat(forward, lengths[:candidate], check)
        tried.append((candidate, same))
        compared += count
        if same:
            break
    else:
        forward.width = min(widths, key=lambda w: abs(w - 8))
    passed = tried[-1][1]
    why = "equal bits at every row, in any company" if passed else "a row's bits change with its position or its mates"
    for slot in range(len(forward.slots)):
        forward.clear(slot)
    del forward.slots[slots:]
    return forward, Exactness(passed, "packed", forward.width, piece, compared, tuple(lengths), tuple(tried), why)


class _Differs(Exception):
    """Packed rows do not compute what the model computes."""


def _single(loaded: Loaded, slots: int, piece: int, reason: str, check: Check) -> tuple[Single, Exactness]:
    """The single route: each forward has one sequence of a length of its own, so only repeatability is in question."""
    forward = Single(loaded, slots)
    tokens = _tokens(loaded, 2 * piece + 3)

    def logits() -> np.ndarray:
        forward.open(0, len(tokens))
        for start in range(0, 2 * piece, piece):
            check()
            mx.eval(forward.fill(0, start, tokens[start : start + piece]), forward.state(0))
        return _bits(forward.fill(0, 2 * piece, tokens[2 * piece :])[0])

    first = logits()
    same = all(np.array_equal(first, logits()) for _ in range(2))
    forward.clear(0)
    why = f"one sequence a forward, because {reason}" + ("" if same else "; the same forward gave other bits again")
    return forward, Exactness(same, "single", 1, piece, 2 * len(first), (2 * piece,), ((1, same),), why)


def _check_against_model(forward: Packed, loaded: Loaded, piece: int) -> None:
    """Two slots at unlike positions through pieces and packed rows must give what plain mlx-lm gives.

    Anything that a model does with its cache but not through it (soft caps, own masks, shared layers) shows here.
    """
    tokens = _tokens(loaded, piece + max(2, forward.width))
    want = loaded.model(mx.array([tokens]))[0]
    split = len(tokens) - 2
    try:
        for slot, body in ((0, piece), (1, 0)):
            forward.open(slot, len(tokens))
            if body:
                forward.fill(slot, 0, tokens[:body])
            for at in range(body, split, forward.width):
                block = tokens[at : min(at + forward.width, split)]
                forward.rows([Row(slot, at + i, token) for i, token in enumerate(block)])
        last = [Row(slot, position, tokens[position]) for slot in (0, 1) for position in (split, split + 1)]
        got = mx.concatenate([forward.rows(last[at : at + forward.width]) for at in range(0, 4, forward.width)])
        mx.eval(got, want)
    except (ModelError, TypeError, ValueError, AttributeError, IndexError, KeyError, RuntimeError) as error:
        raise _Differs(f"its forward does not take packed rows ({type(error).__name__}: {error})") from error
    expected = np.array(want.astype(mx.float32))[[split, split + 1, split, split + 1]]
    actual = np.array(got.astype(mx.float32))[:4]
    close = CLOSE if loaded.dtype == "float32" else 20 * CLOSE
    if not np.allclose(actual, expected, rtol=0, atol=close * float(np.abs(expected).max())):
        raise _Differs("packed rows give other logits than the model itself")


def _fill(forward: Packed, loaded: Loaded, piece: int, slots: int, check: Check) -> list[int]:
    """Give the slots states of unlike lengths, from one real fill; returns the lengths.

    Two pieces are filled and then repeated: what is in question is the arithmetic over so many keys, not what they say.
    """
    longest = min(max(LENGTHS), loaded.context - 2)
    body = piece * min(2, -(-longest // piece))
    tokens = _tokens(loaded, body)
    forward.open(0, body + 1)
    for start in range(0, body, piece):
        check()
        forward.fill(0, start, tokens[start : start + piece])
        mx.eval(forward.state(0))
    filled = min(body, longest)
    saved = [mx.tile(array, (1, 1, -(-longest // filled), 1)) for array in forward.save(0, filled)]
    mx.eval(saved)
    for slot in range(slots):
        check()
        forward.open(slot, longest + 1)
        forward.load(slot, saved, longest)
        mx.eval(forward.state(slot))
    return [min(LENGTHS[slot % len(LENGTHS)] + slot // len(LENGTHS), longest) for slot in range(slots)]


def _rows_repeat(forward: Packed, lengths: Sequence[int], check: Check) -> tuple[bool, int]:
    """Whether each slot's next row has the same bits alone, at every position, and with its mates in turn."""
    width = forward.width
    row = [Row(slot, length, 1 + slot) for slot, length in enumerate(lengths)]
    alone: list[np.ndarray] = []
    for at in range(0, width, max(1, width // 4)):
        alone.append(_bits(forward.rows([row[at]]))[0])
    compared = len(alone)
    reference: list[np.ndarray] | None = None
    for turn in range(width):
        check()
        order = [(turn + i) % width for i in range(width)]
        logits = _bits(forward.rows([row[i] for i in order]))
        found = [logits[order.index(i)] for i in range(width)]
        reference = reference or found
        compared += width
        if not all(map(np.array_equal, found, reference)):
            return False, compared
    assert reference is not None
    solo = reference[:: max(1, width // 4)]
    return all(map(np.array_equal, alone, solo)), compared


def _tokens(loaded: Loaded, count: int) -> list[int]:
    """Token ids of a fixed sequence, within the vocabulary."""
    rng = np.random.default_rng(7)
    return [int(token) for token in rng.integers(1, max(2, _vocabulary(loaded) - 1), count)]


def _vocabulary(loaded: Loaded) -> int:
    return len(loaded.tokenizer.get_vocab())


def _bits(logits: mx.array) -> np.ndarray:
    """Logits as integers, so that equal means equal bits (NaN included)."""
    wide = logits.astype(mx.float32)
    mx.eval(wide)
    return np.array(wide).view(np.uint32)
