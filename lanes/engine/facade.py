"""`lanes.Engine`: what a caller uses. It checks requests, hands them to the desk, and returns handles."""

import math
import secrets
import weakref
from collections.abc import Sequence
from numbers import Integral, Real
from threading import Lock
from typing import Any

from lanes.decisions.labels import BoundLabels, bind
from lanes.decisions.program import compile_program
from lanes.decisions.results import Scored, check_temperature, scored
from lanes.engine.channel import Channel
from lanes.engine.handles import Pending, Stream
from lanes.engine.thread import Options, shut, start
from lanes.engine.work import DecisionWork, StreamWork, prompt_segment
from lanes.errors import InvalidRequest
from lanes.forward import Exactness
from lanes.jobs import Job
from lanes.plan import Policy
from lanes.prompts import Prompt, Text, check_fits, join, read
from lanes.record import Rounds, Snapshot, Timing
from lanes.sampling import Sampling
from lanes.text import TextStream

MiB = 1 << 20


class Engine:
    """A language model that serves text streams in slots, and decisions beside them, on a thread of its own.

    model: "default", a hub id, a folder, or `lanes.tiny(...)`. slots: how many requests run at once. policy: when
    decisions may run: "beside" the streams in a free slot, "idle" (only with no stream in the engine), or "off".
    width: packed rows of a round (None: the widest that the probe finds exact). piece: prompt tokens filled at once.
    reserved: slots that only decisions may hold. queue: how many requests of each kind may wait. prefix_bytes: memory
    for beginnings of prompts that may come again (0: off). keep_rounds: rounds that the record keeps. stall_after:
    seconds after which a round that does not end counts as a stalled device. progress: show a bar for a long fetch.

    Making one loads the model, proves what is exact on this machine (`exactness`) and returns when it is ready. Use it
    as a context manager, or `close()` it; one that is dropped closes itself. Raises ModelError where the model cannot
    be had, InvalidRequest for options that cannot work.
    """

    def __init__(
        self,
        model: Any = "default",
        slots: int = 8,
        policy: Policy = "beside",
        *,
        width: int | None = None,
        piece: int = 32,
        reserved: int = 0,
        queue: int = 1024,
        prefix_bytes: int = 256 * MiB,
        keep_rounds: int = 20_000,
        stall_after: float = 120.0,
        progress: bool = True,
    ) -> None:
        counts = {"slots": slots, "piece": piece, "queue": queue, "keep_rounds": keep_rounds}
        for name, value in counts.items():
            _whole(name, value, 1)
        for name, value in {"reserved": reserved, "prefix_bytes": prefix_bytes}.items():
            _whole(name, value, 0)
        if width is not None:
            _whole("width", width, 1)
        options = Options(
            model, slots, policy, width, piece, reserved, queue, prefix_bytes, keep_rounds,
            _seconds("stall_after", stall_after), progress,
        )  # fmt: skip
        options.rules(width or 1)  # refuse what cannot work before a model is loaded
        served, thread, stopped = start(options)
        self._desk = served.desk
        self._loaded = served.loaded
        self._tokenizer = served.loaded.tokenizer
        self._reading = Lock()  # a fast tokenizer may be borrowed by one thread at a time
        self._rules = served.rules
        self._close = weakref.finalize(self, shut, served.desk, thread, stopped)
        self.exactness: Exactness = served.exactness
        self.rounds: Rounds = served.record

    # --- requests -----------------------------------------------------------------------------------------------

    def stream(
        self,
        prompt: Text,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
        stop_tokens: Sequence[int] = (),
        ignore_eos: bool = False,
        deadline: float | None = None,
        wait: bool = True,
        digests: bool = False,
    ) -> Stream:
        """Begin a stream of text; returns at once.

        prompt: text, or chat messages (a list of role and content). It ends at one of the model's end tokens (unless
        `ignore_eos`), at a `stop` string (not part of the text) or one of `stop_tokens`, after `max_tokens`, or at the
        end of the context. temperature 0 takes the likeliest token; otherwise draws depend on `seed` (None: a fresh
        one, see `Stream.seed`) and position alone. deadline: seconds from now. wait: False raises Busy where no slot is
        free now. digests: keep the sha256 of every logits row that was drawn from (`Stream.digests`), for proofs.

        Raises InvalidRequest for what cannot be served, Busy, EngineClosed, DeviceStalled.
        """
        _whole("max_tokens", max_tokens, 1)
        seed = secrets.randbits(64) if seed is None else seed
        sampling = Sampling(temperature, top_p, top_k, min_p, seed)
        stop_ids = frozenset(_token(token) for token in stop_tokens)
        if not ignore_eos:
            stop_ids |= self._loaded.eos_ids
        with self._reading:
            text = TextStream(self._tokenizer, stop, stop_ids)
            ids = read(self._tokenizer, prompt).ids
        check_fits(len(ids), 1, self._loaded.context)
        longest = min(max_tokens, self._loaded.context - len(ids))
        segment = prompt_segment(ids, self._rules.piece, self.exactness.route == "packed")
        limit = _limit(deadline)

        def make(id: int, now: float) -> StreamWork:
            return StreamWork(
                job=Job(id, "stream", id, (segment.leg,), None if limit is None else now + limit),
                channel=Channel(),
                segments=(segment,),
                room=len(ids) + longest,
                prompt_tokens=len(ids),
                timing=Timing(submitted=now),
                sampling=sampling,
                text=text,
                max_tokens=longest,
                digest=digests,
            )

        work = self._desk.submit("stream", make, wait)
        return Stream(work.job.id, work.channel, self, len(ids), seed)

    def score(
        self,
        prompt: Text,
        labels: Sequence[str],
        *,
        temperature: float = 1.0,
        deadline: float | None = None,
        wait: bool = True,
    ) -> Pending[Scored]:
        """How likely each label is right after the prompt; returns a pending result at once. No token is drawn.

        labels: texts as they would follow the prompt, leading space and all. temperature: divides the logits in
        `probabilities`, nothing else. deadline and wait: as for `stream`. Raises as `stream` does, and InvalidRequest
        for labels that cannot be told apart or that merge with the prompt.
        """
        with self._reading:
            whole = read(self._tokenizer, prompt)
            bound = bind(self._tokenizer, whole, labels, self._loaded.context)
        return self._decide([whole], [bound], temperature, deadline, wait, lambda results: results[0])

    def decide(
        self,
        trunk: Text,
        branches: Sequence[Text],
        labels: Sequence[str] | Sequence[Sequence[str]],
        *,
        temperature: float = 1.0,
        deadline: float | None = None,
        wait: bool = True,
    ) -> Pending[tuple[Scored, ...]]:
        """Score several questions on one shared beginning, which is filled once: one result for each branch.

        Each branch stands on the trunk alone, with the bits that `score(trunk + branch)` would give. labels: those of
        every branch, or a list of labels for each. The rest is as for `score`.
        """
        if isinstance(branches, str | bytes) or not isinstance(branches, Sequence) or not branches:
            raise InvalidRequest("branches must be a list of at least one text: each is one question on the trunk")
        each = _labels_of(branches, labels)
        with self._reading:
            prompts = [join(self._tokenizer, trunk, branch) for branch in branches]
            bound = [
                bind(self._tokenizer, prompt, own, self._loaded.context)
                for prompt, own in zip(prompts, each, strict=True)
            ]
        return self._decide(prompts, bound, temperature, deadline, wait, tuple)

    def _decide(
        self,
        prompts: Sequence[Prompt],
        bound: Sequence[BoundLabels],
        temperature: float,
        deadline: float | None,
        wait: bool,
        shape: Any,
    ) -> Pending[Any]:
        check_temperature(temperature)
        for prompt, labels in zip(prompts, bound, strict=True):
            check_fits(len(prompt.ids), labels.trie.fed_depth, self._loaded.context)
        program = compile_program(prompts, bound, self._rules.piece, self.exactness.route == "packed")
        limit = _limit(deadline)
        lengths = [len(prompt.ids) for prompt in prompts]

        def answer(found: Any, timing: Timing, cached: int) -> Any:
            return shape(
                [
                    scored(
                        labels,
                        {node: got.logits for node, got in nodes.items()},
                        nodes[0].logsumexp,
                        temperature=temperature,
                        prompt_tokens=length,
                        cached_tokens=min(cached, length),
                        timing=timing,
                    )
                    for labels, nodes, length in zip(bound, found, lengths, strict=True)
                ]
            )

        def make(id: int, now: float) -> DecisionWork:
            return DecisionWork(
                job=Job(
                    id, "decision", id, tuple(s.leg for s in program.segments), None if limit is None else now + limit
                ),
                channel=Channel(),
                segments=program.segments,
                room=program.room,
                prompt_tokens=program.tokens,
                timing=Timing(submitted=now),
                answer=answer,
                branches=len(prompts),
            )

        work = self._desk.submit("decision", make, wait)
        return Pending(work.job.id, work.channel, self, work.prompt_tokens)

    # --- for handles --------------------------------------------------------------------------------------------

    def cancel(self, id: int) -> None:
        """Give up the request with this number; nothing happens to one that has ended."""
        self._desk.cancel(id)

    def locate(self, id: int) -> str:
        """Where an unfinished request is: queued, filling, branch or live."""
        return self._desk.locate(id)

    # --- the rounds ---------------------------------------------------------------------------------------------

    def pause(self, timeout: float | None = 60.0) -> bool:
        """Hold before the next round; True once none is in flight, False where `timeout` seconds passed first."""
        return self._desk.pause(timeout)

    def step(self, rounds: int = 1, timeout: float | None = 60.0) -> int:
        """Run `rounds` rounds, then hold. How many were run: fewer where there was nothing to do, or time was up."""
        _whole("rounds", rounds, 1)
        return self._desk.step(rounds, timeout)

    def resume(self) -> None:
        """Go on after `pause` or `step`."""
        self._desk.resume()

    def pace(self, rounds_per_second: float | None) -> None:
        """Run at most so many rounds per second, to be watched; None: as fast as they go."""
        self._desk.pace(0.0 if rounds_per_second is None else 1 / _seconds("rounds_per_second", rounds_per_second))

    def snapshot(self) -> Snapshot:
        """An immutable picture of the slots, the queues and the totals."""
        return self._desk.snapshot()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no request is left, at most `timeout` seconds; whether it came to that."""
        return self._desk.drained(timeout)

    async def drain(self) -> None:
        """Wait until no request is left, without holding up the event loop."""
        import asyncio

        while not self._desk.drained(0):
            await asyncio.sleep(0.02)

    # --- life cycle ---------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every request with EngineClosed, and the thread with its round. Closing twice is fine."""
        self._close()

    @property
    def closed(self) -> bool:
        """Whether the engine takes no requests any more: closed, or its device stalled."""
        return self._desk.ended is not None

    @property
    def model(self) -> str:
        """The model's name."""
        return self._loaded.name

    @property
    def info(self) -> Any:
        """What is known of the model: name, architecture, number format, context, parameters, fingerprint."""
        return self._loaded

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._rules.slots} slots, policy {self._rules.policy!r}"
        return f"Engine({self.model!r}, {state}, {self.exactness.width} rows a round)"

    def _repr_html_(self) -> str:
        return self.snapshot()._repr_html_()


def _labels_of(branches: Sequence[Any], labels: Any) -> list[Any]:
    """The labels of each branch."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or not labels:
        raise InvalidRequest("labels must be a list of texts, or one such list for each branch")
    if all(isinstance(label, str) for label in labels):
        return [labels] * len(branches)
    if len(labels) != len(branches):
        raise InvalidRequest(f"there are {len(branches)} branches but {len(labels)} lists of labels: give one for each")
    return list(labels)


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidRequest(f"{name} must be a whole number, {least} or more, not {value!r}")


def _token(value: Any) -> int:
    _whole("a stop token", value, 0)
    return int(value)


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        raise InvalidRequest(f"{name} must be a number above 0, not {value!r}")
    return float(value)


def _limit(deadline: Any) -> float | None:
    return None if deadline is None else _seconds("deadline", deadline)
