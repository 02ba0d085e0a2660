"""A static picture of rounds, for the last value of a notebook's cell: as an SVG image, and as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass

from lanes.record.drawing import svg
from lanes.record.picture import Picture
from lanes.record.shapes import Round
from lanes.record.stays import Work, cells

TEXT_ROUNDS = 100
SIGNS: dict[Work, str] = {"decode": "=", "draft": "~", "piece": "#", "tail": "+", "branch": "*", "held": "-"}


@dataclass(frozen=True, slots=True, repr=False)
class Timeline(Picture):
    """Some rounds as a picture: slots as lanes, rounds to scale in time, colours for the work done."""

    rounds: tuple[Round, ...]
    slots: int

    def svg(self) -> str:
        """See `Picture.svg`."""
        return svg(self.rounds, self.slots)

    def __repr__(self) -> str:
        """One line a slot, one character a round; no times, so the same rounds always give the same text."""
        return text(self.rounds, self.slots)


def text(rounds: Sequence[Round], slots: int) -> str:
    """The rounds that computed something in characters, the newest 100 where there are more."""
    ran = [done for done in rounds if done.computed]
    shown = ran[-TEXT_ROUNDS:]
    grid = [["."] * len(shown) for _ in range(slots)]
    used: set[Work] = set()
    for column, done in enumerate(shown):
        for cell in cells(done):
            grid[cell.slot][column] = SIGNS[cell.works[0]]
            used.add(cell.works[0])
    cut = f"; the last {len(shown)}:" if len(shown) < len(ran) else ""
    head = f"Timeline: {len(ran)} rounds, {slots} slots{cut}"
    lines = [f"slot {slot:<2} {''.join(line)}" for slot, line in enumerate(grid)]
    legend = [f"{sign} {work}" for work, sign in SIGNS.items() if work in used]
    return "\n".join([head, *lines, " " * 8 + ", ".join([*legend, ". free"])])
