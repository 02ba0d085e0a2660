"""Prompts beyond the model's context: told as OpenAI's clients look for it, and early where their length says enough.

A tokenizer takes seconds for each megabyte, and reads for one request at a time.
"""

from typing import TYPE_CHECKING

from lanes.errors import InvalidRequest, PromptTooLong
from lanes.prompts import Text, Tokenizer, encode
from lanes.serving.errors import Where, invalid

if TYPE_CHECKING:
    from lanes.engine import Engine

TOO_LONG = "context_length_exceeded"
"""The code of an error, by which clients know that a shorter prompt would do."""
DOUBTFUL = 8
"""Characters for each token of the context, above which a text hardly fits: decisions would read it several times."""


def code_of(error: InvalidRequest) -> str | None:
    """The code that goes with what the engine says of a prompt."""
    return TOO_LONG if isinstance(error, PromptTooLong) else None


def most_characters(engine: "Engine") -> int:
    """How many characters a prompt can have: the context's tokens, were each the longest. Waits for the tokenizer."""
    return engine.info.context * engine.use_tokenizer(_longest)


def _longest(tokenizer: Tokenizer) -> int:
    """No token is more characters than how its vocabulary writes it has bytes."""
    return max(len(piece.encode()) for piece in tokenizer.get_vocab())


def check_length(characters: int, most: int, where: Where) -> None:
    """Raise a Refusal for what cannot fit; `most` is from `most_characters`."""
    if characters > most:
        said = f"this has {characters} characters, and no more than {most} can fit the model's context: shorten it"
        raise invalid(said, where, TOO_LONG)


def check_text(engine: "Engine", text: str, most: int, where: Where) -> None:
    """Raise a Refusal for a part of a prompt that cannot fit, or that is so long that counting its tokens pays."""
    check_length(len(text), most, where)
    context = engine.info.context
    if len(text) > DOUBTFUL * context and _is_too_long(engine, text):
        raise invalid(f"this alone has more tokens than the context of {context}: shorten it", where, TOO_LONG)


def characters(prompt: Text) -> int:
    """How long a prompt is without what a template adds."""
    return len(prompt) if isinstance(prompt, str) else sum(len(message["content"]) for message in prompt)


def _is_too_long(engine: "Engine", text: str) -> bool:
    try:
        return engine.use_tokenizer(lambda tokenizer: len(encode(tokenizer, text))) >= engine.info.context
    except InvalidRequest:
        return False
