"""A token trie over a decision's labels: which rows to run, and each label's probability from their logits.

`P(label)` is the product, over the nodes where labels part, of the softmax over the children there alone. Shared
beginnings and forced tails are certain, so they cost no rows and a label's length does not bias the answer. Pure numpy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Tokens = tuple[int, ...]

ROOT = 0
"""The id of the node after the prompt's last token."""


@dataclass(frozen=True, slots=True)
class Node:
    """A place whose logits are needed: after the label tokens `prefix`, at the `tokens` that can come next."""

    prefix: Tokens
    tokens: Tokens

    @property
    def parts(self) -> bool:
        """Whether labels part here; at a node with one child nothing is decided."""
        return len(self.tokens) > 1


@dataclass(frozen=True, slots=True)
class Leg:
    """One stretch of rows: with the prompt and `prefix` in the slot, feed `tokens`.

    `reads` pairs an index into `tokens` with the id of the node whose logits that row gives.
    """

    prefix: Tokens
    tokens: Tokens
    reads: tuple[tuple[int, int], ...]

    @property
    def depth(self) -> int:
        """How many tokens to keep behind the prompt before feeding."""
        return len(self.prefix)


@dataclass(frozen=True, slots=True)
class Trie:
    """The labels' trie; `build` makes it.

    `nodes` are the root (id 0) and all other nodes where labels part; a node's id is its index here. `first` is, for
    each label, the index of its first token among the root's tokens. `choices` are, for each label, the pairs (node id,
    index among that node's tokens) that decide it, from the root down.
    """

    nodes: tuple[Node, ...]
    first: tuple[int, ...]
    choices: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def build(cls, labels: Sequence[Tokens], terminator: int | None = None) -> "Trie":
        """The trie of distinct labels, each of one or more token ids.

        A label that is a prefix of another would never part from it, so at its end it goes on with the `terminator`. To
        end every label with it would say the same: elsewhere it would be an only child and thus certain. Raises
        ValueError where a terminator is needed and there is none, or the longer label goes on with that very token.
        """
        inner = _children(labels)
        ended = [_ended(label, inner, terminator) for label in labels]
        children = _children(ended)
        nodes = tuple(Node(prefix, tuple(below)) for prefix, below in children.items() if not prefix or len(below) > 1)
        choices = tuple(
            tuple(
                (index, node.tokens.index(label[len(node.prefix)]))
                for index, node in enumerate(nodes)
                if node.parts and label[: len(node.prefix)] == node.prefix
            )
            for label in ended
        )
        return cls(nodes, tuple(nodes[ROOT].tokens.index(label[0]) for label in labels), choices)

    @property
    def fed_depth(self) -> int:
        """The most label tokens that stand behind the prompt at once."""
        return max(len(node.prefix) for node in self.nodes)

    def legs(self) -> tuple[Leg, ...]:
        """The legs that give the logits of every node but the root, whose logits the prompt's last row gives.

        In this order each leg's prefix is a prefix of what the leg before it left behind the prompt, so that a trim
        restores it. No token is fed twice, and none after the last node where labels part.
        """
        return tuple(_legs({node.prefix: index for index, node in enumerate(self.nodes) if node.prefix}))

    def log_probabilities(self, logits: Mapping[int, np.ndarray], temperature: float = 1.0) -> np.ndarray:
        """Log-probabilities of the labels ([n], float64), from the logits at each parting node's `tokens`, by node id.

        At every such node the logits are divided by the temperature (any number above 0) after their maximum was
        subtracted.
        """
        logs = {index: log_softmax(logits[index], temperature) for index, node in enumerate(self.nodes) if node.parts}
        return np.array(
            [sum(logs[index][place] for index, place in choice) for choice in self.choices], dtype=np.float64
        )


def log_softmax(logits: np.ndarray, temperature: float | np.ndarray = 1.0) -> np.ndarray:
    """`log(softmax(logits / temperature))` over the last axis, float64; finite at the maximum for any temperature."""
    wide = np.asarray(logits, dtype=np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the maximum to minus infinity, as it should
        scaled = (wide - wide.max(axis=-1, keepdims=True)) / temperature
    return scaled - np.log(np.exp(scaled).sum(axis=-1, keepdims=True))


def _children(labels: Sequence[Tokens]) -> dict[Tokens, dict[int, None]]:
    """For every beginning of a label that is not the whole of it, the tokens that come next; parents first."""
    children: dict[Tokens, dict[int, None]] = {}
    for label in labels:
        for depth, token in enumerate(label):
            children.setdefault(label[:depth], {})[token] = None
    return children


def _ended(label: Tokens, children: Mapping[Tokens, Mapping[int, None]], terminator: int | None) -> Tokens:
    if label not in children:
        return label
    if terminator is None or terminator in children[label]:
        raise ValueError(f"the label {label} is a prefix of another and cannot be ended with the token {terminator}")
    return (*label, terminator)


def _legs(targets: Mapping[Tokens, int]) -> Iterator[Leg]:
    """Sorted paths are in depth-first order: each leg runs on from where its path leaves the leg before it."""
    before: Tokens = ()
    for path in _longest(sorted(targets)):
        start = _common(before, path)
        ends = range(start + 1, len(path) + 1)
        reads = tuple((end - start - 1, targets[path[:end]]) for end in ends if path[:end] in targets)
        yield Leg(path[:start], path[start:], reads)
        before = path


def _longest(paths: list[Tokens]) -> Iterator[Tokens]:
    """The sorted paths that no other path goes on from: the others are passed on the way."""
    for index, path in enumerate(paths):
        if paths[index + 1 : index + 2] and paths[index + 1][: len(path)] == path:
            continue
        yield path


def _common(left: Tokens, right: Tokens) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))
