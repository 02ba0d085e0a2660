"""Bodies of requests: bounded in size, time and depth, decompressed, parsed and checked against a schema."""

import asyncio
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import zstandard
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from lanes.serving.context import context
from lanes.serving.errors import INVALID, Gone, Refusal, invalid, late

Model = TypeVar("Model", bound=BaseModel)
Made = TypeVar("Made")
DEEPEST = 64
"""Levels of objects and arrays in a body."""
MOST_SIGNS = 100_000
"""Texts, brackets and commas in a body: a schema takes its time for what is between them, and nothing else runs."""
LONGEST_WHOLE = 1000
"""Digits of a whole number: the time to read one grows with their square."""
LONGEST_NAME = 80
"""Characters of a name from a body that an error repeats."""
LONGEST_SAID = 400
"""Characters of what is wrong with it."""
WINDOW = 8 << 20
"""Bytes of the window that a zstd frame may ask for: RFC 9659 allows no more over HTTP."""
SLICE = 1 << 16
"""Bytes that are decompressed at a time."""
FEED = 1 << 12
"""Bytes of a gzip body that are looked at at a time: what is behind a member's end is copied."""
ASIDE = 1 << 16
"""Bytes from which a body is worked on beside the event loop."""
UNKNOWN = "there is no such field here: leave it out, or mend its spelling (/openapi.json lists all there are)"


async def read(request: Request, model: type[Model]) -> Model:
    """The body as this schema. Raises Refusal, naming the field, for anything else, and Gone."""
    return await _made_of(request, lambda value: parse(model, value))


async def load(request: Request) -> dict[str, Any]:
    """The body as a JSON object, for whoever must look before choosing a schema. Raises Refusal and Gone."""
    return await _made_of(request, lambda value: value)


async def _made_of(request: Request, use: Callable[[dict[str, Any]], Made]) -> Made:
    """What is made of the body's JSON object; of a large body beside the event loop."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refusal(415, INVALID, f"the body must be application/json, not {kind[:80]!r}")
    unpack = _decoder(request.headers.get("content-encoding", "identity"))
    raw, most = await _bytes(request), context(request).settings.body_bytes

    def made() -> Made:
        return use(_object(unpack(raw, most)))

    return made() if len(raw) < ASIDE and unpack is _identity else await asyncio.to_thread(made)


def parse(model: type[Model], value: Any) -> Model:
    """A body's JSON value as this schema. Raises Refusal, naming the first wrong field."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        said = UNKNOWN if first["type"] == "extra_forbidden" else first["msg"][:LONGEST_SAID]
        place = tuple(part if isinstance(part, int) else part[:LONGEST_NAME] for part in first["loc"])
        raise invalid(said, place, first["type"]) from None


async def _bytes(request: Request) -> bytes:
    """The body as it was sent."""
    settings = context(request).settings
    parts: list[bytes] = []
    size = 0

    async def gather() -> None:
        nonlocal size
        async for part in request.stream():
            size += len(part)
            if size > settings.body_bytes:
                raise too_large(settings.body_bytes)
            parts.append(part)

    try:
        await asyncio.wait_for(gather(), settings.patience)
    except ClientDisconnect:
        raise Gone from None
    except asyncio.TimeoutError:
        raise late(f"the body was not there after {settings.patience:g} s: send it faster") from None
    return b"".join(parts)


def too_large(most: int) -> Refusal:
    """A body beyond the limit."""
    said = f"the body is larger than {most} bytes, which is the limit here, before and after decompression"
    return Refusal(413, INVALID, said, code="too_large")


# --- compression ----------------------------------------------------------------------------------------------------


def _decoder(encoding: str) -> Callable[[bytes, int], bytes]:
    """What undoes a content encoding."""
    known = {"identity": _identity, "": _identity, "gzip": _gzip, "x-gzip": _gzip, "zstd": _zstd}
    if (found := known.get(encoding.strip().lower())) is None:
        said = f"content-encoding {encoding[:40]!r} is not known here: send gzip, zstd, or the plain body"
        raise Refusal(415, INVALID, said, headers={"Accept-Encoding": "gzip, zstd"})
    return found


def _identity(raw: bytes, most: int) -> bytes:
    return raw


def _gzip(raw: bytes, most: int) -> bytes:
    try:
        return _bounded(_gunzipped(raw), most)
    except (zlib.error, EOFError) as error:
        raise invalid(f"the body is no whole gzip data: {error}", code="encoding_invalid") from None


def _gunzipped(raw: bytes) -> Iterator[bytes]:
    """Slice by slice, all members one after the other; there may be very many, so no more is fed than a little."""
    at = 0
    while at < len(raw):
        one = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not one.eof:
            fed = raw[at : at + FEED]
            part = one.decompress(fed, SLICE)
            at += len(fed) - len(one.unused_data if one.eof else one.unconsumed_tail)
            if not (part or fed or one.eof):
                raise EOFError("it ends too early")
            yield part


def _zstd(raw: bytes, most: int) -> bytes:
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=WINDOW).stream_reader(raw, read_across_frames=True)
        return _bounded(iter(lambda: reader.read(SLICE), b""), most)
    except zstandard.ZstdError as error:
        raise invalid(f"the body is no whole zstd data: {error}", code="encoding_invalid") from None


def _bounded(parts: Iterator[bytes], most: int) -> bytes:
    """All parts together; no more is unpacked once the limit is passed."""
    whole = bytearray()
    for part in parts:
        whole += part
        if len(whole) > most:
            raise too_large(most)
    return bytes(whole)


# --- JSON -----------------------------------------------------------------------------------------------------------

# A string without an end is one up to the end: to look for another in it, again and again, would take forever.
_SIGNS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]|,', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _object(text: bytes) -> dict[str, Any]:
    """The JSON object in this text. Keys that are there twice, numbers that are none, and too much are refused."""
    _check_shape(text)
    try:
        found = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_whole,
        )
    except UnicodeDecodeError as error:
        raise invalid(f"the body is no UTF-8 at byte {error.start}", code="json_invalid") from None
    except (ValueError, RecursionError) as error:
        raise invalid(f"the body is no valid JSON: {error}", code="json_invalid") from None
    if not isinstance(found, dict):
        raise invalid(f"the body must be a JSON object, not {type(found).__name__}", code="model_type")
    if _SURROGATE.search(text):
        _check_texts(found)
    return found


def _check_shape(text: bytes) -> None:
    """Refuse what is too deep, or too much, before anything is made of it."""
    depth = 0
    for count, found in enumerate(_SIGNS.finditer(text)):
        sign = text[found.start()]
        depth += (sign in b"[{") - (sign in b"]}")
        if depth > DEEPEST:
            raise invalid(f"the body has more than {DEEPEST} levels of objects and arrays", code="too_deep")
        if count == MOST_SIGNS:
            raise invalid(f"the body has more than {MOST_SIGNS:,} texts, brackets and commas", code="too_many")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"the key {twice[:80]!r} is there twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_WHOLE:
        raise ValueError(f"{digits[:40]}... is too long for a number")
    return int(digits)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return value


def _check_texts(value: Any) -> None:
    """Refuse half a character (a lone surrogate): it cannot be sent back, nor shown to a model."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise invalid("a text has half a character (a lone surrogate) in it", code="json_invalid") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key)
            _check_texts(item)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)
