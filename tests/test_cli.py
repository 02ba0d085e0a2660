"""The command line: results on stdout, everything else on stderr, and the exit codes."""

import importlib.util
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lanes
from lanes import __main__, bench, cli, demo

LANES = [sys.executable, "-m", "lanes"]
ROOT = Path(__file__).parents[1]


def lanes_command(*arguments: str):
    return CliRunner().invoke(cli.app, arguments)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything on a small scale."""
    sizes = replace(demo.FULL, tokens=32, solo=8, pairs=1, questions=(40, 66), every=0.02, every_behind=0.02)
    monkeypatch.setattr(demo, "QUICK", sizes)
    monkeypatch.setattr(bench, "QUICK", bench.Sizes(live=(1, 2), prompt=40, blocks=2, steps=2, fills=1, fill=70))


@pytest.mark.parametrize("command", ["demo", "bench", "doctor", "lab", "serve"])
def test_every_command_has_help(command: str):
    result = lanes_command(command, "--help")
    assert result.exit_code == 0 and "Usage" in result.stdout and "--help" in result.stdout
    assert command in lanes_command("--help").stdout


def test_the_version():
    result = lanes_command("--version")
    assert (result.exit_code, result.stdout) == (0, f"mlx-lanes {lanes.__version__}\n")


@pytest.mark.parametrize("arguments", [(), ("dance",), ("demo", "--slots", "1"), ("bench", "--piece", "0")])
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]):
    assert lanes_command(*arguments).exit_code == 2


@pytest.mark.usefixtures("small")
def test_demo_prints_json_and_nothing_else():
    result = lanes_command("demo", "--model", "tiny:llama", "--quick", "--json")
    assert result.exit_code == 0
    values = json.loads(result.stdout)
    assert values["model"] == lanes.tiny("llama").name and values["equal_bits"]["stream"] is True


@pytest.mark.usefixtures("small")
def test_demo_tells_its_story_and_ends_with_the_table():
    result = lanes_command("demo", "--model", "tiny:llama", "--quick", "--slots", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "3 slots" in lines[0] and lines[-1].startswith("the same bits")


@pytest.mark.usefixtures("small")
def test_bench_prints_json_or_a_table():
    values = json.loads(lanes_command("bench", "--model", "tiny:llama", "--quick", "--piece", "16", "--json").stdout)
    assert [arm["live"] for arm in values["arms"]] == [1, 2] and values["fill"]["piece"] == 16
    table = lanes_command("bench", "--model", "tiny:llama", "--quick").stdout
    assert "mlx-lm" in table and "pieces of 32" in table


def test_long_adds_a_prompt_of_2000_tokens(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def run(model, slots, sizes, tell):
        asked.append(sizes)
        raise lanes.LanesError("enough")

    monkeypatch.setattr(demo, "run", run)
    for arguments in ([], ["--long"], ["--quick", "--long"]):
        lanes_command("demo", *arguments)
    assert asked == [demo.FULL, replace(demo.FULL, long=2000), replace(demo.QUICK, long=2000)]


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_an_error_is_one_line_on_stderr(command: str):
    result = lanes_command(command, "--model", "tiny:abacus", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("lanes: there is no tiny 'abacus'") and result.stderr.count("\n") == 1


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch):
    def run(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", run)
    result = lanes_command("demo")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "lanes: interrupted\n")


STUCK = """
import threading, time
from lanes import __main__, demo
def run(*arguments):
    threading.Thread(target=time.sleep, args=(600,), name="lanes-engine").start()
    raise KeyboardInterrupt
demo.run = run
__main__.main()
"""


def test_ctrl_c_ends_the_command_even_where_an_engine_cannot_be_stopped():
    script = [sys.executable, "-c", STUCK, "demo"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (130, "lanes: interrupted\n")


def test_ctrl_c_while_the_command_still_imports_leaves_no_traceback(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("lanes.cli.app", interrupted)
    with pytest.raises(SystemExit) as end:
        __main__.main()
    assert (end.value.code, capsys.readouterr().err) == (130, "lanes: interrupted\n")


def test_ctrl_c_in_the_middle_of_a_run_leaves_no_process_and_no_traceback():
    with subprocess.Popen(
        [*LANES, "demo", "--model", "tiny:llama"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "tiny(llama" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said and said.endswith("lanes: interrupted\n")


def doctor_checks(*arguments: str) -> tuple[int, dict[str, dict]]:
    result = lanes_command("doctor", "--json", *arguments)
    values = json.loads(result.stdout)
    assert result.exit_code == (0 if values["ok"] else 1)
    return result.exit_code, {check["name"]: check for check in values["checks"]}


def test_doctor_fetches_nothing_for_its_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANES_CACHE", str(tmp_path / "cache"))
    _, checks = doctor_checks()
    assert "not loaded" in checks["exactness"]["value"] and checks["exactness"]["ok"]
    assert not (tmp_path / "cache").exists()


def test_doctor_proves_a_model_on_request():
    _, checks = doctor_checks("--model", "tiny:qwen3")
    assert "tiny(qwen3" in checks["exactness"]["value"] and "exact: packed route" in checks["exactness"]["value"]
    assert "exactness" not in doctor_checks("--no-exactness")[1]


def test_doctor_reports_an_engine_that_cannot_start():
    code, checks = doctor_checks("--model", "tiny:abacus")
    assert code == 1 and not checks["exactness"]["ok"]
    assert "there is no tiny 'abacus'" in checks["exactness"]["remedy"]
    assert "exactness" in lanes_command("doctor", "--model", "tiny:abacus").stdout


def test_lab_needs_jupyterlab(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = lanes_command("lab")
    assert result.exit_code == 1 and 'pip install "mlx-lanes[lab]"' in result.stderr


def test_lab_opens_the_notebooks_and_passes_its_exit_code_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    started: list[list[str]] = []

    def call(command: list[str]) -> int:
        started.append(command)
        return 3

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setattr(cli, "NOTEBOOKS", tmp_path)
    assert lanes_command("lab").exit_code == 3
    monkeypatch.setattr(cli, "NOTEBOOKS", tmp_path / "nowhere")
    lanes_command("lab")
    lanes_command("lab", str(tmp_path))
    assert [command[1:] for command in started] == [
        ["-m", "jupyterlab", str(tmp_path)], ["-m", "jupyterlab", "."], ["-m", "jupyterlab", str(tmp_path)]
    ]  # fmt: skip
    assert "there is no folder" in lanes_command("lab", str(tmp_path / "nowhere")).stderr
