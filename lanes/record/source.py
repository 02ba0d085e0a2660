"""Whatever holds rounds, as rounds: an engine, its record, a picture of it, a simulation, or bare rounds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from lanes.errors import InvalidRequest
from lanes.record.shapes import Round

if TYPE_CHECKING:
    from lanes.record.rounds import Rounds
    from lanes.simulation import Simulation


class Holder(Protocol):
    """An engine, or a picture of rounds."""

    @property
    def rounds(self) -> "Rounds | tuple[Round, ...]": ...


class Run(NamedTuple):
    """Some rounds, oldest first, and the number of slots that they were run with."""

    rounds: tuple[Round, ...]
    slots: int


Source: TypeAlias = "Run | Rounds | Simulation | Sequence[Round] | Holder"


def run(source: "Source") -> Run:
    """The rounds of a source and its number of slots, which bare rounds show only as far as they used them.

    Raises InvalidRequest for what holds no rounds, and for a simulation that did not keep them.
    """
    found: Any = source
    if isinstance(found, Run):
        return found
    if hasattr(found, "log") and hasattr(found, "rules"):
        if found.rounds and not found.log:
            raise InvalidRequest("this simulation kept no rounds: run lanes.simulate(..., record=True)")
        return Run(found.log, found.rules.slots)
    if not isinstance(found, Sequence) and hasattr(found, "rounds"):
        inner = run(found.rounds)
        return Run(inner.rounds, getattr(found, "slots", inner.slots))
    if isinstance(found, Sequence):
        if all(isinstance(done, Round) for done in found):
            return Run(tuple(found), _slots(found))
    elif hasattr(found, "copy") and hasattr(found, "slots"):
        return Run(found.copy(), found.slots)
    kind = type(found).__name__
    raise InvalidRequest(f"{kind} holds no rounds: pass engine.rounds, a sequence of Round, or a recorded simulation")


def _slots(rounds: Sequence[Round]) -> int:
    """One more than the highest slot that anybody used; at least one."""
    used = [seat.slot for done in rounds for seat in done.seats]
    return 1 + max(used, default=0)
