"""The engine's side of a comparison: the same blocks of decode steps, and the same prefill, as the other side's."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanes.errors import EngineFailed

if TYPE_CHECKING:
    from lanes.engine import Engine, Stream

STEP_S = 600.0
"""Seconds after which a block of rounds counts as stuck."""


class Own:
    """Holds an engine between rounds (it stands still while the other side computes) and steps it block by block."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._streams: list[Stream] = []
        engine.pause()

    def begin(self, prompts: Sequence[str], tokens: int) -> None:
        """Fill the prompts and draw the first token of each; every stream ends after `tokens` tokens."""
        self._streams = [self._engine.stream(prompt, max_tokens=tokens, ignore_eos=True) for prompt in prompts]
        while not all(stream.tokens for stream in self._streams):
            self._step(1)

    def decode(self, steps: int) -> float:
        """Seconds of `steps` rounds, a token for each stream in every one, on the caller's clock.

        One more round runs before the clock starts, as on the other side.
        """
        self._step(1)
        first = self._engine.rounds.next_index
        start = time.perf_counter()
        self._step(steps)
        seconds = time.perf_counter() - start
        gained = sum(done.tokens for done in self._engine.rounds.since(first).rounds)
        if gained != steps * len(self._streams):
            raise EngineFailed(f"{len(self._streams)} streams gained {gained} tokens in {steps} rounds: one has ended")
        return seconds

    def end(self) -> None:
        """Drop the streams."""
        for stream in self._streams:
            stream.cancel()
        self._streams = []
        self._engine.wait(60.0)

    def fill(self, prompt: str) -> tuple[int, float]:
        """Fill a prompt: how many of its tokens went in pieces, and the seconds from the first piece to the last."""
        first = self._engine.rounds.next_index
        self._engine.resume()
        self._engine.stream(prompt, max_tokens=1, ignore_eos=True).result()
        self._engine.pause()
        pieces = [done for done in self._engine.rounds.since(first).rounds if done.piece]
        return sum(done.piece.filled for done in pieces if done.piece), pieces[-1].end - pieces[0].start

    def _step(self, rounds: int) -> None:
        if self._engine.step(rounds, STEP_S) < rounds:
            raise EngineFailed(f"the engine did not run {rounds} rounds: it is closed, too slow, or a stream has ended")

    @property
    def tokens(self) -> int:
        """The tokens that all streams have together."""
        return sum(len(stream.tokens) for stream in self._streams)
