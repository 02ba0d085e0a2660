"""How often the order of the options changes the choice, asked in one order and with orders="auto".

Every message of a fixed sample is asked twice, with the options as they are written and shuffled. A question flips
where the two choices differ. Run it with `python benchmarks/order_flips.py`.
"""

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tqdm import tqdm

import lanes
from lanes import Answers, Choice, Engine
from lanes.decisions.questions import Question

ORDERS: tuple[int | str, ...] = (1, "auto")


@dataclass(frozen=True)
class Outcome:
    """One question in one way of asking: shares of messages that flip and that are right, orders asked on average."""

    question: str
    orders: int | str
    messages: int
    flipped: float
    right: float
    asked: float

    def __str__(self) -> str:
        return (
            f"| {self.question} | {self.orders} | {self.messages} | {self.flipped:.3f} "
            f"| {self.right:.2f} | {self.asked:.1f} |"
        )


def listed(question: Question, seed: int | None) -> Question:
    """The same question as a choice between its options, as they are written (seed None) or in another order."""
    options = list(question.options)
    while seed is not None and tuple(options) == question.options:
        random.Random(seed).shuffle(options)
        seed += 1000
    return Choice(question.instructions, {option.key: option.text or None for option in options})


def measure(engine: Engine, messages: int, method: str, orders: int | str, tick: Callable[[], Any]) -> list[Outcome]:
    """Ask all messages both ways; the sample is the same for every way of asking."""
    examples = lanes.examples()
    rows = examples.frame.sample(messages, random_state=0)
    pending = [
        [
            lanes.ask(
                engine,
                message,
                {name: listed(question, shuffle) for name, question in examples.questions.items()},
                method=method,
                orders=orders,
            )
            for shuffle in (None, seed)
        ]
        for seed, message in enumerate(rows.message)
    ]
    answers: list[list[Answers]] = []
    for pair in pending:
        answers.append([one.result() for one in pair])
        tick()
    return [
        _outcome(name, orders, answers, [examples.gold(name)[at] for at in rows.index]) for name in examples.questions
    ]


def _outcome(name: str, orders: int | str, answers: list[list[Answers]], gold: list[str]) -> Outcome:
    pairs = [[one[name] for one in pair] for pair in answers]
    return Outcome(
        name,
        orders,
        len(pairs),
        flipped=fmean(one.choice != other.choice for one, other in pairs),
        right=fmean(pair[0].choice == own for pair, own in zip(pairs, gold, strict=True)),
        asked=fmean(answer.orders for pair in pairs for answer in pair),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--method", default="codes", help="codes or labels")
    given = parser.parse_args()
    bar = tqdm(total=len(ORDERS) * given.messages, file=sys.stderr, disable=None)
    with bar, Engine(given.model) as engine:
        print("| question | orders | messages | flipped | right | orders asked |")
        print("| --- | --- | --- | --- | --- | --- |")
        for orders in ORDERS:
            for outcome in measure(engine, given.messages, given.method, orders, bar.update):
                print(outcome, flush=True)


if __name__ == "__main__":
    main()
