"""One decide of many short questions on a long state against as many whole scores: time, and whether the bits agree.

Nothing is kept between requests. Both sides take turns on the same idle engine. Run it with
`python benchmarks/branches.py`.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

from lanes import Engine, Scored
from lanes.measure.prompts import encoder, fitted

LABELS = (" yes", " no")
SUBJECTS = (
    "music",
    "hall",
    "rain",
    "light",
    "water",
    "price",
    "scene",
    "father",
    "talk",
    "home",
    "clock",
    "day",
    "walk",
)
Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def bits(results: list[Scored]) -> list[bytes]:
    """The label logits (float32) and the logsumexp of every result."""
    return [result.logits.tobytes() + repr(result.logsumexp).encode() for result in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="default")
    parser.add_argument("--state", type=int, default=512, help="tokens of the state")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    given = parser.parse_args()
    with Engine(given.model, prefix_bytes=0) as engine:
        encode = encoder(engine)
        state = fitted(encode, "A review:", "\n", given.state)
        questions = [f"Is it about {2 + at} {SUBJECTS[at % len(SUBJECTS)]}s? Answer:" for at in range(given.questions)]

        def together() -> list[Scored]:
            return list(engine.decide(state, questions, LABELS).result())

        def apart() -> list[Scored]:
            return [engine.score(state + question, LABELS).result() for question in questions]

        engine.score(state + questions[0], LABELS).result()
        seconds: dict[str, list[float]] = {"together": [], "apart": []}
        same = True
        for _ in range(given.rounds):
            one, joint = timed(together)
            many, each = timed(apart)
            seconds["together"].append(one)
            seconds["apart"].append(many)
            same &= bits(joint) == bits(each)
        sizes = [len(encode(question)) for question in questions]
        print(
            f"{len(encode(state))} tokens of state, {len(questions)} questions of {min(sizes)} to {max(sizes)} tokens"
        )
        print(f"apart {median(seconds['apart']):.2f} s, together {median(seconds['together']):.2f} s: ", end="")
        print(f"{median(seconds['apart']) / median(seconds['together']):.1f}x; the same bits: {same}")


if __name__ == "__main__":
    main()
