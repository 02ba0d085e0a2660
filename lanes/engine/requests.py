"""From what a caller asks to work that a slot can do: everything is read, bound and checked on the caller's thread."""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from lanes import checks
from lanes.decisions.labels import BoundLabels, bind
from lanes.decisions.program import compile_program
from lanes.decisions.results import Scored, check_temperature, scored
from lanes.decisions.trie import ROOT
from lanes.engine.channel import Channel
from lanes.engine.turn import Found
from lanes.engine.work import DecisionWork, StreamWork, Work, prompt_segment
from lanes.errors import InvalidRequest
from lanes.jobs import Job
from lanes.models.loaded import ModelInfo
from lanes.prompts import Prompt, Text, check_fits, join, read
from lanes.record import Kind, Timing
from lanes.sampling import Sampling
from lanes.text import TextStream

Shape = Callable[[list[Scored]], Any]
"""Turns the results of all branches into what the caller gets."""
Made = TypeVar("Made")
MOST_TOP = 1000
MOST_LOGPROBS = 20


class Request(NamedTuple):
    """A request that can be served; `make` gives its work, from its id and the time (s, on the record's clock)."""

    kind: Kind
    prompt_tokens: int
    make: Callable[[int, float], Work]


class Reader:
    """Reads requests for one model. Raises InvalidRequest, with what to change, for what can never be served."""

    def __init__(self, tokenizer: Any, info: ModelInfo, piece: int, packed: bool) -> None:
        self._tokenizer = tokenizer
        self._info = info
        self._piece = piece
        self._packed = packed
        self._lock = Lock()  # a fast tokenizer may be borrowed by one thread at a time

    def stream(
        self,
        prompt: Text,
        sampling: Sampling,
        *,
        max_tokens: int,
        stop: str | Sequence[str],
        stop_tokens: Sequence[int],
        ignore_eos: bool,
        deadline: float | None,
        digests: bool,
        logprobs: int | None,
    ) -> Request:
        """A stream; see `Engine.stream`."""
        most = checks.whole("max_tokens", max_tokens, 1)
        likeliest = None if logprobs is None else checks.whole("logprobs", logprobs, 0, MOST_LOGPROBS)
        own_ends = frozenset() if checks.flag("ignore_eos", ignore_eos) else self._info.eos_ids
        stop_ids = _stop_ids(stop_tokens) | own_ends
        kept = checks.flag("digests", digests)
        limit = _limit(deadline)
        with self._lock:
            text = TextStream(self._tokenizer, stop, stop_ids)
            ids = read(self._tokenizer, prompt).ids
        check_fits(len(ids), 1, self._info.context)
        most = min(most, self._info.context - len(ids))
        segment = prompt_segment(ids, self._piece, self._packed)

        def make(id: int, now: float) -> StreamWork:
            return StreamWork(
                job=Job(id, "stream", id, (segment.leg,), limit and now + limit),
                channel=Channel(),
                segments=(segment,),
                room=len(ids) + most,
                prompt_tokens=len(ids),
                timing=Timing(submitted=now),
                sampling=sampling,
                text=text,
                max_tokens=most,
                digest=kept,
                logprobs=likeliest,
            )

        return Request("stream", len(ids), make)

    def use(self, work: Callable[[Any], Made]) -> Made:
        """Call `work` with the tokenizer while nobody else uses it."""
        with self._lock:
            return work(self._tokenizer)

    def score(
        self, prompt: Text, labels: Sequence[str], shape: Shape, *, temperature: float, deadline: float | None, top: int
    ) -> Request:
        """A decision on one prompt; see `Engine.score`."""
        with self._lock:
            whole = read(self._tokenizer, prompt)
            bound = bind(self._tokenizer, whole, labels, self._info.context)
        return self.decision([whole], [bound], shape, temperature=temperature, deadline=deadline, top=top)

    def decide(
        self,
        trunk: Text,
        branches: Sequence[Text],
        labels: Sequence[str] | Sequence[Sequence[str]],
        shape: Shape,
        *,
        temperature: float,
        deadline: float | None,
        top: int,
    ) -> Request:
        """A decision of several branches on one trunk; see `Engine.decide`."""
        if isinstance(branches, str | bytes) or not isinstance(branches, Sequence) or not branches:
            raise InvalidRequest("branches must be a list of at least one text: each is one question on the trunk")
        each = _labels_of(branches, labels)
        with self._lock:
            prompts = [join(self._tokenizer, trunk, branch) for branch in branches]
            pairs = zip(prompts, each, strict=True)
            bound = [bind(self._tokenizer, prompt, own, self._info.context) for prompt, own in pairs]
        return self.decision(prompts, bound, shape, temperature=temperature, deadline=deadline, top=top)

    def decision(
        self,
        prompts: Sequence[Prompt],
        bound: Sequence[BoundLabels],
        shape: Shape,
        *,
        temperature: float = 1.0,
        deadline: float | None = None,
        top: int = 0,
    ) -> Request:
        """A decision on prompts that are read, with labels that are bound to them: one branch for each pair."""
        check_temperature(temperature)
        most = checks.whole("top", top, 0, MOST_TOP)
        limit = _limit(deadline)
        for prompt, labels in zip(prompts, bound, strict=True):
            check_fits(len(prompt.ids), labels.trie.fed_depth, self._info.context)
        program = compile_program(prompts, bound, self._piece, self._packed, most)
        lengths = [len(prompt.ids) for prompt in prompts]

        def answer(found: list[dict[int, Found]], timing: Timing, cached: int) -> Any:
            return shape(
                [
                    scored(
                        labels,
                        {node: got.logits for node, got in nodes.items()},
                        nodes[ROOT].logsumexp,
                        temperature=temperature,
                        prompt_tokens=length,
                        cached_tokens=min(cached, length),
                        timing=timing,
                        top=nodes[ROOT].top,
                    )
                    for labels, nodes, length in zip(bound, found, lengths, strict=True)
                ]
            )

        def make(id: int, now: float) -> DecisionWork:
            legs = tuple(segment.leg for segment in program.segments)
            return DecisionWork(
                job=Job(id, "decision", id, legs, limit and now + limit),
                channel=Channel(),
                segments=program.segments,
                room=program.room,
                prompt_tokens=program.tokens,
                timing=Timing(submitted=now),
                answer=answer,
                branches=len(prompts),
            )

        return Request("decision", program.tokens, make)


def _labels_of(branches: Sequence[Any], labels: Any) -> list[Any]:
    """The labels of each branch."""
    if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or not labels:
        raise InvalidRequest("labels must be a list of texts, or one such list for each branch")
    if all(isinstance(label, str) for label in labels):
        return [labels] * len(branches)
    wrong = next((own for own in labels if isinstance(own, str | bytes) or not isinstance(own, Sequence)), None)
    if wrong is not None:
        raise InvalidRequest(f"labels must be texts alone, or one list of texts for each branch; {wrong!r} is neither")
    if len(labels) != len(branches):
        raise InvalidRequest(f"there are {len(branches)} branches but {len(labels)} lists of labels: give one for each")
    return list(labels)


def _stop_ids(tokens: Any) -> frozenset[int]:
    if isinstance(tokens, str | bytes) or not isinstance(tokens, Iterable):
        raise InvalidRequest(f"stop_tokens must be a list of token ids, not {type(tokens).__name__}")
    return frozenset(checks.whole("a stop token", token, 0) for token in tokens)


def _limit(deadline: Any) -> float | None:
    return None if deadline is None else checks.seconds("deadline", deadline)
