"""What proofs rest on: digests of bits, and what the record says of a request's company. Plain values in and out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanes import receipts
from lanes.record import Round
from lanes.record.shapes import RequestId

if TYPE_CHECKING:
    from lanes.decisions.results import Scored


def digests(handle: Any) -> list[str]:
    """The digests of a request that has ended, in hex; raises the error that it ended with.

    For a stream made with digests=True the sha256 of each drawn token's row of logits; for a decision the digest of
    each of its results.
    """
    found = handle.result(0)
    if handle.kind == "stream":
        return list(handle.digests)
    return [digest(one) for one in (found if isinstance(found, tuple) else (found,))]


def digest(found: "Scored") -> str:
    """One sha256 of a result's label logits, logsumexp and log-probabilities; these see what deeper tokens gave."""
    return receipts.digest([found, found.log_probabilities])


def draws(rounds: Sequence[Round], id: RequestId) -> list[Round]:
    """The rounds in which a live stream drew its next token from a row of its own."""
    return [done for done in rounds if any(row.id == id and row.kind == "decode" for row in done.rows)]


def mates(rounds: Sequence[Round], id: RequestId) -> list[int]:
    """How many rows of others stood beside a live stream's row, draw by draw."""
    return [done.used_rows - 1 for done in draws(rounds, id)]


def places(rounds: Sequence[Round], id: RequestId) -> set[int]:
    """The places among a round's rows that a live stream's row took."""
    found = set()
    for done in draws(rounds, id):
        ids = [row.id for row in done.rows for _ in range(row.rows)]
        found.add(ids.index(id) % done.width)
    return found


def pieces_beside(rounds: Sequence[Round], id: RequestId) -> int:
    """In how many of the rounds in which a live stream drew a token a piece of someone's prompt was computed."""
    return sum(done.piece is not None for done in draws(rounds, id))
