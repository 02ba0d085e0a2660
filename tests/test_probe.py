"""The probe's verdicts: on models that are exact, on some that leak on purpose, and on some that cannot be packed."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from company import CLOSE, WAIT, Ask, alone, words
from odd_models import WINDOW, biased, capped, leaking, odd, usual, windowed

import lanes
from lanes.engine import Engine
from lanes.engine import thread as engine_thread
from lanes.errors import InvalidRequest
from lanes.forward import Packed, Single, prepare
from lanes.forward import views as forward_views
from lanes.models.loaded import Loaded


def verdict(loaded: Loaded, slots: int = 8, width: int | None = None, piece: int = 32) -> Any:
    return prepare(loaded, slots, piece, width)[1]


# --- models that are exact ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["llama", "qwen3", "qwen3_moe", "gemma3"])
def test_plain_keys_and_values_are_packed_and_exact(arch: str) -> None:
    forward, found = prepare(lanes.load(lanes.tiny(arch)), 8, 32)
    assert isinstance(forward, Packed)
    assert (found.exact, found.route, found.piece) == (True, "packed", 32)
    assert found.width == forward.width
    assert found.tried[-1] == (found.width, True)
    assert found.comparisons > found.width**2
    assert max(found.lengths) >= 300
    assert "exact" in repr(found)
    assert "NOT" not in repr(found)


def test_recurrent_state_takes_the_single_route() -> None:
    forward, found = prepare(lanes.load(lanes.tiny("qwen3_5")), 8, 32)
    assert isinstance(forward, Single)
    assert (found.exact, found.route, found.width) == (True, "single", 1)
    assert "qwen3_5 keeps more than plain keys and values" in found.why


def test_it_leaves_empty_slots_behind() -> None:
    forward, _ = prepare(lanes.load(lanes.tiny("llama")), 3, 32)
    assert isinstance(forward, Packed)
    assert len(forward.slots) == 3
    assert all(not slot.arrays for slot in forward.slots)


def test_a_short_context_is_probed_within_it() -> None:
    found = verdict(lanes.load(lanes.tiny("llama", max_position_embeddings=64)))
    assert found.exact
    assert max(found.lengths) < 64


@pytest.mark.parametrize("width", [1, 4, 8])
def test_a_width_that_was_asked_for_is_the_only_one_tried(width: int) -> None:
    found = verdict(lanes.load(lanes.tiny("llama")), slots=16, width=width)
    assert found.width == width
    assert found.tried == ((width, True),)


@pytest.mark.parametrize("width", [0, -1, 65])
def test_a_width_that_cannot_work_is_refused(width: int) -> None:
    with pytest.raises(InvalidRequest, match="1 to 64"):
        verdict(lanes.load(lanes.tiny("llama")), width=width)


def test_its_facts_are_plain_values() -> None:
    facts = verdict(lanes.load(lanes.tiny("llama"))).to_dict()
    assert facts["exact"] is True
    assert facts["route"] == "packed"
    assert all(isinstance(value, bool | int | str | tuple) for value in facts.values())


# --- models that leak -----------------------------------------------------------------------------------------------


def mates(y: mx.array) -> mx.array:
    """What the other rows hold."""
    return y.mean(axis=0, keepdims=True)


def place(y: mx.array) -> mx.array:
    """Where the row stands."""
    return y * mx.arange(y.shape[0])[:, None, None]


def eighth(y: mx.array) -> mx.array:
    """Whether the row is the eighth."""
    return y * (mx.arange(y.shape[0]) == 7)[:, None, None]


def times() -> Any:
    """How often it was called: the same forward never repeats."""
    calls = count()
    return lambda y: mx.zeros_like(y) + next(calls) % 97


def at_widths(*widths: int) -> Any:
    """The mates, in rounds of some widths only."""
    return lambda y: mates(y) if y.shape[0] in widths else mx.zeros_like(y)


@pytest.mark.parametrize("leak", [mates, place, times()], ids=["mates", "place", "times"])
def test_a_row_that_depends_on_anything_else_is_not_exact(leak: Any) -> None:
    found = verdict(leaking("llama", leak))
    assert (found.exact, found.route, found.width) == (False, "packed", 8)
    assert found.tried == ((8, False), (4, False))
    assert "NOT exact" in repr(found)
    assert "its position or its mates" in found.why


@pytest.mark.parametrize(
    ("leak", "tried"),
    [
        (at_widths(16), ((16, False), (8, True))),
        (at_widths(16, 8), ((16, False), (8, False), (4, True))),
        (eighth, ((16, False), (8, False), (4, True))),
    ],
    ids=["16", "16 and 8", "the eighth row"],
)
def test_it_takes_the_widest_that_passes(leak: Any, tried: tuple[tuple[int, bool], ...]) -> None:
    found = verdict(leaking("llama", leak), slots=16)
    assert found.exact
    assert found.tried == tried
    assert found.width == tried[-1][0]


def test_attention_that_does_not_repeat_beyond_256_keys_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    attend, calls = forward_views.attend_rows, count(1)

    def unsteady(q: mx.array, seen: list[tuple[mx.array, mx.array]], *rest: Any) -> mx.array:
        shift = mx.array([1e-6 * next(calls) if k.shape[2] > 256 else 0.0 for k, _ in seen])
        return attend(q, seen, *rest) + shift[:, None, None, None]

    monkeypatch.setattr(forward_views, "attend_rows", unsteady)
    assert not verdict(lanes.load(lanes.tiny("llama"))).exact


def test_a_single_route_that_does_not_repeat_is_not_exact() -> None:
    found = verdict(leaking("qwen3_5", times()))
    assert (found.exact, found.route) == (False, "single")
    assert "other bits again" in found.why


# --- models that cannot be packed -----------------------------------------------------------------------------------


def gemma2() -> Loaded:
    """A real class of mlx-lm that caps its attention's scores, and its logits, by itself."""
    from dataclasses import replace

    from mlx_lm.models import gemma2 as module

    args = module.ModelArgs(
        model_type="gemma2", hidden_size=64, num_hidden_layers=2, intermediate_size=128, num_attention_heads=4,
        head_dim=16, rms_norm_eps=1e-6, vocab_size=512, num_key_value_heads=2,
    )  # fmt: skip
    mx.random.seed(3)
    model = module.Model(args)
    mx.eval(model.parameters())
    return replace(lanes.load(lanes.tiny("llama")), model=model, arch="gemma2")


ODD = {
    "capped": lambda: odd(capped),
    "biased": lambda: odd(biased),
    "windowed": lambda: odd(windowed),
    "window over a cache that keeps all": lambda: odd(usual, WINDOW),
    "gemma2": gemma2,
}


def test_the_usual_attention_in_a_model_of_ones_own_is_packed() -> None:
    assert verdict(odd(usual)).route == "packed"


@pytest.mark.parametrize("name", ODD)
def test_a_model_whose_packed_logits_would_be_wrong_takes_the_single_route(name: str) -> None:
    found = verdict(ODD[name]())
    assert (found.route, found.exact, found.width) == ("single", True, 1)
    assert "one sequence a forward, because" in found.why


@pytest.fixture(params=[*ODD])
def served(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Engine, Loaded]]:
    """An engine with an odd model, and the same model on the test's own thread."""
    monkeypatch.setattr(engine_thread, "load", lambda *_, **__: ODD[request.param]())
    with Engine("odd", slots=3) as engine:
        yield engine, ODD[request.param]()


def test_an_engine_with_such_a_model_answers_as_the_model_itself_does(served: tuple[Engine, Loaded]) -> None:
    engine, loaded = served
    for size in (20, 150):
        prompt = words(size, size)
        ids = loaded.tokenizer.encode(prompt)
        found = engine.score(prompt, [" yes", " no"]).result(WAIT)
        row = np.array(loaded.model(mx.array([ids]))[0, -1]).astype(np.float64)
        want = [row[loaded.tokenizer.encode(label)[0]] for label in (" yes", " no")]
        np.testing.assert_allclose(found.logits, want, rtol=0, atol=10 * CLOSE)
        assert found.logsumexp == pytest.approx(float(np.logaddexp.reduce(row)), abs=10 * CLOSE)


def test_an_engine_that_is_not_exact_says_so_and_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_thread, "load", lambda *_, **__: leaking("llama", mates))
    with Engine("leaking", slots=3) as engine:
        assert not engine.exactness.exact
        ask = Ask(words(40, 1), length=12)
        tokens, digests, _ = alone(engine, ask)
        streams = [ask(engine), Ask(words(70, 2), length=12)(engine), Ask(words(5, 3), length=12)(engine)]
        assert all(stream.wait(WAIT) for stream in streams)
        assert streams[0].tokens == tokens
        # What a test on tokens could never see, and the reason why every other test here compares bits.
        assert streams[0].digests != digests
        assert engine.score(words(40, 1), [" yes", " no"]).result(WAIT).choice in (" yes", " no")


@pytest.mark.parametrize("arch", ["llama", "qwen3_5"])
def test_the_probe_ends_where_nobody_waits_for_it_any_more(arch: str) -> None:
    loaded = lanes.load(lanes.tiny(arch))
    for calls in range(1, 4):
        left = iter(range(calls))

        def check(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise lanes.EngineClosed("given up")

        with pytest.raises(lanes.EngineClosed, match="given up"):
            prepare(loaded, 8, 32, check=check)
        assert next(left, None) is None
