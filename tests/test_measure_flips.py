"""The order of options, priors, and labels run alone: what the figures of the labels receipt are made from."""

import asyncio

import numpy as np
import pytest
from generated import WAIT

import lanes
from lanes.measure.flips import ask_twice, favours, listed, outcomes
from lanes.measure.oracle import alone, bound_to, log_probabilities, rivals, with_ends

GOLD = {"mood": ["good", "bad", "good", "good"]}


def said(*choices: str, mass: float = 0.5) -> list[lanes.Answers]:
    """Answers to one question, with these choices."""
    keys = ("bad", "good")

    def answer(choice: str) -> lanes.Answer:
        p = [0.75 if key == choice else 0.25 for key in keys]
        return lanes.Answer("choice", keys, np.log(p), label_mass=mass, orders=2)

    return [lanes.Answers({"mood": answer(choice)}) for choice in choices]


def test_flips_are_counted_where_the_two_answers_differ():
    pairs = list(zip(said("good", "bad", "bad", "good"), said("good", "good", "bad", "bad"), strict=True))
    [found] = outcomes(pairs, GOLD, "auto")
    assert (found.question, found.orders, found.messages) == ("mood", "auto", 4)
    assert (found.flipped, found.right, found.asked) == (0.5, 0.75, 2.0)


def test_the_favourite_is_what_is_chosen_most():
    [found] = favours(said("good", "bad", "bad", "bad"), GOLD)
    assert (found.favourite, found.share, found.right, found.mass) == ("bad", 0.75, 0.5, 0.5)
    [even] = favours(said("good", "bad"), {"mood": ["good", "bad"]})
    assert (even.favourite, even.share) == ("bad", 0.5), "the first of equals by name"


def test_a_shuffled_question_has_the_same_options_in_another_order():
    question = lanes.Noul("Is it late?")
    plain = listed(question, None)
    assert [option.key for option in plain.options] == [option.key for option in question.options]
    for seed in range(8):
        other = listed(question, seed)
        assert {one.key for one in other.options} == {one.key for one in plain.options}
        assert [one.key for one in other.options] != [one.key for one in plain.options]
        assert listed(question, seed) == other


def test_each_message_is_asked_as_written_and_shuffled(engine: lanes.Engine):
    questions = lanes.examples().questions
    [(one, other)] = ask_twice(engine, ["I was charged twice."], questions, method="codes", orders=1)
    one, other = one.result(WAIT), other.result(WAIT)
    assert set(one) == set(other) == set(questions)
    for name in one:
        assert one[name].prompt != other[name].prompt, "the options stand in another order"
        assert set(one[name]) == set(other[name])


# --- labels alone ---------------------------------------------------------------------------------------------------


def test_a_label_that_begins_another_needs_an_end():
    assert with_ends([(1,), (1, 2), (3,)], 9) == [(1, 9), (1, 2), (3,)]
    assert rivals([(1, 9), (1, 2), (3,)], ()) == [1, 3] and rivals([(1, 9), (1, 2), (3,)], (1,)) == [9, 2]
    with pytest.raises(ValueError, match="terminator"):
        with_ends([(1,), (1, 2)], None)


@pytest.mark.parametrize(
    "labels", [["yes", "no"], [" yes no yes", " yes no no", " no"], [" yes", " yes no", " yes no sea", " no no"]]
)
def test_labels_alone_as_whole_prompts_have_the_probabilities_of_the_trie(labels: list[str]):
    with lanes.Engine(lanes.tiny("llama", seed=1), slots=2, prefix_bytes=0) as engine:
        prompt, bound, terminator = bound_to(engine, "The sea", labels)
        logits, runs = asyncio.run(alone(engine, prompt, bound.tokens, terminator))
        assert runs == sum(map(len, with_ends(bound.tokens, terminator)))
        slow = log_probabilities(bound.tokens, lambda start, token: logits[start, token], terminator=terminator)
        fast = engine.score("The sea", labels).result(WAIT)
    assert fast.log_probabilities == pytest.approx(slow, abs=1e-12)
