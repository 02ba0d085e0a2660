"""The BLAS preload: each source, its order, its refusals, and copies that are safe to share."""

import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lanes import blas
from lanes.blas import build, find, threads

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux preloads a BLAS")
# Each interpreter preloads once, so what `import lanes` does is seen from a fresh one.
REPORT = """
import json, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    BEFORE
    import lanes
from dataclasses import asdict
said = [str(w.message) for w in caught if "Lanes" in str(w.message)]
print(json.dumps({**asdict(lanes.blas.status()), "warnings": said, "mlx": "mlx.core" in sys.modules}))
"""


def fresh(before: str = "pass", **environment: str) -> dict:
    """What `import lanes` finds in a new interpreter."""
    program = REPORT.replace("BEFORE", before)
    clean = {k: v for k, v in os.environ.items() if k not in ("LANES_BLAS", "LANES_THREADS", "OPENBLAS_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**clean, **environment}, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@on_linux
def test_import_finds_a_fast_blas_and_leaves_mlx_alone():
    found = fresh()
    assert found["source"] == "scipy-openblas32" and found["fast"]
    assert found["warnings"] == [] and found["remedy"] is None
    assert not found["mlx"], "mlx.core must come after the BLAS"
    assert found["threads"] == threads.usable_cores()


@on_linux
def test_mlx_calls_the_preloaded_library():
    program = """
import ctypes, lanes
library = ctypes.CDLL(lanes.blas.status().path)
import mlx.core as mx
ours = ctypes.cast(library.cblas_sgemm, ctypes.c_void_p).value
everyone = ctypes.cast(ctypes.CDLL(None).cblas_sgemm, ctypes.c_void_p).value
a = mx.arange(12.0).reshape(3, 4)
print(ours == everyone, (a @ a.T).tolist() == [[14, 38, 62], [38, 126, 214], [62, 214, 366]])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


@on_linux
def test_off_means_off():
    found = fresh(LANES_BLAS="off")
    assert (found["source"], found["fast"], found["warnings"]) == ("off", False, [])


@on_linux
def test_mlx_imported_first_is_said_with_the_remedy():
    found = fresh(before="import mlx.core")
    assert found["source"] == "late" and not found["fast"]
    assert len(found["warnings"]) == 1 and "import lanes first" in found["warnings"][0]


@on_linux
def test_a_library_of_the_users_own_comes_first():
    theirs = blas.status().path
    assert theirs is not None
    found = fresh(LANES_BLAS=theirs)
    assert (found["source"], found["path"], found["fast"]) == ("LANES_BLAS", theirs, True)


@on_linux
@pytest.mark.parametrize("kind", ["missing", "not a library"])
def test_a_library_that_cannot_be_used_is_said_and_another_stands_in(tmp_path: Path, kind: str):
    path = tmp_path / "libmine.so"
    if kind == "not a library":
        path.write_bytes(b"text")
    found = fresh(LANES_BLAS=str(path))
    assert found["source"] == "scipy-openblas32" and found["fast"]
    assert len(found["warnings"]) == 1 and str(path) in found["warnings"][0]


@on_linux
def test_a_library_without_cblas_is_passed_over():
    import ctypes.util

    libm = ctypes.util.find_library("m")
    assert libm is not None
    refused = find.Candidate("LANES_BLAS", lambda: libm)
    found = blas._first_that_loads([refused, find.Candidate("scipy-openblas32", build.renamed_openblas)])
    assert found.source == "scipy-openblas32" and "cblas_sgemm" in (found.remedy or "")


def test_no_library_at_all_leaves_one_clear_remedy():
    def nothing() -> str:
        raise FileNotFoundError("there is none")

    found = blas._first_that_loads([find.Candidate("conda", nothing), find.Candidate("system", nothing)])
    assert (found.source, found.fast) == ("none", False)
    assert "pip install" in (found.remedy or "") and "conda: there is none" in (found.remedy or "")


def test_the_warning_comes_once(monkeypatch: pytest.MonkeyPatch):
    blas.preload.cache_clear()
    monkeypatch.setattr(blas, "_preload", lambda: blas.Blas("none", remedy="install one"))
    try:
        with pytest.warns(RuntimeWarning, match="Lanes: install one"):
            blas.preload()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert blas.preload().source == "none"
    finally:
        monkeypatch.undo()
        blas.preload.cache_clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            blas.preload()


@pytest.mark.parametrize(("platform", "source"), [("darwin", "macOS"), ("win32", "win32")])
def test_other_systems_load_nothing(monkeypatch: pytest.MonkeyPatch, platform: str, source: str):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(blas, "candidates", lambda choice: pytest.fail("nothing must be looked for"))
    assert blas._preload() == blas.Blas(source, fast=True)


def test_a_gpu_loads_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(blas, "gpu_backend", lambda: True)
    monkeypatch.setattr(blas, "candidates", lambda choice: pytest.fail("nothing must be looked for"))
    assert blas._preload() == blas.Blas("CUDA", fast=True)


def test_conda_is_found_in_its_prefix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    library = tmp_path / "lib" / "libopenblas.so.0"
    library.parent.mkdir()
    library.touch()
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    assert find._conda() == str(library)


def test_the_sources_are_tried_in_this_order():
    assert [c.source for c in find.candidates()] == ["scipy-openblas32", "conda", "system", "numpy"]
    assert find.candidates("mine.so")[0].source == "LANES_BLAS"


@on_linux
@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LANES_THREADS": "1"}, 1),
        ({"OPENBLAS_NUM_THREADS": "1"}, 1),
        ({"LANES_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}, 1),
    ],
)
def test_the_thread_count_is_fixed_by_the_environment(environment: dict[str, str], expected: int):
    found = fresh(**environment)
    assert found["threads"] == expected and found["warnings"] == []


@pytest.mark.parametrize("text", ["0", "-3", "two", "1.5"])
def test_a_thread_count_that_is_none_is_ignored_and_said(monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv("LANES_THREADS", text)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    count, complaint = threads.wanted_threads()
    assert count == threads.usable_cores()
    assert complaint is not None and repr(text) in complaint


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LANES_CACHE", str(tmp_path))
    return tmp_path


@on_linux
def test_the_renamed_copy_is_made_once(own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    first = build.renamed_openblas()
    monkeypatch.setattr(build, "_rename", lambda *_: pytest.fail("the copy is there already"))
    assert build.renamed_openblas() == first
    assert [str(path) for path in (own_cache / "blas").iterdir()] == [first], "nothing else may be left"


@on_linux
def test_a_half_written_copy_is_made_anew(own_cache: Path):
    path = Path(build.renamed_openblas())
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    assert Path(build.renamed_openblas()).read_bytes() == whole


@on_linux
def test_several_at_once_make_one_copy(own_cache: Path):
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(lambda _: build.renamed_openblas(), range(4)))
    assert len(paths) == 1 and [str(p) for p in (own_cache / "blas").iterdir()] == list(paths)


def test_a_failed_build_leaves_nothing(own_cache: Path):
    def fail(target: Path) -> None:
        target.write_bytes(b"half")
        raise RuntimeError("patchelf failed: no space")

    with pytest.raises(RuntimeError, match="no space"):
        build._cached("openblas", "key", fail)
    assert list((own_cache / "blas").iterdir()) == []


def test_a_program_that_fails_says_why(tmp_path: Path):
    with pytest.raises(RuntimeError, match="bad map"):
        build._call([sys.executable, "-c", "import sys; sys.exit('bad map')"])


@on_linux
def test_numpys_own_openblas_works_behind_its_shim(own_cache: Path):
    try:
        path = build.numpy_shim()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    program = """
import lanes, mlx.core as mx, numpy as np
rng = np.random.default_rng(0)
a, b = (rng.standard_normal(s).astype(np.float32) for s in ((33, 70), (70, 45)))
print(lanes.blas.status().source, np.allclose(np.array(mx.array(a) @ mx.array(b)), a @ b, atol=1e-4))
"""
    environment = {**os.environ, "LANES_BLAS": path}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["LANES_BLAS", "True"]
