"""A sweep's file: JSON lines, a header first, then one line for each row in the order of the rows.

Every line is handed to the system as it comes, so a killed run leaves whole lines and at most one torn one, which is
dropped. A file that another sweep wrote is refused, never changed.
"""

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lanes.errors import InvalidRequest
from lanes.paths import replaced
from lanes.sweeping.lines import Line, dumps, parse, write
from lanes.sweeping.locks import locked
from lanes.sweeping.terms import Maker, Terms

FORMAT = {"format": "lanes.sweep", "version": 1}


class Journal:
    """The file that is open for one sweep: what it held, and where the next lines go."""

    def __init__(self, path: Path, header: bytes, lines: list[Line]) -> None:
        self.path = path
        self.lines = lines
        """What the file held when it was opened."""
        self._header = header
        self._file = path.open("ab")

    def add(self, line: Line) -> None:
        """Write the next row's line, and hand it to the system."""
        self._file.write(write(line))
        self._file.flush()

    def rewrite(self, lines: Iterable[Line]) -> None:
        """Put these lines in place of all others, at once: a kill leaves the file as it was or as it shall be."""
        with replaced(self.path) as part:
            with part.open("wb") as file:
                file.writelines([self._header, *map(write, lines)])
            shutil.copymode(self.path, part)
        self._file.close()
        self._file = self.path.open("ab")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def opened(path: str | os.PathLike[str], terms: Terms, maker: Maker) -> Iterator[Journal]:
    """Open a sweep's file, new or with the lines that it has; locked until it is closed.

    Raises InvalidRequest for a file of other questions, options or model, for one that is damaged or no sweep's file,
    and for one that another sweep has open.
    """
    place = Path(path).expanduser().resolve()  # behind links, which a rewrite would replace
    header = {**FORMAT, **terms.header(maker)}
    with locked(place):
        lines = _resume(place, header, terms) if place.exists() else _begin(place, header)
        journal = Journal(place, dumps(header), lines)
        try:
            yield journal
        finally:
            journal.close()


def _begin(path: Path, header: Mapping[str, Any]) -> list[Line]:
    path.write_bytes(dumps(header))
    return []


def _resume(path: Path, header: Mapping[str, Any], terms: Terms) -> list[Line]:
    data = path.read_bytes()
    whole, _, torn = data.rpartition(b"\n")
    if not whole:  # killed amid the header, or no file of ours
        if not dumps(header).startswith(torn):
            raise InvalidRequest(f"{path} is no sweep's file: pass another path")
        return _begin(path, header)
    first, *rest = whole.split(b"\n")
    _check(path, first, header)
    lines = [_line(path, number, one, terms, header["model"]) for number, one in enumerate(rest)]
    if torn:
        os.truncate(path, len(data) - len(torn))
    return lines


def _check(path: Path, first: bytes, header: Mapping[str, Any]) -> None:
    """Raise InvalidRequest unless the file's header is this one; say what differs."""
    try:
        found = json.loads(first)
        if found["format"] != FORMAT["format"]:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise InvalidRequest(f"{path} is no sweep's file: pass another path") from None
    if dumps(found) == dumps(header):
        return
    differ = [name for name in header if dumps(found.get(name)) != dumps(header[name])]
    parts = "; ".join(f"{name} {_short(found.get(name))} there, {_short(header[name])} here" for name in differ)
    raise InvalidRequest(
        f"{path} belongs to another sweep, as these differ: {parts or 'its own fields'}. "
        "Pass another path, or delete the file"
    )


def _line(path: Path, number: int, data: bytes, terms: Terms, model: str) -> Line:
    try:
        line = parse(data, terms, model)
        if line.number != number:
            raise ValueError(f"it is row {line.number}")
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequest(
            f"{path} is damaged: the line of row {number} cannot be read ({type(error).__name__}: {error}); "
            "delete it and all after it, or the file"
        ) from None
    return line


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
