"""Made-up rounds for the record's tests: a toy engine that moves requests at random, but never impossibly."""

from random import Random

from hypothesis import strategies as st

from lanes.record import Admitted, Evicted, Finished, Kind, Piece, Reason, RequestId, Round, RowsOf, Seat, Submitted

SLOTS = 3
WIDTH = 8
ENDS: dict[Kind, tuple[Reason, ...]] = {
    "stream": ("stop", "length", "cancelled", "deadline", "error", "closed"),
    "decision": ("answered", "cancelled", "deadline", "error", "closed"),
}


class Toy:
    """The state that makes one round after the other."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.now = 0.0
        self.born = 0
        self.queue: list[tuple[RequestId, Kind]] = []
        self.held: dict[int, tuple[RequestId, Kind]] = {}

    def round(self, index: int) -> Round:
        start = self.now + self.rng.choice((0.0, 0.25, 1.0))
        submitted = tuple(self._submit() for _ in range(self.rng.randrange(3)))
        finished = [
            Finished(None, id, kind, "cancelled") for id, kind in list(self.queue) if self._leave_queue(id, kind)
        ]
        evicted = self._evict()
        admitted = tuple(self._admit(slot) for slot in range(SLOTS) if slot not in self.held and self.queue)
        held = dict(self.held)
        filling = self.rng.choice([None, *held])
        rows = tuple(row for slot in held if slot != filling for row in self._rows(slot, *held[slot]))
        piece = None if filling is None else Piece(filling, held[filling][0], 16 * self.rng.randrange(9), 16)
        finished += [
            Finished(slot, *self.held.pop(slot), reason)
            for slot, (_, kind) in held.items()
            if (reason := self.rng.choice((*[None] * 20, *ENDS[kind])))
        ]
        self.now = start + self.rng.choice((0.0, 0.0625, 0.5))
        return Round(
            index, start, self.now, WIDTH, 1 if rows else 0, rows, piece, submitted, admitted, evicted, tuple(finished),
            tuple(Seat(slot, *held[slot], "filling" if slot == filling else "live") for slot in held),
            sum(kind == "stream" for _, kind in self.queue), sum(kind == "decision" for _, kind in self.queue),
            self.rng.choice((None, None, None, "the forward failed")),
        )  # fmt: skip

    def _submit(self) -> Submitted:
        kind: Kind = self.rng.choice(("stream", "decision"))
        self.born += 1
        self.queue.append((self.born, kind))
        return Submitted(self.born, kind, self.rng.randrange(1, 99), self.now)

    def _leave_queue(self, id: RequestId, kind: Kind) -> bool:
        leaves = self.rng.random() < 0.2
        if leaves:
            self.queue.remove((id, kind))
        return leaves

    def _evict(self) -> tuple[Evicted, ...]:
        slots = [slot for slot, (_, kind) in self.held.items() if kind == "decision"]
        if not slots or self.rng.random() < 0.7:
            return ()
        slot = self.rng.choice(slots)
        self.queue.append(self.held.pop(slot))
        return (Evicted(slot, self.queue[-1][0]),)

    def _admit(self, slot: int) -> Admitted:
        self.held[slot] = self.queue.pop(0)
        return Admitted(slot, *self.held[slot], self.rng.choice((None, 0, 32)))

    def _rows(self, slot: int, id: RequestId, kind: Kind) -> list[RowsOf]:
        if kind == "decision":
            return [RowsOf(slot, id, self.rng.choice(("tail", "branch")), self.rng.randrange(1, 3))]
        if self.rng.random() < 0.3:
            return [RowsOf(slot, id, "tail", 2, self.rng.randrange(2))]
        draft = [RowsOf(slot, id, "draft", 1, self.rng.randrange(2))] if self.rng.random() < 0.5 else []
        return [RowsOf(slot, id, "decode", 1, 1), *draft]


def story(rng: Random, length: int) -> list[Round]:
    """Rounds that could have happened."""
    toy = Toy(rng)
    return [toy.round(index) for index in range(length)]


stories = st.builds(story, st.randoms(use_true_random=False), st.integers(0, 40))
