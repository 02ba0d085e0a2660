"""The desk without a kernel: what its front end sends, and that the answers are those of `lanes` itself."""

import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from rigs import FOREVER, WAIT, until
from test_widgets import act

import lanes
from lanes_widgets import Desk
from lanes_widgets.desk import past
from lanes_widgets.desk.wishes import Raw, Typed
from lanes_widgets.errand import NAME, Latest
from lanes_widgets.front import module

PROMPT = "Review: The room was cold.\nSentiment:"
RAW: dict[str, Any] = {"prompt": PROMPT, "labels": [" positive", " negative"]}
TEAM = {"name": "team", "kind": "choice", "instructions": "Which team?", "options": [
    {"key": "billing", "text": "Charges"}, {"key": "other", "text": ""}]}  # fmt: skip
ANGRY = {"name": "angry", "kind": "noul", "instructions": "Angry?", "options": [
    {"key": "true", "text": "Any anger"}, {"key": "false", "text": ""}]}  # fmt: skip
URGENT = {"name": "urgent", "kind": "score", "instructions": "How urgent?", "options": [
    {"key": "", "text": "It can wait"}, {"key": "", "text": "Today"}]}  # fmt: skip
TYPED: dict[str, Any] = {"state": "I was charged twice!", "questions": [TEAM, ANGRY, URGENT]}
QUESTIONS = {
    "team": lanes.Choice("Which team?", {"billing": "Charges", "other": None}),
    "angry": lanes.Noul("Angry?", {"true": "Any anger"}),
    "urgent": lanes.Score("How urgent?", ["It can wait", "Today"]),
}


@pytest.fixture
def desk(engine: lanes.Engine) -> Iterator[Desk]:
    desk = Desk(engine, hz=50)
    yield desk
    desk.close()
    engine.resume()
    until(lambda: not workers())


def workers() -> int:
    return sum(thread.name == NAME for thread in threading.enumerate())


def answered(desk: Desk, do: str, given: Any) -> past.Entry:
    """Ask as the front end does, and wait for the entry."""
    before = desk.last
    told = act(desk, do, given)
    assert told["state"] != "refused", told["why"]
    until(lambda: desk.last is not before)
    assert desk.last is not None
    return desk.last


def refused(desk: Desk, do: str, given: Any) -> str:
    """Why it is refused in the end."""
    id = act(desk, do, given)["id"]
    found: list[dict[str, str]] = []

    def ended() -> bool:
        found[:] = [one for one in desk.frame["acts"] if one["id"] == id and one["state"] in ("done", "refused")]
        return bool(found)

    until(ended)
    assert found[0]["state"] == "refused"
    return found[0]["why"]


def look(desk: Desk, do: str, **given: Any) -> dict[str, Any]:
    """What the desk says of a draft."""
    assert act(desk, do, {"view": "v", "draft": 1, **given})["state"] == "done"
    until(lambda: "v" in desk.frame["desk"]["looks"])
    return desk.frame["desk"]["looks"]["v"]


@pytest.mark.parametrize(
    "prompt", [PROMPT, [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Is it good?"}]]
)
def test_a_raw_decision_has_the_bits_of_score(engine: lanes.Engine, desk: Desk, prompt: Any) -> None:
    labels = ["yes", "no"] if isinstance(prompt, list) else RAW["labels"]
    entry = answered(desk, "ask", {"prompt": prompt, "labels": labels})
    plain = engine.score(prompt, labels, top=8).result(WAIT)
    assert isinstance(entry.result, lanes.Scored)
    assert entry.result.logits.tobytes() == plain.logits.tobytes()
    assert entry.result.logsumexp == plain.logsumexp and entry.result.top == plain.top
    [part] = entry.parts
    assert dict(part.shares) == dict(plain) and part.choice == plain.choice and part.label_mass == plain.label_mass
    assert [(one.text, one.probability) for one in part.likelier] == list(
        zip(engine.texts([token for token, _ in plain.top]), [p for _, p in plain.top], strict=True)
    )
    assert entry.state == "answered" and entry.timing and entry.timing.seconds


@pytest.mark.parametrize(
    "manner", [{}, {"method": "labels"}, {"orders": "auto", "prior": "contextual", "abstain": True}]
)
def test_a_typed_decision_has_the_bits_of_ask(engine: lanes.Engine, desk: Desk, manner: Any) -> None:
    entry = answered(desk, "ask_typed", {**TYPED, **manner})
    plain = lanes.ask(engine, TYPED["state"], QUESTIONS, **manner).result(WAIT)
    assert isinstance(entry.result, lanes.Answers)
    assert [part.name for part in entry.parts] == ["team", "angry", "urgent"]
    for part in entry.parts:
        own = plain[part.name]
        assert entry.result[part.name].logs.tobytes() == own.logs.tobytes()
        assert dict(part.shares) == dict(own) and part.label_mass == own.label_mass and part.abstain == own.abstain
        assert part.orders == own.orders and part.prompt == own.prompt


def test_a_state_is_sent_as_text_or_read_as_json(engine: lanes.Engine, desk: Desk) -> None:
    given = {"state": '{"paid": 2.0}', "questions": [ANGRY]}
    for as_json, state in ((True, {"paid": 2.0}), (False, '{"paid": 2.0}')):
        entry = answered(desk, "ask_typed", {**given, "as_json": as_json})
        plain = lanes.ask(engine, state, {"angry": QUESTIONS["angry"]}).result(WAIT)
        assert entry.parts[0].prompt == plain["angry"].prompt


def test_tokens_that_are_labels_are_marked(desk: Desk) -> None:
    tops = answered(desk, "ask", RAW).parts[0].likelier
    first, second = [one.text for one in tops if one.text.isascii() and one.text.strip().isalpha()][:2]
    again = answered(desk, "ask", {"prompt": PROMPT, "labels": [first, first + " no", second + " no"]})
    marks = {one.text: one.mark for one in again.parts[0].likelier}
    assert marks == {**dict.fromkeys((one.text for one in tops), ""), first: "label", second: "begins"}


def test_the_slot_is_that_of_the_record(engine: lanes.Engine, desk: Desk) -> None:
    streams = [engine.stream("The sea", max_tokens=FOREVER, ignore_eos=True) for _ in range(4)]
    until(lambda: all(one.state == "live" for one in streams))
    entry = answered(desk, "ask", RAW)
    [slot] = {new.slot for done in engine.rounds for new in done.admitted if new.id == entry.id}
    assert entry.slot == slot
    for one in streams:
        one.cancel()


def test_one_on_its_way_is_shown_and_can_be_withdrawn(engine: lanes.Engine, desk: Desk) -> None:
    engine.pause()
    assert act(desk, "ask", RAW)["state"] == "queued"
    until(lambda: [one["state"] for one in desk.frame["desk"]["running"] if one["id"]] == ["queued"])
    [shown] = desk.frame["desk"]["running"]
    assert act(desk, "withdraw", {"number": shown["number"]})["state"] == "done"
    until(lambda: desk.last is not None)
    assert desk.last and desk.last.state == "cancelled" and not desk.last.parts
    until(lambda: not desk.frame["desk"]["running"])
    assert act(desk, "withdraw", {"number": shown["number"]})["state"] == "refused"


def test_a_live_one_gives_way_to_the_next(engine: lanes.Engine, desk: Desk) -> None:
    engine.pause()
    for end in ("a", "b", "c"):
        act(desk, "ask", {**RAW, "prompt": f"Now {end}:", "live": True})
    act(desk, "ask", RAW)
    until(lambda: [bool(one["id"]) for one in desk.frame["desk"]["running"]] == [True, True])
    engine.resume()
    until(lambda: len(desk.past.entries) == 2)
    assert {entry.wish.short for entry in desk.past.entries} == {"Now c:", " ".join(PROMPT.split())}
    assert {entry.state for entry in desk.past.entries} == {"answered"}
    assert engine.wait(WAIT)
    assert all(slot.state == "free" for slot in engine.snapshot().slots)
    reasons = [end.reason for done in engine.rounds for end in done.finished]
    assert reasons.count("cancelled") >= 2


def test_a_live_one_that_fills_is_cancelled_and_its_slot_freed(engine: lanes.Engine, desk: Desk) -> None:
    engine.pause()
    act(desk, "ask", {"prompt": "word " * 200, "labels": [" yes", " no"], "live": True})
    until(lambda: desk.frame["desk"]["running"] and desk.frame["desk"]["running"][0]["id"])
    assert engine.step(1) == 1
    until(lambda: desk.frame["desk"]["running"][0]["state"] == "filling")
    first = desk.frame["desk"]["running"][0]["id"]
    assert desk.frame["desk"]["running"][0]["slot"] is not None
    act(desk, "ask", {**RAW, "live": True})
    engine.resume()
    until(lambda: desk.last is not None)
    [end] = [end for done in engine.rounds for end in done.finished if end.id == first]
    assert end.reason == "cancelled" and end.slot is not None
    assert [entry.wish.to_dict() for entry in desk.past.entries] == [RAW]


@pytest.mark.parametrize("labels", [["x", "x"], [], [" yes", ""], [" yes"] * 300])
def test_what_lanes_refuses_is_refused_in_its_words(engine: lanes.Engine, desk: Desk, labels: list[str]) -> None:
    with pytest.raises(lanes.InvalidRequest) as error:
        engine.score(PROMPT, labels)
    assert refused(desk, "ask", {"prompt": PROMPT, "labels": labels}) == str(error.value)
    assert desk.last is None and not desk.frame["desk"]["running"] and not desk.frame["trouble"]
    assert answered(desk, "ask", RAW).number == 1, "what is refused takes no number"
    assert look(desk, "look", prompt=PROMPT, labels=labels)["tokens"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"questions": []}, "at least one"),
        ({"questions": [TEAM, TEAM]}, "two questions have the name 'team'"),
        ({"questions": [{**TEAM, "options": [{"key": "a", "text": ""}] * 2}]}, "'a' is there twice"),
        ({"questions": [{**TEAM, "options": []}]}, "a choice has 2 to 255 options"),
        ({"questions": [{**TEAM, "kind": "poem"}]}, "questions.0.kind"),
        ({"state": ""}, "the state is empty"),
        ({"state": "{", "as_json": True}, "the state is no JSON"),
        ({"method": "dice"}, "method must be one of"),
        ({"orders": 0}, "orders"),
        ({"state": "half a \ud83d"}, "holds half a character"),
        ({"prior": "domain"}, "needs texts of your own"),
    ],
)
def test_typed_questions_that_cannot_be_asked(desk: Desk, change: dict[str, Any], why: str) -> None:
    assert why in refused(desk, "ask_typed", {**TYPED, **change})
    assert desk.last is None


def test_the_tokens_of_a_draft_are_those_of_the_engine(engine: lanes.Engine, desk: Desk) -> None:
    labels = [" positive", " no", " nothing"]
    report = lanes.inspect_labels(engine, PROMPT, labels)
    seen = look(desk, "look", prompt=PROMPT, labels=labels)
    assert seen["tokens"] == report.prompt_tokens and not seen["fault"]
    assert [[id for id, _ in one["pieces"]] for one in seen["labels"]] == [list(one.tokens) for one in report.labels]
    assert "".join(piece for _, piece in seen["labels"][0]["pieces"]) == " positive"
    assert seen["ending"] == [[one.id, one.text] for one in report.ending[-6:]]
    before = engine.rounds.next_index
    look(desk, "look", prompt=PROMPT, labels=labels)
    assert engine.rounds.next_index == before, "nothing is run for a look"


def test_the_faults_of_a_draft_are_in_the_words_of_lanes(engine: lanes.Engine, desk: Desk) -> None:
    labels = ["e", " yes", " yes", "", " yes sir"]
    seen = look(desk, "look", prompt="Say th", labels=labels)
    report = lanes.inspect_labels(engine, "Say th", labels)
    assert [one["fault"] for one in seen["labels"]] == [one.verdict.fault for one in report.labels]
    assert [one["problem"] for one in seen["labels"]] == [one.verdict.problem for one in report.labels]
    assert seen["labels"][0]["problem"] == "merges"
    assert report.refusal in (seen["fault"], *(one["fault"] for one in seen["labels"]))
    assert "the model's end token tells them apart" in seen["labels"][1]["note"]


def test_a_prompt_that_is_too_long_or_empty_is_said_while_typing(engine: lanes.Engine, desk: Desk) -> None:
    assert "than the context of" in look(desk, "look", prompt="word " * 5000, labels=[" a"])["fault"]
    until(lambda: not desk._acts.waiting)
    act(desk, "look", {"view": "v", "draft": 2, "prompt": "", "labels": [" a"]})
    until(lambda: desk.frame["desk"]["looks"]["v"]["draft"] == 2)
    assert desk.frame["desk"]["looks"]["v"]["fault"] == "the prompt is empty: pass at least one character"


def test_half_a_character_can_be_shown(desk: Desk) -> None:
    seen = look(desk, "look", prompt=PROMPT, labels=[" a", "\ud83d"])
    assert "half a character" in seen["labels"][1]["fault"]
    json.dumps(desk.frame, ensure_ascii=False).encode()
    act(desk, "look_typed", {**TYPED, "view": "w", "draft": 1, "questions": [{**TEAM, "name": "\ud83d"}]})
    until(lambda: "w" in desk.frame["desk"]["looks"])
    json.dumps(desk.frame, ensure_ascii=False).encode()


def test_a_typed_draft_shows_what_would_be_read(engine: lanes.Engine, desk: Desk) -> None:
    seen = look(desk, "look_typed", **TYPED)
    plain = lanes.ask(engine, TYPED["state"], QUESTIONS).result(WAIT)
    assert [one["tokens"] for one in seen["questions"]] == [answer.prompt_tokens for answer in plain.values()]
    assert [[one["text"] for one in question["labels"]] for question in seen["questions"]] == [
        list(answer.labels) for answer in plain.values()
    ]
    assert 0 < seen["shared"] < min(answer.prompt_tokens for answer in plain.values())
    act(desk, "look_typed", {**TYPED, "view": "v", "draft": 2, "questions": [URGENT, {**TEAM, "options": []}]})
    until(lambda: desk.frame["desk"]["looks"]["v"]["draft"] == 2)
    assert desk.frame["desk"]["looks"]["v"]["fault"] == "a choice has 2 to 255 options, not 0"


def test_the_inspector_can_be_given_up(engine: lanes.Engine, desk: Desk) -> None:
    engine.pause()
    told = act(desk, "inspect", {"view": "v", **RAW})
    assert told["state"] == "running"
    until(lambda: engine.snapshot().waiting)
    assert desk.frame["desk"]["inspection"]["running"]
    act(desk, "inspect_no_more")
    engine.resume()
    until(lambda: not workers())
    assert desk.frame["desk"]["inspection"] is None
    act(desk, "inspect", {"view": "v", **RAW})
    until(lambda: not desk.frame["desk"]["inspection"]["running"])
    shown, report = desk.frame["desk"]["inspection"], lanes.inspect_labels(engine, PROMPT, RAW["labels"])
    assert [pair[0] for pair in shown["top"]] == [one.text for one in report.top]
    assert [one["text"] for one in shown["suggestions"]] == [one.text for one in report.suggestions]
    json.dumps(desk.frame, allow_nan=False)


def test_the_latest_wish_is_what_is_found() -> None:
    latest, gate = Latest(2), threading.Event()
    done: list[int] = []
    latest.want("a", lambda: gate.wait(WAIT))
    until(lambda: not latest._wanted)
    for n in range(20):
        latest.want("b", lambda n=n: done.append(n) or n)
    latest.want("c", lambda: "c")
    gate.set()
    until(lambda: not workers())
    assert done == [19] and latest.found == {"b": 19, "c": "c"}


def test_the_history_is_a_frame(engine: lanes.Engine, desk: Desk) -> None:
    assert list(desk.history.columns) == list(past.COLUMNS) and len(desk.history) == 0
    one, many = answered(desk, "ask", RAW), answered(desk, "ask_typed", TYPED)
    frame = desk.history
    assert frame.number.tolist() == [1, 2, 2, 2] and frame.name.tolist() == ["", "team", "angry", "urgent"]
    assert frame.probabilities[0] == dict(one.parts[0].shares)
    assert frame.label_mass.tolist() == [part.label_mass for part in (*one.parts, *many.parts)]
    assert (frame.total_s > 0).all() and sorted(frame["at"]) == list(frame["at"])
    assert frame.slot.notna().all() and set(frame.state) == {"answered"}


def test_the_front_end_gets_each_entry_once_and_what_is_forgotten_is_gone(desk: Desk) -> None:
    seen: dict[int, Any] = {}

    def take(change: Any) -> None:
        cut = change["new"]["desk"]["done"]
        seen.update({cut["from"] + at: item for at, item in enumerate(cut["items"])})

    desk.observe(take, "frame")
    for _ in range(6):
        answered(desk, "ask", RAW)
    until(lambda: len(seen) == 6)
    assert [seen[at]["number"] for at in range(6)] == [1, 2, 3, 4, 5, 6]
    assert seen[0]["asked"] == RAW
    act(desk, "forget")
    until(lambda: desk.frame["desk"]["gone"] == 6)
    assert not desk.past.entries and len(desk.history) == 0
    assert act(desk, "word", {"number": 1, "form": "python", "view": "v"})["state"] == "refused"
    answered(desk, "ask", RAW)
    until(lambda: len(seen) == 7)
    assert seen[6]["number"] == 7


def test_a_page_that_comes_after_all_was_forgotten_asks_for_nothing(desk: Desk) -> None:
    for _ in range(6):
        answered(desk, "ask", RAW)
    act(desk, "forget")
    act(desk, "again", {"panel": "desk", "tape": "done", "have": 0})
    until(lambda: desk.frame["desk"]["gone"] == 6)
    cut = desk.frame["desk"]["done"]
    assert cut["from"] <= max(0, cut["gone"]), "else it would ask again and again"
    answered(desk, "ask", RAW)
    until(lambda: desk.frame["desk"]["done"]["from"] == 6)
    assert desk.frame["desk"]["done"]["gone"] == 6


def test_a_busy_tokenizer_holds_up_no_picture(engine: lanes.Engine, desk: Desk) -> None:
    held, free = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        held.set()
        assert free.wait(WAIT)

    keeper = threading.Thread(target=lambda: engine.use_tokenizer(hold))
    keeper.start()
    assert held.wait(WAIT)
    try:
        assert act(desk, "ask", RAW)["state"] == "queued"
        assert act(desk, "look", {"view": "v", "draft": 1, **RAW})["state"] == "done"
        assert act(desk, "inspect", {"view": "v", **RAW})["state"] == "running"
        assert desk.frame["desk"]["running"][0]["state"] == "queued"
    finally:
        free.set()
        keeper.join()
    until(lambda: desk.last and desk.frame["desk"]["looks"] and not workers())


def test_a_look_that_fails_is_told_and_the_next_one_comes(
    engine: lanes.Engine, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lanes_widgets.desk import panel

    with monkeypatch.context() as broken:
        broken.setattr(panel, "look_raw", lambda *_: 1 // 0)
        assert "division" in look(desk, "look", **RAW)["fault"]
    act(desk, "look", {"view": "v", "draft": 2, **RAW})
    until(lambda: desk.frame["desk"]["looks"]["v"]["draft"] == 2)
    assert desk.frame["desk"]["looks"]["v"]["tokens"]


def test_only_so_many_entries_are_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "KEEP", 3)
    entries = [answered(desk, "ask", RAW) for _ in range(5)]
    assert list(desk.past.entries) == entries[2:] and desk.past.gone == 2


def test_a_frame_stays_small(desk: Desk) -> None:
    for _ in range(8):
        answered(desk, "ask_typed", TYPED)
    look(desk, "look", prompt=PROMPT, labels=[f" label {n}" for n in range(40)])
    assert len(json.dumps(desk.frame)) < 16_000


def worded(desk: Desk, entry: past.Entry, form: str) -> str:
    act(desk, "word", {"number": entry.number, "form": form, "view": "v"})
    until(lambda: (desk.frame["desk"]["worded"] or {}).get("form") == form)
    return desk.frame["desk"]["worded"]["text"]


ODD = 'It\'s "so":\n\\ ☃ $HOME `x`\nand\r\n\u2028?'


def test_the_python_of_a_raw_decision_gives_the_same_bits(engine: lanes.Engine, desk: Desk) -> None:
    for prompt in (PROMPT, ODD, [{"role": "user", "content": ODD}]):
        entry = answered(desk, "ask", {"prompt": prompt, "labels": [" yes", " \"no'"]})
        space: dict[str, Any] = {"engine": engine}
        exec(worded(desk, entry, "python"), space)
        assert isinstance(entry.result, lanes.Scored)
        assert space["answer"].logits.tobytes() == entry.result.logits.tobytes()
        assert space["answer"].to_dict()["top"] == entry.result.to_dict()["top"]
        act(desk, "word", {"number": entry.number, "form": "curl", "view": "v"})
        until(lambda: desk.frame["desk"]["worded"]["form"] == "curl")


@pytest.mark.parametrize("manner", [{}, {"orders": "auto", "prior": "contextual", "abstain": True}])
def test_the_python_of_a_typed_decision_gives_the_same_bits(engine: lanes.Engine, desk: Desk, manner: Any) -> None:
    entry = answered(desk, "ask_typed", {**TYPED, **manner, "state": json.dumps({"said": ODD}), "as_json": True})
    space: dict[str, Any] = {"engine": engine}
    exec(worded(desk, entry, "python"), space)
    assert isinstance(entry.result, lanes.Answers)
    for name, answer in entry.result.items():
        assert space["answers"][name].logs.tobytes() == answer.logs.tobytes()
        assert space["answers"][name].prompt == answer.prompt


def said(command: str) -> tuple[str, Any]:
    """The address and the body of a curl command, as a shell takes it apart."""
    split = f"set -- {command.removeprefix('curl ')}\nprintf '%s\\0' \"$@\""
    words = subprocess.run(["sh", "-c", split], capture_output=True, check=True).stdout.decode().split("\0")[:-1]
    assert words == shlex.split(command.replace("\\\n", " "))[1:]
    return words[0], json.loads(words[words.index("--data-binary") + 1])


def test_curl_survives_a_shell(desk: Desk) -> None:
    entry = answered(desk, "ask", {"prompt": ODD, "labels": [" yes", " \"no'"]})
    place, body = said(worded(desk, entry, "curl"))
    assert place.endswith("/v1/decisions") and body["input"] == ODD
    assert [one["value"] for one in body["questions"][0]["choices"]] == [" yes", " \"no'"]
    entry = answered(desk, "ask_typed", {**TYPED, "state": ODD})
    act(desk, "word", {"number": entry.number, "form": "curl", "view": "v"})
    until(lambda: "systemone" in desk.frame["desk"]["worded"]["text"])
    place, body = said(worded(desk, entry, "curl"))
    assert place.endswith("/v1/systemone") and body["state"] == ODD
    assert body["questions"] == {
        "team": {"type": "choice", "instructions": "Which team?", "criteria": {"billing": "Charges", "other": None}},
        "angry": {"type": "noul", "instructions": "Angry?", "criteria": {"true": "Any anger"}},
        "urgent": {"type": "score", "instructions": "How urgent?", "criteria": ["It can wait", "Today"]},
    }


def test_the_prompt_that_the_model_read_can_be_had(desk: Desk) -> None:
    entry = answered(desk, "ask", {"prompt": [{"role": "user", "content": "So?"}], "labels": ["yes", "no"]})
    assert worded(desk, entry, "prompt") == "<|im_start|>user\nSo?<|im_end|>\n<|im_start|>assistant\n"


def test_its_record_has_no_times_and_stays_the_same(engine: lanes.Engine, desk: Desk) -> None:
    assert "nothing has been asked" in repr(desk.record())
    other = Desk(engine, hz=50)
    for one in (desk, other):
        answered(one, "ask", RAW)
        answered(one, "ask_typed", TYPED)
    assert repr(desk.record()) == repr(other.record()) and desk.record().html == other.record().html
    assert "Answers(" in repr(desk.record()) and "team: " in repr(desk.record())
    assert repr(desk.past.entries[0].choice) in repr(desk.record()), "a raw label with its spaces"
    assert "<script" not in desk.record().html and "http" not in desk.record().html
    other.close()


def test_closing_gives_up_what_is_on_its_way_and_keeps_the_history(engine: lanes.Engine) -> None:
    desk = Desk(engine, hz=50)
    answered(desk, "ask", RAW)
    engine.pause()
    act(desk, "ask", RAW)
    act(desk, "ask_typed", {**TYPED, "orders": "auto"})
    act(desk, "inspect", {"view": "v", **RAW})
    until(lambda: len(engine.snapshot().waiting) == 3)
    desk.close()
    engine.resume()
    until(lambda: not workers())
    assert engine.wait(WAIT)
    assert len(desk.history) == 1 and desk.last
    until(lambda: not any(thread.name in ("lanes-ask", "lanes-publisher") for thread in threading.enumerate()))
    desk.close()


def test_an_engine_that_closes_ends_what_was_asked() -> None:
    engine = lanes.Engine(lanes.tiny("llama"), slots=2)
    desk = Desk(engine, hz=50)
    engine.pause()
    act(desk, "ask", RAW)
    until(lambda: engine.snapshot().waiting)
    engine.close()
    until(lambda: desk.frame["closed"] and desk.last)
    assert desk.last and desk.last.state == "closed" and desk.last.error
    desk.close()


def test_a_long_question_is_cut_between_words() -> None:
    said = "Review: The room was cold and the soup was colder.\nSentiment: "
    assert Raw.read("Long ago. " + said, [" a"]).short == "…The room was cold and the soup was colder. Sentiment:"
    assert Raw.read("x" * 100, [" a"]).short == "…" + "x" * 59
    question: Any = {"name": "q", "kind": "noul", "instructions": said + said, "options": []}
    typed = Typed.read("It.", False, [question], "codes", 1, None, False)
    assert typed.short == "Review: The room was cold and the soup was colder.…"


def test_the_front_end_of_the_desk_is_whole() -> None:
    code = module("desk")
    assert "PANELS.desk" in code and "http" not in code.replace("http://127.0.0.1:8000", "") and "innerHTML" not in code
