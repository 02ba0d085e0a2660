"""Runs what a turn asks of the model: plain values in, plain numbers out. The one place where MLX meets a round."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import mlx.core as mx
import numpy as np

from lanes.decisions.program import Read
from lanes.engine.failure import failure
from lanes.engine.turn import Cell, Chunk, Draw, Drawn, Found, Logprob, Outcome, Reply, Turn, Wanted
from lanes.engine.work import Work
from lanes.errors import EngineFailed
from lanes.forward import Forward, Row
from lanes.forward.math import logsumexp
from lanes.forward.prefix import PrefixCache
from lanes.sampling import draw_rows


class Runner:
    """A model's forward with its slots' states and kept beginnings; for the engine's thread alone."""

    def __init__(self, forward: Forward, prefix: PrefixCache) -> None:
        self.forward = forward
        self.prefix = prefix
        self._begun: dict[int, _Begun] = {}

    def seat(self, slot: int, work: Work) -> int | None:
        """Make a slot ready for a request; how many of its prompt's tokens were kept from an earlier one.

        None where the cache was not asked: it is off, or the prompt is shorter than a piece.
        """
        first = work.segments[0]
        body = first.body(self.prefix.piece)
        if self._begun.pop(slot, None):  # its last request left amid a piece, whose rest is never to be computed
            self.forward.clear(slot)
        self.forward.open(slot, work.room, work.marks)
        if not self.prefix.limit or not body:
            return None
        tokens, state = self.prefix.find(first.tokens, body)
        if tokens:
            self.forward.load(slot, state, tokens)
        return tokens

    def run(self, turn: Turn) -> Outcome:
        """Run a turn. A failure of the shared forward fails all that had rows in it, one of the piece only its own."""
        replies: list[Reply] = []
        failures: dict[int, EngineFailed] = {}
        if turn.chunk:
            try:
                replies += self._fill(turn.chunk)
            except Exception as error:  # whatever the model's code or the device raises must not end the loop
                failures |= self._failed({turn.chunk.id: turn.chunk.slot}, error)
        groups = [[cell for cell in group if cell.id not in failures] for group in turn.groups]
        try:
            replies += self._rows([group for group in groups if group])
        except Exception as error:
            failures |= self._failed({cell.id: cell.slot for group in groups for cell in group}, error)
        return Outcome(tuple(replies), tuple(failures.items()))

    def _rows(self, groups: Sequence[Sequence[Cell]]) -> Iterator[Reply]:
        readings = []
        for group in groups:
            logits = self.forward.rows([Row(cell.slot, cell.position, cell.token) for cell in group])
            wanted = [(row, cell.id, cell.wanted) for row, cell in enumerate(group) if cell.wanted]
            readings.append(_Reading(logits, wanted))
        # Packed logits depend on every write of their group; where none are wanted, the vocabulary's product is spared.
        unread = [group for group in groups if not self.forward.packed or not any(cell.wanted for cell in group)]
        states = [self.forward.state(cell.slot) for group in unread for cell in group]
        mx.eval([reading.arrays for reading in readings], states)  # the round's one wait for the device
        for reading in readings:
            yield from reading.replies()

    def _fill(self, chunk: Chunk) -> Iterator[Reply]:
        if chunk.part.number == 1:
            logits, stations = self.forward.begin(chunk.slot, chunk.start, chunk.tokens, chunk.part.of)
            reading = _Reading(logits[0], [(row, chunk.id, wanted) for row, wanted in chunk.wanted])
            self._begun[chunk.slot] = _Begun(reading, stations)
        reading, stations = self._begun[chunk.slot]
        if not chunk.part.last:
            mx.eval(stations[chunk.part.number - 1])
            return
        mx.eval(reading.arrays, self.forward.state(chunk.slot))
        del self._begun[chunk.slot]
        if self.prefix.wants(chunk.keep):
            saved = self.forward.save(chunk.slot, len(chunk.keep))
            mx.eval(saved)
            self.prefix.keep(chunk.keep, saved)
        yield from reading.replies()

    def _failed(self, slots: dict[int, int], error: Exception) -> dict[int, EngineFailed]:
        """The error of every request that shared a forward, and no state that it may have spoilt."""
        self.prefix.clear()
        failures = {}
        for id, slot in slots.items():
            self.forward.clear(slot)
            self._begun.pop(slot, None)
            failures[id] = failure("the model's forward failed, and everything else goes on", error)
        return failures


class _Begun(NamedTuple):
    """A piece whose graph is built: what is wanted of it, and what to evaluate for each part but the last."""

    reading: "_Reading"
    stations: Sequence[mx.array]


class _Reading:
    """What is wanted of some rows of logits: lazy arrays to evaluate, and then the replies."""

    def __init__(self, logits: mx.array, wanted: Sequence[tuple[int, int, Wanted]]) -> None:
        self._wanted = wanted
        rows = logits.astype(mx.float32) if wanted else logits
        draws = [(row, want) for row, _, want in wanted if isinstance(want, Draw)]
        picks = [(row, draw.sampling, draw.position) for row, draw in draws]
        self._tokens = draw_rows(rows, picks) if picks else None
        # A sum tells of any NaN or infinity in its row, at a thousandth of a round's work.
        self._finite = mx.isfinite(rows.sum(axis=-1)) if picks else None
        self._hashed = {row: rows[row] for row, draw in draws if draw.digest}
        self._read = {
            at: (rows[row][mx.array(want.tokens)], logsumexp(rows[row]), *_largest(rows[row], want.top))
            for at, (row, _, want) in enumerate(wanted)
            if isinstance(want, Read)
        }
        # Row by row, as numbers must not depend on how many others asked; those who did not pay nothing.
        self._likely = {
            row: (rows[row][self._tokens[at]], logsumexp(rows[row]), *_largest(rows[row], draw.logprobs))
            for at, (row, draw) in enumerate(draws)
            if draw.logprobs is not None and self._tokens is not None
        }
        self.arrays = [self._tokens, self._finite, self._hashed, self._likely, self._read]

    def replies(self) -> Iterator[Reply]:
        """The replies, in the order in which they were wanted; after the arrays were evaluated."""
        tokens = iter([] if self._tokens is None else np.array(self._tokens).tolist())
        finite = np.array([] if self._finite is None else self._finite)
        for at, (row, id, want) in enumerate(self._wanted):
            if isinstance(want, Draw):
                digest = hashlib.sha256(np.array(self._hashed[row]).tobytes()).hexdigest() if want.digest else None
                token = next(tokens)
                likely = self._likely_at(row, token) if row in self._likely else None
                yield Reply(id, want, Drawn(token, bool(finite[row]), digest, likely))
            else:
                logits, total, *top = self._read[at]
                yield Reply(id, want, Found(np.array(logits), float(np.array(total)), _ordered(*top)))

    def _likely_at(self, row: int, token: int) -> Logprob:
        logit, total, *top = self._likely[row]
        norm = float(np.array(total))
        # A sum can round to less than its only large term: no probability is above 1.
        pairs = tuple((token, min(0.0, value - norm)) for token, value in _ordered(*top))
        return Logprob(token, min(0.0, float(np.array(logit)) - norm), pairs)


def _ordered(tokens: mx.array, logits: mx.array) -> tuple[tuple[int, float], ...]:
    """Pairs of token and logit, the largest first."""
    pairs = zip(np.array(tokens).tolist(), np.array(logits).tolist(), strict=True)
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _largest(row: mx.array, count: int) -> tuple[mx.array, mx.array]:
    """The tokens of a row's `count` largest logits and these logits, in no order."""
    tokens = mx.argpartition(-row, min(count, row.size - 1))[:count] if count else mx.zeros((0,), mx.int32)
    return tokens, row[tokens]
