"""The token trie against an oracle that runs every label alone."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanes.decisions.trie import ROOT, Leg, Node, Trie, log_softmax
from lanes.measure.oracle import log_probabilities

EOS = 99
LABELS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12).map(tuple), min_size=1, max_size=8, unique=True)


def fake_logit(prefix, token):
    """A language model's logit for a token after label tokens: any number from -8 to 8, decided by both."""
    digest = hashlib.blake2b(repr((tuple(prefix), token)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**60 - 8


def run(trie):
    """Run the legs as an engine would, and read the logits that they give."""
    logits = {ROOT: np.array([fake_logit((), token) for token in trie.nodes[ROOT].tokens])}
    slot = ()
    for leg in trie.legs():
        assert slot[: leg.depth] == leg.prefix, "a trim cannot restore this"
        slot = leg.prefix
        reads = dict(leg.reads)
        for index, token in enumerate(leg.tokens):
            slot = (*slot, token)
            if index in reads:
                node = reads[index]
                assert node not in logits, "read twice"
                assert trie.nodes[node].prefix == slot
                logits[node] = np.array([fake_logit(slot, next_) for next_ in trie.nodes[node].tokens])
    return logits


def oracle(labels, temperature, terminator=EOS):
    return log_probabilities(labels, fake_logit, temperature, terminator)


@given(labels=LABELS, temperature=st.sampled_from([0.2, 1.0, 3.0]))
@example(labels=[(1,), (1, 2), (1, 2, 3), (1, 2, 3, 3)], temperature=1.0)
@example(labels=[(1, 2, 3), (1, 2, 0), (1, 0), (2, 2, 2, 2), (2, 2, 2, 1)], temperature=1.0)
def test_the_trie_agrees_with_each_label_run_alone(labels, temperature):
    trie = Trie.build(labels, EOS)
    assert trie.log_probabilities(run(trie), temperature) == pytest.approx(oracle(labels, temperature), abs=1e-9)


@given(
    texts=st.lists(st.text(st.sampled_from("aé€😀 日b"), min_size=1, max_size=3), min_size=2, max_size=6, unique=True)
)
def test_the_trie_agrees_with_the_oracle_on_the_bytes_of_unicode_labels(texts):
    labels = [tuple(text.encode()) for text in texts]
    trie = Trie.build(labels, 256)
    assert trie.log_probabilities(run(trie)) == pytest.approx(oracle(labels, 1.0, 256), abs=1e-9)


@given(LABELS)
def test_probabilities_add_up_to_one(labels):
    trie = Trie.build(labels, EOS)
    assert np.exp(trie.log_probabilities(run(trie))).sum() == pytest.approx(1)


@given(LABELS)
def test_legs_read_every_node_once_and_feed_no_token_twice(labels):
    trie = Trie.build(labels, EOS)
    legs = trie.legs()
    read = [node for leg in legs for _, node in leg.reads]
    assert sorted(read) == list(range(1, len(trie.nodes)))
    fed = [leg.prefix + leg.tokens[: end + 1] for leg in legs for end in range(len(leg.tokens))]
    assert len(fed) == len(set(fed))
    assert all(leg.reads[-1][0] == len(leg.tokens) - 1 for leg in legs), "the last fed row is of use"
    assert max((len(path) for path in fed), default=0) == trie.fed_depth


@given(LABELS, st.randoms(use_true_random=False))
def test_the_order_of_the_labels_changes_nothing_but_the_order(labels, random):
    shuffled = random.sample(labels, len(labels))
    one, other = Trie.build(labels, EOS), Trie.build(shuffled, EOS)
    by_label = dict(zip(shuffled, other.log_probabilities(run(other)), strict=True))
    assert one.log_probabilities(run(one)) == pytest.approx([by_label[label] for label in labels], abs=1e-12)


def test_labels_of_one_token_need_the_root_alone():
    trie = Trie.build([(5,), (3,), (4,)])
    assert trie.nodes == (Node((), (5, 3, 4)),)
    assert (trie.legs(), trie.fed_depth, trie.first) == ((), 0, (0, 1, 2))


def test_forced_tails_are_not_fed_and_forced_beginnings_are():
    trie = Trie.build([(1, 2, 3, 7, 7, 7), (1, 2, 4, 8)])
    assert trie.nodes == (Node((), (1,)), Node((1, 2), (3, 4)))
    assert trie.legs() == (Leg((), (1, 2), ((1, 1),)),)
    assert trie.first == (0, 0)


def test_legs_go_back_no_further_than_where_paths_part():
    trie = Trie.build([(1, 2, 3, 0), (1, 2, 3, 1), (1, 2, 4, 0), (1, 2, 4, 1), (5, 0), (5, 1)])
    prefixes = [node.prefix for node in trie.nodes]
    ids = {prefix: index for index, prefix in enumerate(prefixes)}
    assert trie.legs() == (
        Leg((), (1, 2, 3), ((1, ids[1, 2]), (2, ids[1, 2, 3]))),
        Leg((1, 2), (4,), ((0, ids[1, 2, 4]),)),
        Leg((), (5,), ((0, ids[5,]),)),
    )


def test_a_label_that_begins_another_is_ended_by_the_terminator():
    trie = Trie.build([(1,), (1, 2)], EOS)
    assert trie.nodes == (Node((), (1,)), Node((1,), (EOS, 2)))
    assert np.exp(trie.log_probabilities({1: np.log([1.0, 3.0])})) == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize(("labels", "terminator"), [([(1,), (1, 2)], None), ([(1,), (1, EOS)], EOS)])
def test_a_terminator_must_tell_the_labels_apart(labels, terminator):
    with pytest.raises(ValueError, match="prefix of another"):
        Trie.build(labels, terminator)


def test_a_greedy_walk_is_not_what_decides():
    # The likelier first token leads to two labels that share its probability.
    trie = Trie.build([(1, 1), (1, 2), (2,)])
    logits = {0: np.log([0.6, 0.4]), 1: np.log([0.5, 0.5])}
    assert np.exp(trie.log_probabilities(logits)) == pytest.approx([0.3, 0.3, 0.4])


@given(
    st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=5), st.sampled_from([1e-320, 1e-3, 1.0, 1e3, 1e300])
)
def test_log_softmax_is_finite_at_the_maximum_for_any_temperature(logits, temperature):
    logs = log_softmax(np.array(logits, dtype=np.float32), temperature)
    assert np.exp(logs).sum() == pytest.approx(1)
    assert math.isfinite(logs.max())
