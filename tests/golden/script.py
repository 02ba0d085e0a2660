"""Scripts: requests that come, go and are cancelled between rounds that are stepped, and what the record says of it."""

from collections.abc import Iterator, Sequence

import lanes
from golden.asked import ASK, WAIT, Asked
from golden.seen import Names, refusal
from golden.shapes import Values
from lanes.record import Piece, Round, RowsOf


def run(engine: lanes.Engine, steps: Sequence[Values]) -> Values:
    """Play the steps on the idle, paused engine, then let it run: every round in words, and what came of each request.

    A step is a request ({"do": "stream", "as": name, "given": ...}), some rounds ({"do": "step", "rounds": n}), a
    cancel ({"do": "cancel", "of": name}), or a wait for the end of a request ({"do": "wait", "of": name}).
    """
    assert engine.wait(WAIT) and engine.pause(WAIT), "the engine is not idle"
    first = engine.rounds.next_index
    asked: dict[str, Asked] = {}
    ends: dict[str, Values] = {}
    try:
        for step in steps:
            _take(engine, step, asked, ends)
    finally:
        engine.resume()
    names = {one.handle.id: name for name, one in asked.items()}
    ends |= {name: one.see(names) for name, one in asked.items()}
    assert engine.wait(WAIT), "the engine is not idle again"
    return {"rounds": list(told(engine.rounds.since(first).rounds, names)), "ends": ends}


def _take(engine: lanes.Engine, step: Values, asked: dict[str, Asked], ends: dict[str, Values]) -> None:
    match step:
        case {"do": "step", "rounds": rounds}:
            assert engine.step(rounds, WAIT) == rounds, f"there were no {rounds} rounds to step"
        case {"do": "cancel", "of": name}:
            asked[name].handle.cancel()
        case {"do": "wait", "of": name}:
            assert asked[name].handle.wait(WAIT), f"{name} did not end"
        case {"do": does, "as": name, "given": given}:
            try:
                asked[name] = ASK[does](engine, given)
            except lanes.LanesError as error:
                ends[name] = refusal(error)
        case _:
            raise ValueError(f"no step of a script: {step}")


def told(rounds: Sequence[Round], names: Names) -> Iterator[str]:
    """Who came, left and ended, in order, and what each round computed, counted from the first that computed anything.

    Rounds that only note an event are not counted: how many there are hangs on how threads meet.
    """
    number = 1
    for done in rounds:
        seated = {seat.id for seat in done.seats}
        for end in done.finished:
            if end.id not in seated:
                yield f"before round {number}: {names[end.id]} ends in {_place(end.slot)}: {end.reason}"
        for out in done.evicted:
            yield f"before round {number}: {names[out.id]} is evicted from slot {out.slot}"
        for new in done.admitted:
            kept = f", {new.cached} tokens kept" if new.cached else ""
            yield f"before round {number}: {names[new.id]} is admitted to slot {new.slot}{kept}"
        if done.computed:
            work = [_piece(done.piece, names)] if done.piece else []
            yield f"round {number}: {', '.join([*work, *(_rows(row, names) for row in done.rows)])}"
            number += 1
        for end in done.finished:
            if end.id in seated:
                yield f"after round {number - 1}: {names[end.id]} ends in {_place(end.slot)}: {end.reason}"


def _place(slot: int | None) -> str:
    return "the queue" if slot is None else f"slot {slot}"


def _piece(piece: Piece, names: Names) -> str:
    part = f" (part {piece.part} of {piece.parts})" if piece.parts > 1 else ""
    return f"{names[piece.id]} piece {piece.start}-{piece.start + piece.tokens}{part}"


def _rows(row: RowsOf, names: Names) -> str:
    return f"{names[row.id]} {row.kind}" + (f" x{row.rows}" if row.rows > 1 else "")
