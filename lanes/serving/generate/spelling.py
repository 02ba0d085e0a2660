"""Tokens by themselves, as text and as bytes: what replies with log-probabilities show of each token."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from lanes.prompts import Tokenizer
from lanes.text import anchor, special_ids

if TYPE_CHECKING:
    from lanes.engine import Engine

_BROKEN = "\ufffd"  # a decoder's sign for bytes that are no character


class Spelled(NamedTuple):
    """A token: its text by itself, and the UTF-8 bytes that it adds to a text (none for a special token)."""

    text: str
    raw: bytes

    @property
    def escaped(self) -> str:
        """The text, or the bytes where they are a part of a character: `\\xe2\\x82`."""
        return "".join(f"\\x{byte:02x}" for byte in self.raw) if self.partial else self.text

    @property
    def named(self) -> str:
        """The same for completions, whose clients tell bytes by a prefix: `bytes:\\xe2\\x82`."""
        return f"bytes:{self.escaped}" if self.partial else self.text

    @property
    def partial(self) -> bool:
        """Whether it has a part of a character in it."""
        try:
            self.raw.decode()
        except UnicodeDecodeError:
            return True
        return False


class Speller:
    """Spells an engine's tokens for an event loop, and remembers them."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._known: dict[int, Spelled] = {}

    async def spell(self, tokens: Iterable[int]) -> Mapping[int, Spelled]:
        """These tokens, among others. The tokenizer may be busy with a long prompt: it is asked beside the loop."""
        if unknown := set(tokens).difference(self._known):
            work = partial(spell, tokens=tuple(unknown))
            self._known.update(await asyncio.to_thread(self._engine.use_tokenizer, work))
        return self._known


def spell(tokenizer: Tokenizer, tokens: Sequence[int]) -> dict[int, Spelled]:
    """Each of these tokens by itself, as it is amid a text: decoders treat a text's first token apart."""
    special, before = special_ids(tokenizer), anchor(tokenizer)
    decode = partial(tokenizer.decode, clean_up_tokenization_spaces=False)
    shown = len(decode(before))

    def spelled(token: int) -> Spelled:
        if token in special:
            return Spelled(decode([token]), b"")
        text = decode([*before, token])[shown:]
        return Spelled(text, _raw(_piece(tokenizer, token), text))

    return {token: spelled(token) for token in tokens}


def _piece(tokenizer: Tokenizer, token: int) -> str | None:
    """The token as its vocabulary writes it."""
    found: Any = tokenizer.convert_ids_to_tokens(token)
    return found if isinstance(found, str) else None


def _raw(piece: str | None, text: str) -> bytes:
    """What a token adds, from how its vocabulary writes it where it is no text by itself."""
    if piece is None:  # a model may have more rows than its tokenizer has tokens
        return b""
    if _BROKEN not in text:
        return text.encode()
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):  # a tokenizer that falls back to bytes
        return bytes([int(piece[3:5], 16)])
    letters = _letters()
    return bytes(letters[letter] for letter in piece) if letters.keys() >= set(piece) else text.encode()


@cache
def _letters() -> dict[str, int]:
    """The byte that each letter of a byte-level vocabulary stands for."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {letter: byte for byte, letter in bytes_to_unicode().items()}
