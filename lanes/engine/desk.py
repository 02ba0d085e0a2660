"""The engine's lock. Every thread may submit, cancel, pause and look; one thread takes turns and delivers them.

Callers are told things only after the lock was released, and a cancel takes no lock at all: both may run at odd
moments, inside a garbage collection for one. The engine's thread sleeps on a bell, a queue that is safe there too.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from threading import Condition, RLock, get_ident

from lanes.checks import LONGEST
from lanes.engine.picture import locate, picture
from lanes.engine.state import State, TakeSeat
from lanes.engine.turn import Outcome, Turn
from lanes.engine.work import Work
from lanes.errors import Busy, Cancelled, DeadlineExceeded, EngineClosed, LanesError
from lanes.plan import check_room, enters_now
from lanes.record import Kind, Snapshot

MakeWork = Callable[[int, float], Work]
"""Makes a request's work from its id and the time, in seconds on the record's clock."""


class Desk:
    """Guards a `State`; hands the engine's thread one turn after the other and notes what came of each."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._record = state.record
        # `with` takes this one, not the condition: an interrupt cannot come between its taking and the block.
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._ids = count()
        self._inbox: deque[Work] = deque()
        self._cancels: deque[int] = deque()
        self._paused = False
        self._steps = 0
        self._ran = 0
        self._wishes = 0
        self._interval = 0.0
        self._next_start = 0.0
        self._turn: Turn | None = None
        self._server: int | None = None
        self.ended: LanesError | None = None
        """Why the engine takes nothing any more, or None."""
        self.running_since: float | None = None
        """When the round in flight began (time.monotonic), None between rounds: what the watchdog looks at."""

    # --- any thread ---------------------------------------------------------------------------------------------

    def submit(self, kind: Kind, make: MakeWork, wait: bool) -> Work:
        """Queue a request. Raises Busy for a full queue, and without `wait` also where no slot is free for it now."""
        with self._lock:
            if self.ended:
                raise self.ended.with_traceback(None)
            state = self._state
            coming = [work.job for work in self._inbox]
            streams = [*state.streams, *(job for job in coming if job.kind == "stream")]
            decisions = [*state.decisions, *(job for job in coming if job.kind == "decision")]
            check_room(state.rules, kind, len(streams if kind == "stream" else decisions))
            work = make(next(self._ids), self._record.now())
            if not wait and not enters_now(state.rules, work.job, state.slots, streams, decisions):
                raise Busy(f"no slot is free for a {kind} now: try again later, or leave out wait=False")
            self._inbox.append(work)
        self._bell.put(None)
        return work

    def cancel(self, id: int) -> None:
        """Give a request up; the engine's thread does it before its next round."""
        self._cancels.append(id)
        self._bell.put(None)

    def locate(self, id: int) -> str | None:
        """queued, filling, branch or live: where an unfinished request is; None for any other."""
        with self._lock:
            if any(work.job.id == id for work in self._inbox):
                return "queued"
            return locate(self._state, id)

    def pause(self, timeout: float | None) -> bool:
        """Hold before the next round; whether the round in flight ended within `timeout` seconds."""
        with self._lock:
            self._wish(True)
            return self._changed.wait_for(lambda: self.running_since is None or self.ended is not None, timeout)

    def step(self, rounds: int, timeout: float | None) -> int:
        """Run some rounds, then hold; how many were run: fewer where there was nothing left to do."""
        with self._lock:
            mine = self._wish(True, rounds)
            before = self._ran
            self._changed.wait_for(lambda: self.ended is not None or mine != self._wishes or self._rests(), timeout)
            if mine == self._wishes:
                self._steps = 0
            return self._ran - before

    def _wish(self, paused: bool, steps: int = 0) -> int:
        """Note whether to hold, and after how many rounds; the number of the wish: a later one replaces it."""
        self._paused, self._steps = paused, steps
        self._wishes += 1
        self._changed.notify_all()
        self._bell.put(None)
        return self._wishes

    def _rests(self) -> bool:
        return not self._steps and self.running_since is None

    def resume(self) -> None:
        """Go on after a pause."""
        with self._lock:
            self._wish(False)

    def pace(self, interval: float) -> None:
        """Let at least `interval` seconds pass between the starts of two rounds; 0 for full speed."""
        with self._lock:
            self._interval, self._next_start = interval, 0.0
        self._bell.put(None)

    def drained(self, timeout: float | None) -> bool:
        """Wait until no request is left; whether that came within `timeout` seconds."""
        with self._lock:
            return self._changed.wait_for(lambda: not (self._inbox or self._state.works or self._state.untold), timeout)

    def snapshot(self) -> Snapshot:
        """An immutable picture of slots, queues and totals."""
        with self._lock:
            pace = 1 / self._interval if self._interval else None
            return picture(self._state, self._inbox, paused=self._paused, pace=pace)

    def stop(self, error: LanesError) -> None:
        """End everything: every waiter gets the error now, whatever the device does; later requests get it too."""
        self.ended = self.ended or error
        self._bell.put(None)
        if get_ident() != self._server:  # the engine's thread may be amid a change, and ends everything itself
            with self._lock:
                self._end_all()
            self._tell()

    def disown(self, error: LanesError) -> None:
        """In a forked child, where no thread serves: refuse everything, on locks that nobody holds."""
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._bell = SimpleQueue()
        self.ended = error

    # --- the engine's thread ------------------------------------------------------------------------------------

    def take(self, take_seat: TakeSeat) -> Turn | None:
        """Wait for something to do and plan it; None once the engine is closed."""
        self._server = get_ident()
        while True:
            with self._lock:
                if self.ended:
                    self._end_all()
                turn, patience = (None, None) if self.ended else self._next(take_seat)
            self._tell()
            if turn or self.ended:
                return turn
            with suppress(Empty):
                self._bell.get(timeout=patience)

    def deliver(self, turn: Turn, outcome: Outcome) -> None:
        """Note what came of a turn; nothing where the engine was closed meanwhile, as every waiter knows already."""
        with self._lock:
            self._turn = None
            if not self.ended:
                self._state.apply(turn, outcome, self._record.now())
        self._tell(between_rounds=True)

    def _tell(self, between_rounds: bool = False) -> None:
        """Tell callers, then wake who waits for the round's end or for an empty engine: they find everything told."""
        self._state.tell()
        with self._lock:
            if between_rounds:
                self.running_since = None
            self._changed.notify_all()

    def _next(self, take_seat: TakeSeat) -> tuple[Turn | None, float | None]:
        """The next turn; without one, for how long (s) nothing needs to be looked at until somebody rings."""
        while not self._bell.empty():
            self._bell.get_nowait()
        while self._inbox:
            self._state.enter(self._inbox[0])
            self._inbox.popleft()
        now = self._record.now()
        self._sweep(now)
        hold = self._hold(now)
        turn = None if hold else self._state.turn(now, take_seat)
        if turn:
            self._steps = max(0, self._steps - 1)
            self._ran += 1
            self._next_start = now + self._interval
            self.running_since, self._turn = time.monotonic(), turn
            return turn, None
        self._state.note(self._record.now())
        if not hold:
            self._steps = 0  # a step with nothing to do is done
        return None, self._patience(now, hold)

    def _sweep(self, now: float) -> None:
        """End what was cancelled or came too late."""
        for job in self._state.expired(now):
            late = DeadlineExceeded(f"{job.kind} {job.id} was not done by its deadline: allow more time for it")
            self._state.end(job.id, "deadline", now, late)
        while self._cancels:
            id = self._cancels.popleft()
            if id in self._state.works:
                self._state.end(id, "cancelled", now, Cancelled(f"request {id} was cancelled"))

    def _end_all(self) -> None:
        """End every request with the engine's own end."""
        assert self.ended is not None
        while self._inbox:
            self._state.enter(self._inbox[0])
            self._inbox.popleft()
        now = self._record.now()
        for id in list(self._state.works):
            self._state.end(id, "closed" if isinstance(self.ended, EngineClosed) else "error", now, self.ended)
        # The round in flight comes to nothing, but it was begun: its admissions belong into the record.
        self._state.note(now, self._turn, error=str(self.ended) if self._turn else None)
        self._turn = None

    def _hold(self, now: float) -> float | None:
        """How long to hold before the next round, in seconds; None for not at all, infinity while paused."""
        if self._paused and not self._steps:
            return float("inf")
        return self._next_start - now if self._interval and now < self._next_start else None

    def _patience(self, now: float, hold: float | None) -> float | None:
        deadline = self._state.next_deadline
        until = min(hold or float("inf"), float("inf") if deadline is None else max(0.0, deadline - now))
        return None if until == float("inf") else min(until, LONGEST)
