"""The program of a decision, run by a toy slot that remembers how every position in it was computed."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lanes.decisions.labels import BoundLabels
from lanes.decisions.program import Program, compile_program
from lanes.decisions.trie import Trie
from lanes.jobs import Leg
from lanes.prompts import Prompt

EOS = 99
Ids = tuple[int, ...]
Cells = tuple[tuple[int, Any], ...]
"""For each position from 0: the token, and how it was computed (a row, or a piece of which tokens from where)."""


def prompt(ids: Ids) -> Prompt:
    return Prompt("", ids, False)


def bound(*labels: Ids) -> BoundLabels:
    return BoundLabels(tuple(map(str, labels)), labels, Trie.build(labels, EOS))


def run(program: Program, piece: int, packed: bool) -> dict[tuple[int, int], Cells]:
    """What stands in the slot, up to the row that is read, at each read (branch, node)."""
    slot: list[tuple[int, Any]] = []
    kept: dict[int, Cells] = {0: ()}  # without packed rows a state is kept where a fill ended, and nowhere else
    found: dict[tuple[int, int], Cells] = {}
    for segment in program.segments:
        assert len(segment.tokens) <= segment.leg.pieces * piece + segment.leg.rows
        if packed:
            assert len(segment.tokens) == segment.leg.pieces * piece + segment.leg.rows
            assert segment.start <= len(slot), "it starts behind what was filled"
            del slot[segment.start :]
        else:
            assert segment.leg.rows == 0
            assert segment.start in kept, "no state was kept where it starts"
            slot = list(kept[segment.start])
        reads = dict(segment.reads)
        at = 0
        while at < len(segment.tokens):
            in_piece = at < segment.leg.pieces * piece
            block = segment.tokens[at : at + piece] if in_piece else segment.tokens[at : at + 1]
            position = segment.start + at
            if in_piece and packed:
                assert position % piece == 0, "a piece that is not at a multiple of its size"
            how = ("piece", position, block) if in_piece else "row"
            for offset, token in enumerate(block):
                slot.append((token, how))
                read = reads.get(at + offset)
                if read:
                    assert (read.branch, read.node) not in found, "read twice"
                    found[read.branch, read.node] = tuple(slot)
            at += len(block)
            kept[len(slot)] = tuple(slot)
        assert len(slot) == segment.end <= program.room
    return found


def route(ids: Ids, after: Ids, piece: int) -> Cells:
    """What a whole prompt alone should leave in the slot: its body in pieces, the rest and label tokens as rows."""
    body = (len(ids) - 1) // piece * piece
    starts = (position // piece * piece for position in range(body))
    pieces = [(ids[at], ("piece", start, ids[start : start + piece])) for at, start in enumerate(starts)]
    return (*pieces, *((token, "row") for token in (*ids[body:], *after)))


IDS = st.integers(0, 2)
LABELS = st.lists(st.lists(st.integers(5, 7), min_size=1, max_size=5).map(tuple), min_size=1, max_size=5, unique=True)
TRUNKS = st.lists(IDS, max_size=70).map(tuple)
BRANCHES = st.lists(
    st.tuples(st.lists(IDS, min_size=1, max_size=40).map(tuple), LABELS.map(lambda labels: bound(*labels))),
    min_size=1,
    max_size=20,
)


@settings(max_examples=150)
@given(trunk=TRUNKS, branches=BRANCHES, piece=st.sampled_from([4, 8, 32]))
@example(trunk=(1,) * 32, branches=[((0,), bound((5,)))] * 3, piece=32)
@example(trunk=(1,) * 31, branches=[((0,), bound((5,))), ((0, 0), bound((5,))), ((2, 0, 0), bound((6,)))], piece=32)
@example(trunk=(1,) * 9, branches=[((1,) * n, bound((5, 5), (5,))) for n in range(1, 21)], piece=8)
def test_every_branch_is_computed_exactly_as_its_whole_prompt_would_be(
    trunk: Ids, branches: list[tuple[Ids, BoundLabels]], piece: int
) -> None:
    prompts = [prompt(trunk + own) for own, _ in branches]
    labels = [label for _, label in branches]
    found = run(compile_program(prompts, labels, piece, packed=True), piece, packed=True)
    assert len(found) == sum(len(label.trie.nodes) for label in labels)
    for branch, (whole, label) in enumerate(zip(prompts, labels, strict=True)):
        for node, place in enumerate(label.trie.nodes):
            assert found[branch, node] == route(whole.ids, place.prefix, piece)


@settings(max_examples=100)
@given(trunk=TRUNKS, branches=BRANCHES, piece=st.sampled_from([4, 8, 32]))
@example(trunk=(1,) * 40, branches=[((0,), bound((5, 5, 6), (5, 5, 7), (5, 6, 6), (5, 6, 7)))] * 2, piece=32)
@example(
    trunk=(1,) * 5, branches=[((0,), bound((5,) * 7 + (6,), (5,) * 7 + (7,), (5, 5, 6, 5), (5, 5, 6, 6)))], piece=4
)
def test_without_packed_rows_a_branch_is_computed_as_its_whole_prompt_and_starts_where_a_state_was_kept(
    trunk: Ids, branches: list[tuple[Ids, BoundLabels]], piece: int
) -> None:
    prompts = [prompt(trunk + own) for own, _ in branches]
    labels = [label for _, label in branches]
    found = run(compile_program(prompts, labels, piece, packed=False), piece, packed=False)
    for branch, (whole, label) in enumerate(zip(prompts, labels, strict=True)):
        score = run(compile_program([whole], [label], piece, packed=False), piece, packed=False)
        for node, place in enumerate(label.trie.nodes):
            assert found[branch, node] == score[0, node]
            assert tuple(token for token, _ in found[branch, node]) == whole.ids + place.prefix


@given(trunk=TRUNKS, branches=BRANCHES, piece=st.sampled_from([4, 8]), packed=st.booleans())
def test_the_reads_name_the_tokens_of_their_node(
    trunk: Ids, branches: list[tuple[Ids, BoundLabels]], piece: int, packed: bool
) -> None:
    labels = [label for _, label in branches]
    program = compile_program([prompt(trunk + own) for own, _ in branches], labels, piece, packed)
    reads = [read for segment in program.segments for _, read in segment.reads if read]
    assert all(read.tokens == labels[read.branch].trie.nodes[read.node].tokens for read in reads)


@pytest.mark.parametrize("trunk", [3, 31, 32, 33, 40, 64, 70])
@pytest.mark.parametrize("questions", [2, 5, 20])
def test_what_branches_share_is_computed_once(trunk: int, questions: int) -> None:
    # Branches that end within one piece behind the trunk's border share even the rows behind it.
    shared = tuple(range(100, 100 + trunk))
    prompts = [prompt((*shared, 200 + at, 7)) for at in range(questions)]
    program = compile_program(prompts, [bound((5,), (6,))] * questions, 32, packed=True)
    crosses = trunk % 32 == 31  # the second token of a branch is then the first of the next piece
    border = trunk // 32 * 32
    once = border if crosses else trunk
    assert program.trunk == once
    assert program.tokens == once + questions * (trunk + 2 - once)


def test_without_packed_rows_the_trunk_is_shared_up_to_its_border() -> None:
    prompts = [prompt((*range(100, 140), at)) for at in range(3)]
    program = compile_program(prompts, [bound((5,), (6,))] * 3, 32, packed=False)
    assert program.trunk == 32
    assert [(segment.start, segment.end) for segment in program.segments] == [(0, 32), (32, 41), (32, 41), (32, 41)]
    assert [segment.leg for segment in program.segments] == [Leg(1, 0)] * 4


def test_one_branch_is_a_score() -> None:
    whole, labels = prompt(tuple(range(50))), bound((5,), (6, 6), (6, 7))
    program = compile_program([whole], [labels], 32, packed=True)
    assert [(segment.start, segment.tokens) for segment in program.segments] == [(0, whole.ids), (50, (6,))]
    assert program.segments[0].leg == Leg(1, 18)
    assert program.room == 51


def test_branches_that_begin_alike_beyond_the_trunk_share_that_too() -> None:
    prompts = [prompt((*range(64), 7, 7, last)) for last in (1, 2)]
    program = compile_program(prompts, [bound((5,))] * 2, 32, packed=True)
    assert program.trunk == 66
    assert program.tokens == 66 + 2


def test_a_branch_that_is_the_beginning_of_another_still_has_a_row_to_read() -> None:
    prompts = [prompt(tuple(range(40))), prompt(tuple(range(41))), prompt(tuple(range(40)))]
    found = run(compile_program(prompts, [bound((5,))] * 3, 32, packed=True), 32, packed=True)
    assert {key: len(cells) for key, cells in found.items()} == {(0, 0): 40, (1, 0): 41, (2, 0): 40}
