"""How likely each drawn token was: against numpy, without a trace in anything else."""

from itertools import product
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from rigs import WAIT, rig

import lanes
from lanes.forward.math import logsumexp


def oracle(row: np.ndarray) -> np.ndarray:
    """Log-probabilities at temperature 1, in float64."""
    below = row.astype(np.float64) - row.max()
    return below - np.log(np.exp(below).sum())


def watched(one: Any) -> list[np.ndarray]:
    """Every row of logits that the forward gives from now on ([V], float32), in order."""
    seen: list[np.ndarray] = []

    def around(original: Any, *given: Any) -> Any:
        logits = original(*given)
        found = np.array(logits.astype(mx.float32))
        seen.extend(found.reshape(-1, found.shape[-1]))
        return logits

    one.wrap("rows", around)
    one.wrap("fill", around)
    return seen


@pytest.mark.parametrize("kind", ["llama", "qwen3_5"])
@pytest.mark.parametrize("options", [{}, {"temperature": 1.5, "top_k": 40, "seed": 3}])
def test_they_are_the_softmax_of_the_logits(kind: str, options: dict[str, Any]) -> None:
    with rig(lanes.tiny(kind), slots=2) as one:
        seen = watched(one)
        stream = one.engine.stream("The sea", max_tokens=12, ignore_eos=True, logprobs=5, **options)
        stream.result(WAIT)
        assert [each.token for each in stream.logprobs] == list(stream.tokens)
        rows = iter(seen)
        for each in stream.logprobs:
            # Rows of prompts and dummies stand between; the drawn token's own is the next whose best five are told.
            row = next(row for row in rows if set(np.argsort(-row)[:5]) == {token for token, _ in each.top})
            want = oracle(row)
            assert each.logprob == pytest.approx(want[each.token], abs=2e-6)
            assert [value for _, value in each.top] == pytest.approx(np.sort(want)[::-1][:5], abs=2e-6)
            assert [value for _, value in each.top] == sorted((value for _, value in each.top), reverse=True)


def test_nothing_else_depends_on_them() -> None:
    with lanes.Engine(lanes.tiny("llama"), slots=4) as engine:
        given: dict[str, Any] = {"max_tokens": 20, "ignore_eos": True, "digests": True, "temperature": 0.8, "seed": 5}
        plain = engine.stream("The sea", **given)
        plain.result(WAIT)
        engine.pause()
        kept = [engine.stream("The sea", logprobs=count, **given) for count in (None, 0, 20)]
        engine.resume()
        for stream in kept:
            stream.result(WAIT)
            assert (stream.tokens, stream.digests) == (plain.tokens, plain.digests)
        assert plain.logprobs == kept[0].logprobs == ()
        assert [len(each.top) for each in kept[1].logprobs] == [0] * 20
        assert [len(each.top) for each in kept[2].logprobs] == [20] * 20
        assert [each.logprob for each in kept[1].logprobs] == [each.logprob for each in kept[2].logprobs]
        alone = engine.stream("The sea", logprobs=20, **given)
        alone.result(WAIT)
        assert alone.logprobs == kept[2].logprobs, "equal bits alone and in company"


@pytest.mark.parametrize("wrong", [-1, 21, 1.5, True, "5"])
def test_what_is_out_of_range_is_refused(engine: lanes.Engine, wrong: Any) -> None:
    with pytest.raises(lanes.InvalidRequest, match="logprobs must be a whole number from 0 to 20"):
        engine.stream("The sea", logprobs=wrong)


def test_a_sum_of_many_alike_is_exact() -> None:
    rng = np.random.default_rng(0)
    with mx.stream(mx.cpu):
        for size, scale in product((3, 256, 32_001, 49_152, 151_936), (0.0, 0.1, 3.0, 30.0)):
            row = (rng.normal(size=size) * scale + 7).astype(np.float32)
            want = row.max() - oracle(row).max()
            assert float(np.array(logsumexp(mx.array(row)))) == pytest.approx(want, rel=2e-7, abs=3e-6)
