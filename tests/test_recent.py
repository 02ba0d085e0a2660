"""What an engine remembers of its streams: all of it, for long enough, and nothing that keeps it alive."""

import gc
import weakref
from typing import Any

import pytest
from rigs import WAIT, rig, stream, until

import lanes
from lanes.engine.channel import Channel, End
from lanes.engine.recent import BEGINNING, Note, Recent, beginning
from lanes.record import Timing


def note(id: int, tokens: int = 1, ended: bool = True) -> Note:
    channel = Channel()
    for token in range(tokens):
        channel.push(token, str(token), Timing(0.0))
    if ended:
        channel.finish(End("length", Timing(0.0)))
    return Note(id, "", 1, 0, channel)


def ids(recent: Recent, last: int = 99) -> list[int]:
    return [view.id for view in recent.views(lambda id: "live", last)]


def test_a_view_has_what_its_handle_has(engine: lanes.Engine) -> None:
    made = engine.stream("The sea is wide", max_tokens=9, ignore_eos=True, logprobs=2, seed=7)
    made.result(WAIT)
    view = engine.streams()[-1]
    assert (view.id, view.tokens, view.text, view.logprobs) == (made.id, made.tokens, made.text, made.logprobs)
    assert (view.state, view.done, view.seed, view.error) == ("length", True, 7, None)
    assert (view.prompt, view.prompt_tokens, view.timing) == ("The sea is wide", made.prompt_tokens, made.timing)
    assert len(view.pieces) == len(view.tokens) == len(view.logprobs) == 9


def test_states_of_unfinished_ones_are_those_of_their_handles() -> None:
    with rig(slots=2, piece=8) as one:
        one.engine.pause()
        made = [stream(one.engine, "The sea"), stream(one.engine, "word " * 60), stream(one.engine)]
        one.engine.step(3, WAIT)
        assert [view.state for view in one.engine.streams()] == ["live", "filling", "queued"]
        made[2].cancel()
        assert made[2].wait(WAIT)
        last = one.engine.streams()[-1]
        assert (last.state, last.error) == ("cancelled", str(made[2].error))


def test_text_that_was_held_back_comes_with_a_later_token_or_at_the_end(engine: lanes.Engine) -> None:
    plain = engine.stream("The sea", max_tokens=12, ignore_eos=True)
    text = plain.result(WAIT)
    last = next(char for char in reversed(text) if text.strip())
    # What may become this stop string is held back to the end, where nothing came of it.
    held = engine.stream("The sea", max_tokens=12, ignore_eos=True, stop=[text[-3:] + "\x00", last + "\x00"])
    assert held.result(WAIT) == text
    view = engine.streams()[-1]
    assert view.rest and view.text == text
    assert len(view.pieces) == len(view.tokens) and "".join(view.pieces) + view.rest == text


def test_the_latest_are_kept_and_unfinished_ones_always() -> None:
    recent = Recent(keep=3)
    recent.add(note(0, ended=False))
    for id in range(1, 6):
        recent.add(note(id))
    assert ids(recent) == [0, 4, 5]
    assert ids(recent, last=2) == [0, 5]
    assert ids(recent, last=0) == [0]


def test_long_ones_are_forgotten_sooner_but_never_the_latest() -> None:
    recent = Recent(keep=9, most_tokens=10)
    for id, tokens in enumerate((4, 4, 4)):
        recent.add(note(id, tokens))
    assert ids(recent) == [1, 2]
    recent.add(note(3, 50))
    assert ids(recent) == [3]


@pytest.mark.parametrize(
    ("prompt", "begins"),
    [
        ("x" * 300, "x" * BEGINNING),
        ([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}], "Why?"),
        ([{"role": "user", "content": ["a", {"type": "text", "text": "b"}]}], "ab"),
    ],
)
def test_how_a_prompt_begins(prompt: Any, begins: str) -> None:
    assert beginning(prompt) == begins


def test_an_engine_that_remembers_streams_is_collected() -> None:
    engine = lanes.Engine(lanes.tiny("llama"), slots=2)
    engine.stream("The sea", max_tokens=3, ignore_eos=True).result(WAIT)
    engine.stream("The sea", max_tokens=4000, ignore_eos=True)
    views, left = engine.streams(), weakref.ref(engine)
    del engine
    until(lambda: gc.collect() >= 0 and left() is None)
    assert len(views) == 2
