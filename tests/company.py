"""Requests whose bits are compared: what one gives alone, and what it gives in company."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import mlx.core as mx
import numpy as np

import lanes
from lanes.decisions.results import Scored
from lanes.forward import Forward, Row
from lanes.record import Round

WAIT = 300.0
"""Seconds after which a test gives up on a request: a hang shows, and no busy machine fails a test."""
CLOSE = 1e-5 if mx.default_device() == mx.cpu else 1e-2
"""How far logits may lie from those of plain mlx-lm, whose sums have another order; a GPU works in TF32."""
WORDS = (
    " the", " and", " of", " to", " in", " is", " that", " you", " for", " with", " yes", " no", " review", " great",
    " question", " answer", " sea", " capital", " other", " true", " false", " positive", " negative",
)  # fmt: skip
"""Each is one token of the tiny models and of the embedded one."""

ROUTES = {"qwen3_5": "single"}
Handle = Any
Submit = Callable[[lanes.Engine], Handle]


def words(count: int, seed: int = 0) -> str:
    """A text of exactly `count` tokens."""
    return "".join(Random(seed).choices(WORDS, k=count))


def tokens(count: int, seed: int = 0) -> list[int]:
    """Token ids of a made-up sequence for the forward."""
    return Random(seed).choices(range(3, 500), k=count)


@dataclass(frozen=True, eq=False)
class Ask:
    """A request that can be made again and again: a stream, or a decision where there are labels."""

    prompt: str
    length: int = 8
    sampling: dict[str, Any] = field(default_factory=dict)
    labels: Sequence[str] = ()
    branches: Sequence[str] = ()

    def __call__(self, engine: lanes.Engine) -> Handle:
        if self.branches:
            return engine.decide(self.prompt, self.branches, self.labels)
        if self.labels:
            return engine.score(self.prompt, self.labels)
        return engine.stream(self.prompt, max_tokens=self.length, ignore_eos=True, digests=True, **self.sampling)


def make(arch: str, slots: int, width: int | None = None, prefix_bytes: int = 0) -> lanes.Engine:
    """An engine with a tiny model, exact on the route that its architecture allows; by default it keeps no prefix.

    The route is part of the claim: the probe would send a broken packed forward to the single route, and be exact.
    """
    engine = lanes.Engine(lanes.tiny(arch, seed=1), slots=slots, width=width, prefix_bytes=prefix_bytes)
    assert engine.exactness.exact, engine.exactness
    assert engine.exactness.route == ROUTES.get(arch, "packed"), engine.exactness
    return engine


def bits(handle: Handle) -> tuple[Any, ...]:
    """Everything that a request found, as values that are equal only where the bits are."""
    found = handle.result(WAIT)
    if isinstance(handle, lanes.Stream):
        assert len(handle.digests) == len(handle.tokens)
        return handle.tokens, handle.digests, found
    return tuple(map(numbers, found)) if isinstance(found, tuple) else (numbers(found),)


def numbers(found: Scored) -> tuple[Any, ...]:
    """One result's numbers, bit by bit."""
    return (
        found.labels, found.logits.tobytes(), np.float64(found.logsumexp).tobytes(), found.probabilities.tobytes(),
        found.label_mass, found.choice,
    )  # fmt: skip


def alone(engine: lanes.Engine, ask: Submit) -> tuple[Any, ...]:
    """The bits of a request that is the only one in its engine."""
    engine.resume()
    assert engine.wait(WAIT), "the engine is not idle"
    return bits(ask(engine))


@contextmanager
def held(engine: lanes.Engine) -> Iterator[int]:
    """Hold an idle engine between rounds; gives the index of the next round. It goes on afterwards."""
    assert engine.wait(WAIT), "the engine is not idle"
    assert engine.pause(WAIT)
    try:
        yield engine.rounds.next_index
    finally:
        engine.resume()


def since(engine: lanes.Engine, index: int) -> tuple[Round, ...]:
    """The rounds from `index` on."""
    found = engine.rounds.since(index)
    assert not found.lost
    return found.rounds


def step_until(engine: lanes.Engine, condition: Callable[[], bool], most: int = 500) -> None:
    """Step one round at a time until something is so."""
    for _ in range(most):
        if condition():
            return
        engine.step(1, WAIT)
    raise AssertionError(f"it did not come to that in {most} rounds")


def decoding(rounds: Sequence[Round], id: int) -> tuple[Round, ...]:
    """The rounds in which a stream drew a token from a decode row."""
    return tuple(done for done in rounds if any(row.id == id and row.kind == "decode" for row in done.rows))


def places(rounds: Sequence[Round], id: int) -> set[int]:
    """The positions among the packed rows that a live stream's row took, over these rounds."""
    found = set()
    for done in decoding(rounds, id):
        ids = [row.id for row in done.rows for _ in range(row.rows)]
        found.add(ids.index(id) % done.width)
    return found


def raw(logits: mx.array) -> np.ndarray:
    """Logits as integers, so that equal means equal bits."""
    mx.eval(logits)
    return np.array(logits.astype(mx.float32)).view(np.uint32)


def fill(forward: Forward, slot: int, ids: Sequence[int], piece: int, room: int | None = None) -> int:
    """Open a slot and fill the body of a sequence, whose first row follows; returns where that is."""
    body = (len(ids) - 1) // piece * piece
    forward.open(slot, room or len(ids) + 64)
    for start in range(0, body, piece):
        mx.eval(forward.fill(slot, start, ids[start : start + piece]), forward.state(slot))
    return body


def rows_alone(forward: Forward, ids: Sequence[int], after: Sequence[int], piece: int, slot: int = 0) -> np.ndarray:
    """The bits of every packed row of a prompt and the tokens after it, run one row a round; [rows, vocabulary]."""
    body = fill(forward, slot, ids, piece)
    rest = [*ids[body:], *after]
    return np.stack([raw(forward.rows([Row(slot, body + at, token)]))[0] for at, token in enumerate(rest)])
