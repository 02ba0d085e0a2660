"""Counters over every round since the engine's start: they stay right when the record forgets old rounds."""

from dataclasses import asdict, dataclass
from typing import Any

from lanes.record.shapes import Kind, RequestId, Round


@dataclass(frozen=True, slots=True)
class Counts:
    """How many requests of one kind were submitted, and how each of them ended: every one ends exactly once."""

    submitted: int = 0
    admitted: int = 0
    evicted: int = 0
    stop: int = 0
    length: int = 0
    answered: int = 0
    cancelled: int = 0
    deadline: int = 0
    error: int = 0
    closed: int = 0

    @property
    def finished(self) -> int:
        """The number that ended, whatever the reason."""
        return self.stop + self.length + self.answered + self.cancelled + self.deadline + self.error + self.closed

    @property
    def open(self) -> int:
        """The number that still waits or holds a slot."""
        return self.submitted - self.finished


@dataclass(frozen=True, slots=True)
class Totals:
    """What the engine has done since its start.

    `tokens` were gained by streams (of them `accepted` from `drafted` rows), `prompt_tokens` computed in pieces, tails
    and branches, `cached_tokens` spared by the prefix cache. `busy_s` are the seconds of all rounds, `decode_s` of
    those with a decode row: filling alone is work too. `errors` counts the rounds that failed. `strays` counts ends
    reported for a request that was not open, which change no other counter: always 0 in a right engine.
    """

    rounds: int = 0
    forwards: int = 0
    pieces: int = 0
    rows: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    cached_tokens: int = 0
    errors: int = 0
    strays: int = 0
    busy_s: float = 0.0
    decode_s: float = 0.0
    streams: Counts = Counts()
    decisions: Counts = Counts()

    def to_dict(self) -> dict[str, Any]:
        """The counters as nested dicts, ready for JSON."""
        return asdict(self)


class Tally:
    """The running counters behind `Totals`; not thread-safe, its owner holds the lock.

    It remembers the ids of the open requests only, so that a request reported as ended twice is counted once.
    """

    def __init__(self) -> None:
        self._sums: dict[str, int] = {}
        self._busy = self._decode = 0.0
        self._ends: dict[Kind, dict[str, int]] = {"stream": {}, "decision": {}}
        self._open: set[RequestId] = set()

    def add(self, done: Round) -> None:
        """Count one more round."""
        self._busy += done.seconds
        self._sum("rounds", 1)
        self._sum("forwards", done.groups)
        self._add_rows(done)
        if done.piece:
            self._sum("pieces", int(done.piece.part == done.piece.parts))
            self._sum("prompt_tokens", done.piece.filled)
            self._sum("tokens", done.piece.gained)
        if done.error is not None:
            self._sum("errors", 1)
        # Most rounds change nobody's place.
        if done.submitted or done.admitted or done.evicted or done.finished:
            self._add_events(done)

    def totals(self) -> Totals:
        """The counters as they stand, immutable."""
        return Totals(
            **self._sums,
            busy_s=self._busy,
            decode_s=self._decode,
            streams=Counts(**self._ends["stream"]),
            decisions=Counts(**self._ends["decision"]),
        )

    def _sum(self, name: str, value: int) -> None:
        self._sums[name] = self._sums.get(name, 0) + value

    def _end(self, kind: Kind, name: str) -> None:
        self._ends[kind][name] = self._ends[kind].get(name, 0) + 1

    def _add_rows(self, done: Round) -> None:
        used = {"decode": 0, "draft": 0, "tail": 0, "branch": 0}
        tokens = accepted = 0
        for _, _, kind, rows, gained in done.rows:
            used[kind] += rows
            tokens += gained
            if kind == "draft":
                accepted += gained
        self._sum("rows", sum(used.values()))
        self._sum("tokens", tokens)
        self._sum("prompt_tokens", used["tail"] + used["branch"])
        self._sum("drafted", used["draft"])
        self._sum("accepted", accepted)
        if used["decode"]:
            self._decode += done.seconds

    def _add_events(self, done: Round) -> None:
        for request in done.submitted:
            self._open.add(request.id)
            self._end(request.kind, "submitted")
        for _ in done.evicted:
            self._end("decision", "evicted")
        for seat in done.admitted:
            self._end(seat.kind, "admitted")
            if seat.cached is not None:
                self._sum("cache_hits" if seat.cached else "cache_misses", 1)
                self._sum("cached_tokens", seat.cached)
        for end in done.finished:
            if end.id in self._open:
                self._open.remove(end.id)
                self._end(end.kind, end.reason)
            else:
                self._sum("strays", 1)
