"""The story of one stream or decision, from rounds alone: when it came, what it waited for, what it did, what it cost.

Times are seconds on the rounds' clock. What the rounds at hand do not show is None, or said to be unknown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.record.shapes import Kind, Reason, RequestId, Round
from lanes.record.stays import Stay, stays
from lanes.record.tolls import Toll, tolls

AROUND = 1024
"""Rounds before a request and after it whose gaps say what a quiet one is."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in the queue, from the submit or an eviction to an admission or the end; `end` is None while it lasts.

    It went on through `rounds` whole rounds that computed something; in `full` of them every slot was held. `streams`
    and `decisions` are those who held slots meanwhile.
    """

    start: float
    end: float | None
    rounds: int
    full: int
    streams: tuple[RequestId, ...] = ()
    decisions: tuple[RequestId, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Story:
    """What happened to one request, as plain values.

    `pieces`, `tails`, `branches` and `drew` are the numbers of the rounds that computed a stretch of its prompt, the
    end of it, its branches, and that gained it tokens. `tolls` is what its pieces cost each stream that was live
    beside them, measured against `quiet_s`: the median gap of the rounds around it that had no piece. `cached` prompt
    tokens came from the prefix cache at the latest admission.
    """

    id: RequestId
    kind: Kind
    prompt_tokens: int | None
    submitted: float | None
    first_token: float | None
    finished: float | None
    reason: Reason | None
    cached: int | None
    waits: tuple[Wait, ...]
    stays: tuple[Stay, ...]
    pieces: tuple[int, ...]
    tails: tuple[int, ...]
    branches: tuple[int, ...]
    drew: tuple[int, ...]
    tokens: int
    quiet_s: float | None
    tolls: tuple[Toll, ...]

    @property
    def evictions(self) -> int:
        """How often it lost its slot to a stream."""
        return sum(stay.ending == "evicted" for stay in self.stays)

    @property
    def waited(self) -> float | None:
        """Seconds in the queue, that after evictions too; None where the submit is unknown or it waits still."""
        ends = [(wait.start, wait.end) for wait in self.waits]
        known = [end - start for start, end in ends if end is not None]
        return sum(known) if self.submitted is not None and len(known) == len(ends) else None

    @property
    def seconds(self) -> float | None:
        """From submit to end; None where one of them is unknown or still to come."""
        return None if self.submitted is None or self.finished is None else self.finished - self.submitted

    @property
    def cost_s(self) -> float | None:
        """What its pieces cost all streams together; 0 where none was live beside them, None where none is known."""
        known = [toll.seconds for toll in self.tolls if toll.seconds is not None]
        return sum(known) if known or not self.tolls else None

    def words(self, policy: str | None = None, times: bool = True) -> list[str]:
        """The story in sentences; with the engine's policy they can say more of why a decision waited.

        Without `times` the same work gives the same sentences on every machine. Raises InvalidRequest for times
        that are neither True nor False.
        """
        from lanes.record.telling import tell

        return tell(self, policy, checks.flag("times", times))

    def to_dict(self) -> dict[str, Any]:
        """All fields and the sums, nested, ready for JSON."""
        sums = {name: getattr(self, name) for name in ("evictions", "waited", "seconds", "cost_s")}
        return {**asdict(self), **sums}

    def __repr__(self) -> str:
        return " ".join(self.words(times=False))


@dataclass(slots=True)
class _Notes:
    """What is known of the request so far, while its rounds are read."""

    kind: Kind | None = None
    prompt_tokens: int | None = None
    submitted: float | None = None
    first_token: float | None = None
    finished: float | None = None
    reason: Reason | None = None
    cached: int | None = None
    asked: float | None = None
    """Since when it waits now."""
    queued: list[Round] = field(default_factory=list)
    """The whole rounds of this wait."""
    waits: list[Wait] = field(default_factory=list)
    tokens: int = 0


def story(rounds: Sequence[Round], id: RequestId, slots: int) -> Story:
    """The story of this request among these rounds of so many slots; InvalidRequest where they do not show it."""
    notes = _Notes()
    work: dict[str, list[int]] = {"piece": [], "tail": [], "branch": [], "drew": []}
    first, last = _span(rounds, id)
    own = rounds[first:last]
    for done in own:
        _events(notes, done, id, slots)
        for name in _work(notes, done, id):
            work[name].append(done.index)
    if notes.kind is None:
        shown = f"rounds {rounds[0].index} to {rounds[-1].index}" if rounds else "no round yet"
        raise InvalidRequest(f"the record shows no request {id!r} ({shown}): pass the id of a stream or a decision")
    if notes.asked is not None:
        _leave(notes, None, slots)
    quiet, paid = tolls(rounds[max(0, first - AROUND) : last + AROUND], id)
    return Story(
        id=id,
        kind=notes.kind,
        prompt_tokens=notes.prompt_tokens,
        submitted=notes.submitted,
        first_token=notes.first_token,
        finished=notes.finished,
        reason=notes.reason,
        cached=notes.cached,
        waits=tuple(notes.waits),
        stays=tuple(stay for stay in stays(own) if stay.id == id),
        pieces=tuple(work["piece"]),
        tails=tuple(work["tail"]),
        branches=tuple(work["branch"]),
        drew=tuple(work["drew"]),
        tokens=notes.tokens,
        quiet_s=quiet,
        tolls=paid,
    )


def _span(rounds: Sequence[Round], id: RequestId) -> tuple[int, int]:
    """The places of the rounds from the one that took the request, or the first that shows it, to that of its end."""
    first = next((place for place, done in enumerate(rounds) if any(new.id == id for new in done.submitted)), None)
    if first is None:
        first = next((place for place, done in enumerate(rounds) if _shows(done, id)), len(rounds))
    ends = (place for place in range(first, len(rounds)) if any(end.id == id for end in rounds[place].finished))
    return first, next(ends, len(rounds) - 1) + 1


def _shows(done: Round, id: RequestId) -> bool:
    return any(event.id == id for event in (*done.seats, *done.evicted, *done.finished))


def _events(notes: _Notes, done: Round, id: RequestId, slots: int) -> None:
    """Where the request came, took a slot, lost it or ended in this round."""
    for new in done.submitted:
        if new.id == id:
            notes.kind, notes.prompt_tokens = new.kind, new.prompt_tokens
            notes.submitted = notes.asked = new.at
    for out in done.evicted:
        if out.id == id:
            notes.asked = done.start
    for seat in (*done.admitted, *done.seats):
        if seat.id == id:
            notes.kind = seat.kind
    for new in done.admitted:
        if new.id == id:
            notes.cached = new.cached
            _leave(notes, done.start, slots)
    if notes.asked is not None and notes.asked <= done.start and done.computed:
        notes.queued.append(done)
    for end in done.finished:
        if end.id == id:
            # Who is not seated left before the round's forward: cancelled, or too late.
            seated = any(seat.id == id for seat in done.seats)
            notes.kind, notes.reason = end.kind, end.reason
            notes.finished = max(done.end if seated else done.start, notes.submitted or 0.0)
            _leave(notes, notes.finished, slots)


def _work(notes: _Notes, done: Round, id: RequestId) -> Iterable[str]:
    """What the round did for it."""
    if done.piece and done.piece.id == id:
        yield "piece"
    kinds = {row.kind for row in done.rows if row.id == id}
    yield from (kind for kind in ("tail", "branch") if kind in kinds)
    if gained := sum(tokens for stream, tokens in done.gains if stream == id):
        notes.tokens += gained
        # A stream whose beginning is forgotten had its first token before.
        if notes.submitted is not None and notes.first_token is None:
            notes.first_token = done.end
        yield "drew"


def _leave(notes: _Notes, at: float | None, slots: int) -> None:
    """The end of a wait, where there was one; None where it goes on."""
    if notes.asked is not None:
        held = [seat for done in notes.queued for seat in done.seats]
        holders = {kind: tuple(dict.fromkeys(seat.id for seat in held if seat.kind == kind)) for kind in _KINDS}
        full = sum(len(done.seats) >= slots for done in notes.queued)
        notes.waits.append(Wait(notes.asked, at, len(notes.queued), full, *holders.values()))
    notes.asked, notes.queued = None, []


_KINDS: tuple[Kind, ...] = ("stream", "decision")
