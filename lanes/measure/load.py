"""Whether other programs kept the machine busy while something was measured."""

import time
from typing import NamedTuple

import psutil

NOTABLE = 0.25
"""Cores in use by others above which figures are not to be trusted."""


class Load(NamedTuple):
    """Processor seconds so far, of the whole machine and of this process with its children, and when they were read."""

    machine: float
    own: float
    at: float

    @classmethod
    def now(cls) -> "Load":
        """As it is now."""
        times, own = psutil.cpu_times(), psutil.Process().cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        guest = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)  # counted in user and nice already
        mine = own.user + own.system + own.children_user + own.children_system
        return cls(sum(times) - idle - guest, mine, time.monotonic())

    def by_others(self, later: "Load") -> float:
        """Cores that other programs used on average between two readings."""
        seconds = max(later.at - self.at, 1e-3)
        return max(0.0, (later.machine - self.machine) - (later.own - self.own)) / seconds


def complaint(cores: float) -> str | None:
    """What to tell whoever reads the figures; None where the machine was at rest."""
    if cores < NOTABLE:
        return None
    return f"other programs used {cores:.1f} cores meanwhile: measure again with the machine at rest"
