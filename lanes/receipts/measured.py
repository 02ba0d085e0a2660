"""What a receipt measured so far: arms that took turns, their samples, ratios of their values."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal

from lanes import checks
from lanes.errors import InvalidRequest
from lanes.receipts import arms as arms_
from lanes.receipts import door
from lanes.receipts.aggregates import aggregates, figure, ratio
from lanes.receipts.fields import Number
from lanes.receipts.shapes import Arm, Figures, Ratio, Sample


class Measured:
    """Samples as they were taken; nothing of it is ever taken back."""

    def __init__(self) -> None:
        self.arms: list[Arm] = []
        self.samples: list[Sample] = []
        self.ratios: list[Ratio] = []
        self.interrupted: list[str] = []
        """Measurements that were broken off, a sentence each: their samples count for nothing."""
        self._running: list[str] = []

    async def run(
        self,
        works: Mapping[str, arms_.Work],
        repeats: int,
        warmups: int,
        timeout: float,
        watched: AbstractContextManager[None],
    ) -> None:
        """Measure a group of arms; see `Draft.measure`."""
        self.refuse_running("two groups of arms cannot be measured at once")
        group = max((arm.group for arm in self.arms), default=-1) + 1
        most, limit = checks.whole("repeats", repeats, 1, 100_000), checks.seconds("timeout", timeout)
        before = checks.whole("warmups", warmups, 0, 1000)
        planned = [Arm(name=name, group=group, repeats=most, warmups=before) for name in self._names(works)]
        found: list[Sample] = []
        self._running = [arm.name for arm in planned]
        try:
            with watched:
                async for sample in arms_.run(planned, works, len(self.samples), limit):
                    found.append(sample)
        except (asyncio.CancelledError, KeyboardInterrupt):
            names = ", ".join(arm.name for arm in planned)
            self.interrupted.append(f"a measurement of {names} was broken off after {len(found)} attempts")
            raise
        finally:
            self._running = []
        self.arms += planned
        self.samples += found

    def refuse_running(self, why: str) -> None:
        """Raise InvalidRequest while arms are being measured."""
        if self._running:
            raise InvalidRequest(f"{why}: the arms {', '.join(self._running)} still run, await their measure first")

    def _names(self, works: Mapping[str, arms_.Work]) -> list[str]:
        """The arms' names; InvalidRequest where one cannot be measured, or was."""
        if not isinstance(works, Mapping) or not works:
            raise InvalidRequest("arms must be async functions by name, at least one")
        for name, work in works.items():
            door.line("an arm's name", name)
            if not callable(work):
                raise InvalidRequest(f"the arm {name!r} must be an async function without arguments, not {work!r}")
            if any(arm.name == name for arm in self.arms):
                raise InvalidRequest(f"the arm {name!r} was measured already: begin a new receipt to measure it again")
        return list(works)

    def ratio(
        self,
        name: str,
        numerator: tuple[str, str],
        denominator: tuple[str, str],
        kind: Literal["pairs", "medians"],
    ) -> Ratio:
        """A ratio of two values; see `Draft.ratio`."""
        if kind not in ("pairs", "medians"):
            raise InvalidRequest(f"kind must be 'pairs' or 'medians', not {kind!r}")
        over, under = door.value("numerator", numerator), door.value("denominator", denominator)
        return ratio(name, over, under, kind, self.arms, self.samples)

    def aggregates(self) -> dict[str, dict[str, Figures]]:
        """The figures of all samples so far."""
        return aggregates(self.arms, self.samples)

    def figure(self, path: Sequence[str]) -> Number:
        """A figure by its path; see `aggregates.figure`."""
        return figure(path, self.aggregates(), self.ratios)
