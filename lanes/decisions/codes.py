"""Codes to answer with, such as A, B, C: chosen per tokenizer, so that each is one token of its own where that can be.

A set is a proposal. Whether its codes are single, distinct tokens is checked in the real prompt.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from string import ascii_uppercase

from lanes.prompts import Tokenizer, encode_text

CUE = "Answer:"
"""What every prompt ends with, before a code set's own tail."""
LONGEST = 8  # characters of a code
WAYS = (("", " "), ("\n", ""))  # some tokenizers have no letter with a space in front of it


@dataclass(frozen=True)
class Codes:
    """Codes to try: the prompt ends with `tail`, and what is read after it is `lead` and a code."""

    codes: tuple[str, ...]
    tail: str = ""
    lead: str = " "
    single: bool = True
    """Whether to take the set only if every code is one token."""


def code_sets(tokenizer: Tokenizer, count: int) -> Iterator[Codes]:
    """Sets of `count` codes, the best first. The last ones take several tokens a code."""
    for candidates in (_short, lambda: _vocabulary(tokenizer)):
        for tail, lead in WAYS:
            codes = tuple(islice(_singles(tokenizer, CUE + tail, lead, candidates()), count))
            if len(codes) == count:
                yield Codes(codes, tail, lead)
    words = list(islice(_vocabulary(tokenizer), count))
    for length, (parts, glue), (tail, lead) in product((2, 3), ((ascii_uppercase, ""), (words, " ")), WAYS):
        codes = tuple(glue.join(some) for some in islice(product(parts, repeat=length), count))
        if len(codes) == count:
            yield Codes(codes, tail, lead, single=False)


def _short() -> Iterator[str]:
    """Codes that people would choose."""
    yield from ascii_uppercase
    yield from ("".join(pair) for pair in product(ascii_uppercase, repeat=2))
    yield from map(str, range(1, 1000))


def _vocabulary(tokenizer: Tokenizer) -> Iterator[str]:
    """Short words of letters and digits among the tokenizer's own tokens, in the order of their ids."""
    seen: set[str] = set()
    for token in range(len(tokenizer)):
        text = _decode(tokenizer, token)
        if text.isascii() and text.isalnum() and len(text) <= LONGEST and text not in seen:
            seen.add(text)
            yield text


def _singles(tokenizer: Tokenizer, before: str, lead: str, candidates: Iterable[str]) -> Iterator[str]:
    """The codes that are one token after these words, and come back from it."""
    start = encode_text(tokenizer, before, special=False)
    for code in candidates:
        whole = encode_text(tokenizer, before + lead + code, special=False)
        if len(whole) == len(start) + 1 and whole[:-1] == start and _decode(tokenizer, whole[-1]) == code:
            yield code


def _decode(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.decode([token], clean_up_tokenization_spaces=False).strip()
