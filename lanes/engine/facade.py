"""`lanes.Engine`: what a caller uses. It checks requests, hands them to the desk, and returns handles."""

import secrets
import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from typing import Any, TypeVar

from lanes import checks
from lanes.decisions.labels import BoundLabels
from lanes.decisions.results import Scored
from lanes.engine.handles import Pending, Stream
from lanes.engine.notebook import watch
from lanes.engine.recent import KEEP, Note, Recent, StreamView, beginning
from lanes.engine.requests import Reader, Request
from lanes.engine.thread import Options, Start, shut, start
from lanes.engine.work import Work
from lanes.forward import Exactness
from lanes.models.loaded import ModelInfo
from lanes.plan import Policy
from lanes.prompts import Prompt, Text, pieces
from lanes.record import Rounds, Snapshot
from lanes.sampling import Sampling

MiB = 1 << 20
Made = TypeVar("Made")


class Engine:
    """A language model that serves text streams in slots, and decisions beside them, on a thread of its own.

    model: "default", a hub id, a folder, or `lanes.tiny(...)`. slots: how many requests run at once. policy: when
    decisions may run: "beside" the streams in a free slot, "idle" (only with no stream in the engine), or "off".
    width: packed rows of a round (None: the widest that the probe finds exact). piece: prompt tokens filled at once.
    reserved: slots that only decisions may hold. queue: how many requests of each kind may wait. prefix_bytes: memory
    for beginnings of prompts that may come again (0: off). keep_rounds: rounds that the record keeps. stall_after:
    seconds after which a round that does not end counts as a stalled device. progress: show a bar for a long fetch.

    Making one loads the model, proves what is exact on this machine (`exactness`) and returns when it is ready; `info`
    is what is known of the model. Use it as a context manager, or `close()` it; one that is dropped closes itself.
    Raises ModelError where the model cannot be had, InvalidRequest for options that cannot work.
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
        options = Options(
            model=model,
            slots=checks.whole("slots", slots, 1, 1024),
            policy=policy,
            width=None if width is None else checks.whole("width", width, 1, 64),
            piece=checks.whole("piece", piece, 1, 4096),
            reserved=checks.whole("reserved", reserved, 0),
            queue=checks.whole("queue", queue, 1),
            prefix_bytes=checks.whole("prefix_bytes", prefix_bytes, 0),
            keep_rounds=checks.whole("keep_rounds", keep_rounds, 1, 10_000_000),
            stall_after=checks.seconds("stall_after", stall_after),
            progress=checks.flag("progress", progress),
        )
        options.rules(options.width or 1)  # refuse what cannot work before a model is loaded
        self._options = options
        begun = Start(options)
        # First of all, so that an interrupt at any moment leaves nothing; at the exit `thread` sees to it itself.
        self._close = weakref.finalize(self, shut, begun)
        self._close.atexit = False
        try:
            served = start(begun)
            self._desk = served.desk
            packed = served.exactness.route == "packed"
            self._reader = Reader(served.tokenizer, served.info, served.rules.piece, packed)
            self._rules = served.rules
            self._recent = Recent()
            self.info: ModelInfo = served.info
            self.exactness: Exactness = served.exactness
            self.rounds: Rounds = served.record
            watch(self)
        except BaseException:
            self._close()
            raise

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
        logprobs: int | None = None,
    ) -> Stream:
        """Begin a stream of text; returns at once.

        prompt: text, or chat messages (a list of role and content). It ends at one of the model's end tokens (unless
        `ignore_eos`), at a `stop` string (not part of the text) or one of `stop_tokens`, after `max_tokens`, or at the
        end of the context. temperature 0 takes the likeliest token; otherwise draws depend on `seed` (None: a fresh
        one, see `Stream.seed`) and position alone. deadline: seconds from now. wait: False raises Busy where no slot is
        free now. digests: keep the sha256 of every logits row that was drawn from (`Stream.digests`), for proofs.
        logprobs: 0 to 20 keeps each drawn token's log-probability and those of so many likeliest ones
        (`Stream.logprobs`); None keeps none and costs nothing.

        Raises InvalidRequest for what cannot be served, Busy, EngineClosed, DeviceStalled.
        """
        seed = secrets.randbits(64) if seed is None else seed
        request = self._reader.stream(
            prompt,
            Sampling(temperature, top_p, top_k, min_p, seed),
            max_tokens=max_tokens,
            stop=stop,
            stop_tokens=stop_tokens,
            ignore_eos=ignore_eos,
            deadline=deadline,
            digests=digests,
            logprobs=logprobs,
        )
        work = self._submit(request, wait)
        self._recent.add(Note(work.job.id, beginning(prompt), request.prompt_tokens, seed, work.channel))
        return Stream(work.job.id, work.channel, self, request.prompt_tokens, seed, deepcopy(prompt))

    def score(
        self,
        prompt: Text,
        labels: Sequence[str],
        *,
        temperature: float = 1.0,
        top: int = 0,
        deadline: float | None = None,
        wait: bool = True,
    ) -> Pending[Scored]:
        """How likely each label is right after the prompt; returns a pending result at once. No token is drawn.

        labels: texts as they would follow the prompt, leading space and all. temperature: divides the logits in
        `probabilities`, nothing else. top: how many of the vocabulary's likeliest tokens to give too, in `Scored.top`.
        deadline and wait: as for `stream`. Raises as `stream` does, and InvalidRequest for labels that cannot be told
        apart or that merge with the prompt.
        """
        return self._pending(
            self._reader.score(
                prompt, labels, lambda results: results[0], temperature=temperature, deadline=deadline, top=top
            ),
            wait,
        )

    def decide(
        self,
        trunk: Text,
        branches: Sequence[Text],
        labels: Sequence[str] | Sequence[Sequence[str]],
        *,
        temperature: float = 1.0,
        top: int = 0,
        deadline: float | None = None,
        wait: bool = True,
    ) -> Pending[tuple[Scored, ...]]:
        """Score several questions on one shared beginning, which is filled once: one result for each branch.

        Each branch stands on the trunk alone, with the bits that `score(trunk + branch)` would give. labels: those of
        every branch, or a list of labels for each. The rest is as for `score`.
        """
        return self._pending(
            self._reader.decide(trunk, branches, labels, tuple, temperature=temperature, deadline=deadline, top=top),
            wait,
        )

    def texts(self, tokens: Sequence[int]) -> list[str]:
        """Each token id as text by itself; half a character comes as "\ufffd"."""
        return list(self.use_tokenizer(lambda tokenizer: pieces(tokenizer, tokens)))

    def _pending(self, request: Request, wait: bool) -> Pending[Any]:
        work = self._submit(request, wait)
        return Pending(work.job.id, work.channel, self, request.prompt_tokens)

    def _submit(self, request: Request, wait: bool) -> Work:
        return self._desk.submit(request.kind, request.make, checks.flag("wait", wait))

    # --- for lanes.ask and others that read requests in a way of their own ---------------------------------------

    def use_tokenizer(self, work: Callable[[Any], Made]) -> Made:
        """Call `work` with the model's tokenizer while nobody else uses it: keep it short."""
        return self._reader.use(work)

    def decide_bound(
        self,
        prompts: Sequence[Prompt],
        bound: Sequence[BoundLabels],
        top: int,
        deadline: float | None,
        wait: bool,
    ) -> Pending[tuple[Scored, ...]]:
        """`decide` for prompts that are read already, with labels that are bound to them: a pair for each branch."""
        return self._pending(self._reader.decision(prompts, bound, tuple, deadline=deadline, top=top), wait)

    # --- for handles --------------------------------------------------------------------------------------------

    def cancel(self, id: int) -> None:
        """Give up the request with this number; nothing happens to one that has ended."""
        self._desk.cancel(id)

    def locate(self, id: int) -> str | None:
        """Where an unfinished request is: queued, filling, branch or live; None for any other."""
        return self._desk.locate(id)

    # --- the rounds ---------------------------------------------------------------------------------------------

    def pause(self, timeout: float | None = 60.0) -> bool:
        """Hold before the next round; True once none is in flight, False where `timeout` seconds passed first."""
        return self._desk.pause(checks.timeout(timeout))

    def step(self, rounds: int = 1, timeout: float | None = 60.0) -> int:
        """Run `rounds` rounds, then hold. How many were run: fewer where there was nothing to do, or time was up."""
        return self._desk.step(checks.whole("rounds", rounds, 1), checks.timeout(timeout))

    def resume(self) -> None:
        """Go on after `pause` or `step`."""
        self._desk.resume()

    def pace(self, rounds_per_second: float | None) -> None:
        """Run at most so many rounds per second, to be watched; None: as fast as they go."""
        self._desk.pace(
            0.0 if rounds_per_second is None else 1 / checks.positive("rounds_per_second", rounds_per_second)
        )

    def snapshot(self) -> Snapshot:
        """An immutable picture of the slots, the queues and the totals."""
        return self._desk.snapshot()

    def streams(self, last: int = KEEP) -> tuple[StreamView, ...]:
        """The latest streams as plain values, oldest first, whoever holds them: unfinished ones always."""
        return self._recent.views(self.locate, checks.whole("last", last, 0))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no request is left, at most `timeout` seconds; whether it came to that."""
        return self._desk.drained(checks.timeout(timeout))

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
    def options(self) -> Mapping[str, Any]:
        """What it was made with, by the names of the arguments: `Engine(**engine.options)` makes another one."""
        return {field.name: getattr(self._options, field.name) for field in fields(self._options)}

    @property
    def model(self) -> str:
        """The model's name."""
        return self.info.name

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._rules.slots} slots, policy {self._rules.policy!r}"
        return f"Engine({self.model!r}, {state}, {self.exactness.width} rows a round)"

    def _repr_html_(self) -> str:
        return self.snapshot()._repr_html_()
