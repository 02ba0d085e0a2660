"""Workloads: who arrives when, with how long a prompt and how many tokens to draw."""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lanes.errors import InvalidRequest
from lanes.jobs import Leg, route, stretch
from lanes.record import Kind, Round

if TYPE_CHECKING:
    from pandas import DataFrame

Size: TypeAlias = int | tuple[int, int]
"""A number of tokens, or the lowest and the highest of a uniform draw."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request: it arrives at `time` (s) with a `prompt` of so many tokens; a stream draws `output` tokens.

    A decision draws none; with `branches` (their lengths in tokens) its prompt is the trunk that they share.
    `deadline` is in seconds after `time`. Raises InvalidRequest for what no engine would take.
    """

    time: float
    kind: Kind
    prompt: int
    output: int = 0
    branches: tuple[int, ...] = ()
    deadline: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("stream", "decision"):
            raise InvalidRequest(f"kind must be 'stream' or 'decision', got {self.kind!r}")
        if not (_is_number(self.time) and self.time >= 0):
            raise InvalidRequest(f"time must be seconds from 0 on, got {self.time!r}")
        if not (self.deadline is None or (_is_number(self.deadline) and self.deadline > 0)):
            raise InvalidRequest(f"deadline must be None or more than 0 seconds, got {self.deadline!r}")
        counts = {
            "prompt": self.prompt,
            "output": self.output,
            **{f"branch {i}": n for i, n in enumerate(self.branches)},
        }
        for name, count in counts.items():
            if not isinstance(count, int) or count < int(name != "output"):
                raise InvalidRequest(f"{name} must be a whole number of tokens, got {count!r}")
        if self.kind == "stream" and (self.output < 1 or self.branches):
            raise InvalidRequest(f"a stream draws at least 1 token and has no branches, got {self}")
        if self.kind == "decision" and self.output:
            raise InvalidRequest(f"a decision draws no token: output must be 0, got {self.output}")

    def legs(self, piece: int) -> tuple[Leg, ...]:
        """Its work in a slot, with pieces of `piece` tokens."""
        ends = [self.prompt + branch for branch in self.branches] or [self.prompt]
        if len(ends) == 1:
            return (route(ends[0], piece),)
        # As the engine does it: branches without a piece of their own go first and share the rows behind the border.
        cut = self.prompt // piece * piece
        near = [end for end in ends if route(end, piece).pieces * piece == cut]
        far = [end for end in ends if end not in near]
        starts = [cut, *[self.prompt] * (len(near) - 1)][: len(near)] + [cut] * len(far)
        trunk = (Leg(cut // piece, 0),) if cut else ()
        return trunk + tuple(stretch(start, end, piece) for start, end in zip(starts, near + far, strict=True))


@dataclass(frozen=True, slots=True, repr=False)
class Workload:
    """Arrivals in the order of their times; of equal times, in the order given."""

    arrivals: tuple[Arrival, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrivals", tuple(sorted(self.arrivals, key=lambda arrival: arrival.time)))

    @classmethod
    def of(cls, source: "Workload | DataFrame | Iterable[Arrival | Mapping[str, Any] | Sequence[Any]]") -> "Workload":
        """A workload from arrivals, from tuples or dicts with an arrival's fields, or from a frame with such columns.

        Raises InvalidRequest, with the row's number, for rows that make no arrival.
        """
        if isinstance(source, Workload):
            return source
        to_dict = getattr(source, "to_dict", None)
        rows: Any = to_dict("records") if to_dict else source
        return cls(tuple(_arrival(number, row) for number, row in enumerate(rows)))

    @classmethod
    def from_rounds(cls, rounds: Iterable[Round], clock: Literal["seconds", "rounds"] = "seconds") -> "Workload":
        """What an engine's record shows to have arrived; a stream's output is what it drew.

        With clock="rounds" a request's time is the number of rounds that computed something before the one that took
        it: at a cost of one second a round (`Cost(0, 0, 0, overhead=1)`) the simulated rounds are then the recorded
        ones. Streams that drew nothing are left out. Raises InvalidRequest for a record with branches, whose lengths it
        does not tell.
        """
        taken: dict[Any, tuple[float, Kind, int]] = {}
        drawn: dict[Any, int] = {}
        computed = 0
        for done in rounds:
            for request in done.submitted:
                time = request.at if clock == "seconds" else float(computed)
                taken[request.id] = (time, request.kind, request.prompt_tokens)
            for row in done.rows:
                if row.kind == "branch":
                    raise InvalidRequest(
                        f"round {done.index} has a branch of request {row.id}: its lengths are unknown"
                    )
            for id, tokens in done.gains:
                drawn[id] = drawn.get(id, 0) + tokens
            computed += done.computed
        outputs = {id: drawn.get(id, 0) for id in taken}
        return cls(tuple(Arrival(*taken[id], n) for id, n in outputs.items() if n or taken[id][1] == "decision"))

    def to_frame(self) -> "DataFrame":
        """One row an arrival, the columns as an arrival's fields."""
        import pandas as pd

        return pd.DataFrame([asdict(arrival) for arrival in self], columns=_FIELDS)

    def __add__(self, other: "Workload") -> "Workload":
        return Workload(self.arrivals + other.arrivals)

    def __len__(self) -> int:
        return len(self.arrivals)

    def __iter__(self) -> Iterator[Arrival]:
        return iter(self.arrivals)

    def __repr__(self) -> str:
        streams = sum(arrival.kind == "stream" for arrival in self)
        last = self.arrivals[-1].time if self.arrivals else 0.0
        return f"Workload({streams} streams, {len(self) - streams} decisions, {last:.3f} s)"


def poisson(
    seconds: float, kind: Kind, rate: float, *, prompt: Size = 64, output: Size = 64, seed: int = 0
) -> Workload:
    """Arrivals of one kind at random, `rate` a second for `seconds`; add two workloads for both kinds.

    The same arguments make the same workload. A decision's output is 0 whatever `output` says.
    """
    if not (_is_number(seconds) and seconds > 0 and _is_number(rate) and rate > 0):
        raise InvalidRequest(f"seconds and rate must be more than 0, got {seconds!r} and {rate!r}")
    draw = random.Random(seed)
    arrivals: list[Arrival] = []
    time = draw.expovariate(rate)
    while time < seconds:
        arrivals.append(Arrival(time, kind, _draw(draw, prompt), _draw(draw, output) if kind == "stream" else 0))
        time += draw.expovariate(rate)
    return Workload(tuple(arrivals))


def every(period: float, count: int, kind: Kind, *, prompt: int = 64, output: int = 64, first: float = 0.0) -> Workload:
    """`count` arrivals of one kind, `period` seconds apart (0: all at once) from `first` on."""
    return Workload(
        tuple(Arrival(first + i * period, kind, prompt, output if kind == "stream" else 0) for i in range(count))
    )


_FIELDS = [field.name for field in fields(Arrival)]


def _arrival(number: int, row: Any) -> Arrival:
    if isinstance(row, Arrival):
        return row
    try:
        given = dict(row) if isinstance(row, Mapping) else dict(zip(_FIELDS, row, strict=False))
        return Arrival(**{name: _plain(name, value) for name, value in given.items() if not _is_missing(value)})
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"row {number} of the workload, {row!r}, is no arrival: {error}") from error


def _plain(name: str, value: Any) -> Any:
    """A frame's value as a Python value: columns with a gap arrive as floats, and numpy's integers are not ints."""
    if name == "branches":
        return tuple(_plain("branch", branch) for branch in value)
    if name in ("prompt", "output", "branch") and float(value).is_integer():
        return int(value)
    return float(value) if name in ("time", "deadline") else value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _draw(draw: random.Random, size: Size) -> int:
    return size if isinstance(size, int) else draw.randint(*size)
