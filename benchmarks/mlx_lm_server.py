"""mlx_lm.server as a user would run it: the same model in a folder of its own, a process, and requests over HTTP."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lanes
from lanes.measure.prompts import Question

HOST = "127.0.0.1"
START_S = 120.0
ANSWER_S = 300.0
TOP = 11  # the most that the server gives
# Importing lanes first puts the same fast BLAS in place that the engine has.
LAUNCH = "import lanes; from mlx_lm.server import main; main()"


class Server:
    """A client of a running server: one HTTP connection for each request."""

    name = "mlx_lm.server"

    def __init__(self, port: int, encode: Callable[[str], Any]) -> None:
        self._port = port
        self._encode = encode
        self.had: list[bool] = []

    def ask(self, question: Question) -> None:
        """Ask for one token with its top logprobs, and look for the labels there."""
        body = {"prompt": question.prompt, "max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": TOP}
        answer = json.loads(b"".join(self._post(body)))
        top = {entry["id"] for entry in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]}
        self.had += [self._encode(label)[0] in top for label in question.labels]

    def stream(self, prompt: str, tokens: int) -> Iterator[str]:
        """The pieces of text of a stream of `tokens` tokens, as they arrive."""
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0.0, "stream": True}
        reason = None
        for line in self._post(body):
            if not line.startswith(b"data: ") or b"[DONE]" in line:
                continue
            choice = json.loads(line.removeprefix(b"data: "))["choices"][0]
            reason = choice.get("finish_reason") or reason
            if choice["text"]:
                yield choice["text"]
        if reason != "length":
            raise RuntimeError(f"the server's stream ended early ({reason}), so its tokens cannot be counted")

    def _post(self, body: dict[str, Any]) -> Iterator[bytes]:
        """The lines of the answer."""
        connection = http.client.HTTPConnection(HOST, self._port, timeout=ANSWER_S)
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise RuntimeError(f"the server refused a request: {answer.read()[:300]!r}")
            yield from answer
        finally:
            connection.close()


@contextmanager
def server(model: Any, encode: Callable[[str], Any]) -> Iterator[Server]:
    """Start a server over a copy of the model; it ends with the block, and on SIGTERM and SIGINT."""
    with _ended_by_signals() as started, tempfile.TemporaryDirectory(prefix="lanes-export-") as folder:
        export(model, Path(folder, "model"))
        port = _free_port()
        command = [sys.executable, "-c", LAUNCH, "--model", str(Path(folder, "model")), "--host", HOST]
        log = Path(folder, "log")
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [*command, "--port", str(port), "--log-level", "WARNING"], stdout=out, stderr=out
            )
        started.append(process)
        try:
            _wait_for(process, port, log)
            yield Server(port, encode)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _ended_by_signals() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """SIGTERM and SIGINT end the processes in the list at once, then the block; a second one does what it always did.

    At once, because the block may wait for threads that wait for the server. Outside the main thread, where Python
    handles no signals, nothing changes.
    """
    started: list[subprocess.Popen[bytes]] = []
    if threading.current_thread() is not threading.main_thread():
        yield started
        return

    def end(number: int, _: object) -> None:
        restore()
        for process in started:
            process.terminate()
        raise SystemExit(128 + number)

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield started
    finally:
        restore()


def export(model: Any, folder: Path) -> None:
    """Write a model to a folder in Hugging Face's layout, with float32 weights.

    Its end token becomes one that is never drawn, as the server cannot be told to go on after the end of a text.
    """
    import mlx.core as mx
    from mlx.utils import tree_flatten

    loaded = lanes.load(model)
    tokenizer = loaded.tokenizer._tokenizer
    unused = max(id for id in tokenizer.added_tokens_decoder if id not in loaded.eos_ids)
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(loaded.model.parameters())))
    (folder / "config.json").write_text(json.dumps({**loaded.config, "eos_token_id": unused}))
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(unused)
    tokenizer.save_pretrained(str(folder))


def _free_port() -> int:
    with socket.socket() as place:
        place.bind((HOST, 0))
        return place.getsockname()[1]


def _wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            connection = http.client.HTTPConnection(HOST, port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == http.client.OK:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.2)
    raise RuntimeError(
        f"mlx_lm.server did not start: {os.linesep.join(log.read_text(errors='replace').splitlines()[-5:])}"
    )
