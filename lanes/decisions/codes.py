"""Codes to answer with, such as A, B, C: chosen per tokenizer, so that each is one token of its own."""

from collections.abc import Iterator
from itertools import islice, product
from string import ascii_letters, ascii_uppercase, digits

from lanes.prompts import Tokenizer, encode_text

LEAD = " "
"""What stands between the prompt's end and a code."""


def code_sets(tokenizer: Tokenizer, count: int) -> Iterator[tuple[str, ...]]:
    """Sets of `count` codes to try, the best first; the last one needs two tokens a code.

    A set is only a proposal: whether its codes are single, distinct tokens is checked in the real prompt.
    """
    if count <= len(ascii_uppercase):
        yield tuple(ascii_uppercase[:count])
    for candidates in (_short(), _vocabulary(tokenizer)):
        singles = tuple(islice((code for code in candidates if _single(tokenizer, code)), count))
        if len(singles) == count:
            yield singles
    for alphabet in (ascii_uppercase, ascii_letters + digits):
        pairs = tuple("".join(pair) for pair in islice(product(alphabet, repeat=2), count))
        if len(pairs) == count:
            yield pairs


def _short() -> Iterator[str]:
    """Codes that people would choose."""
    yield from ascii_uppercase
    yield from ("".join(pair) for pair in product(ascii_uppercase, repeat=2))
    yield from map(str, range(1, 1000))


def _vocabulary(tokenizer: Tokenizer) -> Iterator[str]:
    """Short words of letters and digits among the tokenizer's own tokens, in the order of their ids."""
    seen: set[str] = set()
    for token in range(len(tokenizer)):
        text = tokenizer.decode([token], clean_up_tokenization_spaces=False).strip()
        if text.isascii() and text.isalnum() and len(text) <= 8 and text not in seen:
            seen.add(text)
            yield text


def _single(tokenizer: Tokenizer, code: str) -> bool:
    return len(encode_text(tokenizer, LEAD + code, special=False)) == 1
