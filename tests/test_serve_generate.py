"""Text over HTTP, with OpenAI's own client: whole and streamed, it is what the engine's stream says."""

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import openai
import pytest
from company import words
from generated import (
    ASKED,
    CHAT,
    COMPLETIONS,
    PROMPT,
    Heard,
    async_client,
    create,
    dictate,
    events,
    heard,
    openai_client,
    spelled,
    tokenizer_taken,
)
from rigs import ROOT, WAIT, rig
from serving import client, post, serving

import lanes
from lanes.serving import Server

BOTH = pytest.mark.parametrize("path", [CHAT, COMPLETIONS])


@pytest.fixture(scope="module")
def one(server: Server) -> Iterator[openai.OpenAI]:
    with openai_client(server) as one:
        yield one


def text_of(reply: Any) -> str:
    choice = reply.choices[0]
    return choice.message.content if hasattr(choice, "message") else choice.text


# One text, however it is asked for.

WAYS: list[dict[str, Any]] = [
    {"temperature": 0},
    {"temperature": 0.9, "seed": 7},
    {"temperature": 1.3, "top_p": 0.8, "seed": -1},
    {"temperature": 1.0, "seed": 2**63, "extra_body": {"top_k": 20, "min_p": 0.02}},
]


@BOTH
@pytest.mark.parametrize("way", WAYS)
def test_whole_and_streamed_are_the_engines_own_text(
    server: Server, one: openai.OpenAI, path: str, way: dict[str, Any]
):
    own = {**way, **way.get("extra_body", {}), "seed": way.get("seed", 0) % 2**64}
    own.pop("extra_body", None)
    mine = server.engine.stream(PROMPT[path], max_tokens=24, **own)
    want = mine.result(WAIT)
    whole = create(one, path)(max_tokens=24, **way)
    streamed = heard(create(one, path)(max_tokens=24, stream=True, **way))
    assert text_of(whole) == streamed.text == want != ""
    assert whole.choices[0].finish_reason == streamed.reason == mine.finish_reason == "length"
    assert len(streamed.pieces) > 1 and len(whole.choices) == 1
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (mine.prompt_tokens, len(mine.tokens))
    assert whole.usage.total_tokens == mine.prompt_tokens + len(mine.tokens)


@BOTH
def test_a_client_in_an_event_loop_gets_the_same(server: Server, path: str):
    async def both() -> tuple[Any, Heard]:
        async with async_client(server) as one:
            whole = await create(one, path)(max_tokens=12)
            return whole, Heard([chunk async for chunk in await create(one, path)(max_tokens=12, stream=True)])

    whole, streamed = asyncio.run(both())
    assert text_of(whole) == streamed.text == server.engine.stream(PROMPT[path], max_tokens=12).result(WAIT)


def test_sixteen_at_once_are_never_mixed_up(server: Server):
    asked = [(path, seed, streamed) for seed in range(4) for path in (CHAT, COMPLETIONS) for streamed in (True, False)]

    async def ask(one: openai.AsyncOpenAI, path: str, seed: int, streamed: bool) -> str:
        made = await create(one, path)(max_tokens=20, temperature=1.0, seed=seed, stream=streamed)
        return Heard([chunk async for chunk in made]).text if streamed else text_of(made)

    async def main() -> list[str]:
        async with async_client(server) as one:
            return await asyncio.gather(*(ask(one, *each) for each in asked))

    alone = {
        (path, seed): server.engine.stream(PROMPT[path], max_tokens=20, temperature=1.0, seed=seed).result(WAIT)
        for path, seed, _ in asked
    }
    assert len(set(alone.values())) == len(alone), "texts that are all alike would prove nothing"
    assert asyncio.run(main()) == [alone[path, seed] for path, seed, _ in asked]


@BOTH
def test_a_reply_says_where_it_is_from(server: Server, one: openai.OpenAI, path: str):
    before = int(time.time())
    replies = [create(one, path)(max_tokens=2) for _ in range(2)]
    for reply in replies:
        assert reply.model == server.engine.model and before <= reply.created <= time.time()
        assert reply.system_fingerprint == f"fp_{server.engine.info.fingerprint[:12]}"
        assert reply.id.startswith("chatcmpl-" if path == CHAT else "cmpl-")
    assert replies[0].id != replies[1].id and replies[0].x_stream != replies[1].x_stream
    assert replies[1].object == ("chat.completion" if path == CHAT else "text_completion")
    views = {view.id: view.text for view in server.engine.streams()}
    assert [views[reply.x_stream] for reply in replies] == [text_of(reply) for reply in replies]


def test_a_seed_that_nobody_gave_comes_back_and_makes_the_same_text(one: openai.OpenAI):
    make = create(one, COMPLETIONS)
    first, other = (make(max_tokens=24, temperature=1.0) for _ in range(2))
    assert first.x_seed != other.x_seed and text_of(first) != text_of(other)
    assert text_of(make(max_tokens=24, temperature=1.0, seed=first.x_seed)) == text_of(first)
    (chunk, *rest) = make(max_tokens=24, temperature=1.0, seed=first.x_seed, stream=True)
    assert chunk.x_seed == first.x_seed and not any(hasattr(chunk, "x_seed") for chunk in rest)


def test_limits_of_tokens(one: openai.OpenAI, server: Server):
    assert create(one, COMPLETIONS)().usage.completion_tokens == 16, "as in OpenAI's API"
    for limit in ({"max_tokens": 3}, {"max_completion_tokens": 3}, {"max_tokens": 3, "max_completion_tokens": 3}):
        assert create(one, CHAT)(**limit).usage.completion_tokens == 3
    small = words(server.engine.info.context - 5)
    rest = create(one, COMPLETIONS)(prompt=small, max_tokens=100)
    assert rest.usage.completion_tokens == 5 and rest.choices[0].finish_reason == "length", "the context ends"


def test_messages_in_parts_and_developers_are_read(one: openai.OpenAI, server: Server):
    parts = [{"type": "text", "text": "Tell"}, {"type": "text", "text": " me"}]
    asked: list[Any] = [{"role": "developer", "content": "Be"}, {"role": "user", "content": parts, "name": "Ada"}]
    plain = [{"role": "system", "content": "Be"}, {"role": "user", "content": "Tell me"}]
    got = create(one, CHAT)(messages=asked, max_tokens=8)
    assert text_of(got) == server.engine.stream(plain, max_tokens=8).result(WAIT)


def test_what_was_kept_of_a_prompt_is_counted(one: openai.OpenAI, server: Server):
    make = create(one, COMPLETIONS)
    prompt = words(100, seed=5)
    first, again = (make(prompt=prompt, max_tokens=2).usage for _ in range(2))
    assert first.prompt_tokens_details.cached_tokens == 0
    assert again.prompt_tokens_details.cached_tokens == 96 and again.prompt_tokens == 100
    *_, last = make(prompt=prompt, max_tokens=2, stream=True, stream_options={"include_usage": True})
    assert last.usage.prompt_tokens_details.cached_tokens == 96


# The shape of a streamed reply.


@BOTH
@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": True}])
def test_chunks_come_as_clients_expect_them(server: Server, path: str, options: dict[str, Any] | None):
    asked = {**ASKED[path], "stream": True, "max_tokens": 5, **({} if options is None else {"stream_options": options})}
    with client(server) as one, one.stream("POST", path, json=asked) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        *chunks, end = events(response)
    assert end == "[DONE]"
    with_usage = bool(options and options.get("include_usage"))
    if with_usage:
        *chunks, last = chunks
        assert last["choices"] == [] and last["usage"]["completion_tokens"] == 5
        assert all(chunk["usage"] is None for chunk in chunks)
    else:
        assert not any("usage" in chunk for chunk in chunks)
    assert len({(chunk["id"], chunk["created"], chunk["system_fingerprint"]) for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk" if path == CHAT else "text_completion"}
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["length"]
    if path == CHAT:
        assert choices[0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
        assert all(set(choice["delta"]) == {"content"} for choice in choices[1:-1]) and choices[-1]["delta"] == {}
    else:
        assert choices[-1]["text"] == ""


@BOTH
def test_null_is_as_if_it_were_left_out(server: Server, path: str):
    fields = ["temperature", "top_p", "n", "stop", "seed", "logit_bias", "stream", "stream_options", "user", "logprobs"]
    fields += ["presence_penalty", "frequency_penalty", "top_k", "min_p", "model"]
    fields += ["tools", "response_format", "top_logprobs", "store"] if path == CHAT else ["echo", "suffix", "best_of"]
    said = post(server, path, {**ASKED[path], "max_tokens": 8, **dict.fromkeys(fields)})
    plain = post(server, path, {**ASKED[path], "max_tokens": 8})
    assert said.status_code == 200 and said.json()["choices"] == plain.json()["choices"]


# Where texts end, and where characters do.


@BOTH
def test_a_stop_string_is_cut_off_wherever_it_lies(path: str):
    text = "one two <end> three"
    with rig(slots=2, prefix_bytes=0) as own, serving(own.engine) as server, openai_client(server) as one:
        dictate(own, PROMPT[path], spelled(own, text))
        make, many = create(one, path), len(spelled(own, text))
        for stop, want in (
            ("<end>", "one two "),
            (["nothing", "<end>"], "one two "),
            (["two <end> t", " <e"], "one two"),  # the one that is complete first
            ("o", ""),
        ):
            whole = make(max_tokens=many, stop=stop)
            streamed = heard(make(max_tokens=many, stop=stop, stream=True))
            assert text_of(whole) == streamed.text == want
            assert whole.choices[0].finish_reason == streamed.reason == "stop"
        held_back = heard(make(max_tokens=many, stop="three!", stream=True))
        assert held_back.text == text and held_back.reason == "length", "what only began like a stop string is text"


@BOTH
def test_end_tokens_end_a_reply_and_are_counted(path: str):
    with rig(slots=2, prefix_bytes=0) as own, serving(own.engine) as server, openai_client(server) as one:
        (end,) = own.engine.info.eos_ids
        tokens = [*spelled(own, "so it is"), end, *spelled(own, " not")]
        dictate(own, PROMPT[path], tokens)
        make = create(one, path)
        said = make(max_tokens=len(tokens))
        assert text_of(said) == "so it is" and said.choices[0].finish_reason == "stop"
        assert said.usage.completion_tokens == tokens.index(end) + 1
        beyond = make(max_tokens=len(tokens), extra_body={"ignore_eos": True})
        assert text_of(beyond) == "so it is not" and beyond.choices[0].finish_reason == "length"
        short = make(max_tokens=len(tokens), extra_body={"stop_token_ids": [tokens[1]]})
        assert short.usage.completion_tokens == 2 and short.choices[0].finish_reason == "stop"


@BOTH
def test_half_characters_are_never_sent_and_odd_line_ends_are_no_line_ends(path: str):
    text = "a€b😀\u2028c\u0085d\r\n\x0be ẞ"
    with rig(slots=2, prefix_bytes=0) as own, serving(own.engine) as server:
        tokens = spelled(own, text)
        dictate(own, PROMPT[path], tokens)
        asked = {**ASKED[path], "max_tokens": len(tokens), "stream": True}
        with client(server) as plain, plain.stream("POST", path, json=asked) as response:
            choices = [choice for chunk in events(response)[:-1] for choice in chunk["choices"]]
        said = [choice.get("delta", choice).get("content" if path == CHAT else "text", "") for choice in choices]
        assert "".join(said) == text, "this client takes U+2028 for the end of a line"
        with openai_client(server) as one:
            assert heard(create(one, path)(max_tokens=len(tokens), stream=True)).text == text
            assert text_of(create(one, path)(max_tokens=len(tokens))) == text
            cut = create(one, path)(max_tokens=2)
        assert text_of(cut) == "a\ufffd", "the end of all tokens is no reason to keep quiet about one"


# How likely tokens were.


def test_log_probabilities_of_a_chat(one: openai.OpenAI, server: Server):
    ask: dict[str, Any] = {"max_tokens": 12, "temperature": 1.0, "seed": 3}
    mine = server.engine.stream(PROMPT[CHAT], logprobs=3, **ask)
    text = mine.result(WAIT)
    whole = create(one, CHAT)(logprobs=True, top_logprobs=3, **ask)
    entries = whole.choices[0].logprobs.content
    assert [entry.logprob for entry in entries] == [each.logprob for each in mine.logprobs]
    assert [[top.logprob for top in entry.top_logprobs] for entry in entries] == [
        [value for _, value in each.top] for each in mine.logprobs
    ]
    assert b"".join(bytes(entry.bytes) for entry in entries).decode(errors="replace") == text
    for entry in entries:
        assert entry.token.encode() == bytes(entry.bytes) or entry.token.startswith("\\x")
    streamed = heard(create(one, CHAT)(logprobs=True, top_logprobs=3, stream=True, **ask))
    said = [entry for choice in streamed.choices if choice.logprobs for entry in choice.logprobs.content]
    assert said == entries and streamed.text == text
    alone = create(one, CHAT)(logprobs=True, **ask).choices[0].logprobs.content
    assert [entry.logprob for entry in alone] == [entry.logprob for entry in entries]
    assert all(entry.top_logprobs == [] for entry in alone)
    assert create(one, CHAT)(**ask).choices[0].logprobs is None


def test_log_probabilities_of_a_completion(one: openai.OpenAI, server: Server):
    ask: dict[str, Any] = {"max_tokens": 12, "temperature": 1.0, "seed": 4}
    mine = server.engine.stream(PROMPT[COMPLETIONS], logprobs=2, **ask)
    text = mine.result(WAIT)
    said = create(one, COMPLETIONS)(logprobs=2, **ask).choices[0].logprobs
    assert said.token_logprobs == [each.logprob for each in mine.logprobs]
    for token, value, top, each in zip(said.tokens, said.token_logprobs, said.top_logprobs, mine.logprobs, strict=True):
        assert top[token] == value and len(top) == len({each.token, *(other for other, _ in each.top)})
    whole_tokens = [at for at, token in enumerate(said.tokens) if not token.startswith("bytes:")]
    assert len(whole_tokens) > 3
    for at in whole_tokens:
        assert text[said.text_offset[at] :].startswith(said.tokens[at])
    streamed = heard(create(one, COMPLETIONS)(logprobs=2, stream=True, **ask))
    parts = [choice.logprobs for choice in streamed.choices if choice.logprobs]
    for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
        assert [item for part in parts for item in getattr(part, name)] == getattr(said, name)
    only = create(one, COMPLETIONS)(logprobs=0, **ask).choices[0].logprobs
    assert only.top_logprobs == [{token: value} for token, value in zip(said.tokens, said.token_logprobs, strict=True)]


@BOTH
def test_every_token_has_its_place_among_held_back_text_stops_and_ends(path: str):
    with rig(slots=2, prefix_bytes=0) as own, serving(own.engine) as server, openai_client(server) as one:
        (end,) = own.engine.info.eos_ids
        tokens = [*spelled(own, "€ so far <en> it"), end]
        dictate(own, PROMPT[path], tokens)
        ask: dict[str, Any] = {"max_tokens": len(tokens), "logprobs": True if path == CHAT else 1, "stop": ["<end>"]}
        whole = create(one, path)(**ask)
        streamed = heard(create(one, path)(stream=True, **ask))
        assert text_of(whole) == streamed.text == "€ so far <en> it" and streamed.reason == "stop"
        assert whole.usage.completion_tokens == len(tokens)
        logprobs = whole.choices[0].logprobs
        parts = [choice.logprobs for choice in streamed.choices if choice.logprobs]
        if path == CHAT:
            assert [entry for part in parts for entry in part.content] == logprobs.content
            assert bytes(byte for entry in logprobs.content for byte in entry.bytes).decode() == text_of(whole)
            assert [entry.token for entry in logprobs.content[:3]] == ["\\xe2", "\\x82", "\\xac"]
            assert logprobs.content[-1].token == "<|im_end|>" and logprobs.content[-1].bytes == []
        else:
            assert [token for part in parts for token in part.tokens] == logprobs.tokens
            assert logprobs.tokens[:3] == ["bytes:\\xe2", "bytes:\\x82", "bytes:\\xac"]
            text = text_of(whole)
            for token, at in list(zip(logprobs.tokens, logprobs.text_offset, strict=True))[3:-1]:
                assert text[at:].startswith(token)
            assert logprobs.text_offset[:3] == [0, 0, 0] and logprobs.text_offset[-1] == len(text)


# What is not served.

BAD: list[tuple[str, dict[str, Any], str, str]] = [
    *((path, bad, param, "") for path in (CHAT, COMPLETIONS) for bad, param in [
        ({"n": 2}, "n"), ({"n": True}, "n"), ({"best_of": 2}, "best_of"), ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"), ({"frequency_penalty": -1}, "frequency_penalty"),
        ({"repetition_penalty": 1.1}, "repetition_penalty"), ({"temperature": -0.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"), ({"top_p": 0}, "top_p"), ({"top_p": 1.5}, "top_p"),
        ({"top_k": -2}, "top_k"), ({"min_p": 2}, "min_p"), ({"seed": 0.5}, "seed"), ({"seed": 2**64}, "seed"),
        ({"max_tokens": 0}, "max_tokens"), ({"max_tokens": "5"}, "max_tokens"), ({"max_tokens": True}, "max_tokens"),
        ({"stop": ""}, "stop[0]"), ({"stop": ["a", 5]}, "stop[1]"), ({"stop": ["a"] * 17}, "stop"),
        ({"stop": "x" * 1001}, "stop[0]"), ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
        ({"stream": "yes"}, "stream"), ({"stream_options": {}}, "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"guided_json": {}}, "guided_json"), ({"model": 5}, "model"),
    ]),
    (CHAT, {"messages": []}, "messages", ""),
    (CHAT, {"messages": "hi"}, "messages", ""),
    (CHAT, {"messages": [{"role": "user"}]}, "messages[0].content", ""),
    (CHAT, {"messages": [{"role": "user", "content": None}]}, "messages[0].content", ""),
    (CHAT, {"messages": [{"role": "robot", "content": "hi"}]}, "messages[0].role", ""),
    (CHAT, {"messages": [{"role": "tool", "content": "hi"}]}, "messages[0].role", ""),
    (CHAT, {"messages": [{"role": "user", "content": "a", "tool_calls": [{}]}]}, "messages[0].tool_calls", "tools are"),
    (CHAT, {"tools": [{"type": "function"}]}, "tools", "tools are not supported"),
    (CHAT, {"tool_choice": "required"}, "tool_choice", "tools are not supported"),
    (CHAT, {"functions": [{"name": "f"}]}, "functions", "tools are not supported"),
    (CHAT, {"response_format": {"type": "json_object"}}, "response_format", "not held to a format"),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format", "not held to a format"),
    (CHAT, {"modalities": ["text", "audio"]}, "modalities", "text alone"),
    (CHAT, {"audio": {"voice": "a"}}, "audio", "text alone"),
    (CHAT, {"store": True}, "store", "not stored"),
    (CHAT, {"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 21}, "top_logprobs", ""),
    (CHAT, {"logprobs": 1}, "logprobs", ""),
    (CHAT, {"max_tokens": 4, "max_completion_tokens": 5}, "max_tokens", "older name"),
    *((CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": "see"}, part]}]},
       "messages[0].content[1]", "text alone")
      for part in ({"type": "image_url", "image_url": {"url": "data:,"}}, {"type": "input_audio"}, {"type": "file"})),
    (COMPLETIONS, {"prompt": ["a", "b"]}, "prompt", "one request for each"),
    (COMPLETIONS, {"prompt": [1, 2]}, "prompt", "token ids"),
    (COMPLETIONS, {"prompt": [[1, 2]]}, "prompt", "token ids"),
    (COMPLETIONS, {"prompt": ""}, "prompt", ""),
    (COMPLETIONS, {"prompt": None}, "prompt", ""),
    (COMPLETIONS, {"echo": True}, "echo", ""),
    (COMPLETIONS, {"suffix": "end"}, "suffix", ""),
    (COMPLETIONS, {"logprobs": 21}, "logprobs", ""),
    (COMPLETIONS, {"logprobs": True}, "logprobs", ""),
    (COMPLETIONS, {"prompt": "long " * 5000}, "prompt", "more than the context"),
    (CHAT, {"messages": [{"role": "user", "content": "long " * 5000}]}, "messages", "more than the context"),
]  # fmt: skip


def test_what_is_not_supported_is_refused_by_name(server: Server):
    before = server.engine.snapshot().totals.streams.submitted
    with client(server) as one:
        for path, bad, param, words in BAD:
            for streamed in ({}, {"stream": True, **bad}):
                said = one.post(path, json={**ASKED[path], "max_tokens": 2, **bad, **streamed})
                if streamed and bad == {"stream_options": {}}:
                    assert said.status_code == 200
                    before += 1
                    continue
                assert said.status_code == 400, (path, bad, said.text)
                error = said.json()["error"]
                assert set(error) == {"message", "type", "param", "code"}
                assert (error["type"], error["param"]) == ("invalid_request_error", param), (path, bad, error)
                assert words in error["message"], error
    assert server.engine.snapshot().totals.streams.submitted == before, "nothing of it came to the engine"


@BOTH
@pytest.mark.parametrize("streamed", [True, False])
def test_of_a_prompt_that_is_too_long_clients_are_told_so_by_code(one: openai.OpenAI, path: str, streamed: bool):
    for length in (5_000, 100_000):
        long = {CHAT: {"messages": [{"role": "user", "content": "x" * length}]}, COMPLETIONS: {"prompt": "x" * length}}
        with pytest.raises(openai.BadRequestError) as caught:
            create(one, path)(max_tokens=2, stream=streamed, **long[path])
        assert caught.value.code == "context_length_exceeded"


def test_only_what_is_too_long_is_told_so(one: openai.OpenAI, server: Server, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any, **__: Any) -> Any:
        raise lanes.errors.InvalidRequest("the model's chat template rejects these messages")

    monkeypatch.setattr(server.engine, "stream", refuse)
    with pytest.raises(openai.BadRequestError, match="template") as caught:
        create(one, CHAT)(max_tokens=2)
    assert caught.value.code is None and caught.value.param == "messages"


@BOTH
def test_an_endless_prompt_is_not_even_tokenized(server: Server, path: str):
    long = {CHAT: {"messages": [{"role": "user", "content": "x" * 100_000}]}, COMPLETIONS: {"prompt": "x" * 100_000}}
    assert post(server, path, long[path]).status_code == 400  # it knows now how long a prompt can be
    with tokenizer_taken(server.engine):
        assert post(server, path, long[path]).status_code == 400


def test_a_prompt_that_is_missing_is_asked_for(server: Server):
    for path, param in ((CHAT, "messages"), (COMPLETIONS, "prompt")):
        said = post(server, path, {"max_tokens": 2})
        assert said.status_code == 400 and said.json()["error"]["param"] == param


def test_another_model_is_not_here(one: openai.OpenAI, server: Server):
    with pytest.raises(openai.NotFoundError, match="'gpt-9' is not served here") as caught:
        create(one, CHAT)(model="gpt-9")
    assert caught.value.code == "model_not_found" and caught.value.param == "model"
    for name in (server.engine.model, "default", one.models.list().data[0].id):
        assert create(one, CHAT)(model=name, max_tokens=1).model == server.engine.model


def test_the_clients_own_errors_are_raised(one: openai.OpenAI):
    with pytest.raises(openai.BadRequestError, match="one reply") as caught:
        create(one, CHAT)(n=2)
    assert caught.value.param == "n" and caught.value.code == "unsupported_value"


def test_hints_and_neutral_values_are_accepted(server: Server):
    more = {
        "user": "me",
        "n": 1,
        "presence_penalty": 0.0,
        "frequency_penalty": 0,
        "repetition_penalty": 1.0,
        "top_k": -1,
    }
    chat = {
        "tools": [],
        "tool_choice": "none",
        "response_format": {"type": "text"},
        "metadata": {"a": "b"},
        "store": False,
    }
    chat |= {"service_tier": "auto", "reasoning_effort": "low", "modalities": ["text"], "parallel_tool_calls": True}
    for path, own in ((CHAT, chat), (COMPLETIONS, {"echo": False, "suffix": "", "best_of": 1, "prompt": ["Tell me"]})):
        said = post(server, path, {**ASKED[path], "max_tokens": 6, **more, **own})
        plain = post(server, path, {**ASKED[path], "max_tokens": 6})
        assert said.status_code == 200 and said.json()["choices"] == plain.json()["choices"], said.text


def test_the_document_tells_of_both(server: Server):
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    for path in (CHAT, COMPLETIONS):
        assert set(paths[path]["post"]["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}


def test_what_was_written_is_sent_at_once(server: Server):
    """Half of an answer that waits for an acknowledgement of the other half costs 40 ms, and a token each."""
    assert server._run._listeners[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_example_of_the_docs_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "serving.md").read_text(), re.DOTALL | re.MULTILINE)
    (example,) = (block for block in blocks if "chat.completions" in block)
    monkeypatch.setattr(lanes, "Engine", partial(lanes.Engine, lanes.tiny("llama")))
    names: dict[str, Any] = {}
    exec(compile(example, "serving.md", "exec"), names)
    assert names["engine"].closed and names["server"].closed
    assert capsys.readouterr().out == names["engine"].streams()[-1].text != ""
