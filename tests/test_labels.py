"""Labels into tokens, in every kind of tokenizer, and the reasons for refusing one."""

import pytest
import zoo
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper

from lanes.decisions.labels import bind
from lanes.errors import InvalidRequest
from lanes.prompts import join, read

REVIEW = "Review: great\nSentiment:"
YES_NO = [" yes", " no"]


def bound(kind, prompt, labels, **options):
    tokenizer = zoo.tokenizer(kind)
    return bind(tokenizer, read(tokenizer, prompt), labels, **options)


@pytest.mark.parametrize("kind", zoo.KINDS)
def test_prompt_and_label_are_encoded_as_one(kind):
    tokenizer = zoo.tokenizer(kind)
    prompt = read(tokenizer, "hello world")
    labels = bind(tokenizer, prompt, YES_NO)
    assert labels.texts == (" yes", " no")
    for text, own in zip(labels.texts, labels.tokens, strict=True):
        assert [*prompt.ids, *own] == tokenizer.encode("hello world" + text)


def test_labels_after_messages_go_on_where_the_template_ends():
    tokenizer = TokenizerWrapper(zoo.tokenizer("byte_level_bos"))
    prompt = read(tokenizer, [{"role": "user", "content": "is it?"}])
    labels = bind(tokenizer, prompt, ["yes", "no"])
    for text, own in zip(labels.texts, labels.tokens, strict=True):
        assert [*prompt.ids, *own] == tokenizer.encode(prompt.text + text, add_special_tokens=False)


@pytest.mark.parametrize("kind", ["byte_level", "byte_level_bos", "byte_fallback"])
@given(
    texts=st.lists(st.text(st.sampled_from("ab é€😀日\n"), min_size=1, max_size=6), min_size=1, max_size=4, unique=True)
)
def test_bound_tokens_are_the_labels_own(kind, texts):
    tokenizer = zoo.tokenizer(kind)
    prompt = read(tokenizer, "Question: is it?")
    try:
        labels = bind(tokenizer, prompt, texts)
    except InvalidRequest as error:
        assert "merges into the prompt" in str(error)
        return
    for text, own in zip(texts, labels.tokens, strict=True):
        assert (*prompt.ids, *own) == tuple(tokenizer.encode(prompt.text + text))


def test_one_label_is_allowed():
    assert len(bound("byte_level", REVIEW, [" yes"]).tokens) == 1


def test_a_label_that_merges_into_the_prompt_is_refused_with_its_tokens():
    with pytest.raises(InvalidRequest) as caught:
        bound("byte_level", "the mo", ["vie"])
    message = str(caught.value)
    assert "'vie' merges into the prompt: the prompt alone ends in" in message
    assert "begin the label with a space" in message


def test_a_space_at_the_end_of_the_prompt_is_said_to_belong_to_the_labels():
    with pytest.raises(InvalidRequest, match="end the prompt before ' ' and begin the labels with it"):
        bound("byte_level", "hello ", ["yes"])


def test_a_line_break_that_merges_gets_another_remedy():
    tokenizer = zoo.build("byte_level")
    tokenizer.add_tokens(["\n\n"])
    with pytest.raises(InvalidRequest, match="begin the label with another character"):
        bind(tokenizer, read(tokenizer, "a\n"), ["\n"])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([], "there are no labels: pass at least one"),
        (" yes", "labels must be a list of strings, got str"),
        (b"yes", "labels must be a list of strings, got bytes"),
        ({" yes", " no"}, "labels must be a list of strings, got set"),
        (None, "labels must be a list of strings, got NoneType"),
        ([" yes", ""], "label 1 is empty"),
        ([" yes", 3], "label 1 is not text but int"),
        ([" yes", None], "label 1 is not text but NoneType"),
        ([" yes", b"no"], "label 1 is bytes"),
        ([" yes", "\ud83d"], "label 1 holds half a character"),
        ([" yes", " no", " yes"], "the label ' yes' is there twice"),
    ],
)
def test_what_is_no_set_of_labels_is_refused(labels, reason):
    with pytest.raises(InvalidRequest, match=reason):
        bound("byte_level", REVIEW, labels)


def test_two_texts_with_the_same_tokens_are_refused():
    tokenizer = zoo.tokenizer("words")
    assert tokenizer.encode("hello yes") == tokenizer.encode("hello  yes")
    with pytest.raises(InvalidRequest, match="'  yes' does not come back from its tokens 'yes'"):
        bound("words", "hello", [" yes", "  yes"])


def test_a_label_that_becomes_unknown_is_refused():
    with pytest.raises(InvalidRequest, match="' zebra' does not come back from its tokens '<unk>'"):
        bound("words", "hello", [" yes", " zebra"])


def test_a_label_that_is_changed_is_refused():
    with pytest.raises(InvalidRequest, match="' YES' does not come back from its tokens 'yes'"):
        bound("wordpiece", "hello", [" YES", " no"])


def test_a_label_that_is_dropped_is_refused():
    with pytest.raises(InvalidRequest, match="'  ' adds no token"):
        bound("words", "hello", [" yes", "  "])


def test_a_label_that_goes_on_from_many_byte_tokens_comes_back():
    labels = bound("byte_fallback", "a" + "한" * 5, ["한", "no"])
    assert len(labels.tokens[0]) == 3


def test_a_label_that_begins_another_is_ended_by_eos():
    labels = bound("byte_level", REVIEW, [" yes", " yes, and no"])
    short, long = labels.tokens
    node = next(node for node in labels.trie.nodes if node.prefix == short)
    assert node.tokens == (2, long[len(short)])


def test_without_eos_a_label_that_begins_another_is_refused():
    tokenizer = zoo.build("byte_level")
    tokenizer.eos_token = None
    with pytest.raises(InvalidRequest, match="' yes' is the beginning of ' yes, no' and the model has no end token"):
        bind(tokenizer, read(tokenizer, REVIEW), [" yes, no", " no", " yes"])


def test_a_label_that_holds_eos_cannot_stand_beside_one_that_needs_it():
    with pytest.raises(InvalidRequest, match="a label holds the model's end token itself"):
        bound("byte_level", REVIEW, [" yes", " yes</s>"])


def test_labels_must_fit_behind_the_prompt():
    labels = [" positive", " positively great"]
    fed = bound("byte_level", REVIEW, labels).trie.fed_depth
    n_prompt = len(read(zoo.tokenizer("byte_level"), REVIEW).ids)
    assert fed > 0
    bound("byte_level", REVIEW, labels, context=n_prompt + fed)
    with pytest.raises(InvalidRequest, match=f"and up to {fed} tokens to follow, 1 more than the context"):
        bound("byte_level", REVIEW, labels, context=n_prompt + fed - 1)


def test_labels_of_a_branch_follow_the_whole():
    tokenizer = zoo.tokenizer("byte_level_bos")
    prompt = join(tokenizer, "Review: great\n", "Sentiment:")
    assert bind(tokenizer, prompt, YES_NO) == bind(tokenizer, read(tokenizer, REVIEW), YES_NO)
