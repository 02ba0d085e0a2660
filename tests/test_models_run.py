"""Every kind of tiny model in a whole engine against plain mlx-lm: the same greedy tokens, and logits as close."""

from collections.abc import Iterator, Sequence
from functools import cache

import mlx.core as mx
import numpy as np
import pytest
from company import ROUTES, WAIT, words

import lanes
from lanes.engine import Engine
from lanes.models.loaded import Loaded

ARCHS = ("llama", "qwen3", "qwen3_moe", "qwen3_5", "gemma3")
# Around the borders of rows, pieces and windows (32 tokens), and beyond 256 keys.
LENGTHS = (1, 2, 31, 32, 33, 100, 256, 300)
CLOSE = 2e-5
"""How far two ways to sum the same float32 numbers lie apart here; a likeliest token that leads by less may change."""


@pytest.fixture(scope="module", params=ARCHS)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with Engine(lanes.tiny(request.param, seed=1), slots=4) as made:
        yield made


@cache
def plain(name: str) -> Loaded:
    """The same model on the test's own thread."""
    return lanes.load(lanes.tiny(name, seed=1))


def greedy(loaded: Loaded, ids: Sequence[int], length: int) -> tuple[list[int], list[float]]:
    """Plain mlx-lm: the likeliest tokens one by one, and by how much each led."""
    from mlx_lm.models.cache import make_prompt_cache

    kept = make_prompt_cache(loaded.model)
    logits = loaded.model(mx.array([ids]), cache=kept)[0, -1]
    tokens, leads = [], []
    for _ in range(length):
        row = np.array(logits)
        tokens.append(int(row.argmax()))
        leads.append(float(row.max() - np.delete(row, tokens[-1]).max()))
        logits = loaded.model(mx.array([[tokens[-1]]]), cache=kept)[0, -1]
    return tokens, leads


def test_the_route_is_the_one_its_attention_allows(engine: Engine) -> None:
    assert engine.exactness.exact
    assert engine.exactness.route == ROUTES.get(engine.info.arch, "packed")


def test_greedy_tokens_are_those_of_plain_mlx_lm(engine: Engine) -> None:
    loaded = plain(engine.info.arch)
    prompts = [words(n, n) for n in LENGTHS]
    streams = [engine.stream(prompt, max_tokens=40, ignore_eos=True) for prompt in prompts]
    compared = 0
    for prompt, stream in zip(prompts, streams, strict=True):
        stream.result(WAIT)
        tokens, leads = greedy(loaded, loaded.tokenizer.encode(prompt), 40)
        sure = next((at for at, lead in enumerate(leads) if lead < 10 * CLOSE), 40)
        assert stream.tokens[:sure] == tuple(tokens[:sure])
        compared += sure
    assert compared > 30 * len(LENGTHS)


def test_logits_after_a_prompt_are_close_to_those_of_plain_mlx_lm(engine: Engine) -> None:
    loaded = plain(engine.info.arch)
    labels = [" yes", " no", " sea", "x", "\n", "Z", " the"]
    ids = [loaded.tokenizer.encode(label)[0] for label in labels]
    for length in LENGTHS:
        prompt = words(length, length)
        found = engine.score(prompt, labels).result(WAIT)
        row = np.array(loaded.model(mx.array([loaded.tokenizer.encode(prompt)]))[0, -1])
        np.testing.assert_allclose(found.logits, row[ids], rtol=0, atol=CLOSE * np.abs(row).max())
        assert found.logsumexp == pytest.approx(float(np.logaddexp.reduce(row.astype(np.float64))), abs=CLOSE)


def test_text_is_what_the_tokens_say(engine: Engine) -> None:
    stream = engine.stream(words(20, 1), max_tokens=60, ignore_eos=True)
    text = stream.result(WAIT)
    whole = plain(engine.info.arch).tokenizer.decode(list(stream.tokens), skip_special_tokens=True)
    assert text == whole


@pytest.mark.parametrize("sizes", [{"num_hidden_layers": 1}, {"num_key_value_heads": 4}, {"num_key_value_heads": 1}])
def test_other_shapes_of_a_llama_run_too(sizes: dict[str, int]) -> None:
    spec = lanes.tiny("llama", seed=1, **sizes)
    loaded = lanes.load(spec)
    with Engine(spec, slots=2) as engine:
        assert engine.exactness.exact
        stream = engine.stream(words(270, 3), max_tokens=20, ignore_eos=True)
        stream.result(WAIT)
    tokens, leads = greedy(loaded, loaded.tokenizer.encode(words(270, 3)), 20)
    sure = next((at for at, lead in enumerate(leads) if lead < 10 * CLOSE), 20)
    assert sure > 3
    assert stream.tokens[:sure] == tuple(tokens[:sure])


@pytest.mark.parametrize("piece", [3, 16, 100])
@pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen3_5"])
def test_any_size_of_piece_gives_the_same_answers_but_for_rounding(arch: str, piece: int) -> None:
    loaded = plain(arch)
    prompt = words(120, 5)
    row = np.array(loaded.model(mx.array([loaded.tokenizer.encode(prompt)]))[0, -1])
    with Engine(lanes.tiny(arch, seed=1), slots=2, piece=piece) as engine:
        found = engine.score(prompt, [" yes", " no"]).result(WAIT)
        split = engine.decide(words(60, 5), [prompt[len(words(60, 5)) :]], [" yes", " no"]).result(WAIT)
    ids = [loaded.tokenizer.encode(label)[0] for label in (" yes", " no")]
    np.testing.assert_allclose(found.logits, row[ids], rtol=0, atol=CLOSE * np.abs(row).max())
    assert split[0].logits.tobytes() == found.logits.tobytes()
