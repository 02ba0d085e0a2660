"""The doctor: what it looks at, what it finds wrong, and what it says to do."""

import builtins
import json
from collections import namedtuple
from pathlib import Path

import pytest

import lanes
from lanes import blas, doctor
from lanes.doctor import Check, Report


def named(report: Report) -> dict[str, Check]:
    return {check.name: check for check in report.checks}


def test_it_looks_at_everything_and_writes_it_as_text_and_json():
    report = lanes.examine()
    names = ["system", "versions", "back end", "device", "float32 product", "BLAS", "memory", "cache folder", "model"]
    assert [check.name for check in report.checks] == names
    again = json.loads(json.dumps(report.to_dict()))
    assert again["ok"] == report.ok and [check["name"] for check in again["checks"]] == names
    text = str(report)
    assert all(f"  {name} " in text for name in names)
    assert "mlx-lm " in named(report)["versions"].value


def test_it_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANES_CACHE", str(tmp_path / "cache"))
    found = named(lanes.examine())
    assert "not fetched yet" in found["model"].value and found["model"].ok
    assert found["cache folder"].ok and not (tmp_path / "cache").exists()


def test_exactness_is_shown_when_an_engine_knows_it():
    assert named(lanes.examine("width 8, exact"))["exactness"].value == "width 8, exact"


def test_a_remedy_is_written_under_what_it_mends():
    report = Report((Check("one", "fine"), Check("two", "broken", False, "mend it")))
    assert not report.ok
    assert str(report).splitlines() == ["ok  one  fine", "!!  two  broken", "         -> mend it"]


@pytest.mark.parametrize(
    ("status", "ok", "text"),
    [
        (blas.Blas("conda", "lib.so", "Haswell", 4, True), True, "conda, Haswell, 4 threads, lib.so"),
        (blas.Blas("CUDA", fast=True), True, "CUDA"),
        (blas.Blas("none", remedy="install one"), False, "none"),
        (blas.Blas("off"), False, "switched off"),
        (blas.Blas("conda", "lib.so", None, 2, True, "LANES_BLAS: missing"), False, "conda"),
    ],
)
def test_the_blas_is_judged(monkeypatch: pytest.MonkeyPatch, status: blas.Blas, ok: bool, text: str):
    monkeypatch.setattr(blas, "status", lambda: status)
    check = doctor._blas()
    assert check.ok == ok and text in check.value
    assert ok or check.remedy


def test_a_slow_product_on_a_cpu_is_said(monkeypatch: pytest.MonkeyPatch):
    import mlx.core as mx

    monkeypatch.setattr(doctor, "_gflops", lambda: 5.0)
    monkeypatch.setattr(mx, "default_device", lambda: mx.Device(mx.cpu, 0))
    product = list(doctor._device())[1]
    assert not product.ok and "5 GFLOP/s" in product.value and "BLAS" in (product.remedy or "")


def test_two_back_ends_at_once_are_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_is_installed", lambda name: name in ("mlx-cpu", "mlx-cuda-13"))
    check = doctor._backends()
    assert not check.ok and "uninstall -y mlx-cpu" in (check.remedy or "") and "mlx-cuda-13" in (check.remedy or "")


def test_an_mlx_without_a_back_end_is_said(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def refusing(name: str, *rest):
        if name == "mlx.core":
            raise ImportError("libmlx.so: cannot open shared object file")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refusing)
    (check,) = doctor._device()
    assert not check.ok and "libmlx.so" in check.value and "mlx[cpu]" in (check.remedy or "")


def test_a_full_disk_and_a_locked_folder_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("LANES_CACHE", str(tmp_path))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(10, 10, 5e6))
    assert "nearly full" in (doctor._cache().remedy or "")
    monkeypatch.setattr(doctor, "_writable", lambda _: False)
    assert "cannot be written" in (doctor._cache().remedy or "")


def test_little_memory_is_said(monkeypatch: pytest.MonkeyPatch):
    memory = namedtuple("memory", "total available")
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: memory(8e9, 0.3e9))
    assert not doctor._memory().ok


def test_a_damaged_model_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("LANES_CACHE", str(tmp_path))
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / Path(doctor.PARCEL.member).name).write_bytes(b"half")
    check = doctor._model()
    assert not check.ok and "damaged" in check.value and "anew" in (check.remedy or "")
