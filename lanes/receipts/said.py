"""Prompts and replies on record: hashes and lengths, and their words only where they are wanted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanes.errors import InvalidRequest
from lanes.prompts import Text, encode
from lanes.receipts import canonical
from lanes.receipts.canonical import plain, sha256
from lanes.receipts.shapes import PromptFacts, Reply

if TYPE_CHECKING:
    from lanes.engine import Engine, Stream


def token_sha(tokens: Sequence[int]) -> str:
    """The first 12 hex digits of the sha256 of the ids, joined by commas. It is no proof of equal logits."""
    return sha256(",".join(map(str, tokens)))[:12]


def words(prompt: Text) -> str:
    """A prompt as one text: itself, or the canonical JSON of its messages."""
    return prompt if isinstance(prompt, str) else canonical.encode(plain("prompt", prompt)).decode()


def prompt_facts(name: str, prompt: Text, engine: "Engine | None", keep_text: bool) -> PromptFacts:
    """A prompt's hash and lengths; its tokens where there is an engine to count them."""
    if not isinstance(prompt, str | list | tuple) or not prompt:
        raise InvalidRequest(f"a prompt is a text or a list of messages, not {type(prompt).__name__}, and not empty")
    text = words(prompt)
    return PromptFacts(
        name=name,
        sha256=sha256(text),
        tokens=None if engine is None else engine.use_tokenizer(lambda tokenizer: len(encode(tokenizer, prompt))),
        characters=len(text),
        text=text if keep_text else None,
    )


def reply_facts(name: str, stream: "Stream", keep_text: bool) -> Reply:
    """What a stream was asked and said. Raises InvalidRequest for one that has not ended."""
    if stream.finish_reason is None:
        raise InvalidRequest(f"stream {stream.id} has not ended: await it before it goes on record")
    return Reply(
        name=name,
        prompt_sha256=sha256(words(stream.prompt)),
        prompt_tokens=stream.prompt_tokens,
        tokens=len(stream.tokens),
        finish_reason=stream.finish_reason,
        token_sha=token_sha(stream.tokens),
        logits_sha256=sha256("\n".join(stream.digests)) if stream.digests else None,
        text=stream.text if keep_text else None,
    )


def digest(found: Any) -> str:
    """One sha256 of what is to be compared as bits: an answer's logits, an array, a text, or a list of these.

    Of a `Scored`: its label logits and its logsumexp, as float32. Of a list: the digests of its parts, one a line.
    """
    if isinstance(found, str):
        return sha256(found)
    if hasattr(found, "logits") and hasattr(found, "logsumexp"):
        return sha256(np.asarray(found.logits, np.float32).tobytes() + np.float32(found.logsumexp).tobytes())
    if isinstance(found, np.ndarray):
        return sha256(f"{found.dtype.str} {found.shape}\n".encode() + found.tobytes())
    if isinstance(found, Sequence) and not isinstance(found, bytes):
        return sha256("\n".join(map(digest, found)))
    raise InvalidRequest(
        f"a digest is made of an answer, an array, a text or a list of them, not {type(found).__name__}"
    )
