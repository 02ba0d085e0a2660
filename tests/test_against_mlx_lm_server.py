"""The comparison with mlx_lm.server, on a tiny model: the copy that the server gets, and the program as a whole."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import mlx.core as mx
import mlx_lm_server
import numpy as np
import psutil
import pytest
from against_mlx_lm_server import Sizes, compare
from mlx_lm import load
from rigs import WAIT

import lanes

TINY = lanes.tiny("llama")


def test_the_copy_gives_the_same_logits_and_never_ends_a_text(tmp_path: Path):
    mlx_lm_server.export(TINY, tmp_path / "model")
    model, tokenizer = load(str(tmp_path / "model"))[:2]
    own = lanes.load(TINY)
    ids = tokenizer.encode("A review of the sea")
    assert ids == own.tokenizer.encode("A review of the sea")
    assert np.array_equal(np.array(model(mx.array([ids]))), np.array(own.model(mx.array([ids]))))
    assert tokenizer.eos_token_ids and not set(tokenizer.eos_token_ids) & own.eos_ids


def test_the_program_measures_both_sides_and_leaves_nothing_behind():
    before = set(psutil.Process().children(recursive=True))
    text = compare(TINY, Sizes(tokens=24, idle=1, pairs=1, long=100))
    lines = text.splitlines()
    assert TINY.name in lines[0]
    assert lines[2] == "|  | lanes | mlx_lm.server |"
    rows = {cells[1]: cells[2:4] for line in lines[4:] if (cells := [cell.strip() for cell in line.split("|")])}
    assert all(float(cell) > 0 for cell in rows["decision, idle: p50, s"])
    assert all(float(cell) > 0 for cell in rows["4 streams alone, tokens/s"])
    assert rows["labels that were asked for and could not be had"][0].startswith("0 of ")
    assert set(psutil.Process().children(recursive=True)) <= before
    assert not [thread for thread in threading.enumerate() if thread.name == "lanes-engine"]


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mlx_lm_server, "LAUNCH", "raise SystemExit('out of luck')")
    with pytest.raises(RuntimeError, match="did not start: out of luck"), mlx_lm_server.server(TINY, str.split):
        pass


SLEEPER = """
import os, time
import mlx_lm_server
import lanes

def wait_for(process, *_):
    print(os.getpid(), process.pid, flush=True)
    time.sleep(600)

mlx_lm_server.LAUNCH = "import time; time.sleep(600)"
mlx_lm_server._wait_for = wait_for
with mlx_lm_server.server(lanes.tiny("llama"), str.split):
    pass
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_too_and_leaves_no_file(tmp_path: Path, number: signal.Signals):
    folder = Path(mlx_lm_server.__file__).parent
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": f"{folder}{os.pathsep}{folder.parent}"}
    with subprocess.Popen([sys.executable, "-c", SLEEPER], env=environment, stdout=subprocess.PIPE, text=True) as own:
        assert own.stdout
        pid, child = map(int, own.stdout.readline().split())
        server = psutil.Process(child)
        try:
            os.kill(pid, number)
            assert own.wait(WAIT) == 128 + number
            assert not server.is_running()
        finally:
            own.kill()
            with suppress(psutil.NoSuchProcess):
                server.kill()
    assert not list(tmp_path.iterdir())
