"""The machine that something was measured on, and how busy it was meanwhile."""

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from lanes import blas
from lanes.measure.load import Load as Reading
from lanes.measure.machine import device_name
from lanes.receipts.canonical import sha256
from lanes.receipts.circumstances import BlasFacts, Environment, Load

VERSIONS = ("mlx", "mlx-lm", "numpy", "transformers", "tokenizers", "scipy-openblas32", "ipykernel")
"""The packages whose versions can change bits or times."""
NO_BITS = "ipykernel"
"""The one of them that changes times alone."""


class Watch:
    """How busy the machine is, from the making of this until `load` is asked."""

    def __init__(self) -> None:
        self._before = _average()
        self._reading = Reading.now()
        self._start = time.perf_counter()
        self._waited = self._used = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count what the calling thread computes in here: near nothing where it only waits."""
        start, used = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self._waited += time.perf_counter() - start
            self._used += time.thread_time() - used

    @property
    def seconds(self) -> float:
        """Seconds since it was made."""
        return time.perf_counter() - self._start

    def load(self) -> Load:
        """How busy the machine was until now."""
        return Load(
            before=self._before,
            after=_average(),
            others=max(0.0, round(self._reading.by_others(Reading.now()), 3)),
            seconds=round(self.seconds, 3),
            main_thread=round(self._used / self._waited, 4) if self._waited else None,
        )


def environment(load: Load) -> Environment:
    """This machine, Python and the packages that matter; no names of hosts or users, no paths."""
    return Environment(**_still(), load=load)


@cache
def _still() -> dict[str, Any]:
    """What does not change while a process runs."""
    found = blas.status()
    return dict(
        machine=platform.machine() or "unknown",
        cpu=_cpu(),
        cores=psutil.cpu_count(logical=False) or os.cpu_count() or 0,
        threads=os.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        device=device_name(),
        system=f"{platform.system()} {platform.release()}".strip() or "unknown",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions=dict(_versions()),
        installed_sha256=installed(),
        blas=BlasFacts(source=found.source, core=found.core, threads=found.threads),
    )


def installed() -> str:
    """The sha256 over every installed package with its version, one a line, sorted."""
    lines = {f"{one.metadata['Name']}=={one.version}".lower() for one in importlib.metadata.distributions()}
    return sha256("\n".join(sorted(lines)))


def unlike(there: Environment, here: Environment) -> list[str]:
    """In what two machines differ that can change bits, in words; none: the same bits are to be expected."""
    pairs = zip(_class(there).items(), _class(here).values(), strict=True)
    return [f"{name}: {a} there, {b} here" for (name, a), b in pairs if a != b]


def _class(own: Environment) -> dict[str, str]:
    """What has to be the same where bits have to be the same."""
    blas = (own.blas.source, own.blas.core, f"{own.blas.threads} threads")
    versions = (f"{name} {version}" for name, version in sorted(own.versions.items()) if name != NO_BITS)
    return {
        "machine": own.machine,
        "cpu": own.cpu,
        "device": own.device,
        "BLAS": ", ".join(part for part in blas if part),
        "versions": ", ".join(versions),
    }


def _versions() -> Iterator[tuple[str, str]]:
    for name in VERSIONS:
        with suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)


def _cpu() -> str:
    """The processor's name as people know it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    if sys.platform == "darwin":
        with suppress(OSError, subprocess.SubprocessError):
            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    return platform.processor() or platform.machine() or "unknown"


def _average() -> float | None:
    """The load average of the last minute; None where the system has none."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None
