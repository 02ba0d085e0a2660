"""Decisions in a whole engine: branches are whole prompts by bits, and label probabilities are those of an oracle."""

from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from company import CLOSE, WAIT, Ask, alone, bits, held, make, numbers, step_until, words

import lanes
from lanes.engine import Engine
from lanes.models.loaded import Loaded

YES_NO = [" yes", " no"]
LONG = [" yes", " yes no", " yes no sea", " no", " great answer", " great question"]


@pytest.fixture(scope="module", params=["llama", "gemma3", "qwen3_moe", "qwen3_5"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with make(request.param, slots=4) as made:
        yield made


@pytest.fixture(scope="module")
def llama() -> Iterator[Engine]:
    with make("llama", slots=4) as made:
        yield made


def whole(engine: Engine, prompt: str, labels: Sequence[str]) -> Any:
    """The numbers of a prompt scored as a whole, alone."""
    return alone(engine, Ask(prompt, labels=labels))[0]


# --- branches are whole prompts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trunk", [1, 31, 32, 33, 64, 260])
def test_branches_that_do_and_do_not_cross_a_piece_border_are_whole_prompts(engine: Engine, trunk: int) -> None:
    text = words(trunk, trunk)
    branches = [words(n, 100 + n) for n in (1, 2, 11, 31, 32, 33, 70)]
    found = bits(engine.decide(text, branches, LONG))
    assert list(found) == [whole(engine, text + branch, LONG) for branch in branches]


@pytest.mark.parametrize("count", [1, 3, 20])
def test_any_number_of_branches(engine: Engine, count: int) -> None:
    rng = Random(count)
    text = words(rng.randint(20, 100), count)
    branches = [words(rng.randint(1, 40), 50 + at) for at in range(count)]
    found = bits(engine.decide(text, branches, YES_NO))
    picked = rng.sample(range(count), min(count, 4))
    assert [found[at] for at in picked] == [whole(engine, text + branches[at], YES_NO) for at in picked]
    assert len(set(found)) == count, "all branches gave the same numbers: they were not told apart"


def test_reordering_or_leaving_out_branches_changes_no_bit_of_the_others(engine: Engine) -> None:
    text = words(75, 1)
    branches = [words(n, n) for n in (3, 50, 9, 20, 21)]
    found = dict(zip(branches, bits(engine.decide(text, branches, LONG)), strict=True))
    for seed in range(3):
        order = Random(seed).sample(branches, 5 - seed)
        assert list(bits(engine.decide(text, order, LONG))) == [found[branch] for branch in order]


def test_equal_branches_give_equal_bits(engine: Engine) -> None:
    first, second, third = bits(engine.decide(words(75, 2), [words(4, 3)] * 3, LONG))
    assert first == second == third


def test_every_branch_may_have_labels_of_its_own(engine: Engine) -> None:
    text = words(70, 4)
    branches = [words(3, 5), words(30, 6), words(8, 7)]
    labels = [YES_NO, LONG, [" sea"]]
    found = bits(engine.decide(text, branches, labels))
    assert list(found) == [whole(engine, text + branch, own) for branch, own in zip(branches, labels, strict=True)]


def test_the_order_of_labels_changes_no_number(engine: Engine) -> None:
    text = words(60, 8)
    straight = engine.score(text, LONG).result(WAIT)
    turned = engine.score(text, LONG[::-1]).result(WAIT)
    assert turned.logits.tobytes() == straight.logits[::-1].tobytes()
    assert turned.logsumexp == straight.logsumexp
    np.testing.assert_allclose(turned.probabilities, straight.probabilities[::-1], rtol=1e-12)


def test_branches_beside_streams_and_other_decisions_are_whole_prompts(engine: Engine) -> None:
    text = words(80, 9)
    branches = [words(n, n) for n in (2, 40, 7)]
    wants = [whole(engine, text + branch, LONG) for branch in branches]
    with held(engine):
        streams = [Ask(words(n, n), length=30)(engine) for n in (40, 5)]
        step_until(engine, lambda: all(stream.tokens for stream in streams))
        decisions = [engine.decide(text, branches, LONG), engine.decide(text, branches[::-1], LONG)]
    assert list(bits(decisions[0])) == wants
    assert list(bits(decisions[1])) == wants[::-1]
    assert all(stream.wait(WAIT) for stream in streams)


def test_messages_as_trunk_and_branches_are_the_whole_conversation(llama: Engine) -> None:
    trunk = [{"role": "system", "content": words(60, 10)}]
    branches = [[{"role": "user", "content": words(n, n)}] for n in (3, 40)]
    found = bits(llama.decide(trunk, branches, ["yes", "no"]))
    assert list(found) == [numbers(llama.score(trunk + branch, ["yes", "no"]).result(WAIT)) for branch in branches]


# --- the oracle -----------------------------------------------------------------------------------------------------


@cache
def plain(arch: str) -> Loaded:
    """The same weights on the test's own thread, run by plain mlx-lm."""
    return lanes.load(lanes.tiny(arch, seed=1))


def oracle(loaded: Loaded, prompt: str, labels: Sequence[str]) -> tuple[np.ndarray, np.ndarray, float]:
    """Each label alone through plain mlx-lm, the rest in float64: log-probabilities, first logits, logsumexp.

    A label's next token competes with the next tokens of the labels that agree with it so far; a label that is the
    beginning of another competes with the end token at its end.
    """
    encode = loaded.tokenizer.encode
    ids = encode(prompt)
    own = [encode(prompt + label)[len(ids) :] for label in labels]
    end = loaded.tokenizer.eos_token_id
    ended = [[*a, end] if any(a != b and b[: len(a)] == a for b in own) else a for a in own]
    logs, firsts, total = [], [], 0.0
    for label in ended:
        logits = np.array(loaded.model(mx.array([[*ids, *label]]))[0]).astype(np.float64)[len(ids) - 1 : -1]
        firsts.append(logits[0, label[0]])
        total = float(np.logaddexp.reduce(logits[0]))
        log = 0.0
        for depth, token in enumerate(label):
            rivals = sorted({b[depth] for b in ended if len(b) > depth and b[:depth] == label[:depth]})
            log += logits[depth, token] - float(np.logaddexp.reduce(logits[depth, rivals]))
        logs.append(log)
    return np.array(logs), np.array(firsts), total


SNIPPETS = (" yes", " no", "é", "日本", "😀", " sea", "x", "-", " billing", "ing", ".", " the", "Ω", "\n")


def label_sets(count: int) -> list[list[str]]:
    """Random label sets: of one and more tokens, with shared beginnings, labels within labels, and unicode."""
    rng = Random(4)
    sets = []
    for _ in range(count):
        made = {"".join(rng.choices(SNIPPETS, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 7))}
        stem = rng.choice(sorted(made))
        made |= {stem + rng.choice(SNIPPETS) for _ in range(rng.randint(0, 3))}
        sets.append(rng.sample(sorted(made), len(made)))
    return sets


@pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen3_moe", "qwen3_5"])
def test_label_probabilities_are_those_of_every_label_run_alone(arch: str) -> None:
    loaded = plain(arch)
    compared = 0
    with make(arch, slots=4) as engine:
        for at, labels in enumerate(label_sets(16)):
            prompt = words(5 + 9 * at, at) + ":"
            try:
                pending = engine.score(prompt, labels)
            except lanes.InvalidRequest:  # the tokenizer merges some of these with each other
                continue
            found = pending.result(WAIT)
            logs, firsts, total = oracle(loaded, prompt, labels)
            np.testing.assert_allclose(np.log(found.probabilities), logs, rtol=0, atol=CLOSE)
            np.testing.assert_allclose(found.logits, firsts, rtol=0, atol=CLOSE)
            assert found.logsumexp == pytest.approx(total, abs=CLOSE)
            assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-9)
            compared += len(labels)
    assert compared >= 40


def test_labels_that_share_beginnings_and_end_within_each_other_are_those_of_the_oracle(engine: Engine) -> None:
    loaded = plain(engine.info.arch)
    sets = (
        [" yes no yes", " yes no no", " yes yes no", " yes yes yes"],
        [" yes", " yes no", " yes no sea", " yes no sea the", " no no"],
        ["é", "éé", "ééx", "日本", "日本語", "日"],
        [" the sea is great", " the sea is no", " the answer", " no"],
    )
    for labels in sets:
        for prompt in (words(64, 1) + ":", words(270, 2) + ":"):
            found = engine.score(prompt, labels).result(WAIT)
            logs, firsts, total = oracle(loaded, prompt, labels)
            np.testing.assert_allclose(np.log(found.probabilities), logs, rtol=0, atol=CLOSE)
            np.testing.assert_allclose(found.logits, firsts, rtol=0, atol=CLOSE)
            assert found.logsumexp == pytest.approx(total, abs=CLOSE)
            assert found.choice == labels[int(np.argmax(logs))]


def test_branches_with_long_labels_are_those_of_the_oracle(engine: Engine) -> None:
    loaded = plain(engine.info.arch)
    text = words(70, 11)
    branches = [words(n, n) for n in (2, 30, 5)]
    for branch, found in zip(branches, engine.decide(text, branches, LONG).result(WAIT), strict=True):
        logs, _, total = oracle(loaded, text + branch, LONG)
        np.testing.assert_allclose(np.log(found.probabilities), logs, rtol=0, atol=CLOSE)
        assert found.logsumexp == pytest.approx(total, abs=CLOSE)


def test_the_choice_is_not_the_greedy_walk_where_they_part(llama: Engine) -> None:
    # A label's first token can be the likeliest while, shared among many labels, none of them is.
    loaded = plain("llama")
    greedy_differs = 0
    for seed in range(40):
        prompt = words(20, seed)
        labels = [" yes no", " yes sea", " yes the", " no", " great"]
        found = llama.score(prompt, labels).result(WAIT)
        logs, firsts, _ = oracle(loaded, prompt, labels)
        assert found.choice == labels[int(np.argmax(logs))]
        greedy_differs += int(np.argmax(logs)) not in np.flatnonzero(firsts == firsts.max())
    assert greedy_differs > 0, "no prompt told the two apart"
