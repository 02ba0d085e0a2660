"""Prompts into tokens: raw text as the tokenizer reads it, chat messages through the model's template.

Whatever cannot be served is refused here, before it reaches a queue. A `tokenizer` is one of transformers, bare or in
mlx-lm's wrapper.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

from lanes.errors import InvalidRequest, PromptTooLong

Tokenizer: TypeAlias = Any
Text: TypeAlias = str | Sequence[Mapping[str, Any]]
"""What a caller may write: raw text, or chat messages (a list of role and content)."""

_TEXT_PARTS = ("text", "input_text")
_PICTURE_PARTS = ("image", "image_url", "input_image")
_REMEDY = "pass a string, or a list of chat messages"
_NO_PICTURES = "pictures are not supported: the engine reads text alone; describe the picture in words"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the model sees it: the rendered text and its token ids.

    `special` says whether the tokenizer added its own tokens (such as BOS) around the text; text that goes on from
    this prompt must be encoded the same way.
    """

    text: str
    ids: tuple[int, ...]
    special: bool


def encode(tokenizer: Tokenizer, prompt: Text) -> list[int]:
    """Token ids of a prompt; see `read` for what is refused."""
    return list(read(tokenizer, prompt).ids)


def read(tokenizer: Tokenizer, prompt: Text) -> Prompt:
    """A prompt with its text and tokens.

    Raw text is encoded as the tokenizer does by default, BOS included, unless the text begins with BOS itself. Chat
    messages are rendered with the generation prompt added and thinking off; the template alone places BOS there.
    Raises InvalidRequest for an empty prompt, anything but text, a picture, half a character (a lone surrogate),
    messages of a wrong shape, messages that the template rejects, and a model that has no template.
    """
    if isinstance(prompt, str):
        return _raw(tokenizer, prompt)
    if _is_list(prompt):
        return _of_text(tokenizer, _render(tokenizer, _messages(prompt)), special=False)
    raise InvalidRequest(_not_text("the prompt", prompt, _REMEDY))


def join(tokenizer: Tokenizer, trunk: Text, branch: Text) -> Prompt:
    """The prompt of one branch on a trunk, encoded as a whole.

    Text joins text, messages join messages, and text after messages goes on where the rendered template ends. Raises
    InvalidRequest as `read` does, and for messages after raw text.
    """
    if isinstance(branch, str):
        start = read(tokenizer, trunk)
        return _of_text(tokenizer, start.text + checked_text(branch, "a branch"), start.special)
    if not _is_list(branch):
        raise InvalidRequest(_not_text("a branch", branch, _REMEDY))
    if isinstance(trunk, str):
        raise InvalidRequest("a branch of chat messages cannot follow a trunk of raw text: write both as messages")
    return read(tokenizer, [*trunk, *branch] if _is_list(trunk) else trunk)


def common_length(prompts: Sequence[Prompt]) -> int:
    """How many tokens all prompts begin with alike."""
    first, last = min(prompt.ids for prompt in prompts), max(prompt.ids for prompt in prompts)
    same = (index for index, (left, right) in enumerate(zip(first, last, strict=False)) if left != right)
    return next(same, min(len(first), len(last)))


def encode_text(tokenizer: Tokenizer, text: str, special: bool) -> tuple[int, ...]:
    """Token ids of a rendered text; `special` as in `Prompt`. An end token that the tokenizer adds is left out."""
    ids = tuple(tokenizer.encode(text, add_special_tokens=special))
    if special and ids and ids[-1] == tokenizer.eos_token_id:  # the model would go on after the end of its text
        plain = tuple(tokenizer.encode(text, add_special_tokens=False))
        return ids if ids[-len(plain) :] == plain else ids[:-1]
    return ids


def pieces(tokenizer: Tokenizer, tokens: Iterable[int]) -> tuple[str, ...]:
    """Each token id as text by itself; half a character comes as "\\ufffd"."""
    return tuple(tokenizer.decode([token]) for token in tokens)


def check_fits(n_tokens: int, max_new: int, context: int | None) -> None:
    """Raise PromptTooLong where a prompt and what is to follow it do not fit the context (tokens; None: no limit)."""
    over = 0 if context is None else n_tokens + max_new - context
    if over <= 0:
        return
    follows = f" and up to {max_new} tokens to follow" if max_new else ""
    remedy = "shorten the prompt" + (" or ask for fewer tokens" if max_new else "")
    raise PromptTooLong(
        f"the prompt has {n_tokens} tokens{follows}, {over} more than the context of {context} tokens: {remedy}"
    )


def checked_text(text: Any, what: str) -> str:
    """The text itself; raises InvalidRequest where it is no text, is empty or holds a lone surrogate."""
    if not isinstance(text, str):
        raise InvalidRequest(_not_text(what, text, "pass a string"))
    if not text:
        raise InvalidRequest(f"{what} is empty: pass at least one character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{what} holds half a character (a lone surrogate) at position {error.start}: "
            "decode the bytes it came from as UTF-8, or pass errors='replace' when you read them"
        ) from None
    return text


def _raw(tokenizer: Tokenizer, text: str) -> Prompt:
    bos = getattr(tokenizer, "bos_token", None)
    return _of_text(tokenizer, checked_text(text, "the prompt"), special=not (bos and text.startswith(bos)))


def _of_text(tokenizer: Tokenizer, text: str, special: bool) -> Prompt:
    ids = encode_text(tokenizer, text, special)
    if not ids:
        raise InvalidRequest("the prompt has no tokens: the tokenizer drops all of this text; pass some words")
    return Prompt(text, ids, special)


def _render(tokenizer: Tokenizer, messages: list[dict[str, Any]]) -> str:
    has_template = getattr(tokenizer, "has_chat_template", None)
    if has_template is None:
        has_template = getattr(tokenizer, "chat_template", None) is not None
    if not has_template:
        raise InvalidRequest("this model has no chat template: pass raw text instead of messages")
    try:
        text = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
    except Exception as error:  # a template is the model's own code and may fail in any way
        raise InvalidRequest(
            f"the model's chat template rejects these messages ({error}): change their roles or order, or pass raw text"
        ) from error
    return checked_text(text, "the rendered chat")


def _messages(prompt: Sequence[Any]) -> list[dict[str, Any]]:
    if not prompt:
        raise InvalidRequest("the prompt is empty: pass at least one message")
    return [_message(index, message) for index, message in enumerate(prompt)]


def _message(index: int, message: Any) -> dict[str, Any]:
    what = f"message {index}"
    if not isinstance(message, Mapping):
        raise InvalidRequest(_not_text(what, message, 'write it as {"role": "user", "content": "..."}'))
    missing = [key for key in ("role", "content") if key not in message]
    if missing:
        raise InvalidRequest(f'{what} lacks {" and ".join(missing)}: write it as {{"role": "user", "content": "..."}}')
    role = checked_text(message["role"], f"the role of {what}")
    content = message["content"]
    text = "".join(_part(what, part) for part in content) if _is_list(content) else _content(what, content)
    return {**message, "role": role, "content": text}


def _content(what: str, content: Any) -> str:
    return content if content == "" else checked_text(content, f"the content of {what}")


def _part(what: str, part: Any) -> str:
    if isinstance(part, str):
        return _content(what, part)
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in _PICTURE_PARTS:
        raise InvalidRequest(_NO_PICTURES)
    if not isinstance(part, Mapping) or kind not in _TEXT_PARTS:
        raise InvalidRequest(f'{what} has a part that is no text: write it as {{"type": "text", "text": "..."}}')
    return _content(what, part.get("text"))


def _is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _not_text(what: str, value: Any, remedy: str) -> str:
    kind = type(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{what} is bytes, not text. Text: decode it first. A picture: {_NO_PICTURES}"
    if kind.__module__.partition(".")[0] == "PIL":
        return _NO_PICTURES
    return f"{what} is not text but {kind.__name__}: {remedy}"
