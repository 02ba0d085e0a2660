"""The label inspector: tokens and faults in every tokenizer, probabilities against a brute-force softmax, advice."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html.parser import HTMLParser
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import zoo
from hypothesis import given, settings
from hypothesis import strategies as st

import lanes
from lanes.decisions.labels import bind
from lanes.engine import Engine
from lanes.errors import DeadlineExceeded, EngineClosed, InvalidRequest
from lanes.inspecting import LabelReport, Spelling, inspect_labels
from lanes.inspecting.advice import Ending, endings, is_low, remarks, respell, reword
from lanes.inspecting.rows import MOST_ROWS, Rows, label_mass, measured, whole_mass
from lanes.inspecting.sets import LabelSet, best, likeliest
from lanes.inspecting.spellings import GIVEN, judge, refusal, spell, variants
from lanes.models.loaded import Loaded
from lanes.prompts import Prompt, encode_text, read

REVIEW = "Review: great\nSentiment:"
CHAT = [{"role": "user", "content": "Is the sea wet?"}]
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=4)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(lanes.tiny("llama"), slots=2) as made:
        yield made


@cache
def plain() -> Loaded:
    """The same weights on the test's own thread, run by plain mlx-lm."""
    return lanes.load(lanes.tiny("llama"))


def conditionals(ids: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """Each token's probability after all before it: a softmax over the whole vocabulary in float64."""
    logits = np.array(plain().model(mx.array([[*ids, *tokens]]))[0]).astype(np.float64)[len(ids) - 1 : -1]
    return [float(np.exp(row[token] - np.logaddexp.reduce(row))) for row, token in zip(logits, tokens, strict=True)]


def spelled(kind: str, prompt: str, *texts: str) -> list[Spelling]:
    tokenizer = zoo.tokenizer(kind)
    return [spell(tokenizer, read(tokenizer, prompt), text) for text in texts]


def single(text: str, token: int, p: float) -> Spelling:
    """A usable spelling of one token that was measured."""
    return Spelling(text, tokens=(token,), pieces=(text,), first=p, whole=p)


# --- spellings ------------------------------------------------------------------------------------------------------


def test_the_variants_are_the_label_with_and_without_a_space_in_every_case() -> None:
    assert list(variants(" new York")) == [
        " new York", "new York", "New york", "new york", "NEW YORK", " New york", " new york", " NEW YORK",
    ]  # fmt: skip
    assert variants(" yes")[" yes"] == (GIVEN, "space", "space, lower")
    assert list(variants("\nyes"))[:2] == ["\nyes", "yes"]
    assert list(variants("  ")) == ["  "] and list(variants("")) == [""]


@pytest.mark.parametrize("kind", zoo.KINDS)
@given(prompt=st.text(st.sampled_from("ab é.\n"), min_size=1, max_size=6), text=ANY_TEXT)
@settings(max_examples=40)
def test_tokens_and_faults_are_those_that_bind_has(kind: str, prompt: str, text: str) -> None:
    tokenizer = zoo.tokenizer(kind)
    try:
        whole = read(tokenizer, prompt)
    except InvalidRequest:
        return
    found = spell(tokenizer, whole, text)
    assert found.usable == (found.fault == "")
    if found.usable:
        assert bind(tokenizer, whole, [text]).tokens == (found.tokens,)
        assert not found.replaces
        return
    with pytest.raises(InvalidRequest) as caught:
        bind(tokenizer, whole, [text])
    assert found.fault == str(caught.value).replace("label 0 ", "the label ")
    if found.problem not in ("empty", "half a character"):
        kept = whole.ids[: len(whole.ids) - len(found.replaces)]
        assert kept + found.tokens == encode_text(tokenizer, whole.text + text, whole.special)


@pytest.mark.parametrize(
    ("kind", "prompt", "text", "problem", "fault"),
    [
        ("byte_level", "the mo", "vie", "merges", "'vie' merges into the prompt"),
        ("byte_level", "hello ", "yes", "merges", "end the prompt before ' '"),
        ("words", "hello", " zebra", "changed", "does not come back from its tokens '<unk>'"),
        ("wordpiece", "hello", " YES", "changed", "' YES' does not come back"),
        ("words", "hello", "  ", "dropped", "adds no token"),
        ("byte_level", "hello", "", "empty", "the label is empty"),
        ("byte_level", "hello", "\ud83d", "half a character", "a lone surrogate"),
    ],
)
def test_what_cannot_be_used_says_why(kind: str, prompt: str, text: str, problem: str, fault: str) -> None:
    (found,) = spelled(kind, prompt, text)
    assert found.problem == problem and not found.usable
    assert fault in found.fault


def test_a_merge_shows_what_it_replaces() -> None:
    (found,) = spelled("byte_level", "the mo", "vie")
    assert found.replaces and "the mo".endswith("".join(found.replaces))
    assert "".join(found.pieces) == "".join(found.replaces) + "vie"


def verdicts(tokenizer: Any, prompt: str, labels: list[str]) -> list[Any]:
    whole = read(tokenizer, prompt)
    found = {text: spell(tokenizer, whole, text) for text in labels}
    return [judge(tokenizer, whole, labels, found, index) for index in range(len(labels))]


def test_a_label_that_begins_others_is_told_apart_by_the_end_token() -> None:
    short, long, longer, other = verdicts(
        zoo.tokenizer("byte_level"), "hello", [" yes", " yes yes", " yes no yes", " no"]
    )
    assert short.begins == (" yes yes", " yes no yes") and not short.problem
    assert not any(one.begins or one.problem for one in (long, longer, other))


def test_without_an_end_token_the_beginning_of_another_is_a_fault() -> None:
    tokenizer = zoo.build("byte_level")
    tokenizer.eos_token = None
    short, long = verdicts(tokenizer, "hello", [" yes", " yes yes"])
    assert short.problem == "beginning of another" and short.begins == (" yes yes",)
    assert "no end token to tell them apart: end every label with the same mark" in short.fault
    assert not long.problem


def test_the_second_of_two_equal_labels_is_the_one_too_many() -> None:
    first, _, second = verdicts(zoo.tokenizer("byte_level"), "hello", [" yes", " no", " yes"])
    assert not first.problem
    assert second.problem == "twice" and "' yes' is there twice" in second.fault


# --- rows and masses ------------------------------------------------------------------------------------------------


def test_shared_beginnings_are_run_once_and_parents_stand_first() -> None:
    prompt = Prompt("p", (1, 2), False)
    ways = [Spelling("abc", tokens=(5, 6, 7)), Spelling("abd", tokens=(5, 6, 8)), Spelling("x", problem="empty")]
    rows = Rows.of(prompt, ways, context=100)
    assert rows.nexts == {(): (5,), (5,): (6,), (5, 6): (7, 8)}
    assert [branch.ids for branch, _ in rows.branches()] == [(1, 2), (1, 2, 5), (1, 2, 5, 6)]


def test_with_nothing_usable_the_prompt_is_still_run() -> None:
    assert Rows.of(Prompt("p", (1, 2), False), [Spelling("", problem="empty")], 100).nexts == {(): (2,)}


def test_what_takes_too_many_rows_or_leaves_the_context_keeps_its_first_token() -> None:
    long = 2 + math.isqrt(2 * MOST_ROWS)
    ways = [Spelling("long", tokens=tuple(range(100, 100 + long))), Spelling("short", tokens=(7, 8))]
    assert Rows.of(Prompt("p", (1, 2), False), ways, 10_000).nexts == {(): (100, 7), (7,): (8,)}
    assert Rows.of(Prompt("p", (1, 2), False), [Spelling("ab", tokens=(7, 8, 9))], 3).nexts == {(): (7,)}
    found = measured(ways[0], {(): 0.0, (100,): math.log(0.5)})
    assert found.first == pytest.approx(0.5) and found.whole is None
    assert whole_mass([found]) is None and label_mass([found]) == pytest.approx(0.5)


def test_masses_count_shared_firsts_and_labels_within_labels_once() -> None:
    ways = [
        Spelling("a", tokens=(5,), first=0.4, whole=0.4),
        Spelling("ab", tokens=(5, 6), first=0.4, whole=0.1),
        Spelling("cd", tokens=(7, 8), first=0.3, whole=0.2),
        Spelling("ce", tokens=(7, 9), first=0.3, whole=0.05),
        Spelling("x", problem="merges", tokens=(1,)),
    ]
    assert label_mass(ways) == pytest.approx(0.7)
    assert whole_mass(ways) == pytest.approx(0.4 + 0.2 + 0.05)


# --- advice ---------------------------------------------------------------------------------------------------------


def table(**p: float) -> dict[str, Spelling]:
    """All variants of yes and no, each one token; those that are not named are as good as impossible."""
    texts = [text for label in ("yes", "no") for text in variants(label)]
    return {text: single(text, at, p.get(text.replace(" ", "_"), 1e-6)) for at, text in enumerate(texts)}


def test_the_best_set_is_written_in_one_style() -> None:
    ways = table(yes=0.01, _Yes=0.4, _no=0.35, _No=0.3)
    found = best(ways, ["yes", "no"], lambda _: True)
    assert found and found.labels == (" Yes", " No") and found.single
    assert found.mass == pytest.approx(0.7)
    assert (likeliest(ways, "yes"), likeliest(ways, "no")) == (" Yes", " no")


def test_a_set_that_does_not_bind_is_passed_over_and_mixed_styles_come_last() -> None:
    ways = table(yes=0.01, _Yes=0.4, _no=0.35, _No=0.3)
    found = best(ways, ["yes", "no"], lambda labels: list(labels) != [" Yes", " No"])
    assert found and found.labels == (" yes", " no")
    only_mixed = {
        text: one if text in (" Yes", "no") else Spelling(text, problem="merges", fault="...")
        for text, one in table(no=0.2, _Yes=0.4).items()
    }
    found = best(only_mixed, ["yes", "no"], lambda _: True)
    assert found and found.labels == (" Yes", "no")
    assert best(only_mixed, ["yes", "no"], lambda _: False) is None


def test_empty_and_repeated_labels_are_left_out_of_the_best_set() -> None:
    found = best(
        {**table(yes=0.3, no=0.3), "": Spelling("", problem="empty")}, ["yes", "", "no", "yes"], lambda _: True
    )
    assert found and found.labels == ("yes", "no")
    assert best({"": Spelling("", problem="empty")}, [""], lambda _: True) is None


def label_set(mass: float | None, *labels: str, one_token: bool = True) -> LabelSet:
    return LabelSet(labels or ("yes", "no"), mass, one_token)


def test_a_likelier_spelling_is_suggested_with_what_was_measured() -> None:
    found = respell(label_set(0.02), label_set(0.71, " Yes", " No"))
    assert found and str(found) == "use [' Yes', ' No']: label mass 0.0200 -> 0.7100"
    assert (found.labels, found.prompt, found.before, found.after) == ((" Yes", " No"), None, 0.02, 0.71)


def test_labels_of_several_tokens_are_compared_as_wholes() -> None:
    found = respell(label_set(1e-9, one_token=False), label_set(0.3, " a", " b"))
    assert found and found.text.endswith("mass of the whole labels 1.0e-09 -> 0.3000")


@pytest.mark.parametrize(
    ("before", "after"), [(0.5, 0.99), (0.3, 0.5), (0.01, 0.05), (0.001, 0.04), (None, 0.9), (0.1, None)]
)
def test_nothing_is_suggested_where_nothing_is_wrong_or_little_is_won(
    before: float | None, after: float | None
) -> None:
    assert respell(label_set(before), label_set(after, " a", " b")) is None
    assert reword(label_set(before), None, [(Ending("cut", "x"), label_set(after, " a"))]) is None or before == 0.1


def test_refused_labels_always_get_what_can_be_used() -> None:
    found = respell(None, label_set(0.001, " yes", " no"))
    assert found and found.text == "use [' yes', ' no']: label mass 0.0010, and as given they are refused"
    assert found.before is None
    assert respell(None, None) is None


def test_another_end_of_the_prompt_must_beat_every_spelling_after_this_one() -> None:
    other = (Ending("end the prompt with ':'", "so:"), label_set(0.8))
    found = reword(label_set(0.02), label_set(0.1, " a", " b"), [other, (Ending("cut", "s"), label_set(0.5))])
    assert found and found.text == "end the prompt with ':' and keep the labels: label mass 0.0200 -> 0.8000"
    assert (found.prompt, found.labels) == ("so:", ("yes", "no"))
    assert reword(label_set(0.02), label_set(0.45, " a", " b"), [other]) is None
    assert reword(label_set(0.6), label_set(0.6), [other]) is None
    assert reword(label_set(0.02), label_set(0.1), []) is None
    refused = reword(None, label_set(0.01, " a"), [(Ending("cut", "s"), label_set(0.011, " b"))])
    assert refused and refused.text == "cut and use [' b']: label mass 0.0110, and as given they are refused"
    assert reword(None, label_set(0.02, " a"), [(Ending("cut", "s"), label_set(0.011, " b"))]) is None


def test_labels_that_were_not_measured_are_not_called_low() -> None:
    assert is_low(None) and is_low(label_set(0.49))
    assert not is_low(label_set(None)) and not is_low(label_set(0.5))


def test_the_ends_that_are_tried() -> None:
    assert [one.prompt for one in endings("Is it? ")] == ["Is it?", "Is it?\nAnswer:"]
    assert [one.prompt for one in endings("Sentiment")] == ["Sentiment:", "Sentiment\nAnswer:"]
    assert list(endings("Sentiment:")) == [] and list(endings(" \n")) == []


def test_what_is_said_of_the_prompts_end() -> None:
    assert list(remarks("Answer:", [" yes", ""])) == []
    assert list(remarks("Answer:", ["yes", " no"])) == ["no space stands between it and 'yes'"]
    assert "ends in white space, ' ': many tokenizers" in next(remarks("Answer: ", ["yes"]))
    assert list(remarks("Answer:\n", ["yes"])) == [r"it ends in white space, '\n'"]
    assert "ends in a word ('sea')" in next(remarks("the sea", [" yes"]))


# --- in an engine ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [REVIEW, "the sea is", CHAT, " and of the" * 40])
def test_probabilities_are_those_of_a_softmax_over_the_whole_vocabulary(engine: Engine, prompt: Any) -> None:
    report = inspect_labels(engine, prompt, [" yes", " yes no", "positive", " no é"])
    ids = read(plain().tokenizer, prompt).ids
    assert report.prompt_tokens == len(ids)
    seen = 0
    for one in (way for label in report.labels for way in label.variants if way.usable):
        want = conditionals(ids, one.tokens)
        assert one.first == pytest.approx(want[0], rel=1e-4)
        assert one.whole is None or one.whole == pytest.approx(math.prod(want), rel=1e-3)
        seen += one.whole is not None and len(want) > 1
    assert all(label.variants[0].whole is not None for label in report.labels)
    assert seen > 6, "too few spellings of several tokens to compare"
    row = np.array(plain().model(mx.array([ids]))[0, -1]).astype(np.float64)
    order = np.argsort(-row)[:10]
    assert [one.probability for one in report.top] == pytest.approx(
        [float(np.exp(row[token] - np.logaddexp.reduce(row))) for token in order], rel=1e-4
    )
    assert [one.id for one in report.top] == order.tolist()
    assert [one.text for one in report.top] == engine.texts([one.id for one in report.top])


def test_label_mass_is_the_one_that_score_gives(engine: Engine) -> None:
    labels = [" yes", " yes no", "Maybe", " no"]
    report = inspect_labels(engine, REVIEW, labels)
    assert report.refusal == "" and all(label.usable for label in report.labels)
    assert report.label_mass == pytest.approx(engine.score(REVIEW, labels).result(60).label_mass, rel=1e-12)
    likely = [label.best for label in report.labels]
    assert report.best_label_mass == pytest.approx(
        engine.score(REVIEW, list(dict.fromkeys(likely))).result(60).label_mass, rel=1e-12
    )
    assert report.whole_mass and report.label_mass and report.whole_mass < report.label_mass
    assert report.labels[0].verdict.begins == (" yes no",)


def test_labels_that_are_all_broken_still_show_tokens_faults_and_the_likeliest_tokens(engine: Engine) -> None:
    report = inspect_labels(engine, "Is it so? Answer: ", ["yes", "no", ""])
    assert [label.verdict.problem for label in report.labels] == ["merges", "merges", "empty"]
    assert report.labels[0].variants[0].pieces == (" yes",) and report.labels[0].variants[0].replaces == (" ",)
    assert report.label_mass is None and len(report.top) == 10
    assert "none can be used" in repr(report)
    assert report.refusal == refusal(plain().tokenizer, read(plain().tokenizer, report.prompt), ["yes", "no", ""])


def test_labels_with_nothing_that_can_be_used_have_no_mass_and_no_suggestion(engine: Engine) -> None:
    report = inspect_labels(engine, REVIEW, ["", "\ud83d"])
    assert (report.label_mass, report.best_label_mass, report.best_whole_mass) == (None, None, None)
    assert report.suggestions == () and len(report.top) == 10
    assert "none can be used" in repr(report) and "lone surrogate" in report._repr_html_()


LETTERS = [f" {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]


@pytest.mark.parametrize(
    ("prompt", "labels"),
    [
        ("Is it so? Answer: ", ["yes", "no"]),
        ("Is it so", [" yes", " yes", " no"]),
        ("Is it so? Answer:", [""]),
        (CHAT, ["yes", "no", "yes"]),
        *((f"{prompt}:", LETTERS) for prompt in ("the sea", "a question", "billing", "you and of")),
    ],
)
def test_a_suggestion_is_what_scoring_it_gives(engine: Engine, prompt: Any, labels: list[str]) -> None:
    report = inspect_labels(engine, prompt, labels)
    for one in report.suggestions:
        after = engine.score(prompt if one.prompt is None else one.prompt, one.labels).result(60).label_mass
        if "label mass" in one.text:
            assert one.after == pytest.approx(after, rel=1e-4)
        assert one.after <= after * (1 + 1e-4)
        assert f"{one.after:.4f}" in one.text or f"{one.after:.1e}" in one.text
        assert (one.before is None) == bool(report.refusal)
        assert one.before is None or one.after >= max(2 * one.before, one.before + 0.05)
        assert one.prompt is None or isinstance(prompt, str)


def test_single_letters_are_suggested_where_letters_with_a_space_take_two_tokens(engine: Engine) -> None:
    reports = [inspect_labels(engine, f"{prompt}:", LETTERS) for prompt in ("the sea", "a question", "billing")]
    found = [one for report in reports for one in report.suggestions]
    assert found, "the tiny model gave no case to look at"
    assert all(one.labels == tuple(letter.strip() for letter in LETTERS) for one in found)
    bare = [letter.strip() for letter in LETTERS]
    assert all(one.suggestions == () for one in (inspect_labels(engine, f"{p}:", bare) for p in ("the sea", "billing")))


def test_a_report_reads_as_text_html_frame_and_dict(engine: Engine) -> None:
    labels = [" yes", "<b>no</b>", " yes no", "yes</div><script>alert(1)</script>"]
    report = inspect_labels(engine, REVIEW, labels)
    again = inspect_labels(engine, REVIEW, labels)
    assert report == again and repr(report) == repr(again) and report._repr_html_() == again._repr_html_()
    check_html(report._repr_html_())
    assert "the model's end token tells them apart" in repr(report)
    frame = report.to_frame()
    assert len(frame) == sum(len(label.variants) for label in report.labels)
    assert frame[frame["given"]]["label"].tolist() == labels
    assert frame[frame["best"]]["label"].tolist() == labels
    assert frame[frame["best"]]["spelling"].tolist() == [label.best for label in report.labels]
    assert {str(frame[name].dtype) for name in ("first", "whole")} == {"float64"}
    plain_values = json.loads(json.dumps(report.to_dict()))
    assert [one["text"] for one in plain_values["labels"]] == labels
    assert plain_values["top"][0]["probability"] == report.top[0].probability


def test_the_columns_of_the_text_are_aligned(engine: Engine) -> None:
    lines = repr(inspect_labels(engine, REVIEW, [" yes", "positive"])).splitlines()
    head = next(line for line in lines if line.startswith("label "))
    at = head.index("first")
    rows = lines[lines.index(head) + 1 : next(i for i, line in enumerate(lines) if line.startswith("likeliest"))]
    assert len(rows) > 8
    assert all(re.fullmatch(r"\s{2}(\d\.\d+(e-\d+)?)\s", line[at - 2 : line.index(" ", at) + 1]) for line in rows)


class Tags(HTMLParser):
    """The tags that are open, and all that were seen."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_html(text: str) -> None:
    tags = Tags()
    tags.feed(text)
    assert tags.open == [] and tags.seen == {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}


@given(prompt=st.text(min_size=1, max_size=6), labels=st.lists(ANY_TEXT, min_size=1, max_size=2))
@settings(max_examples=20)
def test_any_text_labels_give_a_report_that_agrees_with_score(engine: Engine, prompt: str, labels: list[str]) -> None:
    report = inspect_labels(engine, prompt, labels)
    assert isinstance(report, LabelReport) and [label.text for label in report.labels] == labels
    check_html(report._repr_html_())
    for one in (way for label in report.labels for way in label.variants):
        assert one.usable == (one.first is not None) == bool(not one.fault)
        assert one.whole is None or 0 <= one.whole <= 1
    try:
        scored = engine.score(prompt, labels).result(60)
    except InvalidRequest as error:
        assert report.refusal == str(error)
        assert any(not label.usable for label in report.labels)
    else:
        assert report.refusal == ""
        assert report.label_mass == pytest.approx(scored.label_mass, rel=1e-12)


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "labels", "reason"),
    [
        ("", [" yes"], "the prompt is empty"),
        ([], [" yes"], "the prompt is empty"),
        (7, [" yes"], "the prompt is not text but int"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], [" yes"], "pictures are not supported"),
        ("x" * 5000, [" yes"], "more than the context"),
        (REVIEW, " yes", "labels must be a list of strings, got str"),
        (REVIEW, {" yes"}, "labels must be a list of strings, got set"),
        (REVIEW, [], "there are no labels"),
        (REVIEW, [" yes", 3], "label 1 is not text but int"),
    ],
)
def test_what_can_never_be_inspected_is_refused(engine: Engine, prompt: Any, labels: Any, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        inspect_labels(engine, prompt, labels)


def test_a_deadline_passes_through(engine: Engine) -> None:
    with pytest.raises(DeadlineExceeded):
        inspect_labels(engine, REVIEW, [" yes"], deadline=1e-9)
    with pytest.raises(InvalidRequest, match="deadline must be a finite number of seconds above 0"):
        inspect_labels(engine, REVIEW, [" yes"], deadline=-1)
    assert inspect_labels(engine, REVIEW, [" yes"], deadline=60.0).labels


def test_a_label_that_does_not_fit_the_context_shows_its_first_token_alone() -> None:
    with Engine(lanes.tiny("llama", max_position_embeddings=64), slots=1) as small:
        report = inspect_labels(small, " the" * 63, [" yes no sea", " yes"])
    long, short = (label.variants[0] for label in report.labels)
    assert long.first == short.first is not None
    assert long.whole is None and short.whole is not None
    assert "a dash under whole: not measured" in repr(report)


def test_a_closed_engine_says_so() -> None:
    with Engine(lanes.tiny("llama"), slots=1) as gone:
        pass
    with pytest.raises(EngineClosed):
        inspect_labels(gone, REVIEW, [" yes"])
