"""Receipts in the making: what is kept of an engine and of attempts, what is refused, and how it looks."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sealed import Checkout, checkout, drafted, write_notebook

import lanes
from lanes import receipts
from lanes.errors import InvalidRequest
from lanes.receipts import source
from lanes.receipts.canonical import LARGEST, encode, plain, sha256
from lanes.receipts.shapes import Record


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return checkout(tmp_path / "project", monkeypatch)


@pytest.fixture
def draft(project: Checkout) -> receipts.Draft:
    return receipts.begin("turns", "One sentence.")


def measure(draft: receipts.Draft, repeats: int = 2, warmups: int = 0, timeout: float = 60.0, **arms: Any) -> None:
    asyncio.run(draft.measure(arms, repeats=repeats, warmups=warmups, timeout=timeout))


def giving(value: Any) -> Callable[[], Any]:
    async def run() -> Any:
        return value

    return run


# --- an engine --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spoken(engine: lanes.Engine) -> tuple[lanes.Stream, lanes.Stream]:
    """One prompt asked twice, with digests."""
    ask = {"max_tokens": 6, "ignore_eos": True, "digests": True}
    streams = engine.stream("Tell me", **ask), engine.stream("Tell me", **ask)
    for stream in streams:
        stream.result(60)
    return streams


def test_an_engine_is_on_record_down_to_its_weights(engine: lanes.Engine, project: Checkout):
    record = receipts.begin("turns", "One sentence.", engine=engine).record()
    facts = record.engines["engine"]
    assert facts.model.fingerprint == engine.info.fingerprint and facts.model.files == {}
    assert facts.settings["slots"] == 8 and facts.settings["policy"] == "beside" and "model" not in facts.settings
    assert facts.exactness == json.loads(json.dumps(engine.exactness.to_dict()))
    assert facts.model.tokenizer_sha256 == engine.use_tokenizer(lambda one: sha256(
        f"{one.backend_tokenizer.to_str()}\0{one.chat_template}"))  # fmt: skip


def test_every_file_of_a_folder_is_hashed_and_the_folder_is_not_told(project: Checkout, tmp_path: Path):
    from lanes.receipts.models import _files

    folder = tmp_path / "somewhere" / "model"
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors", ".hidden"):
        (folder / name).write_text(name)
    assert [path.name for path in _files(str(folder))] == ["config.json", "model.safetensors"]


def test_engines_have_names_of_their_own(engine: lanes.Engine, project: Checkout):
    draft = receipts.begin("turns", "One sentence.", engine=engine)
    draft.uses("idle", engine)
    assert set(draft.record().engines) == {"engine", "idle"}
    with pytest.raises(InvalidRequest, match="there is an engine 'idle' already"):
        draft.uses("idle", engine)


def test_replies_and_prompts_are_kept_as_hashes(spoken, engine: lanes.Engine, project: Checkout):
    draft = receipts.begin("turns", "One sentence.", engine=engine)
    draft.reply("first", spoken[0])
    draft.prompt("question", "Is it so?")
    draft.prompt("messages", [{"role": "user", "content": "Is it so?"}])
    (reply,), (prompt, messages) = draft.record().replies, draft.record().prompts
    assert reply.token_sha == sha256(",".join(map(str, spoken[0].tokens)))[:12] == receipts.token_sha(spoken[0].tokens)
    assert reply.prompt_sha256 == sha256("Tell me") and reply.tokens == 6 and reply.finish_reason == "length"
    assert reply.logits_sha256 == sha256("\n".join(spoken[0].digests))
    assert prompt.sha256 == sha256("Is it so?") and prompt.characters == 9 and prompt.tokens
    assert messages.sha256 == sha256('[{"content":"Is it so?","role":"user"}]')
    assert messages.tokens and messages.tokens > prompt.tokens, "the template's own tokens count"
    assert "Tell me" not in encode(draft.record().model_dump(mode="json")).decode()


def test_words_are_kept_where_they_are_wanted(spoken, engine: lanes.Engine, project: Checkout):
    draft = receipts.begin("turns", "One sentence.", engine=engine, keep_text=True)
    draft.reply("first", spoken[0])
    draft.prompt("question", "Is it so?")
    assert draft.record().replies[0].text == spoken[0].text and draft.record().prompts[0].text == "Is it so?"


def test_digests_of_streams_are_equal_and_of_others_not(spoken, engine: lanes.Engine, draft: receipts.Draft):
    first, second = spoken
    assert draft.equal("the same", first.digests, second.digests) is True
    assert draft.equal("shorter", first.digests, second.digests[:-1]) is False
    assert draft.equal("another", first.digests, (*second.digests[:-1], "0" * 64)) is False
    told = draft.facts().splitlines()
    assert told[1] == "ok  the same  equal: 6 digests"
    assert told[2] == "!!  shorter   expected 6 digests, observed 5 digests"
    assert told[3] == "!!  another   expected 6 digests, observed 6 digests, other from 5 on"


def test_a_stream_that_goes_on_is_no_reply(engine: lanes.Engine, draft: receipts.Draft):
    stream = engine.stream("Tell me", max_tokens=4000, ignore_eos=True)
    try:
        with pytest.raises(InvalidRequest, match="has not ended: await it"):
            draft.reply("first", stream)
    finally:
        stream.cancel()
        stream.wait(60)


def test_a_digest_is_of_bits(engine: lanes.Engine):
    answers = [engine.score("Is it so?", [" yes", " no"]).result(60) for _ in range(2)]
    assert receipts.digest(answers[0]) == receipts.digest(answers[1])
    assert receipts.digest(answers[0]) != receipts.digest(engine.score("Or so?", [" yes", " no"]).result(60))
    one = np.array([1.0, 2.0], np.float32)
    assert receipts.digest(one) == receipts.digest(one.copy()) != receipts.digest(one.astype(np.float64))
    assert receipts.digest(one) != receipts.digest(one.reshape(2, 1))
    assert receipts.digest(["a", "b"]) != receipts.digest(["ab"])
    with pytest.raises(InvalidRequest, match="not float"):
        receipts.digest(1.0)  # pyright: ignore[reportArgumentType]


# --- attempts ---------------------------------------------------------------------------------------------------------


def test_arms_take_turns_and_every_attempt_is_kept(draft: receipts.Draft):
    order = []

    def arm(name: str) -> Callable[[], Any]:
        async def run() -> None:
            order.append(name)

        return run

    measure(draft, repeats=3, warmups=1, a=arm("a"), b=arm("b"), c=arm("c"))
    measure(draft, repeats=1, d=arm("d"))
    assert "".join(order) == "abcbcacababcd"
    samples = draft.record().samples
    assert [sample.arm for sample in samples] == order and [sample.position for sample in samples] == list(range(13))
    assert [sample.warmup for sample in samples] == [True] * 3 + [False] * 10
    assert [arm.group for arm in draft.record().arms] == [0, 0, 0, 1]


def test_seconds_are_stamped_where_none_are_given(draft: receipts.Draft):
    async def sleep() -> None:
        await asyncio.sleep(0.02)

    measure(draft, own=giving({"seconds": 5.0, "tokens": 10}), timed=sleep)
    record = draft.record()
    assert record.samples[0].values == {"seconds": 5.0, "tokens": 10, "tokens_per_s": 2.0}
    assert 0.02 <= record.aggregates["timed"]["seconds"].min < 60


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"seconds": 0}, "seconds must be one number above 0"),
        ({"seconds": -1.0}, "seconds must be one number above 0"),
        ({"seconds": float("nan")}, "seconds must be a finite number"),
        ({"tokens": float("inf")}, "tokens must be a finite number"),
        ({"tokens": True}, "tokens must be a finite number"),
        ({"tokens": "8"}, "tokens must be a finite number"),
        ({1: 8}, "a value's name must be a text"),
        ([1], "an arm gives a mapping of names to numbers, not list"),
        ({"seconds": 2.0, "tokens": 8, "tokens_per_s": 5.0}, "tokens_per_s is 5, but tokens over seconds is 4"),
        ({"seconds": 2.0, "gaps_per_s": 5.0}, "gaps_per_s has no 'gaps' and 'seconds' beside it"),
    ],
)
def test_what_is_no_value_makes_an_attempt_fail(draft: receipts.Draft, given: Any, error: str):
    measure(draft, repeats=1, a=giving(given))
    (sample,) = draft.record().samples
    assert not sample.ok and sample.values == {} and error in (sample.error or "")
    assert draft.record().aggregates == {"a": {}}


def test_a_rate_may_be_off_by_a_rounding(draft: receipts.Draft):
    measure(draft, repeats=1, a=giving({"seconds": 3.0, "tokens": 10, "tokens_per_s": 3.333333}))
    assert draft.record().samples[0].ok


def test_failed_attempts_are_kept_with_their_error_and_without_folders(draft: receipts.Draft):
    left = iter([None, ValueError("no soup\nin /home/somebody/kitchen/soup.txt"), None])

    async def cook() -> None:
        if error := next(left):
            raise error

    async def slow() -> None:
        await asyncio.sleep(60)

    measure(draft, repeats=3, a=cook)
    measure(draft, repeats=1, timeout=0.02, b=slow)
    samples = draft.record().samples
    assert [sample.ok for sample in samples] == [True, False, True, False]
    assert samples[1].error == "ValueError: no soup in .../soup.txt"
    assert samples[3].error == "TimeoutError: no result after 0.02 s"
    assert (draft.record().aggregates["a"]["seconds"].n, draft.record().aggregates["a"]["seconds"].failed) == (2, 1)


def test_a_measurement_that_is_broken_off_counts_for_nothing_and_is_told(draft: receipts.Draft, tmp_path: Path):
    async def cancelled() -> None:
        waits = asyncio.Event()

        async def first() -> None:
            pass

        async def second() -> None:
            waits.set()
            await asyncio.sleep(60)

        task = asyncio.ensure_future(draft.measure({"a": first, "b": second}, repeats=2, warmups=0))
        await waits.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    record = draft.record()
    assert record.samples == record.arms == ()
    assert record.not_run == ("a measurement of a, b was broken off after 1 attempts",)
    draft.check("something", 1, 1)
    assert receipts.verify(draft.close(tmp_path)).ok


def test_an_arm_that_is_cancelled_from_inside_is_a_failed_attempt(draft: receipts.Draft):
    async def gone() -> None:
        raise asyncio.CancelledError

    measure(draft, repeats=2, warmups=0, a=gone, b=giving(None))
    failed = [(sample.arm, sample.error) for sample in draft.record().samples if not sample.ok]
    assert failed == [("a", "CancelledError:")] * 2


def test_a_late_attempt_has_ended_before_the_next_one_begins(draft: receipts.Draft):
    events: list[str] = []

    async def late() -> None:
        events.append("begins")
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            events.append("ends")

    measure(draft, repeats=2, warmups=0, timeout=0.01, a=late)
    assert events == ["begins", "ends"] * 2
    assert {sample.error for sample in draft.record().samples} == {"TimeoutError: no result after 0.01 s"}


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        (ValueError("half \udcff"), r"ValueError: half \\udcff"),
        (ValueError("\x1b[2J"), r"ValueError: \\x1b\[2J"),
        (Mute(), r"Mute: its words cannot be had \(ValueError\)"),
        ({"tokens": 1, "seconds": 5e-324}, "tokens over seconds must be a finite number"),
        ({"a\nb": 1}, "a value's name must be a text on one line"),
        ({"\ud800": 1}, "a value's name must be a text on one line"),
    ],
)
def test_an_odd_attempt_is_kept_as_a_failure_and_the_others_go_on(
    draft: receipts.Draft, tmp_path: Path, gives: Any, why: str
):
    async def odd() -> Any:
        if isinstance(gives, Exception):
            raise gives
        return gives

    measure(draft, repeats=2, warmups=0, a=odd, b=giving(None))
    samples = draft.record().samples
    assert [sample.ok for sample in samples] == [False, True, True, False]
    assert re.search(why, samples[0].error or "")
    draft.check("something", 1, 1)
    assert receipts.verify(draft.close(tmp_path)).ok


def test_nothing_is_measured_or_sealed_while_arms_run(draft: receipts.Draft, tmp_path: Path):
    begun: list[int] = []

    async def arm() -> None:
        begun.append(1)
        await asyncio.sleep(0)

    async def both() -> None:
        first = asyncio.ensure_future(draft.measure({"a": arm}, repeats=2))
        while not begun:
            await asyncio.sleep(0)
        with pytest.raises(InvalidRequest, match="two groups of arms cannot be measured at once: the arms a still run"):
            await draft.measure({"b": arm}, repeats=2)
        with pytest.raises(InvalidRequest, match="it cannot be sealed: the arms a still run"):
            draft.close(tmp_path)
        await first
        await draft.measure({"b": arm}, repeats=2)

    asyncio.run(both())
    draft.check("something", 1, 1)
    assert receipts.verify(draft.close(tmp_path)).ok
    assert [arm.group for arm in draft.record().arms] == [0, 1]


def test_many_threads_seal_one_receipt(draft: receipts.Draft, tmp_path: Path):
    draft.check("something", 1, 1)
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(lambda _: draft.close(tmp_path), range(16)))
    assert paths == set(tmp_path.glob("*.json")) and len(paths) == 1


def test_a_folder_that_takes_no_file_leaves_the_receipt_to_be_saved_elsewhere(draft: receipts.Draft, tmp_path: Path):
    draft.check("something", 1, 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match=r"the folder file takes no file: .*; give another one"):
        draft.close(tmp_path / "file")
    assert receipts.verify(draft.close(tmp_path / "folder")).ok


def test_how_busy_the_waiting_thread_was_is_on_record(project: Checkout):
    idle, busy = receipts.begin("idle", "One sentence."), receipts.begin("busy", "One sentence.")

    async def sleep() -> None:
        await asyncio.sleep(0.05)

    async def compute() -> None:
        import time

        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass

    assert idle.record().environment.load.main_thread is None
    measure(idle, a=sleep)
    measure(busy, a=compute)
    shares = [draft.record().environment.load.main_thread or 0.0 for draft in (idle, busy)]
    assert shares[0] < shares[1]


# --- the door ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"topic": "Beside or behind"}, "topic"),
        ({"topic": ""}, "topic"),
        ({"claim": ""}, "claim"),
        ({"claim": 3}, "claim"),
        ({"parameters": {"size": float("nan")}}, "parameters.size is nan"),
        ({"parameters": {"size": {1, 2}}}, "parameters.size is of type set"),
        ({"parameters": {"a b": 1}}, "must have the name of a variable"),
        ({"parameters": {"class": 1}}, "must have the name of a variable"),
        ({"parameters": [1]}, "parameters must be a mapping"),
        ({"notebook": "nowhere.ipynb"}, "there is no notebook 'nowhere.ipynb' in this folder"),
        ({"notebook": "../turns.ipynb"}, "must be the name of a file"),
        ({"notebook": "turns.py"}, "must be the name of a file"),
        ({"keep_text": "no"}, "keep_text must be True or False"),
    ],
)
def test_a_wrong_beginning_is_refused(project: Checkout, options: dict[str, Any], why: str):
    with pytest.raises(InvalidRequest, match=why):
        receipts.begin(**{"topic": "turns", "claim": "One sentence.", **options})


LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP = json.loads("[" * 50 + "]" * 50)
WRONG: list[tuple[Callable[[Any], Any], str]] = [
    (lambda draft: draft.check("", 1, 1), "name must be a text on one line"),
    (lambda draft: draft.check("two\nlines", 1, 1), "name must be a text on one line"),
    (lambda draft: draft.check("nan", 1.0, float("nan")), "observed is nan"),
    (lambda draft: draft.check("object", 1, object()), "observed is of type object"),
    (lambda draft: draft.check("keys", {1: 2}, {1: 2}), "expected has the key 1"),
    (lambda draft: draft.check("again", 1, 1), "there is a check 'again' already"),
    (lambda draft: draft.equal("bits", [], []), "first has no digests, which proves nothing"),
    (lambda draft: draft.equal("bits", "abc", "abc"), "first must be a list of digests"),
    (lambda draft: draft.equal("bits", ["a"], [1]), "second.0 must be a text"),
    (lambda draft: draft.equal("bits", ["a"], None), "second must be a list of digests"),
    (lambda draft: draft.within("range", ("a", "seconds")), "a range needs an end"),
    (lambda draft: draft.within("range", ("a", "seconds"), low=2, high=1), "nothing lies between low=2 and high=1"),
    (lambda draft: draft.within("range", ("a", "seconds"), high="3"), "low and high must be numbers"),
    (lambda draft: draft.within("range", ("a", "seconds"), high=float("inf")), "an end is inf"),
    (lambda draft: draft.within("range", "a over b", high=1), "there is no ratio 'a over b'"),
    (lambda draft: draft.within("range", ("b", "seconds"), high=1), "there is no arm 'b'"),
    (lambda draft: draft.ratio("r", ("a", "seconds"), ("b", "seconds")), "no sample of the arm 'b' has 'seconds'"),
    (lambda draft: draft.ratio("r", "a", ("a", "seconds")), "numerator must be .arm, value."),
    (
        lambda draft: draft.ratio("r", ("a", "seconds"), ("a", "seconds"), kind="means"),
        "kind must be 'pairs' or 'medians'",
    ),
    (lambda draft: draft.not_run(""), "sentence must be a text on one line"),
    (lambda draft: draft.prompt("words", b"abc"), "a prompt is a text or a list of messages, not bytes"),
    (lambda draft: draft.prompt("words", 5), "a prompt is a text or a list of messages, not int"),
    (lambda draft: draft.prompt("words", [{"role": b"user"}]), "prompt.0.role is of type bytes"),
    (lambda draft: draft.check("huge", 10**5000, 1), "expected is a whole number beyond 1e.100: give it as a text"),
    (lambda draft: draft.check("deep", DEEP, DEEP), "expected.0.*is nested too deeply: 30 levels are allowed"),
    (lambda draft: draft.check("endless", LOOP, LOOP), "expected.0.*is nested too deeply"),
    (lambda draft: draft.check("hidden\u200b", 1, 1), "name must be a text on one line"),
    (lambda draft: draft.within("range", 5, high=1), "figure must be a ratio's name or"),
    (lambda draft: draft.within("range", ("a", 1), high=1), "a part of figure must be a text"),
    (lambda draft: draft.uses("other", "a model"), "an engine is a lanes.Engine, not 'a model'"),
    (lambda draft: draft.reply("words", None), "a reply is a stream, not None"),
    (lambda draft: draft.close(5), "a path must be a text or a Path, not 5"),
    (lambda draft: draft.close("no\0where"), "a path cannot hold the character NUL"),
    (measure, "arms must be async functions by name"),
    (lambda draft: measure(draft, b=3), "the arm 'b' must be an async function"),
    (lambda draft: measure(draft, a=giving(None)), "the arm 'a' was measured already"),
    (lambda draft: measure(draft, repeats=0, b=giving(None)), "repeats must be a whole number"),
    (lambda draft: measure(draft, warmups=-1, b=giving(None)), "warmups must be a whole number"),
    (lambda draft: measure(draft, timeout=0, b=giving(None)), "timeout must be a finite number of seconds"),
]


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_what_proves_nothing_is_refused(draft: receipts.Draft, at: int):
    measure(draft, repeats=1, a=giving(None))
    draft.check("again", 1, 1)
    before = draft.record().model_copy(update={"made": None, "environment": None})
    call, why = WRONG[at]
    with pytest.raises(InvalidRequest, match=why):
        call(draft)
    assert draft.record().model_copy(update={"made": None, "environment": None}) == before


def test_a_function_that_is_not_async_makes_attempts_fail(draft: receipts.Draft):
    measure(draft, repeats=1, a=lambda: {"seconds": 1.0})
    assert "TypeError" in (draft.record().samples[0].error or "")


def test_one_and_true_differ_and_one_and_one_dot_do_not(draft: receipts.Draft):
    assert draft.check("whole", 1, 1.0) and draft.check("lists", [1, {"a": None}], (1.0, {"a": None}))
    assert not draft.check("truth", 1, True) and not draft.check("text", 1, "1")
    assert not draft.check("longer", [1], [1, 2]) and not draft.check("keys", {"a": 1}, {"b": 1})
    assert draft.check("numpy", 3, np.int64(3)) and draft.check("array", [1.5, 2.0], np.array([1.5, 2.0]))
    assert draft.check("truths", True, np.bool_(True))


def test_nothing_is_added_to_a_sealed_receipt(draft: receipts.Draft, tmp_path: Path):
    draft.check("something", 1, 1)
    path = draft.close(tmp_path)
    assert draft.close(tmp_path) == path and draft.close(tmp_path / "copy").read_bytes() == path.read_bytes()
    for call in (
        lambda: draft.check("more", 1, 1), lambda: draft.equal("more", ["a"], ["a"]), lambda: draft.not_run("more"),
        lambda: measure(draft, a=giving(None)), lambda: draft.prompt("more", "words"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match=rf"sealed as {path.stem[:12]}: begin a new one"):
            call()


def test_a_receipt_that_would_be_too_large_says_what_to_do(draft: receipts.Draft, tmp_path: Path):
    many = [f"{at:064x}" for at in range(LARGEST // 100)]
    draft.equal("bits", many, many)
    with pytest.raises(InvalidRequest, match=f"{LARGEST} are allowed: give `equal` one digest of many"):
        draft.close(tmp_path)
    assert list(tmp_path.glob("*.json")) == []


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_is_canonical_and_named_by_its_hash(project: Checkout, tmp_path: Path):
    draft = drafted()
    path = draft.close(tmp_path / "receipts")
    data = path.read_bytes()
    assert path.name == f"{sha256(data)}.json"
    value = json.loads(data)
    assert data == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert receipts.read(path).record == draft.record()
    assert Record.model_validate(draft.record().model_dump()) == draft.record()


def test_nothing_of_the_machines_names_and_paths_is_kept(project: Checkout, tmp_path: Path):
    import getpass
    import socket

    text = drafted().close(tmp_path / "receipts").read_text()
    assert not re.search(r"/(?:home|root|tmp|Users|work)/", text)
    assert f'"{socket.gethostname()}"' not in text and f'"{getpass.getuser()}"' not in text


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": {"b": -float("inf")}}])
def test_canonical_text_knows_no_nan(value: Any):
    with pytest.raises(ValueError):
        encode(value)
    with pytest.raises(InvalidRequest):
        plain("value", value)


def test_a_lone_surrogate_is_refused(draft: receipts.Draft, tmp_path: Path):
    for half in ("\ud800", {"\ud800": 1}, ["\ud800"]):
        with pytest.raises(InvalidRequest, match=r"half of a surrogate pair|keys must be texts"):
            draft.check("half", half, half)
    assert receipts.verify(draft.close(tmp_path)).words, "it was not spoilt by what was refused"


def test_notebooks_are_found_where_the_project_keeps_them(project: Checkout, tmp_path: Path, monkeypatch):
    assert receipts.begin("turns", "One sentence.", notebook="turns.ipynb").record().notebook
    own = write_notebook(tmp_path / "here" / "turns.ipynb", ["1"])
    monkeypatch.chdir(own.parent)
    found = receipts.begin("turns", "One sentence.", notebook="turns.ipynb").record().notebook
    assert found and found.sha256 == source.code_hash(own.read_bytes()) == sha256("1"), "the folder at hand comes first"
    own.write_text("{}")
    with pytest.raises(InvalidRequest, match="no notebook of format 4"):
        receipts.begin("turns", "One sentence.", notebook="turns.ipynb")


# --- how it looks -----------------------------------------------------------------------------------------------------


def test_facts_are_alike_for_alike_checks_whatever_was_measured(project: Checkout):
    first, second = drafted(), drafted()
    assert first.facts() == second.facts()
    assert first.facts().splitlines() == [
        "turns: One sentence.",
        "ok  nothing is left  0",
        "ok  bits             equal: 2 digests",
        "ok  beside is cheap  at most 3",
        "ok  idle p95         0.1 to 9",
    ]


def test_terminal_and_saved_form_say_the_same(project: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    draft = drafted()
    path = draft.close(tmp_path / "receipts")
    draft.show()
    printed = capsys.readouterr().out
    assert printed == f"{draft!r}\n" == f"{receipts.read(path)!r}\n"
    receipts.read(path).show()
    assert capsys.readouterr().out == printed
    program = (
        "import IPython, sys; from IPython.core.interactiveshell import InteractiveShell\n"
        "from IPython.utils.capture import capture_output; InteractiveShell.instance()\n"
        "from lanes import receipts\n"
        "with capture_output() as shown: receipts.read(sys.argv[1]).show()\n"
        "(output,) = shown.outputs; sys.stdout.write(output.data['text/plain'])\n"
        "assert output.data['text/html'] == receipts.read(sys.argv[1])._repr_html_()"
    )
    saved = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert saved.stdout + "\n" == printed


def test_the_text_holds_checks_figures_failures_and_what_was_not_run(project: Checkout):
    text = repr(drafted())
    assert "not sealed yet; 4 of 4 checks passed, 1 of 10 attempts failed" in text
    assert re.search(r"^beside  seconds       3  1       1\.\d+", text, re.MULTILINE)
    assert re.search(r"^beside over idle  \d\.\d+  3  ", text, re.MULTILINE)
    assert "- on a GPU: there is none" in text and "parameters: seed = 3, size = 8" in text


def test_the_html_needs_no_script_and_nothing_from_outside(project: Checkout):
    draft = drafted()
    draft.check("<script>alert(1)</script>", "<b>", "<b>")
    html = draft._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html and "<b>&lt;" not in html
    assert not re.findall(r"""(?:src|href)=["']?https?:""", html)
    assert html.count("<circle") == 9 and html.count('<path d="M166') == 1, (
        "nine attempts as dots, the failure as a cross"
    )
    assert all("var(--jp-" in colour for colour in re.findall(r'(?:fill|stroke)="([^"]+)"', html) if colour != "none")


def test_importing_receipts_brings_no_plots_and_no_mlx():
    heavy = ["mlx.core", "mlx_lm", "transformers", "pandas", "plotly", "matplotlib", "ipywidgets", "nbclient"]
    program = f"import sys; from lanes import receipts; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_example_of_the_docs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    page = (Path(__file__).parents[1] / "docs" / "receipts.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(found[1], "receipts.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "ok  logits, alone and in company                      equal: 16 digests" in shown
    assert names["engine"].closed and receipts.read(names["path"]).record.topic == "company"
    assert f"{names['path'].name}: " in shown and "the author's word" in shown
