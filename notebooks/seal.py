"""Run notebooks of receipts with other parameters: `python notebooks/seal.py size=full notebooks/receipts/NAME.ipynb`.

The notebooks stay as they are; what they seal goes to a folder receipts/ beside them. Values are Python literals, or
texts. Exits with 1 where one of them failed.
"""

import ast
import sys
from pathlib import Path
from typing import Any

from lanes.receipts.rerun import run

CELL_S = 6 * 3600.0
"""Seconds that a cell may take: a full receipt measures for an hour where a quick one takes a minute."""


def seal(path: Path, parameters: dict[str, Any]) -> str | None:
    """Run a notebook in its folder with these parameters; what went wrong, if anything did."""
    wrong = run(path.read_bytes(), parameters, path.resolve().parent, CELL_S)
    return str(wrong) if wrong else None


def value(text: str) -> Any:
    """A Python literal, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def main(arguments: list[str]) -> int:
    """Seal every notebook that is named; the exit status."""
    parameters = {name: value(text) for name, sign, text in (own.partition("=") for own in arguments) if sign}
    failed = 0
    for path in (Path(own) for own in arguments if "=" not in own):
        wrong = seal(path, parameters)
        print(f"{path.name}: {wrong or 'sealed'}", flush=True)
        failed |= wrong is not None
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
