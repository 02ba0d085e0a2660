"""The golden files, read and written: JSON that people can read, and that a difference of lines shows well."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from golden.shapes import Topic

FOLDER = Path(__file__).parent
WIDTH = 120


def names() -> list[str]:
    """The topics, by name."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read(name: str) -> Topic:
    """A topic from its file."""
    return Topic.model_validate(json.loads(source(name)))


def source(name: str) -> str:
    """A topic's file as it is."""
    return path_of(name).read_text(encoding="utf-8")


def path_of(name: str) -> Path:
    """Where a topic is kept."""
    return FOLDER / f"{name}.json"


def dump(topic: Topic) -> str:
    """The text of a topic's file; half a character (a lone surrogate) is written as an escape."""
    text = "\n".join(_lines(topic.model_dump(), "", WIDTH)) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()


def _lines(value: Any, key: str, room: int) -> Iterator[str]:
    """JSON behind a key: on one line where it fits in `room` columns, numbers as a paragraph, else an entry a line."""
    flat = key + json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(flat) < room or not isinstance(value, dict | list | tuple):
        yield flat
    elif isinstance(value, dict):
        entries = [(f"{json.dumps(name, ensure_ascii=False)}: ", one) for name, one in value.items()]
        yield from _block(f"{key}{{", entries, "}", room)
    elif all(isinstance(one, int | float | None) for one in value):
        yield from (f"{key}[", *wrap(flat[len(key) + 1 : -1], room, initial_indent="  ", subsequent_indent="  "), "]")
    else:
        yield from _block(f"{key}[", [("", one) for one in value], "]", room)


def _block(head: str, entries: Sequence[tuple[str, Any]], foot: str, room: int) -> Iterator[str]:
    yield head
    for left, (key, value) in zip(reversed(range(len(entries))), entries, strict=True):
        *most, last = (f"  {line}" for line in _lines(value, key, room - 2))
        yield from (*most, last + "," * bool(left))
    yield foot
