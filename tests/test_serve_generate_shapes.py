"""Requests into options, tokens into text and bytes, log-probabilities into entries: plain values in and out."""

import asyncio
import json
from typing import Any

import pytest
import zoo
from generated import ASKED, CHAT, MESSAGES, tokenizer_taken
from hypothesis import given
from hypothesis import strategies as some
from rigs import until
from starlette.types import Message, Scope

import lanes
from lanes.engine.turn import Logprob
from lanes.serving.app import application
from lanes.serving.errors import Refusal
from lanes.serving.generate import asked
from lanes.serving.generate.entries import LEAST, Entries
from lanes.serving.generate.forms import chat_logprobs, completion_logprobs, usage
from lanes.serving.generate.spelling import Spelled, Speller, spell
from lanes.serving.models import check_model
from lanes.serving.settings import Settings
from lanes.serving.wire.chat import ChatRequest
from lanes.serving.wire.completions import CompletionRequest
from lanes.serving.wire.generation import Only

# What is asked.


def chat(**said: Any) -> asked.Asked:
    return asked.chat(ChatRequest.model_validate({"messages": MESSAGES, **said}), 100)


def completion(**said: Any) -> asked.Asked:
    return asked.completion(CompletionRequest.model_validate({"prompt": "Tell me", **said}))


def test_what_is_left_out_is_left_to_the_engine():
    assert chat() == asked.Asked(MESSAGES, "messages", {"max_tokens": 100}, False, False)
    assert completion() == asked.Asked("Tell me", "prompt", {"max_tokens": 16}, False, False)


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ({"temperature": 0.0}, {"temperature": 0.0}),
        ({"temperature": 2}, {"temperature": 2.0}),
        ({"top_p": 0.5, "top_k": 5, "min_p": 0.1}, {"top_p": 0.5, "top_k": 5, "min_p": 0.1}),
        ({"top_k": -1}, {"top_k": 0}),
        ({"seed": 5}, {"seed": 5}),
        ({"seed": -1}, {"seed": 2**64 - 1}),
        ({"stop": "a"}, {"stop": ["a"]}),
        ({"stop": ["a", "b"], "stop_token_ids": [7]}, {"stop": ["a", "b"], "stop_tokens": [7]}),
        ({"ignore_eos": True}, {"ignore_eos": True}),
    ],
)
def test_what_is_said_reaches_the_engine(said: dict[str, Any], option: dict[str, Any]):
    for got in (chat(**said), completion(**said)):
        assert {**got.options, "max_tokens": None} == {"max_tokens": None, **option}


def test_log_probabilities_are_asked_for_in_two_ways():
    counts = [chat(), chat(logprobs=False), chat(logprobs=True), chat(logprobs=True, top_logprobs=4)]
    assert [each.options.get("logprobs") for each in counts] == [None, None, 0, 4]
    assert [completion(logprobs=n).options.get("logprobs") for n in (None, 0, 4)] == [None, 0, 4]
    with pytest.raises(Refusal, match="needs logprobs"):
        chat(top_logprobs=4)
    assert "logprobs" not in chat(top_logprobs=0).options


def test_how_the_reply_comes():
    assert not chat(stream=False).streamed and chat(stream=True).streamed
    assert chat(stream=True, stream_options={"include_usage": True}).with_usage
    assert not chat(stream=True, stream_options={}).with_usage
    with pytest.raises(Refusal, match="streamed replies"):
        completion(stream_options={"include_usage": True})


@pytest.mark.parametrize("good", [None, "default", "lanes", "own"])
def test_models_that_are_here(good: str | None):
    check_model(good, "own")


@pytest.mark.parametrize("bad", ["", "Own", "own ", "gpt-5"])
def test_models_that_are_not(bad: str):
    with pytest.raises(Refusal, match="is not served here") as caught:
        check_model(bad, "own")
    assert caught.value.status == 404 and caught.value.where == ("model",)


@pytest.mark.parametrize(
    ("allowed", "good", "bad"),
    [
        ((1,), [1, 1.0, None], [True, 2, "1", [1], {}]),
        ((0,), [0, 0.0, -0.0, None], [False, 0.1, "", []]),
        ((False,), [False, None], [0, True, ""]),
        (([],), [[], None], [{}, [1], "", 0]),
        (("none", "auto"), ["none", "auto", None], ["", "required", {"type": "function"}]),
        ((), [None], [0, "", False, []]),
    ],
)
def test_only_some_values(allowed: tuple[Any, ...], good: list[Any], bad: list[Any]):
    only = Only(*allowed, why="so it is")
    assert [only.check(value) for value in good] == good
    for value in bad:
        with pytest.raises(ValueError, match="so it is"):
            only.check(value)


# Tokens by themselves.


@given(some.text(some.sampled_from("ab e€é😀日\n .,"), min_size=1, max_size=20))
@pytest.mark.parametrize("kind", ["byte_level", "byte_fallback"])
def test_the_bytes_of_tokens_join_to_their_text(kind: str, text: str):
    tokenizer = zoo.tokenizer(kind)
    tokens = tokenizer.encode(f"a{text}", add_special_tokens=False)
    found = spell(tokenizer, tokens)
    said = b"".join(found[token].raw for token in tokens).decode()
    assert said.removeprefix(" ") == f"a{text}", "the space in front of a text is the tokenizer's own"


@pytest.mark.parametrize("kind", zoo.KINDS)
def test_every_token_of_every_kind_is_spelled(kind: str):
    tokenizer = zoo.tokenizer(kind)
    found = spell(tokenizer, range(len(tokenizer) + 2))
    specials = set(tokenizer.all_special_ids)
    assert all(found[token].raw == b"" and found[token].text for token in specials)
    assert all(found[token].raw for token in range(len(tokenizer)) if token not in specials and found[token].text)
    assert found[len(tokenizer) + 1].raw == b"", "a row of the model that is no token"
    named = [found[token].named for token in range(len(tokenizer)) if token not in specials]
    assert not any("\ufffd" in name for name in named), "half characters are written as bytes"


@pytest.mark.parametrize("kind", ["byte_level", "byte_fallback", "metaspace"])
def test_spaces_within_a_text_are_kept(kind: str):
    tokenizer = zoo.tokenizer(kind)
    spaced = [token for token, piece in enumerate(pieces(tokenizer)) if piece[:1] in "Ġ▁" and piece[1:].isalpha()]
    assert len(spaced) > 5 and all(
        one.text[0] == " " and one.raw[:1] == b" " for one in spell(tokenizer, spaced).values()
    )


def pieces(tokenizer: Any) -> list[str]:
    return tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))


def test_how_parts_of_characters_are_written():
    assert Spelled("\ufffd", b"\xe2\x82").escaped == "\\xe2\\x82"
    assert Spelled("\ufffd", b"\xe2\x82").named == "bytes:\\xe2\\x82"
    assert Spelled("\ufffd", "\ufffd".encode()).named == "\ufffd", "one that is meant"
    assert Spelled("<end>", b"").named == "<end>"


def test_a_busy_tokenizer_holds_up_no_event_loop(engine: lanes.Engine):
    async def main() -> None:
        speller = Speller(engine)
        with tokenizer_taken(engine):
            task = asyncio.ensure_future(speller.spell([5, 6]))
            await asyncio.sleep(0.01)
            assert not task.done()
        found = await task
        assert {5, 6} <= found.keys()
        assert await speller.spell([6]) is found

    asyncio.run(main())


# Entries.

TEXTS = {
    1: Spelled("a", b"a"),
    2: Spelled("\ufffd", b"\xe2"),
    3: Spelled("\ufffd", b"\x82\xac"),
    4: Spelled("<e>", b""),
}


def entry(*tokens: int, top: int = 0) -> tuple[Any, ...]:
    return Entries().make([Logprob(token, -1.0, ((1, -0.5), (4, -2.0))[:top]) for token in tokens], TEXTS)


def test_tokens_begin_where_the_characters_before_them_end():
    assert [one.offset for one in entry(1, 2, 3, 1, 4, 1)] == [0, 1, 1, 2, 3, 3]
    entries = Entries()
    apart = [entries.make([Logprob(token, -1.0)], TEXTS)[0].offset for token in (1, 2, 3, 1)]
    assert apart == [0, 1, 1, 2], "one by one as all at once"


def test_both_shapes_of_log_probabilities():
    entries = entry(2, 4, top=2)
    said = chat_logprobs(entries)
    assert said and [(one.token, one.bytes, one.logprob) for one in said.content] == [
        ("\\xe2", [0xE2], -1.0),
        ("<e>", [], -1.0),
    ]
    assert [(top.token, top.logprob, top.bytes) for top in said.content[0].top_logprobs] == [
        ("a", -0.5, [97]),
        ("<e>", -2.0, []),
    ]
    plain = completion_logprobs(entries)
    assert plain and plain.tokens == ["bytes:\\xe2", "<e>"] and plain.token_logprobs == [-1.0, -1.0]
    assert plain.top_logprobs == [{"a": -0.5, "<e>": -2.0, "bytes:\\xe2": -1.0}, {"a": -0.5, "<e>": -2.0}]
    assert chat_logprobs(None) is None and completion_logprobs(None) is None
    none = chat_logprobs(())
    assert none and none.content == []


def test_what_cannot_be_is_a_number_in_json():
    (one,) = Entries().make([Logprob(1, float("-inf"), ((4, float("-inf")),))], TEXTS)
    assert one.logprob == LEAST and one.top[0][1] == LEAST


def test_usage_adds_up():
    assert usage(7, 4, 3).model_dump() == {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


# A connection that breaks before the first byte.


def test_a_pipe_that_breaks_at_the_first_byte_frees_the_slot(engine: lanes.Engine):
    body = json.dumps({**ASKED[CHAT], "stream": True, "max_tokens": 4000, "ignore_eos": True}).encode()
    said: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope: Scope = {"type": "http", "method": "POST", "path": CHAT, "headers": headers, "query_string": b""}

    async def main() -> None:
        async def receive() -> Message:
            if not said:
                await asyncio.Event().wait()
            return said.pop()

        async def send(message: Message) -> None:
            raise BrokenPipeError

        await application(engine, Settings())({**scope, "root_path": ""}, receive, send)

    asyncio.run(main())
    until(lambda: engine.wait(0))
    assert engine.streams()[-1].state == "cancelled"
