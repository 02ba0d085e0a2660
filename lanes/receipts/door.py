"""What a notebook tells a receipt, checked before it is believed. Every function raises InvalidRequest."""

from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from pathlib import Path
from typing import Any

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.receipts.canonical import plain
from lanes.receipts.fields import Number, is_line

LONGEST = 200
"""Characters of a name or a digest."""


def line(what: str, text: Any, longest: int = LONGEST) -> str:
    """A text on one line."""
    if not isinstance(text, str) or len(text) > longest or not is_line(text):
        raise InvalidRequest(f"{what} must be a text on one line, of 1 to {longest} characters, not {_short(text)}")
    return text


def parameters(given: Any) -> dict[str, Any]:
    """The parameters as plain values; their names are those of variables."""
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"parameters must be a mapping of names to values, not {type(given).__name__}")
    for name in given:
        if not isinstance(name, str) or not name.isascii() or not name.isidentifier() or iskeyword(name):
            raise InvalidRequest(f"a parameter must have the name of a variable, which {name!r} is not")
    return plain("parameters", given)


def seeds(given: Mapping[str, Any]) -> dict[str, int]:
    """The parameters that are seeds: whole numbers whose names say so."""
    return {name: value for name, value in given.items() if "seed" in name.lower() and type(value) is int}


def digests(what: str, given: Any) -> list[str]:
    """A row of digests, at least one."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidRequest(f"{what} must be a list of digests, not {_short(given)}")
    found = list(given)
    if not found:
        raise InvalidRequest(f"{what} has no digests, which proves nothing: make the stream with digests=True")
    return [line(f"{what}.{at}", own) for at, own in enumerate(found)]


def figure(path: Any) -> list[str]:
    """The path of a figure: a ratio's name, or arm, value and figure; the median where none is said."""
    if isinstance(path, str):
        return [line("figure", path)]
    if not isinstance(path, Sequence) or not path:
        raise InvalidRequest(f"figure must be a ratio's name or (arm, value, figure), not {_short(path)}")
    found = [line("a part of figure", part) for part in path]
    return [*found, "median"] if len(found) == 2 else found


def path(given: Any) -> Path:
    """The place of a file or folder."""
    try:
        found = Path(given)
    except TypeError:
        raise InvalidRequest(f"a path must be a text or a Path, not {_short(given)}") from None
    if "\0" in str(found):
        raise InvalidRequest("a path cannot hold the character NUL")
    return found


def has(what: str, given: Any, *names: str) -> None:
    """Refuse what is not of a kind that has these attributes."""
    if any(not hasattr(given, name) for name in names):
        raise InvalidRequest(f"{what}, not {_short(given)}")


def value(what: str, pair: Any) -> tuple[str, str]:
    """An arm, and a value of its samples."""
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise InvalidRequest(f"{what} must be (arm, value), such as ('idle', 'seconds'), not {_short(pair)}")
    return line(f"{what}'s arm", pair[0]), line(f"{what}'s value", pair[1])


def ends(low: Any, high: Any) -> tuple[Number | None, Number | None]:
    """The ends of a range, as they are kept."""
    kept = _end(low), _end(high)
    check_range(*kept)
    return kept


def _end(given: Any) -> Number | None:
    if given is None:
        return None
    if not checks.is_number(given):
        raise InvalidRequest(f"low and high must be numbers, not {_short(given)}")
    return plain("an end", given)


def check_range(low: Number | None, high: Number | None) -> None:
    """Refuse a range without ends, and one that nothing can lie in."""
    if low is None and high is None:
        raise InvalidRequest("a range needs an end: give low, high, or both")
    if low is not None and high is not None and low > high:
        raise InvalidRequest(f"nothing lies between low={low:g} and high={high:g}: swap them")


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
