"""`lanes serve`: it says where it is, answers, and ends as it is told to."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from rigs import ROOT, WAIT
from serving import GOOD
from typer.testing import CliRunner

from lanes import cli, serve_command

SERVE = [sys.executable, "-m", "lanes", "serve", "--model", "tiny:llama", "--port", "0"]


@contextmanager
def served(*options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command on its way, and the first line that it said."""
    one = subprocess.Popen(
        [*SERVE, *options],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert one.stdout
        yield one, one.stdout.readline()
    finally:
        one.kill()
        one.communicate(timeout=WAIT)


@pytest.mark.parametrize(
    ("sign", "code", "said"), [(signal.SIGINT, 130, "lanes: interrupted\n"), (signal.SIGTERM, 0, "")]
)
def test_it_answers_until_it_is_told_to_end(sign: signal.Signals, code: int, said: str):
    with served("--decisions", "--json") as (one, line):
        told = json.loads(line)
        with httpx.Client(base_url=told["url"], timeout=WAIT) as client:
            assert client.get("/v1/models").json()["data"][0]["id"] == told["model"]
            for path, body in GOOD.items():
                assert client.post(path, json=body).status_code == 200
        one.send_signal(sign)
        out, err = one.communicate(timeout=WAIT)
        assert (one.returncode, out, err) == (code, "", said)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{told['url']}/health")


def test_it_wants_the_keys_of_its_environment_and_says_none():
    with served(LANES_API_KEYS="hush hush2") as (one, line):
        url = next(word for word in line.split() if word.startswith("http"))
        assert "hush" not in line and httpx.get(f"{url}/v1/models").status_code == 401
        for key in ("hush", "hush2"):
            assert httpx.get(f"{url}/v1/models", headers={"Authorization": f"Bearer {key}"}).status_code == 200
        assert httpx.post(f"{url}/v1/systemone", json={}, headers={"Authorization": "Bearer hush"}).status_code == 404
        one.terminate()
        assert one.wait(WAIT) == 0


def test_what_cannot_work_is_one_line_on_stderr(monkeypatch: pytest.MonkeyPatch):
    result = CliRunner().invoke(cli.app, ["serve", "--model", "tiny:llama", "--host", "0.0.0.0", "--port", "0"])
    assert result.exit_code == 1 and result.stderr.startswith("lanes: ") and "api_keys" in result.stderr
    assert result.stderr.count("\n") == 1

    def find(name: str) -> Any:
        return None if name == "uvicorn" else importlib.util.find_spec(name)

    monkeypatch.setattr(serve_command, "find_spec", find)
    result = CliRunner().invoke(cli.app, ["serve"])
    assert result.exit_code == 1 and result.stderr == (
        'lanes: uvicorn not installed: run `pip install "mlx-lanes[serve]"`\n'
    )
