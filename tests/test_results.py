"""A decision's result: its numbers, how it reads, what it refuses to be made of."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanes.decisions.labels import BoundLabels
from lanes.decisions.results import scored
from lanes.decisions.trie import Trie
from lanes.errors import EngineFailed, InvalidRequest
from lanes.record import Timing

VALUES = st.floats(-(2.0**100), 2.0**100, width=32)


def labelled(*tokens, names="abcdefghijklmnopqrstuvwxyz"):
    return BoundLabels(tuple(names[: len(tokens)]), tokens, Trie.build(tokens, 99))


def single(logits, logsumexp=None, **options):
    logits = np.array(logits, dtype=np.float32)
    bound = labelled(*((token,) for token in range(len(logits))))
    return scored(bound, {0: logits}, math.inf if logsumexp is None else logsumexp, **options)


def test_the_numbers_follow_their_formulas():
    logits = [1.5, -0.25, 0.75]
    result = single(logits, logsumexp=3.0, temperature=2.0, prompt_tokens=9, cached_tokens=4)
    weights = [math.exp(logit / 2) for logit in logits]
    probabilities = [weight / math.fsum(weights) for weight in weights]
    assert result.probabilities == pytest.approx(probabilities, rel=1e-14)
    assert result.label_mass == pytest.approx(math.fsum(math.exp(logit - 3) for logit in logits), rel=1e-14)
    assert result.confidence == pytest.approx((max(probabilities) - 1 / 3) / (2 / 3))
    assert result.entropy == pytest.approx(-math.fsum(p * math.log(p) for p in probabilities))
    assert (result.choice, result.temperature, result.prompt_tokens, result.cached_tokens) == ("a", 2.0, 9, 4)


def test_logits_keep_the_bits_that_were_read():
    logits = np.array([0.1, 1e-42, -3.4e38], dtype=np.float32)
    result = single(logits, logsumexp=1.0)
    assert result.logits.dtype == np.float32
    assert result.logits.tobytes() == logits.tobytes()
    assert result.probabilities.dtype == np.float64


@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from([1e-320, 1e-30, 0.5, 1.0, 7.0, 1e300]))
def test_any_finite_logits_and_temperature_give_a_distribution(logits, temperature):
    result = single(logits, logsumexp=float(np.float32(max(logits))), temperature=temperature)
    assert np.all(np.isfinite(result.probabilities))
    assert result.probabilities.sum() == pytest.approx(1)
    assert result.choice == "abcdef"[int(np.argmax(logits))]
    assert 0 <= result.label_mass <= 1
    assert -1e-12 <= result.confidence <= 1 + 1e-12
    assert 0 <= result.entropy <= math.log(len(logits)) + 1e-12


@pytest.mark.parametrize("temperature", [1e-320, 1.0, 1e300])
def test_the_choice_is_the_largest_logit_even_where_probabilities_round_to_equals(temperature):
    assert single([0.0, 2.7930058814404094e-38], 0.0, temperature=temperature).choice == "b"


def test_a_tiny_temperature_stays_finite_and_shares_between_equals():
    assert single([5, 4, 5], 6.0, temperature=1e-320).probabilities.tolist() == [0.5, 0.0, 0.5]


@given(st.lists(st.floats(-50, 50, width=32), min_size=2, max_size=5), st.floats(-50, 50, width=32))
def test_a_shift_of_all_logits_changes_no_probability(logits, shift):
    moved = np.array(logits, dtype=np.float64) + shift
    bound = labelled(*((token,) for token in range(len(logits))))
    results = [scored(bound, {0: values}, 200.0).probabilities for values in (np.array(logits, np.float64), moved)]
    assert results[0] == pytest.approx(results[1], rel=1e-9)


def test_longer_labels_give_the_tries_probabilities_and_their_first_tokens_logits():
    bound = labelled((1, 5), (1, 6), (2, 7, 7))
    logits = {0: np.log(np.array([0.3, 0.1], np.float32)), 1: np.log(np.array([0.2, 0.6], np.float32))}
    result = scored(bound, logits, 0.0)
    assert result.probabilities == pytest.approx([0.75 * 0.25, 0.75 * 0.75, 0.25], rel=1e-6)
    assert result.logits.tolist() == [logits[0][0], logits[0][0], logits[0][1]]
    assert result.label_mass == pytest.approx(0.4, rel=1e-6)
    assert result.choice == "b"


def test_one_label_is_certain_and_its_mass_says_how_likely():
    result = single([math.log(0.25)], 0.0)
    assert (result["a"], result.choice, result.confidence, result.entropy) == (1.0, "a", 1.0, 0.0)
    assert result.label_mass == pytest.approx(0.25)


def test_a_result_reads_like_a_mapping():
    result = single([2.0, 2.0], 4.0)
    assert dict(result) == {"a": 0.5, "b": 0.5}
    assert (len(result), list(result), "a" in result, "z" in result) == (2, ["a", "b"], True, False)
    with pytest.raises(KeyError, match="'z' is not among the labels"):
        result["z"]


def test_a_result_cannot_be_changed():
    result = single([2.0, 1.0], 4.0)
    with pytest.raises(AttributeError):
        result.choice = "b"  # pyright: ignore[reportAttributeAccessIssue]
    for values in (result.logits, result.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_no_answer(bad):
    with pytest.raises(EngineFailed, match="not finite, which is no answer"):
        single([1.0, bad], 3.0)
    with pytest.raises(EngineFailed, match="not finite, which is no answer"):
        single([1.0, 2.0], bad)
    with pytest.raises(EngineFailed, match="not finite, which is no answer"):
        scored(labelled((1, 5), (1, 6)), {0: np.array([1.0]), 1: np.array([0.0, bad])}, 2.0)


@pytest.mark.parametrize("temperature", [0, -1, math.nan, math.inf, True, "1", None])
def test_a_temperature_must_be_above_zero(temperature):
    with pytest.raises(InvalidRequest, match="temperature must be a finite number above 0"):
        single([1.0, 2.0], 3.0, temperature=temperature)


def test_the_repr_is_one_stable_line():
    timing = Timing(submitted=12.345)
    one, other = single([1.0, 1.0], 2.0, timing=timing), single([1.0, 1.0], 2.0)
    assert repr(one) == repr(other) == "Scored('a', {'a': 0.5000, 'b': 0.5000}, label_mass=0.7358)"


def test_a_dict_is_ready_for_json():
    result = single([1.0, 0.0], 2.0, timing=Timing(submitted=1.0))
    again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert again["labels"] == ["a", "b"]
    assert again["logits"] == [1.0, 0.0]
    assert again["probabilities"] == result.probabilities.tolist()
    assert again["timing"]["submitted"] == 1.0
    assert single([1.0], 2.0).to_dict()["timing"] is None


def test_the_html_escapes_labels_and_needs_nothing_from_outside():
    bound = BoundLabels((" <b>&", "no"), ((1,), (2,)), Trie.build([(1,), (2,)]))
    html = scored(bound, {0: np.array([0.0, 2.0], np.float32)}, 3.0)._repr_html_()
    assert "&#x27; &lt;b&gt;&amp;&#x27;" in html
    assert html.index("no") < html.index("&lt;b&gt;"), "the likeliest comes first"
    assert "width:88.1%" in html
    for foreign in ("<script", "<style", "http", "class=", " on"):
        assert foreign not in html
    assert (
        html.count("var(--jp-")
        == html.count("var(--jp-layout-color2, rgba") + html.count("var(--jp-brand-color1, #") + 2
    )


def test_the_html_of_many_labels_shows_the_likeliest():
    names = [f"label {i}" for i in range(255)]
    tokens = tuple((i,) for i in range(255))
    bound = BoundLabels(tuple(names), tokens, Trie.build(tokens))
    html = scored(bound, {0: np.arange(255, dtype=np.float32)}, 300.0)._repr_html_()
    assert html.count("<tr>") == 20
    assert "label 254" in html
    assert "label 234" not in html
    assert "235 labels more" in html
