"""What a round costs: a linear model, set by hand or fitted to an engine's record."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from lanes.errors import InvalidRequest
from lanes.record import Round


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a round: overhead + step * groups + row * used rows + (piece + key * start, if there is a piece).

    `start` is the position of the piece's first token: attention grows with the keys before it. A piece in parts costs
    each of their rounds its share. The defaults are about
    those of a 135M model in float32 on 2 CPU cores with pieces of 32 tokens. Raises InvalidRequest for values below 0
    and for rounds that would take no time.
    """

    step: float = 0.055
    piece: float = 0.13
    row: float = 0.0035
    key: float = 0.0
    overhead: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise InvalidRequest(f"{field.name} must be seconds from 0 on, got {value!r}")
        if min(self.step, self.piece) + self.overhead < 1e-9:
            raise InvalidRequest("a round must take time: a group or a piece with the overhead is below a nanosecond")

    def seconds(self, groups: int, rows: int, piece: int | None = None, parts: int = 1) -> float:
        """What a round of `groups` groups with `rows` used rows takes; `piece` is the position of its piece."""
        seconds = self.overhead + self.step * groups + self.row * rows
        return seconds if piece is None else seconds + (self.piece + self.key * piece) / parts

    @classmethod
    def fit(cls, rounds: Iterable[Round]) -> "Cost":
        """The costs that explain an engine's rounds best, none below 0 (least squares).

        What the record cannot tell apart is left out: without rounds of several groups the overhead is in `step`.
        Raises InvalidRequest for a record without a packed row or without a piece, whose cost would be a guess.
        """
        import numpy as np

        done = [one for one in rounds if one.computed]
        if not any(one.groups for one in done) or not any(one.piece for one in done):
            raise InvalidRequest(
                "the record needs rounds with rows and rounds with a piece: run a prompt of some pieces"
            )
        features = {
            "step": [one.groups for one in done],
            "piece": [1 / one.piece.parts if one.piece else 0 for one in done],
            "row": [one.used_rows for one in done],
            "key": [one.piece.start / one.piece.parts if one.piece else 0 for one in done],
            "overhead": [1] * len(done),
        }
        seconds = np.array([one.seconds for one in done])
        kept: list[str] = []
        for name in features:
            columns = np.array([features[other] for other in [*kept, name]], dtype=float).T
            if np.linalg.matrix_rank(columns / columns.max(axis=0).clip(1)) == columns.shape[1]:
                kept.append(name)
        while True:
            columns = np.array([features[name] for name in kept], dtype=float).T
            found = np.linalg.lstsq(columns, seconds, rcond=None)[0]
            if found.min() >= 0:
                return cls(**{field.name: 0.0 for field in fields(cls)} | dict(zip(kept, found.tolist(), strict=True)))
            # A negative cost is noise: without that column the others explain it.
            kept.remove(kept[int(found.argmin())])
