"""The streams widget without a kernel: its tokens, its form, what it keeps and what it leaves alone."""

import gc
import json
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from rigs import WAIT, rig, until
from test_widgets import act

import lanes
from lanes.record import Piece, Round, Rounds, RowsOf, Submitted
from lanes_widgets import Streams
from lanes_widgets.front import module
from lanes_widgets.gained import Gain, Gained
from lanes_widgets.streams import MOST, SHOWN, TOKENS

FORM: dict[str, Any] = {
    "prompt": "The sea",
    "chat": False,
    "max_tokens": 6,
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": "",
    "logprobs": True,
}


@pytest.fixture
def streams(engine: lanes.Engine) -> Iterator[Streams]:
    streams = Streams(engine, hz=50)
    yield streams
    streams.close()
    for view in engine.streams(0):
        engine.cancel(view.id)
    engine.resume()
    engine.wait(WAIT)


class Reader:
    """What a front end has of each stream's tokens: it takes every frame, and asks for what it lacks."""

    def __init__(self, widget: Streams) -> None:
        self.have: dict[int, list[Any]] = {}
        self.largest = 0
        self.most = 0
        self.widget = widget
        self.take({"new": widget.frame})
        widget.observe(self.take, "frame")

    def take(self, change: Any) -> None:
        frame = change["new"]
        self.largest = max(self.largest, len(json.dumps(frame, allow_nan=False)))
        self.most = max(self.most, sum(len(one["tape"]["items"]) for one in frame["streams"]["streams"]))
        for stream in frame["streams"]["streams"]:
            known, cut = self.have.setdefault(stream["id"], []), stream["tape"]
            if cut["from"] > len(known):
                with_ = {"panel": "streams", "tape": f"stream {stream['id']}", "have": len(known)}
                self.widget._acts.put({"id": f"again {time.monotonic_ns()}", "do": "again", "with": with_})
            else:
                known.extend(cut["items"][len(known) - cut["from"] :])

    def whole(self, stream: lanes.Stream) -> list[Any]:
        until(lambda: len(self.have.get(stream.id, [])) == len(stream.tokens))
        return self.have[stream.id]


def told(widget: Streams, id: int) -> dict[str, Any]:
    """A stream in the frame."""
    return next(one for one in widget.frame["streams"]["streams"] if one["id"] == id)


def test_the_tokens_join_to_the_text_and_say_where_they_come_from(engine: lanes.Engine, streams: Streams) -> None:
    reader = Reader(streams)
    made = [engine.stream(f"The sea {n}", max_tokens=40, ignore_eos=True, logprobs=n or None) for n in range(3)]
    for n, stream in enumerate(made):
        text = stream.result(WAIT)
        items = reader.whole(stream)
        assert [item[0] for item in items] == list(stream.tokens)
        assert "".join(item[1] for item in items) + told(streams, stream.id)["rest"] == text
        assert [item[2] for item in items] == [round(each.logprob, 5) for each in stream.logprobs] or n == 0
        assert n or {item[2] for item in items} == {None}
        gave = {done.index for done in engine.rounds for id, _ in done.gains if id == stream.id}
        assert [item[3] for item in items] == sorted(gave)
    assert [one["id"] for one in streams.frame["streams"]["streams"]][:3] == [made[2].id, made[1].id, made[0].id]


def test_a_token_without_text_tells_its_own() -> None:
    with rig(slots=1) as one:
        widget = Streams(one.engine, hz=50)
        plain = one.engine.stream("The sea", max_tokens=9, ignore_eos=True)
        plain.result(WAIT)
        pieces = one.engine.streams()[-1].pieces
        # A token that is new at its place, after which nothing is held back that its end would bring out.
        end = next(plain.tokens[n] for n in range(1, 9) if pieces[n - 1] and plain.tokens[n] not in plain.tokens[:n])
        stream = one.engine.stream("The sea", max_tokens=9, ignore_eos=True, stop_tokens=[end])
        stream.result(WAIT)
        last = Reader(widget).whole(stream)[-1]
        assert (last[0], last[1], last[4]["own"]) == (end, "", one.engine.texts([end])[0])
        widget.close()


def test_long_streams_come_in_small_frames_and_a_late_reader_gets_all(engine: lanes.Engine, streams: Streams) -> None:
    engine.pause()
    made = [engine.stream("word", max_tokens=700, ignore_eos=True, logprobs=0) for _ in range(4)]
    engine.resume()
    for stream in made:
        stream.result(WAIT)
    until(lambda: told(streams, made[0].id)["count"] == 700)
    reader = Reader(streams)  # the kernel has cut these tokens already, or is about to
    for stream in made:
        assert [item[0] for item in reader.whole(stream)] == list(stream.tokens)
    assert 0 < reader.most <= TOKENS
    assert reader.largest < 32_000


def test_states_figures_and_a_paused_engine_s_stillness() -> None:
    with rig(slots=2, piece=8) as one:
        engine, widget = one.engine, Streams(one.engine, hz=50)
        engine.pause()
        made = [engine.stream(prompt, max_tokens=50, ignore_eos=True, seed=7) for prompt in ("Hi", "word " * 60, "Hi")]
        engine.step(3, WAIT)
        until(lambda: [one["state"] for one in widget.frame["streams"]["streams"]] == ["queued", "filling", "live"])
        filled = next(slot.filled for slot in engine.snapshot().slots if slot.id == made[1].id)
        assert filled
        until(lambda: told(widget, made[1].id)["filled"] == filled)  # a frame may be of the middle of the three rounds
        live = told(widget, made[0].id)
        assert (live["count"], live["prompt"], live["seed"]) == (len(made[0].tokens), "Hi", "7")
        assert live["speed"] > 0 and live["ttft"] == round(made[0].timing.ttft, 4)  # pyright: ignore
        until(lambda: told(widget, made[0].id)["tape"]["items"] == [])
        seen: list[Any] = []
        widget.observe(seen.append, "frame")
        time.sleep(0.2)
        assert not seen
        engine.resume()
        assert all(stream.result(WAIT) is not None for stream in made)
        until(lambda: {one["state"] for one in widget.frame["streams"]["streams"]} == {"length"})
        widget.close()


def test_old_streams_leave_and_a_long_queue_shows_its_head() -> None:
    with rig(slots=2) as one:
        engine, widget = one.engine, Streams(one.engine, hz=50)
        for _ in range(SHOWN + 3):
            engine.stream("Hi", max_tokens=1).result(WAIT)
        until(lambda: [s["id"] for s in widget.frame["streams"]["streams"]] == [*range(SHOWN + 2, 2, -1)])
        panel: Any = widget._parts[0]
        assert set(panel.tapes) == {f"stream {id}" for id in range(3, SHOWN + 3)}
        engine.pause()
        for _ in range(MOST + 5):
            engine.stream("Hi", max_tokens=9)
        until(lambda: len(widget.frame["streams"]["streams"]) == MOST)
        until(lambda: widget.frame["streams"]["hidden"] == 5)
        assert widget.frame["streams"]["streams"][-1]["id"] == SHOWN + 3
        widget.close()


def test_the_form_starts_a_stream_as_it_says(engine: lanes.Engine, streams: Streams) -> None:
    assert act(streams, "start", {**FORM, "seed": str(2**64 - 1)})["state"] in ("queued", "running", "done")
    [stream] = streams.started
    same = engine.stream("The sea", max_tokens=6, temperature=0.5, top_p=0.9, seed=2**64 - 1)
    assert (stream.result(WAIT), stream.seed) == (same.result(WAIT), 2**64 - 1)
    assert len(stream.logprobs) == len(stream.tokens) and stream.logprobs[0].top == ()
    act(streams, "start", {**FORM, "logprobs": False, "chat": True})
    second = streams.started[-1]
    second.result(WAIT)
    chat = engine.stream([{"role": "user", "content": "The sea"}], max_tokens=1)
    assert (second.logprobs, second.prompt_tokens) == ((), chat.prompt_tokens)
    assert second.seed != stream.seed


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("max_tokens", None, "max_tokens must be a valid integer"),
        ("max_tokens", 0, "max_tokens must be"),
        ("temperature", -1, "temperature must be"),
        ("temperature", "hot", "temperature must be a valid number"),
        ("top_p", 0, "top_p must be"),
        ("seed", "abc", "seed must be"),
        ("seed", str(2**64), "seed must be"),
        ("seed", "9" * 5000, "seed must be"),
        ("prompt", "", "the prompt is empty"),
        ("chat", "yes", "chat must be a valid boolean"),
    ],
)
def test_a_bad_value_is_refused_with_its_name(streams: Streams, field: str, value: Any, why: str) -> None:
    fate = act(streams, "start", {**FORM, field: value})
    assert fate["state"] == "refused" and fate["why"].startswith(why)
    assert streams.started == ()


def test_a_stream_is_dropped_wherever_it_is(engine: lanes.Engine, streams: Streams) -> None:
    engine.pause()
    live = engine.stream("The sea", max_tokens=4000, ignore_eos=True)
    engine.step(2, WAIT)
    queued = engine.stream("The sea", max_tokens=4000, ignore_eos=True)
    decision = engine.score("Is it so?", [" yes", " no"])
    for stream in (live, queued):
        assert act(streams, "drop", {"id": stream.id})["state"] == "done"
        assert stream.wait(WAIT) and stream.finish_reason == "cancelled"
        assert "has ended already" in act(streams, "drop", {"id": stream.id})["why"]
    assert act(streams, "drop", {"id": decision.id})["state"] == "refused"
    assert told(streams, live.id)["error"] is None
    engine.resume()
    assert decision.result(WAIT).choice


def test_its_record_is_text_and_marked_html(engine: lanes.Engine, streams: Streams) -> None:
    made = engine.stream("<b>&", max_tokens=8, ignore_eos=True, logprobs=0)
    text = made.result(WAIT)
    record, again = streams.record(), streams.record()
    assert repr(record) == repr(again)
    assert f"Stream {made.id}, length: {made.prompt_tokens} prompt tokens, 8 tokens\n{text}" in repr(record)
    html = record._repr_html_()
    own = html[html.index(f"Stream {made.id}") :]
    assert own.count("<span title=") == 8 and "<script" not in html and "&lt;b&gt;&amp;" in html
    [last] = [done.index for done in engine.rounds if any(end.id == made.id for end in done.finished)]
    assert f"round {last}" in own and f"token {made.tokens[0]} " in own
    nothing = Streams(empty := lanes.Engine(lanes.tiny("llama"), slots=1))
    assert repr(nothing.record()) == "No streams yet."
    nothing.close()
    empty.close()


def test_a_closed_widget_holds_no_engine_and_no_stream() -> None:
    engine = lanes.Engine(lanes.tiny("llama"), slots=2)
    widget, left = Streams(engine), weakref.ref(engine)
    act(widget, "start", {**FORM, "max_tokens": 4000})
    widget.close()
    del engine
    until(lambda: gc.collect() >= 0 and left() is None)
    assert widget.started == () and repr(widget) == "Streams(closed)"


def test_rounds_of_tokens_are_read_with_drafts_and_unknown_once_forgotten() -> None:
    record, gained = Rounds(slots=2, keep=3), Gained()

    def happens(*rows: RowsOf, new: int | None = None, piece: Piece | None = None) -> None:
        index = record.next_index
        submitted = () if new is None else (Submitted(new, "stream", 3, index),)
        record.append(Round(index, index, index + 0.5, 8, groups=1, rows=rows, piece=piece, submitted=submitted))

    happens(new=1, piece=Piece(0, 1, 0, 3, 1))
    happens(RowsOf(0, 1, "decode", 1, 1), RowsOf(0, 1, "draft", 3, 2), new=2)
    gained.read(record)
    found = gained.of(1)
    assert found and found.tokens == [Gain(0, False), Gain(1, False), Gain(1, True), Gain(1, True)]
    assert (found.rejected, found.last) == (1, 1.5)
    happens(RowsOf(1, 2, "tail", 3, 1))
    gained.read(record)
    gained.forget_but([2])
    assert gained.of(1) is None and gained.of(2).tokens == [Gain(2, False)]  # pyright: ignore
    for _ in range(5):
        happens(RowsOf(1, 2, "decode", 1, 1))
    gained.read(record)
    assert gained.of(2) is None, "two of its tokens are no longer in the record"


def test_the_front_end_is_one_module() -> None:
    code = module("board", "streams")
    assert code.count("export default") == 1 and "innerHTML" not in code and "import " not in code
