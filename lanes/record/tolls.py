"""What one request's pieces cost the streams beside it: their gaps in those rounds, less a quiet gap. Plain values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from lanes.record.gaps import Gap, gaps_by_round
from lanes.record.shapes import RequestId, Round


@dataclass(frozen=True, slots=True)
class Toll:
    """What one live stream paid: in `rounds` rounds its gaps were `seconds` longer than quiet ones, all together.

    `unknown` rounds are not in the sum: the token before is not among the rounds, none came, or the engine stood still
    in between for longer than a quiet gap. `seconds` is None where no gap could be measured, or no quiet one.
    """

    id: RequestId
    rounds: int
    seconds: float | None
    unknown: int = 0


def quiet_gap(found: Iterable[tuple[Round, dict[RequestId, Gap]]]) -> float | None:
    """The median gap of rounds without a piece, in seconds; None where there is none."""
    quiet = [gap.seconds for done, own in found if done.piece is None for gap in own.values()]
    return median(quiet) if quiet else None


def tolls(rounds: Sequence[Round], id: RequestId) -> tuple[float | None, tuple[Toll, ...]]:
    """The quiet gap, and what each stream that was live in a round with a piece of this request paid for it.

    Streams in the order in which they first paid.
    """
    found = list(gaps_by_round(rounds))
    usual = quiet_gap(found)
    paid: dict[RequestId, list[Gap | None]] = {}
    for done, own in found:
        if done.piece and done.piece.id == id:
            for seat in done.seats:
                if seat.kind == "stream" and seat.state == "live" and seat.id != id:
                    paid.setdefault(seat.id, []).append(own.get(seat.id))
    return usual, tuple(_toll(stream, own, usual) for stream, own in paid.items())


def _toll(stream: RequestId, own: Sequence[Gap | None], usual: float | None) -> Toll:
    if usual is None:
        return Toll(stream, 0, None, len(own))
    known = [gap.seconds - usual for gap in own if gap and gap.stood <= usual]
    return Toll(stream, len(known), sum(known) if known else None, len(own) - len(known))
