"""Bodies that are no JSON, too large, too deep, badly compressed or bombs: each is a 4xx, and costs little."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import httpx
import pytest
import zstandard
from pydantic import BaseModel, ValidationError
from serving import GOOD, client, serving

import lanes
from lanes.serving import Server, reading
from lanes.serving.errors import Refusal
from lanes.serving.settings import MiB
from lanes.serving.wire.chat import ChatRequest
from lanes.serving.wire.decisions import DecisionRequest

JSON = dict[str, Any]
PATHS = list(GOOD)
BAD_JSON = {
    "empty": b"",
    "blank": b" \n",
    "half": b'{"state": ',
    "a list": b"[]",
    "null": b"null",
    "a text": b'"{}"',
    "a number": b"1",
    "more behind it": b"{} {}",
    "single quotes": b"{'a': 1}",
    "a comment": b"{} // so",
    "a key twice": b'{"a": 1, "a": 1}',
    "an escaped key twice": b'{"a": 1, "\\u0061": 1}',
    "a key twice inside": b'{"a": [{"b": 1, "b": 2}]}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "a huge float": b'{"a": 1e999}',
    "a huge whole number": b'{"a": ' + b"9" * 5000 + b"}",
    "deep lists": b'{"a": ' + b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a text without an end, full of quotes": b'{"a": "' + b'\\"' * 200_000,
    "too many values": b'{"a": [' + b"1," * 100_000 + b"1]}",
    "no UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "half a character": b'{"a": "\\ud800"}',
    "half a character in a key": b'{"a": [{"\\udc00": 1}]}',
    "a zero byte": b'{"a": "\0"}',
}


def send(server: Server, path: str, content: Any, **headers: str) -> httpx.Response:
    """One POST of bytes."""
    given = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    with client(server) as one:
        return one.post(path, content=content, headers=given)


def said(got: httpx.Response) -> str:
    """The message of an error, in whichever style; and that it is a proper one."""
    assert 400 <= got.status_code < 500, (got.status_code, got.text)
    assert "Traceback" not in got.text and 'File "' not in got.text
    assert len(got.content) < 2000
    body = got.json()
    if "error" in body:
        assert set(body["error"]) == {"message", "type", "param", "code"}
        return body["error"]["message"]
    detail = body["detail"]
    if isinstance(detail, list):
        assert got.status_code == 422 and all(one["loc"][0] == "body" and one["type"] for one in detail)
        return detail[0]["msg"]
    assert detail["error_type"]
    return detail["message"]


@pytest.mark.parametrize("path", PATHS)
def test_a_good_body_is_answered(server: Server, path: str):
    assert send(server, path, json.dumps(GOOD[path])).status_code == 200


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/chat/completions"])
@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_what_is_no_json_object_is_refused(server: Server, path: str, body: bytes):
    got = send(server, path, body)
    assert said(got) and got.status_code == (422 if "systemone" in path else 400)


def test_as_many_values_as_there_may_be_are_read(server: Server):
    many = {**GOOD["/v1/systemone"], "unknown": [1] * (reading.MOST_SIGNS - 100)}
    assert send(server, "/v1/systemone", json.dumps(many)).status_code == 200


def test_what_is_wrong_with_a_number_is_said_in_terms_of_the_body(server: Server):
    message = said(send(server, "/v1/systemone", b'{"a": ' + b"9" * 5000 + b"}"))
    assert "too long" in message and "sys." not in message


LONG_NAMES: list[tuple[str, JSON]] = [
    ("/v1/chat/completions", {"x" * 9000: 1}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": [{"type": "x" * 9000}]}]}),
    ("/v1/systemone", {"questions": {"x" * 9000: {"type": "noul"}}}),
    ("/v1/systemone", {"questions": {"a": {"type": "x" * 9000}}}),
    ("/v1/decisions", {"questions": [{"type": "predicate", "instructions": "So.", "x" * 9000: 1}]}),
]


@pytest.mark.parametrize(("path", "change"), LONG_NAMES)
def test_no_error_repeats_all_of_a_long_name(server: Server, path: str, change: JSON):
    assert said(send(server, path, json.dumps({**GOOD[path], **change})))


MANY: list[tuple[type[BaseModel], JSON]] = [
    (ChatRequest, {"messages": [1] * 1000}),
    (ChatRequest, {"messages": [{"role": "user", "content": [{}] * 1000}]}),
    (DecisionRequest, {**GOOD["/v1/decisions"], "input": [{}] * 1000}),
    (DecisionRequest, {**GOOD["/v1/decisions"], "questions": [{"type": "predicate", "instructions": [{}] * 1000}]}),
]


@pytest.mark.parametrize(("schema", "body"), MANY)
def test_of_many_wrong_items_one_is_looked_at(schema: type[BaseModel], body: JSON):
    with pytest.raises(ValidationError) as caught:
        schema.model_validate(body)
    assert caught.value.error_count() <= 2, "what is wrong with all of them takes seconds to say, and nobody hears it"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", [None, True, 0, -1, 1.5, "", "x", [], [None], [[]], {}, {"a": {}}, 10**30], ids=repr)
def test_wrong_types_are_refused_and_the_field_is_named(server: Server, path: str, value: Any):
    for field in GOOD[path]:
        if (field, value) == ("max_tokens", None):
            continue  # right: a reply without a limit, which takes its time
        got = send(server, path, json.dumps({**GOOD[path], field: value}))
        if got.status_code != 200:
            assert said(got)
            where = got.json().get("error", {}).get("param") or str(got.json().get("detail"))
            assert field in where or "state" in where, got.text  # questions by name are asked about a state


@pytest.mark.parametrize("path", sorted({*PATHS} - {"/v1/systemone"}))  # which ignores what it does not know
def test_a_field_that_is_not_there_is_named_and_what_to_do_is_said(server: Server, path: str):
    got = send(server, path, json.dumps({**GOOD[path], "max_token": 4}))
    assert said(got).startswith("there is no such field here: leave it out")
    assert "max_token" in (got.json().get("error", {}).get("param") or str(got.json().get("detail")))


@pytest.mark.parametrize("path", PATHS)
def test_a_body_of_ten_million_bytes_is_too_large(server: Server, path: str):
    whole = b'{"state": "' + b"x" * (10 * MiB) + b'"}'
    got = send(server, path, whole)
    assert got.status_code == 413 and "bytes" in said(got)
    parts = (whole[start : start + MiB] for start in range(0, len(whole), MiB))
    got = send(server, path, parts)
    assert got.status_code == 413, "also where its length was not told before"


def test_a_body_of_the_largest_size_is_read(engine: lanes.Engine):
    with serving(engine, body_bytes=1000) as server:
        good = json.dumps(GOOD["/v1/systemone"]).encode()
        assert send(server, "/v1/systemone", good + b" " * (1000 - len(good))).status_code == 200
        assert send(server, "/v1/systemone", good + b" " * (1001 - len(good))).status_code == 413
        packed = gzip.compress(good + b" " * (1001 - len(good)))
        assert send(server, "/v1/systemone", packed, content_encoding="gzip").status_code == 413


def _members(data: bytes) -> bytes:
    return gzip.compress(data[:40]) + gzip.compress(data[40:])


def _frames(data: bytes) -> bytes:
    return zstandard.compress(data[:40]) + zstandard.compress(data[40:])


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "several members": ("gzip", _members),
    "zstd": ("zstd", zstandard.compress),
    "several frames": ("zstd", _frames),
    "a stream of unknown length": ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress),
    "in capitals": ("ZSTD", zstandard.compress),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_body_is_answered_as_the_plain_one(server: Server, name: str):
    encoding, pack = PACKED[name]
    plain = json.dumps(GOOD["/v1/systemone"]).encode()
    want = send(server, "/v1/systemone", plain).json()["answers"]
    got = send(server, "/v1/systemone", pack(plain), content_encoding=encoding)
    assert got.status_code == 200 and got.json()["answers"] == want


def test_members_end_wherever_they_do():
    random, texts = Random(5), [b"", b" " * 300_000, b"x"]
    texts += [random.randbytes(length) for length in (1, 4078, 4096, 9000, 200_000)]
    for _ in range(20):
        random.shuffle(texts)
        packed = b"".join(gzip.compress(text) for text in texts)
        assert reading._decoder("gzip")(packed, MiB) == b"".join(texts)


def test_many_members_are_not_copied_again_and_again(monkeypatch: pytest.MonkeyPatch):
    fed: list[int] = []

    class Watched:
        def __init__(self, **given: Any) -> None:
            self._one = usual(**given)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._one, name)

        def decompress(self, data: bytes, most: int) -> bytes:
            fed.append(len(data))
            return self._one.decompress(data, most)

    usual = zlib.decompressobj
    monkeypatch.setattr(reading.zlib, "decompressobj", Watched)
    assert reading._decoder("gzip")(gzip.compress(b" ") * 3000, MiB) == b" " * 3000
    assert sum(fed) <= 3000 * reading.FEED


def _zeros(pack: str) -> bytes:
    """A quarter of a gibibyte of blanks, packed."""
    if pack == "zstd":
        return zstandard.compress(b" " * (1 << 28))
    one = zlib.compressobj(9, wbits=31)
    return b"".join([*(one.compress(b" " * (1 << 20)) for _ in range(256)), one.flush()])


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_a_bomb_is_refused_before_it_goes_off(pack: str, monkeypatch):
    made: list[int] = []

    def watch(parts: Iterator[bytes], most: int) -> bytes:
        return usual((made.append(len(part)) or part for part in parts), most)

    usual = reading._bounded
    monkeypatch.setattr(reading, "_bounded", watch)
    bomb = _zeros(pack)
    assert len(bomb) < 2 * MiB
    with pytest.raises(Refusal) as error:
        reading._decoder(pack)(bomb, 8 * MiB)
    assert error.value.status == 413
    assert sum(made) <= 8 * MiB + 2 * reading.SLICE, "no more was unpacked than the limit"


def test_a_bomb_is_refused_over_http(server: Server):
    got = send(server, "/v1/systemone", zstandard.compress(b" " * (64 * MiB)), content_encoding="zstd")
    assert got.status_code == 413 and said(got)


def _wide() -> bytes:
    """A frame that asks for a window of a gibibyte, without its length in front."""
    settings = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=0)
    one = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    return one.compress(b"{}" * 100) + one.flush()


BROKEN = {
    "gzip: nothing": ("gzip", b""),
    "gzip: no gzip": ("gzip", b"{}"),
    "gzip: half": ("gzip", gzip.compress(b"{}" * 1000)[:-9]),
    "gzip: a wrong sum": ("gzip", gzip.compress(b"{}" * 1000)[:-8] + b"\0" * 8),
    "gzip: rubbish behind it": ("gzip", gzip.compress(b"{}") + b"rubbish"),
    "gzip: zlib in its place": ("gzip", zlib.compress(b"{}")),
    "zstd: nothing": ("zstd", b""),
    "zstd: no zstd": ("zstd", b"{}"),
    "zstd: half": ("zstd", zstandard.compress(b"{}" * 1000)[:-3]),
    "zstd: rubbish behind it": ("zstd", zstandard.compress(b"{}") + b"rubbish"),
    "zstd: a huge window": ("zstd", _wide()),
}


@pytest.mark.parametrize("name", BROKEN)
def test_badly_packed_bodies_are_refused(server: Server, name: str):
    encoding, body = BROKEN[name]
    got = send(server, "/v1/systemone", body, content_encoding=encoding)
    assert said(got) and got.status_code == 422


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, zstd", "x" * 500, "identity, gzip"])
def test_other_encodings_are_refused_with_those_that_are_known(server: Server, encoding: str):
    got = send(server, "/v1/systemone", b"{}", content_encoding=encoding)
    assert got.status_code == 415 and "gzip" in said(got)
    assert got.headers["accept-encoding"] == "gzip, zstd"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json"]
)
def test_only_json_is_read(server: Server, kind: str):
    got = send(server, "/v1/systemone", json.dumps(GOOD["/v1/systemone"]), content_type=kind)
    assert got.status_code == 415 and "application/json" in said(got)


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.own+json"])
def test_json_by_its_other_names_is_read(server: Server, kind: str):
    assert send(server, "/v1/systemone", json.dumps(GOOD["/v1/systemone"]), content_type=kind).status_code == 200
