"""Tokens into text, one at a time: whole characters only, and nothing of a stop string."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

from lanes.errors import InvalidRequest
from lanes.prompts import Tokenizer

_BROKEN = "\ufffd"
_UNFINISHED = 3  # a UTF-8 character has at most 4 bytes: at most 3 of them can wait for the rest
_LONG, _KEPT = 64, 16  # tokens of a window that finds no end, and how many of them its newest characters need


class Detokenizer:
    """Text from a stream of tokens, at a cost per token that does not grow with the stream.

    What `push` and then `finish` return joins to `tokenizer.decode(tokens, clean_up_tokenization_spaces=False)`: the
    tokens are decoded in a short window that begins one group of tokens earlier, so that a decoder which treats the
    first token apart (a leading space) sees the same as in the whole. A character whose bytes are spread over tokens is
    held back until it is complete. One thing differs: where a tokenizer falls back to bytes and an invalid byte follows
    valid ones, the valid characters stay as they were shown, while a whole decode would replace them too.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special: bool = True) -> None:
        self._decode = partial(tokenizer.decode, skip_special_tokens=skip_special, clean_up_tokenization_spaces=False)
        self._silent = special_ids(tokenizer) if skip_special else frozenset()
        self._window: list[int] = []  # one group that is shown, as context, then the tokens of the next group
        self._context = 0  # tokens of the window that are context
        self._shown = 0  # characters of the window's text that were returned

    def push(self, token: int) -> str:
        """The text that this token completes; may be empty."""
        if token in self._silent:
            return ""
        self._window.append(token)
        text = self._decode(self._window)
        safe = len(text) - _unfinished(text)
        new = text[self._shown : safe]
        self._shown = max(self._shown, safe)
        if new and safe == len(text):
            self._keep(len(self._window) - self._context)
        elif len(self._window) > _LONG:
            self._keep(_KEPT)
        return new

    def finish(self) -> str:
        """What was still held back, a broken character as U+FFFD."""
        text = self._decode(self._window)[self._shown :] if self._window else ""
        self._window, self._context, self._shown = [], 0, 0
        return text

    def _keep(self, n_tokens: int) -> None:
        self._window = self._window[-n_tokens:]
        text = self._decode(self._window)
        self._shown = len(text) - _unfinished(text)
        self._context = n_tokens


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


def _unfinished(text: str) -> int:
    return min(_UNFINISHED, len(text) - len(text.rstrip(_BROKEN)))


def _overlap(text: str, stop: str) -> int:
    """How many of the text's last characters are a beginning of the stop string, but not all of it."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


def _checked_stops(stop: str | Sequence[str]) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop)
    for text in stops:
        if not isinstance(text, str) or not text:
            raise InvalidRequest(f"stop must hold strings of at least one character, got {text!r}: leave it out")
    return stops
