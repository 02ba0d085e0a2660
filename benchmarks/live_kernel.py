"""A real kernel as a front end has it: cells are run in it, clicks are sent, and all that it publishes is heard."""

import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

HERE = Path(__file__).resolve().parent
START_S = 60.0
CELL_S = 600.0
"""How long a cell may take."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One message on iopub: when it came here (time.perf_counter), what it is, and its bytes on the wire."""

    at: float
    kind: str
    content: dict[str, Any]
    parent: str
    size: int


class Kernel:
    """A running kernel. `heard` grows on a thread of its own, so that nothing waits for whoever reads it."""

    def __init__(self, client: BlockingKernelClient, log: Any) -> None:
        self.client = client
        self.heard: list[Heard] = []
        self._log = log
        self._over = threading.Event()
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._listen, name="iopub", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        session, socket = self.client.session.clone(), self.client.connect_iopub()
        while not self._over.is_set():
            if not socket.poll(100):
                continue
            parts = socket.recv_multipart()
            at = time.perf_counter()
            message = session.deserialize(session.feed_identities(parts)[1])
            parent = message["parent_header"].get("msg_id", "")
            one = Heard(at, message["header"]["msg_type"], message["content"], parent, sum(map(len, parts)))
            with self._news:
                self.heard.append(one)
                self._news.notify_all()
        socket.close(0)

    def ready(self) -> dict[str, Any]:
        """Wait until it is heard; what it says of itself. Raises TimeoutError where it says nothing."""
        end = time.monotonic() + START_S
        client: Any = self.client  # its methods have keywords that their types lack
        client.wait_for_ready(timeout=START_S)
        while not self.heard:  # a subscription takes a moment to arrive
            if time.monotonic() > end:
                raise TimeoutError(f"the kernel published nothing in {START_S:.0f} s: see {self.log()!r}")
            client.kernel_info(reply=True, timeout=START_S)
            time.sleep(0.05)
        return client.kernel_info(reply=True, timeout=START_S)["content"]

    def send(self, code: str) -> str:
        """Send a cell; the number of its message."""
        return self.client.execute(code)

    def ended(self, cell: str, patience: float = CELL_S) -> str:
        """Wait for a cell's end: what it printed. Raises RuntimeError with the traceback of one that failed."""
        with self._news:
            over = self._news.wait_for(lambda: self._idle(cell), patience)
        if not over:
            raise TimeoutError(f"a cell did not end in {patience:.0f} s")
        said = ""
        for one in list(self.heard):
            if one.parent != cell:
                continue
            if one.kind == "error":
                raise RuntimeError("a cell failed:\n" + "\n".join(one.content["traceback"]))
            if one.kind == "stream" and one.content["name"] == "stdout":
                said += one.content["text"]
        return said.strip()

    def _idle(self, cell: str) -> bool:
        return any(
            one.parent == cell and one.kind == "status" and one.content["execution_state"] == "idle"
            for one in reversed(self.heard)
        )

    def run(self, code: str, patience: float = CELL_S) -> str:
        """Run a cell to its end; what it printed."""
        return self.ended(self.send(code), patience)

    def click(self, comm: str, do: str, given: dict[str, Any], subshell: str | None = None) -> float:
        """Send what a page sends when somebody clicks; when that was (time.perf_counter)."""
        act = {"id": uuid.uuid4().hex, "do": do, "with": given}
        content = {"comm_id": comm, "data": {"method": "custom", "content": act}}
        message = self.client.session.msg("comm_msg", content)
        if subshell:
            message["header"]["subshell_id"] = subshell
        at = time.perf_counter()
        self.client.shell_channel.send(message)
        return at

    def subshell(self) -> str:
        """Open a subshell, as JupyterLab does for the messages of widgets; its id."""
        self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
        reply: Any = self.client.get_control_msg(timeout=START_S)
        return reply["content"]["subshell_id"]

    def of(self, comm: str) -> list[Heard]:
        """The messages of one widget so far, its opening first."""
        return [one for one in list(self.heard) if one.content.get("comm_id") == comm]

    def log(self) -> str:
        """What the process wrote to stdout and stderr, past the kernel's own streams."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace").strip()

    def warnings(self) -> list[str]:
        """What was said on stderr, by cells and by the process itself."""
        said = [one for one in list(self.heard) if one.kind == "stream" and one.content["name"] == "stderr"]
        return [line for text in (*(one.content["text"] for one in said), self.log()) for line in text.splitlines()]

    def stop(self) -> None:
        """Hear no more."""
        self._over.set()
        self._thread.join()


@contextmanager
def kernel(**env: str) -> Iterator[Kernel]:
    """Start a kernel in which the modules beside this one can be imported; it ends with the block."""
    manager = KernelManager(transport="ipc" if sys.platform != "win32" else "tcp")
    # No frozen modules: the debugger would warn of them on stderr, where only warnings of ours should be.
    arguments = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=arguments, display_name="lanes", language="python")
    path = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    with TemporaryFile() as log:
        manager.start_kernel(env={**os.environ, "PYTHONPATH": path, **env}, stdout=log, stderr=log)
        client = manager.client()
        client.start_channels()
        one = Kernel(client, log)
        try:
            one.ready()
            yield one
        finally:
            one.stop()
            client.stop_channels()
            manager.shutdown_kernel(now=True)
