"""A Chromium for the tests that look at widgets: the system's own, or one that `python tests/browser.py` fetches.

What the tests need they install themselves, where they may; without a browser they are left out and say so.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_S = 900
APT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
MISSING = (
    "no Chromium, so nothing was seen in a browser: run `apt-get install chromium`, or `playwright install chromium`"
)


def find() -> str | None:
    """The path of a browser, None where there is none."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if os.path.exists(own) else None


def install() -> str | None:
    """The path of a browser, fetched from the system's packages or from playwright's where there was none."""
    commands = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        commands = [["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"], *commands]
    for command in commands:
        if found := find():
            return found
        done = subprocess.run(command, env=APT, timeout=INSTALL_S, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return find()


if __name__ == "__main__":
    print(install() or MISSING)
