"""How often the order of the options changes the choice, asked in one order and with orders="auto".

Every message of a fixed sample is asked twice, with the options as they are written and shuffled. A question flips
where the two choices differ. Run it with `python benchmarks/order_flips.py`.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

import lanes
from lanes import Answers, Engine
from lanes.measure.flips import Outcome, ask_twice, outcomes

ORDERS: tuple[int | str, ...] = (1, "auto")


def measure(engine: Engine, messages: int, method: str, orders: int | str, tick: Callable[[], Any]) -> list[Outcome]:
    """Ask all messages both ways; the sample is the same for every way of asking."""
    examples = lanes.examples()
    rows = list(examples.frame.sample(messages, random_state=0).index)
    answers: list[tuple[Answers, Answers]] = []
    sample = [examples.frame.message[row] for row in rows]
    for one, other in ask_twice(engine, sample, examples.questions, method=method, orders=orders):
        answers.append((one.result(), other.result()))
        tick()
    gold = {name: [examples.gold(name)[row] for row in rows] for name in examples.questions}
    return outcomes(answers, gold, orders)


def line(found: Outcome) -> str:
    """A row of the table."""
    return (
        f"| {found.question} | {found.orders} | {found.messages} | {found.flipped:.3f} "
        f"| {found.right:.2f} | {found.asked:.1f} |"
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
                print(line(outcome), flush=True)


if __name__ == "__main__":
    main()
