"""How often the order of the options changes the choice, asked once and with orders="auto".

Every message of a fixed sample is asked three times: with the options as they are written, turned round, and shuffled.
A message flips where the three choices are not the same. Run it with `python benchmarks/order_flips.py`.
"""

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

from tqdm import tqdm

import lanes
from lanes import Answer, Choice, Engine, Score
from lanes.decisions.questions import Question

METHODS = ("codes", "labels")
ORDERS: tuple[int | str, ...] = (1, "auto")


@dataclass(frozen=True)
class Outcome:
    """One way of asking: the share of messages that flip, of right choices, and the orders asked on average."""

    question: str
    method: str
    orders: int | str
    messages: int
    flipped: float
    accuracy: float
    asked: float

    def __str__(self) -> str:
        return (
            f"| {self.question} | {self.method} | {self.orders} | {self.messages} | {self.flipped:.3f} "
            f"| {self.accuracy:.2f} | {self.asked:.1f} |"
        )


def reordered(question: Question, order: list[int]) -> Question:
    """The same question with its options in another order."""
    options = [question.options[at] for at in order]
    return Choice(question.instructions, {option.key: option.text or None for option in options})


def as_choice(question: Question) -> Question:
    """A scale as a choice between its levels, whose order can be changed."""
    if not isinstance(question, Score):
        return question
    return Choice(question.instructions, {str(level): text for level, text in enumerate(question.criteria)})


def orders_of(count: int, seed: int) -> list[list[int]]:
    """As written, turned round, shuffled."""
    shuffled = list(range(count))
    random.Random(seed).shuffle(shuffled)
    return [list(range(count)), list(range(count))[::-1], shuffled]


def measure(
    engine: Engine, name: str, messages: int, method: str, orders: int | str, tick: Callable[[], Any]
) -> Outcome:
    """Ask all messages in all orders; the sample and the shuffles are the same for every way of asking."""
    examples = lanes.examples()
    question = as_choice(examples.questions[name])
    rows = examples.frame.sample(messages, random_state=0)
    gold = dict(zip(examples.frame.id, examples.gold(name), strict=True))
    pending = [
        [
            lanes.ask(engine, row.message, {"it": reordered(question, order)}, method=method, orders=orders)
            for order in orders_of(len(question.options), seed)
        ]
        for seed, row in enumerate(rows.itertuples())
    ]
    answers: list[list[Answer]] = []
    for own in pending:
        answers.append([one.result()["it"] for one in own])
        tick()
    flipped = fmean(len({answer.choice for answer in own}) > 1 for own in answers)
    right = fmean(own[0].choice == gold[id] for own, id in zip(answers, rows.id, strict=True))
    asked = fmean(answer.orders for own in answers for answer in own)
    return Outcome(name, method, orders, messages, flipped, right, asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--messages", type=int, default=60)
    parser.add_argument("--questions", nargs="+", default=["team", "urgency"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    given = parser.parse_args()
    ways: list[tuple[str, str]] = list(product(given.questions, given.methods))
    bar = tqdm(total=len(ways) * len(ORDERS) * given.messages, file=sys.stderr, disable=None)
    with bar, Engine(given.model) as engine:
        print("| question | method | orders | messages | flipped | right | orders asked |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, method in ways:
            for orders in ORDERS:
                print(measure(engine, name, given.messages, method, orders, bar.update), flush=True)


if __name__ == "__main__":
    main()
