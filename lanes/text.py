"""Tokens into text, one at a time: whole characters only, and nothing of a stop string."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from functools import partial
from typing import Literal

from lanes.errors import InvalidRequest
from lanes.prompts import Tokenizer

_BROKEN = "\ufffd"  # a decoder's sign for bytes that are no character, or not yet
_LONG, _KEPT = 64, 4  # tokens of a window that finds no end, and how many of them a character of 4 bytes can need


class Detokenizer:
    """Text from a stream of tokens, at a cost per token that does not grow with the stream.

    What `push` and then `finish` return joins to `tokenizer.decode(tokens, clean_up_tokenization_spaces=False)`, which
    mlx-lm's own detokenizers do not hold to for every kind of tokenizer. A character whose bytes are spread over tokens
    is held back until it is complete. One thing differs: where a tokenizer that falls back to bytes meets invalid ones,
    the valid characters beside them are kept, while a whole decode replaces them too.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special: bool = True) -> None:
        self._decode = partial(tokenizer.decode, skip_special_tokens=skip_special, clean_up_tokenization_spaces=False)
        self._silent = special_ids(tokenizer) if skip_special else frozenset()
        self._bytes = _byte_ids(tokenizer)
        self._utf8 = getincrementaldecoder("utf-8")("replace")
        self._anchor = anchor(tokenizer)
        self._window: list[int] = []  # the tokens whose text is not all shown; behind the anchor, but for the first
        self._shown = 0  # characters of the window's text that were returned, the anchor's included

    def push(self, token: int) -> str:
        """The text that this token completes; may be empty."""
        if token in self._silent:
            return ""
        if token in self._bytes:
            return self._rest() + self._past_anchor(self._utf8.decode(self._bytes[token]))
        broken = self._past_anchor(self._utf8.decode(b"", final=True))
        self._window.append(token)
        text = self._decode(self._window)
        safe = len(text) - text.endswith(_BROKEN)
        new = text[self._shown : safe]
        self._shown = safe
        if new and safe == len(text):
            self._go_on_with([])
        elif len(self._window) > _LONG:
            self._go_on_with(self._window[-_KEPT:])
        return broken + new

    def finish(self) -> str:
        """What was still held back, a broken character as U+FFFD."""
        text = self._rest() + self._utf8.decode(b"", final=True)
        self._window, self._shown = [], 0
        return text

    def _rest(self) -> str:
        return self._past_anchor(self._decode(self._window)[self._shown :])

    def _past_anchor(self, text: str) -> str:
        if text:
            self._go_on_with([])
        return text

    def _go_on_with(self, tokens: list[int]) -> None:
        self._window = [*self._anchor, *tokens]
        text = self._decode(self._window)
        self._shown = len(text) - text.endswith(_BROKEN)


class Stops:
    """Text up to a stop string, held back only while its end could still become one.

    Of several stop strings the one that is complete first counts (of those that end together, the longest), so that
    the result does not depend on how the text is cut into pieces.
    """

    def __init__(self, stop: str | Sequence[str] = ()) -> None:
        self._stops = _checked_stops(stop)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """The part of the text so far that is safe to show; empty once a stop string was found."""
        if self.found:
            return ""
        text = self._held + text
        ends = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if ends:
            self.found, self._held = True, ""
            return text[: min(ends)[1]]
        kept = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def finish(self) -> str:
        """What was still held back: no stop string came of it."""
        text, self._held = self._held, ""
        return text


class TextStream:
    """The text of one stream: push its tokens in order, flush at its end.

    `stop` is a stop string or several, `stop_ids` the tokens that end the stream; neither is in the text. `finished` is
    "stop" once one was met, after which nothing more comes. Raises InvalidRequest for an empty stop string.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stop: str | Sequence[str] = (),
        stop_ids: frozenset[int] = frozenset(),
        skip_special: bool = True,
    ) -> None:
        self._detokenizer = Detokenizer(tokenizer, skip_special)
        self._stops = Stops(stop)
        self._stop_ids = stop_ids
        self.finished: Literal["stop"] | None = None

    def push(self, token: int) -> str:
        """The text that is safe to show now."""
        if self.finished:
            return ""
        if token in self._stop_ids:
            self.finished = "stop"
            return self.flush()
        text = self._stops.push(self._detokenizer.push(token))
        self.finished = "stop" if self._stops.found else None
        return text

    def flush(self) -> str:
        """What is still held back; call it once, when the stream ends for another reason than a stop."""
        text = self._stops.push(self._detokenizer.finish()) + self._stops.finish()
        if self._stops.found:
            self.finished = "stop"
        return text


def special_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The ids of the tokens that decoding can skip."""
    added = {token_id for token_id, token in tokenizer.added_tokens_decoder.items() if token.special}
    return frozenset(added.union(tokenizer.all_special_ids))


def _byte_ids(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The tokens that stand for one byte of a character outside ASCII, where a tokenizer falls back to bytes."""
    ids = [tokenizer.convert_tokens_to_ids(f"<0x{byte:02X}>") for byte in range(0x80, 0x100)]
    if None in ids or len(set(ids)) < len(ids):  # an unknown token has no id, or that of the unknown one
        return {}
    return {token: bytes([byte]) for token, byte in zip(ids, range(0x80, 0x100), strict=True)}


def anchor(tokenizer: Tokenizer) -> list[int]:
    """A token to stand for the text before: decoders treat the first token of a text apart (its leading space)."""
    texts = ((token, tokenizer.decode([token], skip_special_tokens=True)) for token in range(len(tokenizer)))
    return next(([token] for token, text in texts if text.isascii() and text[-1:].isalnum()), [])


def _overlap(text: str, stop: str) -> int:
    """How many of the text's last characters are a beginning of the stop string, but not all of it."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


def _checked_stops(stop: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(stop, str | list | tuple):
        raise InvalidRequest(f"stop must be a string or a list of strings, not {type(stop).__name__}")
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    for text in stops:
        if not isinstance(text, str) or not text:
            raise InvalidRequest(f"stop must hold strings of at least one character, got {text!r}: leave it out")
    return stops
