"""Who waits, who holds a slot, and how far each request is. No lock, no device: the desk guards it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from lanes.engine.failure import failure
from lanes.engine.turn import Cell, Chunk, Draw, Found, Outcome, Reply, Turn, Wanted
from lanes.engine.work import DecisionWork, StreamWork, Work
from lanes.errors import EngineFailed, LanesError
from lanes.jobs import Held, Job, Part
from lanes.plan import Plan, Rules, advance, bind, expired, settle, share
from lanes.record import (
    Admitted,
    Evicted,
    Finished,
    Reason,
    Round,
    Rounds,
    RowKind,
    Seat,
    Submitted,
)
from lanes.record import State as RecordState

TakeSeat = Callable[[int, Work], "int | None"]
"""Makes a slot ready for a request; how many of its prompt's tokens were kept from before (None: not asked)."""


class State:
    """The engine's requests, between two rounds."""

    def __init__(self, rules: Rules, record: Rounds, context: int) -> None:
        self.rules = rules
        self.record = record
        self.context = context
        self.works: dict[int, Work] = {}
        self.slots: tuple[Held | None, ...] = (None,) * rules.slots
        self.streams: list[Job] = []
        self.decisions: list[Job] = []
        self.last_reasons: list[Reason | None] = [None] * rules.slots
        self._submitted: list[Submitted] = []
        self._finished: list[Finished] = []
        self._news: deque[Callable[[], object]] = deque()

    def enter(self, work: Work) -> None:
        """Put a request into its queue."""
        self.works[work.job.id] = work
        (self.streams if work.job.kind == "stream" else self.decisions).append(work.job)
        self._submitted.append(Submitted(work.job.id, work.job.kind, work.prompt_tokens, work.timing.submitted))

    def expired(self, now: float) -> tuple[Job, ...]:
        """The jobs whose deadline has passed."""
        return expired((work.job for work in self.works.values()), now)

    @property
    def next_deadline(self) -> float | None:
        """When the next deadline passes, on the record's clock."""
        return min((w.job.deadline for w in self.works.values() if w.job.deadline is not None), default=None)

    def end(self, id: int, reason: Reason, now: float, error: LanesError | None = None, result: object = None) -> None:
        """A request is over: the one place where a slot is freed and a caller gets to know."""
        work = self.works.pop(id)
        slot = self.slot_of(id)
        if slot is None:
            queue = self.streams if work.job.kind == "stream" else self.decisions
            with suppress(ValueError):  # only when a bug broke the loop, and even then every waiter must be told
                queue.remove(work.job)
        else:
            self.slots = (*self.slots[:slot], None, *self.slots[slot + 1 :])
            self.last_reasons[slot] = reason
        self._finished.append(Finished(slot, id, work.job.kind, reason))
        rest = work.rest() if isinstance(work, StreamWork) and reason != "error" else ""
        self._news.append(partial(work.channel.finish, work.end(reason, now, result, error), rest))

    def slot_of(self, id: int) -> int | None:
        """The slot that a request holds, None while it waits."""
        return next((slot for slot, held in enumerate(self.slots) if held and held.job.id == id), None)

    @property
    def untold(self) -> bool:
        """Whether a caller still has to be told something."""
        return bool(self._news)

    def tell(self) -> None:
        """Tell callers what they wait for, in order; after the round is in the record, and with no lock held."""
        while self._news:
            with suppress(IndexError):  # two threads may tell while an engine is closed
                self._news.popleft()()

    def turn(self, now: float, take_seat: TakeSeat) -> Turn | None:
        """Bind slots and plan the next round; None where there is nothing to compute."""
        binding = bind(self.rules, self.slots, self.streams, self.decisions)
        settled = settle(binding, self.slots, self.streams, self.decisions)
        self.slots, self.streams, self.decisions = settled.slots, list(settled.streams), list(settled.decisions)
        for _, id in binding.evict:
            self.works[id].evict()
        admitted = tuple(self._seat(slot, id, now, take_seat) for slot, id in binding.admit)
        plan = share(self.rules, self.slots, binding)
        if plan.idle:
            return None
        groups = tuple(
            tuple(cell for slot, rows in group for cell in self._cells(plan, slot, rows)) for group in plan.groups
        )
        chunk = None if plan.piece is None else self._chunk(plan.piece, plan.part)
        evicted = tuple(Evicted(slot, id) for slot, id in binding.evict)
        return Turn(now, plan, groups, chunk, tuple(self._seats()), admitted, evicted)

    def _seat(self, slot: int, id: int, now: float, take_seat: TakeSeat) -> Admitted:
        work = self.works[id]
        cached = take_seat(slot, work)
        work.admit(now, cached or 0)
        if cached:
            held = self._held(slot).skip(cached // self.rules.piece)
            self.slots = (*self.slots[:slot], held, *self.slots[slot + 1 :])
        return Admitted(slot, id, work.job.kind, cached)

    def _held(self, slot: int) -> Held:
        held = self.slots[slot]
        assert held is not None
        return held

    def _seats(self) -> Iterable[Seat]:
        for slot, held in enumerate(self.slots):
            if held:
                yield Seat(slot, held.job.id, held.job.kind, seat_state(held))

    def _cells(self, plan: Plan, slot: int, rows: int) -> Iterable[Cell]:
        """The next rows of a slot: a live stream's newest token, or the next tokens of a prompt's tail."""
        held = plan.before_rows(slot, self._held(slot))
        work = self.works[held.job.id]
        if held.live:
            assert isinstance(work, StreamWork)
            position = work.prompt_tokens + len(work.drawn) - 1
            yield Cell(slot, held.job.id, "decode", position, work.drawn[-1], work.next_draw())
            return
        segment = work.segments[held.leg]
        first = held.at(self.rules.piece)
        wanted = self._wanted(work, held.leg)
        kind: RowKind = "branch" if seat_state(held) == "branch" else "tail"
        for at in range(first, first + rows):
            yield Cell(slot, held.job.id, kind, segment.start + at, segment.tokens[at], wanted.get(at))

    def _chunk(self, slot: int, part: Part) -> Chunk:
        held = self._held(slot)
        work = self.works[held.job.id]
        segment = work.segments[held.leg]
        first = held.at(self.rules.piece)
        last = min(first + self.rules.piece, len(segment.tokens))
        wanted = tuple((at - first, want) for at, want in self._wanted(work, held.leg).items() if first <= at < last)
        keep = segment.tokens[:last] if held.leg == 0 and last == segment.body(self.rules.piece) else ()
        return Chunk(slot, held.job.id, segment.start + first, segment.tokens[first:last], wanted, keep, part)

    def _wanted(self, work: Work, leg: int) -> dict[int, Wanted]:
        draw = work.next_draw() if isinstance(work, StreamWork) else None
        return {at: want for at, read in work.segments[leg].reads if (want := read or draw)}

    def apply(self, turn: Turn, outcome: Outcome, now: float) -> None:
        """What came of a turn: replies reach their requests, the round goes into the record."""
        self.slots = tuple(advance(turn.plan, self.slots))
        for id, error in outcome.failures:
            self.end(id, "error", now, error)
        gained = {reply.id for reply in outcome.replies if reply.id in self.works and self._reply(reply, now)}
        for held in [held for held in self.slots if held and held.done and held.job.kind == "decision"]:
            self._answer(held.job.id, now)
        self.note(now, turn, gained, "; ".join(sorted({str(error) for _, error in outcome.failures})) or None)

    def _reply(self, reply: Reply, now: float) -> bool:
        """Hand a reply to its request; whether a stream gained a token by it."""
        work, got = self.works[reply.id], reply.got
        if isinstance(got, Found):
            assert isinstance(work, DecisionWork) and not isinstance(reply.wanted, Draw)
            work.take(reply.wanted, got)
        elif not got.finite:
            self.end(reply.id, "error", now, EngineFailed(NOT_FINITE))
        else:
            assert isinstance(work, StreamWork)
            with self._alone(reply.id, now, "the token could not be turned into text"):
                reason, say = work.take(got, now)
                self._news.append(say)
                if reason:
                    self.end(reply.id, reason, now)
                return True
        return False

    def _answer(self, id: int, now: float) -> None:
        work = self.works[id]
        assert isinstance(work, DecisionWork)
        with self._alone(id, now, "the answer could not be made"):
            result = work.answer(work.found, replace(work.timing, finished=now), work.cached)
            self.end(id, "answered", now, result=result)

    @contextmanager
    def _alone(self, id: int, now: float, what: str) -> Iterator[None]:
        """A request's own failure is its own: it ends, and nothing else is disturbed."""
        try:
            yield
        except LanesError as error:
            self.end(id, "error", now, error)
        except Exception as error:
            self.end(id, "error", now, failure(what, error))

    def note(self, now: float, turn: Turn | None = None, gained: Iterable[int] = (), error: str | None = None) -> None:
        """Put the round, or what happened without one, into the record."""
        if turn or self._submitted or self._finished:
            done = Round(
                index=self.record.next_index,
                start=turn.start if turn else now,
                end=now,
                width=self.rules.width,
                submitted=tuple(self._submitted),
                finished=tuple(self._finished),
                waiting_streams=len(self.streams),
                waiting_decisions=len(self.decisions),
                error=error,
            )
            self.record.append(turn.fill_in(done, set(gained)) if turn else done)
            self._submitted, self._finished = [], []


NOT_FINITE = (
    "the model gave logits that are not finite, so no token can be drawn: its weights or its number format are broken; "
    "run `lanes doctor`, or load it in float32"
)


def seat_state(held: Held) -> RecordState:
    """live, filling, or branch: a decision past its trunk."""
    if held.live:
        return "live"
    return "branch" if held.leg and held.job.kind == "decision" else "filling"
