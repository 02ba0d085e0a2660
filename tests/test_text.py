"""Tokens into text: whole characters, stop strings, cost."""

import re

import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from tokenizers import AddedToken

from lanes.errors import InvalidRequest
from lanes.text import Detokenizer, Stops, TextStream

TEXTS = st.text(st.sampled_from("ab é€😀日👩\u200d\ufffd\n "), max_size=30)
BYTES_APART = tuple(kind for kind in zoo.KINDS if kind != "byte_fallback")


def streamed(tokenizer, tokens, skip_special=True):
    detokenizer = Detokenizer(tokenizer, skip_special)
    return [*map(detokenizer.push, tokens), detokenizer.finish()]


def whole(tokenizer, tokens, skip_special=True):
    return tokenizer.decode(tokens, skip_special_tokens=skip_special, clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("skip_special", [True, False])
@pytest.mark.parametrize("kind", BYTES_APART)
@given(data=st.data())
def test_any_tokens_join_to_the_whole_decode(kind, skip_special, data):
    tokenizer = zoo.tokenizer(kind)
    tokens = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=40))
    assert "".join(streamed(tokenizer, tokens, skip_special)) == whole(tokenizer, tokens, skip_special)


@pytest.mark.parametrize("kind", zoo.KINDS)
@given(texts=st.lists(TEXTS, max_size=4))
def test_encoded_texts_join_to_the_whole_decode(kind, texts):
    tokenizer = zoo.tokenizer(kind)
    tokens = [token for text in texts for token in tokenizer.encode(text)]
    assert "".join(streamed(tokenizer, tokens)) == whole(tokenizer, tokens)


@given(st.lists(st.sampled_from(["<0xC3>", "<0xA9>", "<0x41>", "<0x20>", "<0xFF>", "<0xF0>", "▁", "▁yes", "no"])))
def test_byte_fallback_differs_from_the_whole_decode_only_by_invalid_bytes(words):
    tokenizer = zoo.tokenizer("byte_fallback")
    tokens = tokenizer.convert_tokens_to_ids(words)
    text, full = "".join(streamed(tokenizer, tokens)), whole(tokenizer, tokens)
    assert ("\ufffd" in text) == ("\ufffd" in full)
    if "\ufffd" not in full:
        assert text == full
    assert re.findall("yes|no", text) == re.findall("yes|no", full)


def test_byte_fallback_keeps_the_valid_characters_beside_an_invalid_byte():
    tokenizer = zoo.tokenizer("byte_fallback")
    tokens = tokenizer.convert_tokens_to_ids(["<0xC3>", "<0xA9>", "<0xFF>", "<0xC3>", "<0xA9>", "<0xC3>", "▁yes"])
    assert streamed(tokenizer, tokens) == ["", "é", "\ufffd", "", "é", "", "\ufffd yes", ""]
    assert whole(tokenizer, tokens) == "\ufffd" * 6 + " yes"


@pytest.mark.parametrize("kind", ["byte_level", "byte_fallback"])
@given(text=st.text(st.sampled_from("é€😀日本語👩 a"), min_size=1, max_size=20))
def test_no_piece_holds_half_a_character(kind, text):
    tokenizer = zoo.tokenizer(kind)
    pieces = streamed(tokenizer, tokenizer.encode(text, add_special_tokens=False))
    assert not any("\ufffd" in piece for piece in pieces)


def test_a_character_comes_with_its_last_byte():
    tokenizer = zoo.tokenizer("byte_level")
    tokens = tokenizer.convert_tokens_to_ids(["ð", "Ł", "ĺ", "Ģ"])
    assert streamed(tokenizer, tokens) == ["", "", "", "😀", ""]


def test_an_unfinished_character_is_flushed_as_a_replacement():
    tokenizer = zoo.tokenizer("byte_level")
    tokens = tokenizer.convert_tokens_to_ids(["a", "ð", "Ł"])
    assert streamed(tokenizer, tokens) == ["a", "", "", "\ufffd"]


@pytest.mark.parametrize("tokens", [["ð"] * 500, ["ð", "Ł"] * 300, ["Ģ"] * 500, ["a", "ð"] * 300])
def test_endless_broken_bytes_are_shown_as_they_come(tokens):
    tokenizer = zoo.tokenizer("byte_level")
    ids = tokenizer.convert_tokens_to_ids(tokens)
    pieces = streamed(tokenizer, ids)
    assert "".join(pieces) == whole(tokenizer, ids)
    assert len("".join(pieces[:400])) >= len(whole(tokenizer, ids[:400])) - 3


@pytest.mark.parametrize("n_broken", range(58, 68))
def test_a_character_behind_many_broken_bytes_is_whole(n_broken):
    tokenizer = zoo.tokenizer("byte_level")
    ids = tokenizer.convert_tokens_to_ids(["ð"] * n_broken + ["ð", "Ł", "ĺ", "Ģ"])
    assert "".join(streamed(tokenizer, ids)) == "\ufffd" * n_broken + "😀"


def test_a_replacement_character_of_its_own_keeps_its_place_before_bytes():
    tokenizer = zoo.build("byte_fallback")
    tokenizer.add_tokens([AddedToken("\ufffd", normalized=False)])
    tokens = tokenizer.convert_tokens_to_ids(["▁yes", "\ufffd", "<0xC3>", "<0xA9>"])
    assert "".join(streamed(tokenizer, tokens)) == whole(tokenizer, tokens) == "yes\ufffdé"


class Counting:
    """A tokenizer that counts the tokens it decodes."""

    def __init__(self, tokenizer):
        self.tokenizer, self.decoded = tokenizer, 0

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)

    def __len__(self):
        return len(self.tokenizer)

    def decode(self, ids, **options):
        self.decoded += len(ids)
        return self.tokenizer.decode(ids, **options)


@pytest.mark.parametrize("tokens", [["a"], ["ð"], ["Ł", "ð"]])
def test_the_cost_of_a_token_does_not_grow_with_the_stream(tokens):
    tokenizer = zoo.tokenizer("byte_level")

    def cost(times):
        counting = Counting(tokenizer)
        detokenizer = Detokenizer(counting)
        counting.decoded = 0
        for token in tokenizer.convert_tokens_to_ids(tokens) * times:
            detokenizer.push(token)
        return counting.decoded / times

    assert cost(4000) <= cost(400) * 1.1


@given(
    text=st.text("abc", max_size=30), stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3), data=st.data()
)
def test_stops_cut_at_the_first_that_completes_however_the_text_comes(text, stops, data):
    ends = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    expected = text[: min(ends)[1]] if ends else text
    cutter, shown, rest = Stops(stops), "", text
    while rest:
        n = data.draw(st.integers(1, len(rest)))
        shown += cutter.push(rest[:n])
        assert expected.startswith(shown)
        rest = rest[n:]
    assert shown + cutter.finish() == expected
    assert cutter.found == bool(ends)


def test_a_stop_that_completes_first_wins_over_one_that_begins_first():
    assert Stops(["abcc", "b"]).push("abcc") == "a"
    assert Stops(["ab", "b"]).push("ab") == ""


@given(text=st.text("ab", max_size=12), stop=st.text("ab", min_size=1, max_size=5))
def test_stops_hold_back_no_more_than_could_become_a_stop(text, stop):
    cutter = Stops(stop)
    shown = "".join(map(cutter.push, text))
    if not cutter.found:
        held = text[len(shown) :]
        assert held == max((stop[:n] for n in range(len(stop)) if text.endswith(stop[:n])), key=len)


def test_a_stop_string_across_tokens_is_not_in_the_text():
    tokenizer = zoo.tokenizer("byte_level")
    stream = TextStream(tokenizer, stop="w, y")
    tokens = tokenizer.encode("now, yes", add_special_tokens=False)
    text = "".join(map(stream.push, tokens))
    assert (text, stream.finished, stream.flush()) == ("no", "stop", "")


def test_nothing_comes_after_a_stop():
    tokenizer = zoo.tokenizer("byte_level")
    stream = TextStream(tokenizer, stop=["b"])
    ids = tokenizer.convert_tokens_to_ids(["a", "b", "c"])
    assert [stream.push(token) for token in ids] == ["a", "", ""]


def test_a_stop_token_ends_the_stream_and_releases_what_was_held():
    tokenizer = zoo.tokenizer("byte_level")
    stream = TextStream(tokenizer, stop=["\n\n"], stop_ids=frozenset([2]))
    held = [stream.push(token) for token in tokenizer.convert_tokens_to_ids(["a", "Ċ"])]
    assert (held, stream.finished) == (["a", ""], None)
    assert (stream.push(2), stream.finished, stream.flush()) == ("\n", "stop", "")
    assert stream.push(5) == ""


def test_flush_gives_the_rest_without_a_finish():
    tokenizer = zoo.tokenizer("byte_level")
    stream = TextStream(tokenizer, stop=["bc"])
    assert [stream.push(token) for token in tokenizer.convert_tokens_to_ids(["a", "b"])] == ["a", ""]
    assert (stream.flush(), stream.finished) == ("b", None)


def test_special_tokens_are_silent_unless_asked_for():
    tokenizer = TokenizerWrapper(zoo.tokenizer("byte_level"))
    tokens = [1, *tokenizer.encode("no", add_special_tokens=False), 1]
    for skip, text in ((True, "no"), (False, "<s>no<s>")):
        stream = TextStream(tokenizer, skip_special=skip)
        assert "".join(map(stream.push, tokens)) + stream.flush() == text


@pytest.mark.parametrize("stop", ["", [""], ["a", 3], [b"a"]])
def test_stop_strings_that_cannot_be_are_refused(stop):
    with pytest.raises(InvalidRequest, match="stop must hold strings"):
        TextStream(zoo.tokenizer("byte_level"), stop=stop)
