"""Pictures of the widgets in JupyterLab, for docs/images: `python docs/screenshots.py` (needs Chromium)."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

import browser  # noqa: E402  (they lie beside the tests)
import lab  # noqa: E402

IMAGES = ROOT / "docs" / "images"
WIDGETS = ("Board", "Timeline", "Streams", "Desk")
SEEN_MS = 300_000
TOKENS = "() => document.querySelectorAll('.lanes-tok').length >= 4 * 60"
MAKE = "import asyncio, lanes, lanes_widgets\nengine = lanes.Engine(prefix_bytes=0)"
WORK = (
    "prompts = ['The sea is', 'Once upon a time', 'A recipe for bread:', 'Dear diary,']\n"
    "streams = [engine.stream(prompt, max_tokens=90, ignore_eos=True, logprobs=0) for prompt in prompts]\n"
    "await asyncio.sleep(3)\n"
    "review = 'Review: I loved it.\\nSentiment: positive\\n\\nReview: The room was cold.\\nSentiment:'\n"
    "pending = [engine.score(review, [' positive', ' negative']) for _ in range(2)]\n"
    "await engine.drain()"
)
ALONE = (MAKE, *(f"lanes_widgets.{name}(engine)" for name in WIDGETS), WORK)
TOGETHER = (MAKE, "lanes_widgets.Workbench(engine)", WORK)


def main() -> None:
    """Run four streams and some decisions below the widgets, and take a picture of each, and of all in one."""
    path = browser.find()
    if path is None:
        raise SystemExit(browser.MISSING)
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as home,
        lab.server(Path(folder), Path(home)) as address,
        lab.chromium(path) as chromium,
    ):

        def seen(width: int, scale: float) -> lab.Lab:
            size = {"width": width, "height": 2400}
            return lab.Lab(chromium, address, Path(folder), viewport=size, device_scale_factor=scale)

        alone = seen(1300, 2)
        work(alone, *ALONE)
        for at, name in enumerate(WIDGETS):
            alone.page.locator(".lanes-panel").nth(at).screenshot(path=IMAGES / f"{name.lower()}.png")
        alone.shut()
        together = seen(1660, 1.5)  # some 1300 of them are the notebook's own
        work(together, *TOGETHER)
        together.page.locator(".lanes").screenshot(path=IMAGES / "workbench.png")
        together.shut()


def work(seen: lab.Lab, *cells: str) -> None:
    """Run the cells, ask at the desk, wait until there is something to look at, and show the whole run."""
    seen.open("widgets.ipynb", *cells)
    seen.run_all(wait=False)
    page = seen.page
    page.wait_for_function("() => document.querySelectorAll('.lanes-live').length >= 4")
    page.locator(".lanes-desk").get_by_role("button", name="Ask", exact=True).click()
    page.locator(".desk-history tbody tr").filter(has_text="answered").wait_for(timeout=SEEN_MS)
    page.wait_for_function(TOKENS, timeout=SEEN_MS)
    page.get_by_role("button", name="All", exact=True).click()


if __name__ == "__main__":
    main()
