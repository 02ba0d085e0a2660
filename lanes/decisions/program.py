"""From labelled prompts to the work a slot does: one segment of tokens after the other, and the rows that are read.

A shared beginning is filled once. A row's bits depend on the pieces and rows that its sequence is cut into, so each
branch takes exactly the cut that its whole prompt would take alone: that is why the trunk ends at a piece's border.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lanes.decisions.labels import BoundLabels
from lanes.decisions.trie import ROOT, Tokens, Trie
from lanes.jobs import Leg, route, stretch
from lanes.prompts import Prompt, common_length


class Read(NamedTuple):
    """The logits to take at one row: those at `tokens`, for a node of the trie of one branch; and the `top` largest."""

    branch: int
    node: int
    tokens: tuple[int, ...]
    top: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens to feed from position `start` on; `reads` pairs an index into `tokens` with what is read there.

    None stands for a stream's draw, which depends on how far the stream is.
    """

    start: int
    tokens: tuple[int, ...]
    leg: Leg
    reads: tuple[tuple[int, Read | None], ...] = ()

    @property
    def end(self) -> int:
        """The position after the last token."""
        return self.start + len(self.tokens)

    def body(self, piece: int) -> int:
        """The tokens that are filled in whole pieces of a request's first segment: a row that is read is not."""
        return (len(self.tokens) - bool(self.reads)) // piece * piece


@dataclass(frozen=True, slots=True)
class Program:
    """All segments of a decision in the order they run; `trunk` is how many tokens are filled once for all branches."""

    segments: tuple[Segment, ...]
    trunk: int

    @property
    def room(self) -> int:
        """The most positions that are in use at once."""
        return max(segment.end for segment in self.segments)

    @property
    def tokens(self) -> int:
        """The tokens that are computed in all."""
        return sum(len(segment.tokens) for segment in self.segments)


def compile_program(
    prompts: Sequence[Prompt], bound: Sequence[BoundLabels], piece: int, packed: bool, top: int = 0
) -> Program:
    """The program of a decision with one prompt and one set of labels per branch.

    piece: tokens of a piece. packed: whether the model takes packed rows; without them the tail of a prompt is one last
    piece, and every branch starts at the trunk's border. top: how many of each root's largest logits to take.
    """
    if len(prompts) == 1:
        return Program(tuple(_branch(0, 0, prompts[0], bound[0], piece, packed, top)), 0)
    common = min(common_length(prompts), min(len(prompt.ids) for prompt in prompts) - 1)
    cut = common // piece * piece
    segments: list[Segment] = []
    if cut:
        segments.append(Segment(0, prompts[0].ids[:cut], Leg(cut // piece, 0)))
    near = [index for index, prompt in enumerate(prompts) if _body(prompt, piece) == cut]
    far = [index for index in range(len(prompts)) if index not in near]
    for place, index in enumerate([*near, *far]):
        # Behind the border near branches are rows alone, so what they share there is also computed once; a far
        # branch writes a piece over it.
        start = common if packed and 0 < place < len(near) else cut
        segments += _branch(index, start, prompts[index], bound[index], piece, packed, top)
    return Program(tuple(segments), common if packed and len(near) > 1 else cut)


def _branch(
    index: int, start: int, prompt: Prompt, bound: BoundLabels, piece: int, packed: bool, top: int
) -> Iterator[Segment]:
    """A prompt from `start` on, then the label tokens behind it whose logits decide."""
    trie, end = bound.trie, len(prompt.ids)
    tokens = prompt.ids[start:]
    root = (len(tokens) - 1, Read(index, ROOT, trie.nodes[ROOT].tokens, top))
    leg = stretch(start, end, piece, packed)
    yield Segment(start, tokens, leg, (root,))
    for depth, tokens, nodes in _stretches(trie, whole=packed):
        reads = tuple((at, Read(index, node, trie.nodes[node].tokens)) for at, node in nodes)
        yield Segment(end + depth, tokens, Leg(0, len(tokens)) if packed else Leg(-(-len(tokens) // piece), 0), reads)


def _stretches(trie: Trie, whole: bool) -> Iterator[tuple[int, Tokens, tuple[tuple[int, int], ...]]]:
    """The trie's legs as (depth, tokens, reads); not `whole`: cut where another leg begins, as only ends are kept."""
    legs = trie.legs()
    borders = {leg.depth for leg in legs}
    for leg in legs:
        ends = [at for at in range(1, len(leg.tokens)) if not whole and leg.depth + at in borders]
        for first, last in pairwise([0, *ends, len(leg.tokens)]):
            reads = tuple((at - first, node) for at, node in leg.reads if first <= at < last)
            yield leg.depth + first, leg.tokens[first:last], reads


def _body(prompt: Prompt, piece: int) -> int:
    return route(len(prompt.ids), piece).pieces * piece
