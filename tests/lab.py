"""JupyterLab and a browser in front of it, as a person has them: to open a notebook, run it, and see what is shown.

And a page without Jupyter, for what a widget's front end does by itself.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
START_S = 90.0
RUN_MS = 900_000
SETTINGS = {
    # Cells out of sight are otherwise taken out of the page, and nobody could look at them.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
NO_ERROR = ("favicon.ico",)
"""Parts of console errors that are the front end's own."""
PROMPTS = "[...document.querySelectorAll('.jp-Notebook .jp-CodeCell .jp-InputArea-prompt')].map(one => one.innerText)"
BEGUN = f"() => {PROMPTS}.some(one => one.includes('*'))"
DONE = f"() => {PROMPTS}.every(one => /\\[\\d+\\]/.test(one))"
READY = "() => window.jupyterapp.shell.currentWidget.sessionContext.ready"
"""The page says "idle" before; whatever is run by then asks for a kernel."""
FAILED = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.error']"


@contextmanager
def server(folder: Path, home: Path) -> Iterator[str]:
    """JupyterLab on a folder, with nothing of the user's own; gives its address."""
    for name, values in SETTINGS.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "JUPYTERLAB_WORKSPACES_DIR")
    env = {**os.environ, **{name: str(home / name.lower()) for name in own}}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "PYTHONPATH": str(ROOT)}
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    options += ["--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True"]
    options += [f"--ServerApp.root_dir={folder}", "--expose-app-in-browser"]
    with open(home / "lab.log", "w") as log:
        lab = subprocess.Popen([sys.executable, "-m", "jupyterlab", *options], env=env, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _await_answer(lab, f"{address}/api/status", home / "lab.log")
        yield address
    finally:
        lab.terminate()  # ends its kernels too
        try:
            lab.wait(30)
        except subprocess.TimeoutExpired:
            lab.kill()


def _await_answer(lab: "subprocess.Popen[bytes]", address: str, log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and lab.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"JupyterLab did not start: {log.read_text()[-2000:]}")


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """The browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


class Lab:
    """One page of JupyterLab, and what went wrong in it: errors of the console, requests to anywhere else."""

    def __init__(self, browser: Browser, address: str, folder: Path, **page: Any) -> None:
        self.address, self.folder = address, folder
        self.page: Page = browser.new_page(**{"viewport": {"width": 1300, "height": 1200}, **page})
        self.page.set_default_timeout(60_000)
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._request(request.url))

    def _console(self, message: Any) -> None:
        where = str(message.location.get("url", ""))
        if message.type == "error" and not any(part in message.text + where for part in NO_ERROR):
            self.errors.append(f"{message.text} ({where})")

    def _request(self, url: str) -> None:
        if not url.startswith((self.address, self.address.replace("http", "ws", 1), "data:", "blob:")):
            self.outside.append(url)

    def open(self, name: str, *sources: str) -> None:
        """Open a notebook of the folder; made of these cells where there are any."""
        if sources:
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
            spec = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
            notebook.metadata = nbformat.from_dict({"kernelspec": spec, "language_info": {"name": "python"}})
            nbformat.write(notebook, self.folder / name)
        # With a session there already, it does not ask which kernel to take.
        self._ask(
            "POST", "/api/sessions", {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
        )
        self.page.goto(f"{self.address}/lab/tree/{name}?reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.page.evaluate(READY)
        self.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")

    def run_all(self, wait: bool = True) -> None:
        """Run all cells, as from the menu."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text("Run All Cells", exact=True).click()
        self.page.wait_for_function(BEGUN)
        if wait:
            self.page.wait_for_function(DONE, timeout=RUN_MS)

    def failures(self) -> list[str]:
        """What failed cells show."""
        return self.page.locator(FAILED).all_inner_texts()

    def shut(self) -> None:
        """End the notebook's kernel and leave the page."""
        for session in self._ask("GET", "/api/sessions"):
            self._ask("DELETE", f"/api/sessions/{session['id']}")
        self.page.close()

    def _ask(self, method: str, path: str, values: Any = None) -> Any:
        body = None if values is None else json.dumps(values).encode()
        with urllib.request.urlopen(
            urllib.request.Request(self.address + path, body, method=method), timeout=60
        ) as got:
            text = got.read()
        return json.loads(text) if text else None


SHOW = """async ([module, values]) => {
  const { default: widget } = await import(URL.createObjectURL(new Blob([module], { type: 'text/javascript' })));
  const listeners = new Set();
  globalThis.sent = [];
  globalThis.model = {
    get: name => values[name],
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
    send: message => sent.push(message.do),
    put: frame => { values.frame = frame; listeners.forEach(listener => listener()); },
  };
  const el = document.body.appendChild(document.createElement('div'));
  globalThis.leave = widget.render({ model, el });
}"""
LEAVE = "() => { leave(); globalThis.leave = null; document.body.replaceChildren(); }"
TRIES = 20


class Bare:
    """A page with one widget's front end in it, and with frames that a test hands over: no kernel, no Jupyter."""

    def __init__(self, browser: Browser) -> None:
        self.page: Page = browser.new_page()
        self.page.set_default_timeout(60_000)
        self._heap = self.page.context.new_cdp_session(self.page)

    def show(self, module: str, frame: dict[str, Any]) -> None:
        """A view of a widget with the frame's panels."""
        panels = [name for name, value in frame.items() if isinstance(value, dict)]
        self.page.evaluate(SHOW, [module, {"frame": frame, "panels": panels}])

    def put(self, frame: dict[str, Any]) -> None:
        """The next frame, as the kernel would send it."""
        self.page.evaluate("frame => model.put(frame)", frame)

    def sent(self) -> list[str]:
        """What the front end told the kernel."""
        return self.page.evaluate("sent")

    def leave(self) -> None:
        """Take the view away, as Jupyter does with an output."""
        self.page.evaluate(LEAVE)

    def holds(self, name: str) -> bool:
        """Whether a weak reference, a global of this name, still has what it stood for."""
        self._heap.send("HeapProfiler.collectGarbage")
        return self.page.evaluate(f"{name}.deref() !== undefined")

    def drops(self, name: str) -> bool:
        """Whether it has that no more, once the timers of the page have run out."""
        for _ in range(TRIES):
            if not self.holds(name):
                return True
            self.page.wait_for_timeout(100)
        return False
