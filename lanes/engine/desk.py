"""The engine's lock. Every thread may submit, cancel, pause and look; one thread takes turns and delivers them."""

import time
from collections.abc import Callable
from threading import Condition

from lanes.checks import LONGEST
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
        self._changed = Condition()
        self._cancels: dict[int, None] = {}
        self._paused = False
        self._steps = 0
        self._ran = 0
        self._interval = 0.0
        self._next_start = 0.0
        self._ended: LanesError | None = None
        self.running_since: float | None = None
        """When the round in flight began (time.monotonic), None between rounds: what the watchdog looks at."""

    # --- any thread ---------------------------------------------------------------------------------------------

    def submit(self, kind: Kind, make: MakeWork, wait: bool) -> Work:
        """Queue a request. Raises Busy for a full queue, and without `wait` also where no slot is free for it now."""
        with self._changed:
            if self._ended:
                raise self._ended.with_traceback(None)
            state = self._state
            check_room(state.rules, kind, len(state.streams if kind == "stream" else state.decisions))
            work = make(next(state.ids), self._record.now())
            if not wait and not enters_now(state.rules, work.job, state.slots, state.streams, state.decisions):
                raise Busy(f"no slot is free for a {kind} now: try again later, or leave out wait=False")
            state.enter(work)
            self._changed.notify_all()
            return work

    def cancel(self, id: int) -> None:
        """Give a request up; the engine's thread does it before its next round."""
        with self._changed:
            if id in self._state.works:
                self._cancels[id] = None
                self._changed.notify_all()

    def locate(self, id: int) -> str | None:
        """queued, filling, branch or live: where an unfinished request is; None for any other."""
        with self._changed:
            return self._state.locate(id)

    def pause(self, timeout: float | None) -> bool:
        """Hold before the next round; whether the round in flight ended within `timeout` seconds."""
        with self._changed:
            self._paused, self._steps = True, 0
            return self._changed.wait_for(lambda: self.running_since is None or self._ended is not None, timeout)

    def step(self, rounds: int, timeout: float | None) -> int:
        """Run some rounds, then hold; how many were run: fewer where there was nothing left to do."""
        with self._changed:
            self._paused, self._steps = True, rounds
            before = self._ran
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._ended is not None or self._rests(), timeout)
            self._steps = 0
            return self._ran - before

    def _rests(self) -> bool:
        return not self._steps and self.running_since is None

    def resume(self) -> None:
        """Go on after a pause."""
        with self._changed:
            self._paused, self._steps = False, 0
            self._changed.notify_all()

    def pace(self, interval: float) -> None:
        """Let at least `interval` seconds pass between the starts of two rounds; 0 for full speed."""
        with self._changed:
            self._interval, self._next_start = interval, 0.0
            self._changed.notify_all()

    def drained(self, timeout: float | None) -> bool:
        """Wait until no request is left; whether that came within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._state.works, timeout)

    def snapshot(self) -> Snapshot:
        """An immutable picture of slots, queues and totals."""
        with self._changed:
            state, now = self._state, self._record.now()
            return Snapshot(
                time=now,
                round=self._record.next_index,
                slots=state.views(now),
                waiting=state.waiting(now),
                totals=self._record.totals,
                policy=state.rules.policy,
                paused=self._paused,
                pace=1 / self._interval if self._interval else None,
                width=state.rules.width,
                piece=state.rules.piece,
            )

    def stop(self, error: LanesError) -> None:
        """End everything: every waiter gets the error now, whatever the device does; later requests get it too."""
        with self._changed:
            if self._ended is None:
                self._ended = error
                now = self._record.now()
                for id in list(self._state.works):
                    self._state.end(id, "closed" if isinstance(error, EngineClosed) else "error", now, error)
                self._state.note(now)
            self._changed.notify_all()

    @property
    def ended(self) -> LanesError | None:
        """Why the engine takes nothing any more, or None."""
        return self._ended

    # --- the engine's thread ------------------------------------------------------------------------------------

    def take(self, take_seat: TakeSeat) -> Turn | None:
        """Wait for something to do and plan it; None once the engine is closed."""
        with self._changed:
            while self._ended is None:
                now = self._record.now()
                self._sweep(now)
                hold = self._hold(now)
                turn = None if hold else self._state.turn(now, take_seat)
                if turn:
                    self._steps = max(0, self._steps - 1)
                    self._ran += 1
                    self._next_start = now + self._interval
                    self.running_since = time.monotonic()
                    return turn
                self._state.note(self._record.now())
                if not hold:
                    self._steps = 0  # a step with nothing to do is done
                self._changed.notify_all()
                self._changed.wait(self._patience(now, hold))
            return None

    def deliver(self, turn: Turn, outcome: Outcome) -> None:
        """Note what came of a turn; nothing where the engine was closed meanwhile, as every waiter knows already."""
        with self._changed:
            self.running_since = None
            if self._ended is None:
                self._state.apply(turn, outcome, self._record.now())
            self._changed.notify_all()

    def _sweep(self, now: float) -> None:
        """End what was cancelled or came too late."""
        for job in self._state.expired(now):
            late = DeadlineExceeded(
                f"{job.kind} {job.id} was not done by its deadline: allow more, or lighten the load"
            )
            self._state.end(job.id, "deadline", now, late)
        cancels, self._cancels = self._cancels, {}
        for id in cancels:
            if id in self._state.works:
                self._state.end(id, "cancelled", now, Cancelled(f"request {id} was cancelled"))

    def _hold(self, now: float) -> float | None:
        """How long to hold before the next round, in seconds; None for not at all, infinity while paused."""
        if self._paused and not self._steps:
            return float("inf")
        return self._next_start - now if self._interval and now < self._next_start else None

    def _patience(self, now: float, hold: float | None) -> float | None:
        """How long nothing needs to be looked at unless somebody asks, in seconds; None for ever."""
        deadline = self._state.next_deadline
        until = min(hold or float("inf"), float("inf") if deadline is None else max(0.0, deadline - now))
        return None if until == float("inf") else min(until, LONGEST)
