"""The machine class: whatever the bits of a result may hang on."""

import re
from contextlib import suppress
from pathlib import Path

import lanes
from golden.shapes import Machine
from lanes.receipts.environment import Watch, environment

VERSIONS = ("mlx", "numpy", "scipy-openblas32")
"""The packages that compute."""


def here(engine: lanes.Engine) -> Machine:
    """The class of this machine, with the engine that runs on it."""
    found = environment(Watch().load())
    rounds = engine.exactness
    return Machine(
        processor=", ".join([found.cpu, *_generation()]),
        system=found.machine,
        device=found.device,
        blas=" ".join(filter(None, (found.blas.source, found.blas.core))),
        threads=found.blas.threads,
        versions={name: found.versions[name] for name in VERSIONS if name in found.versions},
        rounds=f"{rounds.route}, {rounds.width} rows, pieces of {rounds.piece}, {'' if rounds.exact else 'not '}exact",
    )


def _generation() -> list[str]:
    """Of a processor that Linux runs on, what its name may not say: other kernels are picked for another one."""
    with suppress(OSError):
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
        found = re.findall(r"^(cpu family|model|stepping)\s*: (\w+)$", told, re.MULTILINE)
        return [f"{name.removeprefix('cpu ')} {value}" for name, value in found]
    return []
