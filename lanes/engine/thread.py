"""The engine's one thread, which loads the model and runs every round, and the watchdog beside it.

Neither holds the engine itself: an engine that nobody holds any more is collected, and that ends both.
"""

import atexit
import os
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread, current_thread
from typing import Any

from lanes.engine.desk import Desk
from lanes.engine.failure import failure
from lanes.engine.runner import Runner
from lanes.engine.state import State
from lanes.errors import DeviceStalled, EngineClosed
from lanes.forward import Exactness, prepare
from lanes.forward.prefix import PrefixCache
from lanes.memory import give_back
from lanes.models import load
from lanes.models.loaded import ModelInfo
from lanes.plan import SPAN, Policy, Rules
from lanes.record import Rounds

JOIN = 5.0
"""Seconds that closing waits for the round in flight; every waiter has its error before that."""
LOAD = 60.0
"""Seconds that an interrupted start waits for the load in flight."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an engine was made with; see `Engine`."""

    model: Any
    slots: int
    policy: Policy
    width: int | None
    piece: int
    reserved: int
    queue: int
    prefix_bytes: int
    keep_rounds: int
    stall_after: float
    progress: bool

    def rules(self, width: int, parted: bool = True) -> Rules:
        """The planner's rules, once the width is known, and whether pieces can be computed in parts."""
        # Half the width for tails: a decision beside many streams is then four times as fast, for no longer gaps.
        tail = max(1, width // 2)
        return Rules(self.slots, width, self.piece, self.policy, self.reserved, tail, self.queue, SPAN if parted else 0)


@dataclass(slots=True)
class Served:
    """What the thread made, for the engine to use: everything but the arrays."""

    info: ModelInfo
    tokenizer: Any
    exactness: Exactness
    rules: Rules
    record: Rounds
    desk: Desk


@dataclass(eq=False)
class Start:
    """A thread to be: where it leaves what it made, or why it could not, and what ends it."""

    options: Options
    done: Event = field(default_factory=Event)
    served: Served | None = None
    error: BaseException | None = None
    unwanted: bool = False
    thread: Thread | None = None
    stopped: Event = field(default_factory=Event)

    def check(self) -> None:
        """Raise EngineClosed where nobody waits for the engine any more."""
        if self.unwanted:
            raise EngineClosed("the engine was given up while it loaded")


def start(begun: Start) -> Served:
    """Load a model on a thread of its own and begin to serve; returns when it is ready.

    Raises what loading raised. Whatever it raises, an interrupt too: `shut` ends all that was begun by then.
    """
    begun.thread = Thread(target=_serve, args=(begun,), name="lanes-engine", daemon=True)
    _begun.add(begun)
    begun.thread.start()
    begun.done.wait()
    if begun.error:
        raise begun.error
    assert begun.served is not None
    watched = (begun.served.desk, begun.options.stall_after, begun.stopped)
    Thread(target=_watch, args=watched, name="lanes-watch", daemon=True).start()
    return begun.served


def shut(begun: Start, why: str = "the engine is closed: make a new one to go on") -> None:
    """End all that was begun, however far it came; safe to call twice, from any thread, and at the interpreter's exit.

    A load in flight is waited for, as an interpreter must not end while MLX works.
    """
    begun.unwanted = True  # before `served` is looked at: the thread sets that one before it looks at this one
    begun.stopped.set()
    patience = LOAD
    if begun.served:
        desk = begun.served.desk
        desk.stop(EngineClosed(why))
        patience = 0 if isinstance(desk.ended, DeviceStalled) else JOIN  # a device that hangs will not come back now
    if begun.thread and begun.thread is not current_thread():
        with suppress(RuntimeError):  # it has not even started, and will find itself unwanted
            begun.thread.join(patience)


_begun: "weakref.WeakSet[Start]" = weakref.WeakSet()


def _shut_all() -> None:
    """At the interpreter's exit, before it waits for threads that may wait for us."""
    for begun in list(_begun):
        shut(begun, "the interpreter ends")


def _disown_all() -> None:
    error = EngineClosed("this engine belongs to the process that this one was forked from: make one here")
    for begun in list(_begun):
        if begun.served:
            begun.served.desk.disown(error)


# The exit hook that concurrent.futures uses; the public atexit runs only after all threads were joined.
getattr(threading, "_register_atexit", atexit.register)(_shut_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)


def _serve(begun: Start) -> None:
    """The thread: load, prove, then turn after turn until the desk has none."""
    import mlx.core as mx

    try:
        runner = _begin(begun)
        if runner and begun.served and not begun.unwanted:
            _turns(runner, begun.served.desk)
        del runner
    finally:
        mx.clear_cache()
        mx.clear_streams()  # a thread that keeps its streams can crash the interpreter when it ends
        give_back()


def _begin(begun: Start) -> Runner | None:
    """Load and prove; what came of it, or why nothing did, is left where the engine's maker waits for it."""
    runner = None
    try:
        runner, begun.served = _prepare(begun)
    except BaseException as error:  # whatever it is
        begun.error = error
    begun.done.set()
    return runner


def _turns(runner: Runner, desk: Desk) -> None:
    try:
        while turn := desk.take(runner.seat):
            desk.deliver(turn, runner.run(turn))
    except BaseException as error:
        desk.stop(failure("the engine's own loop failed, so make a new engine", error))
        desk.take(runner.seat)  # ends every request: nobody waits for a loop that is gone


def _prepare(begun: Start) -> tuple[Runner, Served]:
    options = begun.options
    begun.check()
    loaded = load(options.model, progress=options.progress)
    begun.check()
    forward, exactness = prepare(loaded, options.slots, options.piece, options.width, begun.check)
    rules = options.rules(forward.width, parted=forward.packed)
    record = Rounds(options.slots, options.keep_rounds)
    prefix = PrefixCache(options.prefix_bytes, options.piece, cuttable=forward.packed)
    desk = Desk(State(rules, record, loaded.context))
    return Runner(forward, prefix), Served(loaded.info, loaded.tokenizer, exactness, rules, record, desk)


def _watch(desk: Desk, stall_after: float, stopped: Event) -> None:
    """Fail every waiter once a round has been in flight for too long: a device that hangs cannot be interrupted."""
    while not stopped.wait(min(1.0, stall_after / 4)):
        since = desk.running_since
        if since is not None and time.monotonic() - since > stall_after:
            desk.stop(
                DeviceStalled(
                    f"a round has taken more than {stall_after:g} s: the device does not answer. "
                    "Make a new engine, or allow more with stall_after="
                )
            )
            return
