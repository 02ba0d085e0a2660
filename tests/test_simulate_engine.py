"""The simulator against the engine: from who arrived in which round, it makes the very rounds of the record."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from company import WAIT, words

import lanes
from lanes.plan import Policy
from lanes.record import Round
from lanes.simulation import Cost, Workload, simulate


def made(rounds: Sequence[Round]) -> list:
    """What was planned in the rounds that computed something, and who was done after each."""
    return [
        (
            [(one.slot, one.id, one.kind) for one in done.admitted],
            done.evicted,
            done.groups,
            sorted(done.rows),
            done.piece,
            done.seats,
            sorted((one.slot, one.id, one.reason) for one in done.finished),
            (done.waiting_streams, done.waiting_decisions),
        )
        for done in rounds
        if done.groups or done.piece
    ]


def run(engine: lanes.Engine) -> Sequence[Round]:
    """Streams and decisions that arrive at random between rounds, and what the engine made of them."""
    draw = Random(1)
    assert engine.pause(WAIT)
    for number in range(40):
        prompt = words(draw.randint(1, 40), seed=number)
        if draw.random() < 0.5:
            engine.stream(prompt, max_tokens=draw.randint(1, 12), ignore_eos=True)
        else:
            engine.score(prompt, [" yes", " no"])
        engine.step(draw.choice([1, 1, 2, 5]), WAIT)
    engine.resume()
    assert engine.wait(WAIT)
    return engine.rounds.copy()


@pytest.mark.parametrize(("policy", "reserved"), [("beside", 0), ("beside", 1), ("idle", 0)])
def test_the_engine_ran_the_rounds_that_are_simulated(policy: Policy, reserved: int) -> None:
    rules: dict[str, Any] = {"policy": policy, "slots": 3, "width": 4, "piece": 8, "reserved": reserved}
    with lanes.Engine(lanes.tiny("llama"), prefix_bytes=0, **rules) as engine:
        record = run(engine)
    workload = Workload.from_rounds(record, clock="rounds")
    found = simulate(workload, cost=Cost(0, 0, 0, overhead=1), record=True, **rules)
    assert made(found.log) == made(record)
    assert found.evictions > 0
