"""Canonical JSON: one text for one value, so that its sha256 can be its name.

Keys sorted by code points, no spaces, UTF-8, no NaN and no infinity, at most 1 MiB.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanes.errors import InvalidRequest
from lanes.receipts.fields import LARGEST as MOST

LARGEST = 1 << 20
"""Bytes that a receipt may have."""
DEEPEST = 60
"""Lists and mappings within each other that a receipt may have: every reader of JSON gets so far."""


class Malformed(ValueError):
    """A text that is no canonical JSON: `field` says where, the message what is wrong."""

    def __init__(self, field: str, says: str) -> None:
        super().__init__(says)
        self.field = field


def encode(value: Any) -> bytes:
    """The canonical text of a plain value. Raises ValueError for NaN, infinities and lone surrogates."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def decode(data: bytes) -> Any:
    """The value of a canonical text. Raises Malformed for anything else, and names the field where it can."""
    if len(data) > LARGEST:
        raise Malformed("file", f"it has {len(data)} bytes, a receipt has at most {LARGEST}")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_single)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed("file", "it is nested too deeply") from None
    except ValueError as error:
        raise Malformed("file", f"it is no JSON in UTF-8: {error}") from None
    if odd := next(_odd(value, "", DEEPEST), None):
        raise Malformed(*odd)
    try:
        own = encode(value)
    except UnicodeEncodeError:
        raise Malformed("file", "it has half of a surrogate pair, which is no text") from None
    if own != data:
        at = next((at for at, (a, b) in enumerate(zip(own, data, strict=False)) if a != b), min(len(own), len(data)))
        raise Malformed("file", f"it is not in canonical form from byte {at} on (keys sorted, no spaces, UTF-8)")
    return value


def sha256(data: bytes | str) -> str:
    """The sha256 in hex; of a text, that of its UTF-8."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def plain(name: str, value: Any, depth: int = DEEPEST // 2) -> Any:
    """The value as JSON knows it: numpy numbers and arrays as numbers and lists, tuples as lists.

    Raises InvalidRequest for what JSON does not know, NaN and infinities included, and for what no reader could hold:
    whole numbers beyond 1e100, halves of surrogate pairs, more than `depth` lists and mappings within each other.
    """
    if depth < 0:
        raise InvalidRequest(f"{name[:60]}... is nested too deeply: {DEEPEST // 2} levels are allowed")
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MOST:
        raise InvalidRequest(f"{name} is a whole number beyond {float(MOST):g}: give it as a text")
    if isinstance(value, str) and not _is_text(value):
        raise InvalidRequest(f"{name} has half of a surrogate pair, which is no text: decode it with errors='replace'")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidRequest(f"{name} is {value}, which JSON does not know: give a finite number, or None")
        return value
    if isinstance(value, Mapping):
        if odd := next((key for key in value if not isinstance(key, str) or not _is_text(key)), None):
            raise InvalidRequest(f"{name} has the key {odd!r}: keys must be texts")
        return {key: plain(f"{name}.{key}", own, depth - 1) for key, own in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(f"{name}.{at}", own, depth - 1) for at, own in enumerate(value)]
    raise InvalidRequest(f"{name} is of type {type(value).__name__}: give numbers, texts, lists and mappings of them")


def same(first: Any, second: Any) -> bool:
    """Whether two plain values are equal; 1 and 1.0 are, 1 and true are not."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


def differences(recorded: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: path, value there, value here; MISSING stands for none."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        for key in sorted({*recorded, *found}):
            own = recorded.get(key, MISSING), found.get(key, MISSING)
            yield from differences(*own, f"{path}.{key}")
    elif not same(recorded, found):
        yield path, recorded, found


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()
"""Stands for a value that is not there."""


def _single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that comes twice would let two readers see two values."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Malformed(key, "the key comes twice in one object")
        found[key] = value
    return found


def _is_text(text: str) -> bool:
    """Whether UTF-8 can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _odd(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """The paths of numbers that are not finite, and of what lies too deep."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path.lstrip(".") or "file", "NaN and infinities are no numbers of JSON"
    elif isinstance(value, dict | list) and depth < 1:
        yield path.lstrip("."), f"it is nested too deeply, {DEEPEST} levels are allowed"
    elif isinstance(value, dict | list):
        for key, own in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _odd(own, f"{path}.{key}", depth - 1)
