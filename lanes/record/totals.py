"""Counters over every round since the engine's start: they stay right when the record forgets old rounds."""

from dataclasses import asdict, dataclass
from typing import Any


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
    those with a decode row: filling alone is work too. `errors` counts the rounds that failed.
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
    busy_s: float = 0.0
    decode_s: float = 0.0
    streams: Counts = Counts()
    decisions: Counts = Counts()

    def to_dict(self) -> dict[str, Any]:
        """The counters as nested dicts, ready for JSON."""
        return asdict(self)
