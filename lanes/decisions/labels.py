"""Labels into tokens: each is encoded together with its prompt, and must add exactly its own tokens to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lanes.decisions.trie import Tokens, Trie
from lanes.errors import InvalidRequest
from lanes.prompts import Prompt, Tokenizer, check_fits, checked_text, encode_text

_BESIDE = 8  # tokens of the prompt that are decoded with a label, or shown in a message


@dataclass(frozen=True, slots=True)
class BoundLabels:
    """The labels of one prompt, in the caller's order: texts, token ids, and the trie that scores them."""

    texts: tuple[str, ...]
    tokens: tuple[Tokens, ...]
    trie: Trie


def bind(tokenizer: Tokenizer, prompt: Prompt, labels: Sequence[str], context: int | None = None) -> BoundLabels:
    """Labels as they come right after this prompt; one label or more.

    The text of prompt and label is encoded as one. Raises InvalidRequest, with what to change, where the prompt's
    tokens change under a label; where a label is empty or no text, is there twice, or does not come back from its
    tokens (so no two labels have the same tokens); where a label that begins another cannot be ended (see `Trie.build`;
    the terminator is the tokenizer's EOS); and where the labels do not fit the `context` (tokens; None: no limit).
    """
    texts = _texts(labels)
    tokens = tuple(_label_tokens(tokenizer, prompt, text) for text in texts)
    trie = Trie.build(tokens, _terminator(tokenizer, texts, tokens))
    check_fits(len(prompt.ids), trie.fed_depth, context)
    return BoundLabels(texts, tokens, trie)


def _texts(labels: Sequence[str]) -> tuple[str, ...]:
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence):
        raise InvalidRequest(f"labels must be a list of strings, got {type(labels).__name__}: write [' yes', ' no']")
    if not labels:
        raise InvalidRequest("there are no labels: pass at least one, and two or more to get a choice")
    texts = tuple(checked_text(label, f"label {index}") for index, label in enumerate(labels))
    twice = next((text for index, text in enumerate(texts) if text in texts[:index]), None)
    if twice is not None:
        raise InvalidRequest(f"the label {twice!r} is there twice: leave one out")
    return texts


def _label_tokens(tokenizer: Tokenizer, prompt: Prompt, label: str) -> Tokens:
    n_prompt = len(prompt.ids)
    joint = encode_text(tokenizer, prompt.text + label, prompt.special)
    if joint[:n_prompt] != prompt.ids:
        raise InvalidRequest(_merged(tokenizer, prompt, label, joint))
    own = joint[n_prompt:]
    if not own:
        raise InvalidRequest(
            f"the label {label!r} adds no token to the prompt: the tokenizer drops it; change its text"
        )
    if not any(_decode(tokenizer, (*beside, *own)) == _decode(tokenizer, beside) + label for beside in _beside(prompt)):
        raise InvalidRequest(
            f"the label {label!r} does not come back from its tokens {_show(tokenizer, own)}: "
            "use a label that the tokenizer keeps as it is"
        )
    return own


def _beside(prompt: Prompt) -> tuple[Tokens, Tokens]:
    """What to decode a label after: a few tokens do, unless they begin amid the bytes of a character."""
    return prompt.ids[-_BESIDE:], prompt.ids


def _merged(tokenizer: Tokenizer, prompt: Prompt, label: str, joint: Tokens) -> str:
    pairs = zip(prompt.ids, joint, strict=False)
    same = next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(prompt.ids), len(joint)))
    end = prompt.text[len(prompt.text.rstrip()) :]
    if end and not label[0].isspace():
        remedy = f"end the prompt before {end!r} and begin the labels with it"
    elif not label[0].isspace():
        remedy = "begin the label with a space, or end the prompt with a line break or a colon"
    else:
        remedy = "begin the label with another character, or end the prompt elsewhere"
    return (
        f"the label {label!r} merges into the prompt: the prompt alone ends in {_show(tokenizer, prompt.ids[same:])}, "
        f"with the label that becomes {_show(tokenizer, joint[same:])}; {remedy}"
    )


def _terminator(tokenizer: Tokenizer, texts: tuple[str, ...], tokens: tuple[Tokens, ...]) -> int | None:
    """EOS where a label is a prefix of another, else None."""
    order = sorted(range(len(tokens)), key=tokens.__getitem__)
    pairs = pairwise(order)
    pair = next(((a, b) for a, b in pairs if tokens[b][: len(tokens[a])] == tokens[a]), None)
    if pair is None:
        return None
    eos = tokenizer.eos_token_id
    if eos is None or any(eos in own for own in tokens):
        short, long = (texts[index] for index in pair)
        lack = "the model has no end token" if eos is None else "a label holds the model's end token itself"
        raise InvalidRequest(
            f"the label {short!r} is the beginning of {long!r} and {lack} to tell them apart: "
            "end every label with the same mark, such as a full stop"
        )
    return eos


def _decode(tokenizer: Tokenizer, ids: Tokens) -> str:
    return tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _show(tokenizer: Tokenizer, ids: Tokens) -> str:
    return " ".join(f"{_decode(tokenizer, (token,))!r} ({token})" for token in ids[:_BESIDE]) or "nothing"
