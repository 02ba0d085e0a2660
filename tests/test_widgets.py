"""The widgets without a kernel: what they show, what they take, and that nothing is left of them."""

import asyncio
import gc
import json
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances
from rigs import WAIT

import lanes
import lanes_widgets
from lanes_widgets import Board, Workbench
from lanes_widgets.acts import Acts
from lanes_widgets.board import BoardPanel
from lanes_widgets.front import module, style
from lanes_widgets.still import REMEDY
from lanes_widgets.view import SHARE

LONG: dict[str, Any] = {"max_tokens": 4000, "ignore_eos": True}
FORM: dict[str, Any] = {
    "prompt": "The sea", "chat": False, "max_tokens": 5, "temperature": 0.0, "top_p": 1.0, "seed": "", "logprobs": True,
}  # fmt: skip


@pytest.fixture
def board(engine: lanes.Engine) -> Iterator[Board]:
    board = Board(engine, hz=50)
    yield board
    board.close()
    engine.pace(None)
    engine.resume()


def until(true: Callable[[], Any]) -> bool:
    """Wait for something that another thread does."""
    end = time.monotonic() + WAIT
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(true())


def act(board: Any, do: str, given: Any = None, id: str = "") -> dict[str, str]:
    """What a click sends, and what became of it."""
    id = id or f"{do}-{time.monotonic_ns()}"
    board._handle_custom_msg({"id": id, "do": do, "with": given or {}}, [])
    found: list[dict[str, str]] = []

    def told() -> bool:
        found[:] = [one for one in board.frame["acts"] if one["id"] == id]
        return bool(found)

    assert until(told)
    return found[0]


def publishers() -> int:
    return sum(thread.name == "lanes-publisher" for thread in threading.enumerate())


def test_a_board_shows_its_engine_and_catches_up(engine: lanes.Engine, board: Board) -> None:
    frame = board.frame
    assert [slot["state"] for slot in frame["board"]["slots"]] == ["free"] * 8
    assert not frame["closed"] and not frame["trouble"]
    engine.pause()
    stream = engine.stream("The sea", max_tokens=5, ignore_eos=True)
    assert until(lambda: board.frame["board"]["waiting"] or board.frame["board"]["paused"])
    engine.resume()
    stream.result(WAIT)
    total = engine.snapshot().totals.tokens
    assert until(lambda: board.frame["board"]["tokens"] == total), "the last frame is exact"
    assert f"Stream {stream.id} has all the tokens it asked for." in board.frame["board"]["said"]
    json.dumps(board.frame, allow_nan=False)


def test_the_gap_is_the_median_of_the_record_s_last_ones(engine: lanes.Engine, board: Board) -> None:
    engine.pause()
    stream = engine.stream("The sea", **LONG)
    assert engine.step(60) == 60
    own = engine.rounds.gaps(stream.id)[stream.id]
    assert len(own) > 32
    assert until(lambda: board.frame["board"]["round"] == engine.rounds.next_index)
    [slot] = [slot for slot in board.frame["board"]["slots"] if slot["id"] == stream.id]
    assert slot["gap"] == round(median(own[-32:]), 3)
    stream.cancel()


def test_a_pause_slows_no_stream_down(engine: lanes.Engine, board: Board) -> None:
    stream = engine.stream("Hi", max_tokens=200, ignore_eos=True)
    assert until(lambda: len(stream.tokens) > 3)
    engine.pause()
    speed = BoardPanel(engine).picture()["slots"][0]["speed"]
    time.sleep(0.3)
    assert BoardPanel(engine).picture()["slots"][0]["speed"] == speed


def test_nothing_is_written_while_nothing_happens(board: Board) -> None:
    seen: list[Any] = []
    assert until(lambda: board.frame["board"]["rate"] == 0)
    board.observe(seen.append, "frame")
    time.sleep(0.3)
    assert not seen


def test_pause_one_round_resume(engine: lanes.Engine, board: Board) -> None:
    assert act(board, "pause")["state"] == "done"
    assert engine.snapshot().paused
    stream = engine.stream("The sea", **LONG)
    before = engine.rounds.next_index
    assert act(board, "step")["state"] == "done"
    assert engine.rounds.next_index > before
    assert engine.snapshot().paused
    act(board, "resume")
    assert not engine.snapshot().paused
    assert act(board, "cancel", {"id": stream.id})["state"] == "done"
    assert stream.wait(WAIT) and stream.finish_reason == "cancelled"


def test_the_pace_is_halved_and_doubled(engine: lanes.Engine, board: Board) -> None:
    paces = []
    for command in ("slower", "slower", "faster", "faster", "faster", "faster", "faster"):
        act(board, command)
        paces.append(engine.snapshot().pace)
    assert paces == [8, 4, 8, 16, 32, 64, None]


@pytest.mark.parametrize(
    ("do", "given", "why"),
    [
        ("explode", {}, "no such command"),
        ("cancel", {}, "id: Missing"),
        ("cancel", {"id": "1"}, "id must be a valid integer"),
        ("cancel", {"id": 10**9}, "has ended already"),
        ("cancel", {"id": 1, "more": 2}, "more"),
        ("pause", [1], "must be an object"),
        ("__init__", {}, "no such command"),
    ],
)
def test_what_cannot_be_done_is_refused_and_says_why(board: Board, do: str, given: Any, why: str) -> None:
    told = act(board, do, given)
    assert told["state"] == "refused"
    assert why in told["why"]


@pytest.mark.parametrize("message", [None, 3, [], "pause", {}, {"id": 3}, {"id": None, "do": "pause"}])
def test_what_is_no_act_is_left_alone(engine: lanes.Engine, board: Board, message: Any) -> None:
    board._handle_custom_msg(message, [])
    assert act(board, "resume")["state"] == "done"
    assert not board.frame["trouble"]


def test_an_act_that_takes_time_is_followed_to_its_end(engine: lanes.Engine) -> None:
    asked: list[Any] = []

    def ask(prompt: str) -> Any:
        asked.append(engine.score(prompt, [" yes", " no"]))
        return asked[-1]

    acts = Acts({"ask": ask})
    engine.pause()
    acts.put({"id": "a", "do": "ask", "with": {"prompt": "Is it so?"}})
    acts.work()
    assert [one["state"] for one in acts.to_list()] == ["queued"]
    engine.resume()
    asked[0].result(WAIT)
    acts.work()
    assert [one["state"] for one in acts.to_list()] == ["done"]


def test_a_panel_that_fails_says_so_and_the_board_goes_on(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    panel: Any = board._parts[0]
    picture = panel.picture
    monkeypatch.setattr(panel, "picture", lambda: 1 // 0)
    assert until(lambda: "ZeroDivisionError" in board.frame["trouble"])
    monkeypatch.setattr(panel, "picture", picture)
    assert until(lambda: not board.frame["trouble"])


def test_frames_that_take_long_come_less_often(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    writer: Any = board._publisher
    writer.leave(board)  # from here on this test is the publisher
    panel: Any = board._parts[0]
    picture = panel.picture

    def slowly() -> Any:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return picture()

    monkeypatch.setattr(panel, "picture", slowly)
    board.publish(1e9)
    assert board.due >= 1e9 + 0.02 / SHARE
    monkeypatch.setattr(panel, "picture", picture)
    board.publish(2e9)
    assert board.due >= 2e9 + 1 / 50


def test_a_widget_that_cannot_be_written_takes_no_other_with_it(
    engine: lanes.Engine, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Board(engine, hz=50)

    def fail(now: float) -> None:
        raise OSError("the channel is gone")

    monkeypatch.setattr(broken, "publish", fail)
    engine.stream("The sea", max_tokens=3).result(WAIT)
    total = engine.snapshot().totals.tokens
    assert until(lambda: board.frame["board"]["tokens"] == total)
    assert act(board, "pause")["state"] == "done"
    broken.close()


def test_a_notebook_can_do_what_a_person_does(engine: lanes.Engine, board: Board) -> None:
    asyncio.run(board.act("pause"))
    assert engine.snapshot().paused
    asyncio.run(board.act("resume"))
    with pytest.raises(lanes.InvalidRequest, match="cancel was refused: request 1000000000 has ended"):
        asyncio.run(board.act("cancel", id=10**9))
    board.close()
    with pytest.raises(lanes.EngineClosed, match="pause was not done"):
        asyncio.run(board.act("pause"))


def test_the_workbench_is_all_of_them_in_one_message(engine: lanes.Engine) -> None:
    with_all = Workbench(engine, hz=50)
    assert with_all.panels == ["board", "timeline", "streams", "desk"] and set(with_all.panels) <= set(with_all.frame)
    asyncio.run(with_all.act("start", **FORM))
    asyncio.run(with_all.act("ask", prompt="Is it so?", labels=[" yes", " no"]))
    assert until(lambda: not with_all.frame["trouble"] and with_all.last is not None)
    want = engine.score("Is it so?", [" yes", " no"], top=8).result(WAIT)
    assert with_all.last and isinstance(with_all.last.result, lanes.Scored)
    assert with_all.last.result.logits.tobytes() == want.logits.tobytes()
    assert next(shown["count"] for shown in with_all.frame["streams"]["streams"]) == 5
    assert "Timeline" in with_all.record().text and "<script" not in with_all.record().html
    with_all.close()
    assert len(with_all.history) == 1 and repr(with_all) == "Workbench(closed)"


def test_what_was_given_up_counts_as_done(engine: lanes.Engine) -> None:
    engine.pause()
    acts = Acts({"start": lambda: engine.stream("The sea", **LONG)})
    acts.put({"id": "a", "do": "start"})
    acts.work()
    assert acts.to_list()[0]["state"] == "queued"
    engine.cancel(engine.streams()[-1].id)
    engine.resume()
    assert engine.wait(WAIT)
    acts.work()
    assert acts.to_list()[0] == {"id": "a", "do": "start", "state": "done", "why": ""}


def test_the_engines_end_is_the_last_picture() -> None:
    engine = lanes.Engine(lanes.tiny("llama"), slots=2)
    board = Board(engine, hz=50)
    engine.close()
    assert until(lambda: board.frame["closed"])
    assert until(lambda: board._publisher is None)
    board.close()
    board.close()


def test_the_last_picture_waits_for_what_ends_with_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = lanes.Engine(lanes.tiny("llama"), slots=2)
    board = Board(engine, hz=50)
    late = threading.Event()
    panel: Any = board._parts[0]
    picture = panel.picture
    monkeypatch.setattr(type(panel), "open", property(lambda _: not late.is_set()))
    monkeypatch.setattr(panel, "picture", lambda: {**picture(), "late": late.is_set()})
    engine.close()
    assert until(lambda: board.frame["closed"])
    assert board._publisher is not None
    late.set()
    assert until(lambda: board._publisher is None)
    assert board.frame["board"]["late"]
    board.close()


def test_fifty_boards_leave_nothing_behind(engine: lanes.Engine) -> None:
    before = set(_instances)
    boards = [Board(engine) for _ in range(50)]
    assert publishers() == 1
    left = [weakref.ref(board) for board in boards]
    for board in boards:
        board.close()
    del boards, board
    assert set(_instances) == before
    assert until(lambda: not publishers())
    assert until(lambda: gc.collect() >= 0 and not any(ref() for ref in left))


def test_a_closed_board_holds_no_engine() -> None:
    engine = lanes.Engine(lanes.tiny("llama"), slots=2)
    board, left = Board(engine), weakref.ref(engine)
    board.close()
    del engine
    assert until(lambda: gc.collect() >= 0 and left() is None)
    assert repr(board) == "Board(closed)"


def test_its_other_forms(engine: lanes.Engine, board: Board) -> None:
    assert repr(board) == f"Board({engine!r})"
    record = board.record()
    assert repr(record).startswith("Snapshot after round") and "slot  state" in repr(record)
    assert "<script" not in record._repr_html_() and "http" not in record._repr_html_()
    bundle: Any = board._repr_mimebundle_()
    assert bundle[0]["text/plain"] == repr(board)
    assert bundle[0]["text/html"] == board.record()._repr_html_()
    assert "application/vnd.jupyter.widget-view+json" in bundle[0]


def test_only_an_engine_can_be_shown() -> None:
    nothing: Any = 3
    with pytest.raises(lanes.InvalidRequest, match=r"shows an engine, not int"):
        Board(nothing)


@pytest.mark.parametrize("hz", [0, -1, float("nan"), "fast"])
def test_a_rate_that_cannot_be_is_refused(engine: lanes.Engine, hz: Any) -> None:
    before = len(_instances)
    with pytest.raises(lanes.InvalidRequest, match="hz"):
        Board(engine, hz=hz)
    assert len(_instances) == before


@pytest.mark.parametrize("name", lanes_widgets.__all__)
def test_without_ipywidgets_the_same_is_shown_and_stands_still(
    engine: lanes.Engine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.stream("The sea", max_tokens=3, ignore_eos=True).result(WAIT)
    live = getattr(lanes_widgets, name)(engine)
    record = live.record()
    live.close()
    for path in [path for path in sys.modules if path.startswith("lanes_widgets.")]:
        monkeypatch.delitem(sys.modules, path)
        package, _, part = path.rpartition(".")
        if package == "lanes_widgets":
            monkeypatch.setattr(lanes_widgets, part, getattr(lanes_widgets, part))  # set back when the test is over
    monkeypatch.setitem(sys.modules, "anywidget", None)
    still = getattr(lanes_widgets, name)(engine)
    assert repr(still) == f"{record.text}\n{REMEDY}"
    assert record.html in still._repr_html_() and REMEDY in still._repr_html_()
    with pytest.raises(lanes.InvalidRequest, match="stands still"):
        asyncio.run(still.act("pause"))
    still.close()
    assert repr(still) == f"{name}(closed)"


def test_the_front_end_asks_for_nothing_from_outside() -> None:
    code = module("board") + style()
    assert "http" not in code and "import " not in code and "url(" not in code
    assert module("board").count("export default") == 1
