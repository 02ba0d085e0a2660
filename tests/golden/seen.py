"""What came of a request, in plain values: words and numbers to read, and a hash of every bit."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import lanes
from golden.leads import leads
from golden.shapes import Values
from lanes.record.shapes import RequestId
from lanes.sampling import Sampling

DIGITS = 6
DRAWS = ("temperature", "top_p", "top_k", "min_p", "seed")
Names = Mapping[RequestId, str]
"""What requests are called in a case, by their number in the engine's record, which depends on what came before."""


def refusal(error: Exception, names: Names | None = None) -> Values:
    """The kind of an error and what it says; requests go by their names."""
    says = re.sub(r"\b(stream|decision|request) (\d+)\b", lambda found: _name(found, names or {}), str(error))
    return {"refused": type(error).__name__, "says": says}


def of_stream(engine: lanes.Engine, stream: lanes.Stream, given: Values, names: Names | None = None) -> Values:
    """A stream that has ended."""
    drawing = Sampling(**{name: given[name] for name in DRAWS if name in given})
    vocabulary = engine.info.config["vocab_size"]
    return {
        "text": stream.text,
        "tokens": list(stream.tokens),
        "finish_reason": stream.finish_reason,
        "prompt_tokens": stream.prompt_tokens,
        "logprobs": rounded(one.logprob for one in stream.logprobs),
        "leads": rounded(leads(stream.logprobs, drawing, stream.prompt_tokens, vocabulary)),
        "bits": bits("".join(stream.digests).encode()),
        **({"error": refusal(stream.error, names)} if stream.error else {}),
    }


def of_scored(result: lanes.Scored) -> Values:
    """One result of a decision."""
    return {
        "labels": list(result.labels),
        "choice": result.choice,
        "probabilities": rounded(result.probabilities),
        "label_mass": rounded([result.label_mass])[0],
        "logits": rounded(result.logits),
        "logsumexp": rounded([result.logsumexp])[0],
        "prompt_tokens": result.prompt_tokens,
        "top": [token for token, _ in result.top],
        "top_probabilities": rounded(p for _, p in result.top),
        "bits": bits(
            result.logits, result.logsumexp, result.log_probabilities, result.probabilities, result.label_mass
        ),
    }


def of_answer(answer: lanes.Answer) -> Values:
    """One answer to a typed question."""
    return {
        "type": answer.type,
        "options": list(answer.options),
        "choice": answer.choice,
        "probabilities": rounded(answer.probabilities),
        "value": rounded([answer.value])[0],
        "label_mass": rounded([answer.label_mass])[0],
        "abstain": rounded([answer.abstain])[0],
        "orders": answer.orders,
        "flips": answer.flips,
        "prior": answer.prior,
        "labels": list(answer.labels),
        "prompt_tokens": answer.prompt_tokens,
        "prompt": answer.prompt.splitlines(keepends=True),
        "warnings": list(answer.warnings),
        "bits": bits(answer.logs, answer.label_mass, 0.0 if answer.abstain is None else answer.abstain),
    }


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Numbers that can be read; their bits are hashed beside them."""
    return [None if value is None else round(float(value), DIGITS) for value in values]


def bits(*values: Any) -> str:
    """The sha256 (hex) of bytes, arrays and floats, as they are in memory."""
    digest = hashlib.sha256()
    for value in values:
        digest.update(value if isinstance(value, bytes) else np.asarray(value).tobytes())
    return digest.hexdigest()


def _name(found: re.Match[str], names: Names) -> str:
    return f"{found[1]} {names.get(int(found[2]), found[2])}"
