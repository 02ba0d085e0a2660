"""Prompts into tokens, and what is refused before it reaches a queue."""

import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from tokenizers import processors

from lanes.errors import InvalidRequest
from lanes.prompts import Prompt, check_fits, common_length, encode, join, read

USER = {"role": "user", "content": "hello"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize("kind", zoo.KINDS)
def test_raw_text_is_encoded_as_the_tokenizer_does_by_default(kind):
    tokenizer = zoo.tokenizer(kind)
    assert encode(tokenizer, "hello world") == tokenizer.encode("hello world")


def test_bos_is_there_once():
    tokenizer = zoo.tokenizer("byte_level_bos")
    assert encode(tokenizer, "yes").count(1) == 1
    assert encode(tokenizer, "<s>yes") == encode(tokenizer, "yes")
    assert encode(tokenizer, [USER]) == tokenizer.encode("user\nhello", add_special_tokens=True) + tokenizer.encode(
        "</s>\n<s>assistant\n", add_special_tokens=False
    )


def test_an_end_token_in_the_text_is_kept():
    tokenizer = zoo.tokenizer("byte_level_bos")
    assert encode(tokenizer, "yes</s>") == tokenizer.encode("yes</s>")


def test_an_end_token_that_the_tokenizer_adds_is_left_out():
    tokenizer = zoo.build("byte_level")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair=None, special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    assert tokenizer.encode("yes")[-1] == 2
    assert encode(tokenizer, "yes") == tokenizer.encode("yes")[:-1]
    assert encode(tokenizer, "yes</s>") == [*encode(tokenizer, "yes"), 2]


@pytest.mark.parametrize("wrap", [lambda tokenizer: tokenizer, TokenizerWrapper])
def test_messages_go_through_the_template_with_thinking_off(wrap):
    tokenizer = wrap(zoo.tokenizer("byte_level"))
    prompt = read(tokenizer, [{"role": "system", "content": "be kind"}, USER])
    assert prompt.text == "<s>system\nbe kind</s>\n<s>user\nhello</s>\n<s>assistant\n"
    assert tokenizer.decode(prompt.ids) == prompt.text


def test_text_parts_are_joined():
    parts = [{"type": "text", "text": "hel"}, {"type": "input_text", "text": "lo"}, ""]
    tokenizer = zoo.tokenizer("byte_level")
    assert read(tokenizer, [{"role": "user", "content": parts}]) == read(tokenizer, (USER,))


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("", "the prompt is empty"),
        ([], "the prompt is empty"),
        (None, "the prompt is not text but NoneType"),
        (3, "the prompt is not text but int"),
        (USER, "the prompt is not text but dict: pass a string, or a list"),
        (b"\x89PNG", "bytes, not text.*pictures are not supported"),
        ("half \ud83d", "lone surrogate.* at position 5"),
        (["hello"], "message 0 is not text but str: write it as"),
        ([USER, {"role": "user"}], "message 1 lacks content"),
        ([{}], "message 0 lacks role and content"),
        ([{"role": 3, "content": "x"}], "the role of message 0 is not text but int"),
        ([{"role": "user", "content": None}], "the content of message 0 is not text but NoneType"),
        ([{"role": "user", "content": "\udfff"}], "the content of message 0 holds half a character"),
        ([{"role": "user", "content": [PICTURE]}], "pictures are not supported"),
        ([{"role": "user", "content": [{"type": "image"}]}], "pictures are not supported"),
        ([{"role": "user", "content": [{"type": "input_image"}]}], "pictures are not supported"),
        ([{"role": "user", "content": [{"type": "text", "text": "a"}, PICTURE]}], "pictures are not supported"),
        ([{"role": "user", "content": b"\x89PNG"}], "pictures are not supported"),
        ([{"role": "user", "content": [{"type": "audio"}]}], "a part that is no text"),
        ([{"role": "user", "content": [7]}], "a part that is no text"),
    ],
)
def test_what_is_no_prompt_is_refused_with_the_reason(prompt, reason):
    with pytest.raises(InvalidRequest, match=reason):
        read(zoo.tokenizer("byte_level"), prompt)


def test_what_the_template_rejects_is_refused():
    tokenizer = zoo.build("byte_level")
    tokenizer.chat_template = "{{ raise_exception('only user and assistant roles') }}"
    with pytest.raises(InvalidRequest, match=r"rejects these messages .*only user and assistant roles.*: change"):
        read(tokenizer, [{"role": "pirate", "content": "arr"}])


@pytest.mark.parametrize("wrap", [lambda tokenizer: tokenizer, TokenizerWrapper])
def test_messages_need_a_template(wrap):
    tokenizer = zoo.build("byte_level")
    tokenizer.chat_template = None
    with pytest.raises(InvalidRequest, match="no chat template: pass raw text"):
        read(wrap(tokenizer), [USER])


@given(trunk=st.text("ab é", min_size=1), branch=st.text("ab é", min_size=1))
def test_text_joins_text_and_is_encoded_as_a_whole(trunk, branch):
    tokenizer = zoo.tokenizer("byte_level_bos")
    assert join(tokenizer, trunk, branch) == read(tokenizer, trunk + branch)


def test_messages_join_messages_and_text_goes_on_after_them():
    tokenizer = zoo.tokenizer("byte_level_bos")
    question = [{"role": "user", "content": "is it?"}]
    assert join(tokenizer, [USER], question) == read(tokenizer, [USER, *question])
    whole = join(tokenizer, [USER], "yes")
    assert whole.text == read(tokenizer, [USER]).text + "yes"
    assert whole.ids.count(1) == 2  # the template's two; none from the tokenizer


@pytest.mark.parametrize(
    ("trunk", "branch", "reason"),
    [
        ("a", "", "a branch is empty"),
        ("a", None, "a branch is not text but NoneType"),
        ("", "a", "the prompt is empty"),
        ("a", [USER], "write both as messages"),
        (None, [USER], "the prompt is not text"),
    ],
)
def test_trunks_and_branches_that_do_not_join_are_refused(trunk, branch, reason):
    with pytest.raises(InvalidRequest, match=reason):
        join(zoo.tokenizer("byte_level"), trunk, branch)


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=4))
def test_common_length_is_that_of_the_longest_shared_beginning(many):
    n = common_length([Prompt("", tuple(ids), True) for ids in many])
    assert all(ids[:n] == many[0][:n] for ids in many)
    assert any(len(ids) == n for ids in many) or len({ids[n] for ids in many}) > 1


def test_check_fits_says_by_how_much():
    check_fits(90, 10, 100)
    check_fits(10**9, 1, None)
    with pytest.raises(InvalidRequest, match="90 tokens and up to 11 tokens to follow, 1 more than the context of 100"):
        check_fits(90, 11, 100)
    with pytest.raises(InvalidRequest, match=r"101 tokens, 1 more than .*: shorten the prompt$"):
        check_fits(101, 0, 100)
