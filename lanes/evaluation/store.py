"""A calibration as a JSON file: versioned, written all or nothing, and read strictly."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanes.errors import InvalidRequest
from lanes.paths import replaced

if TYPE_CHECKING:
    from lanes.evaluation.calibration import Fit

_KIND, _VERSION = "lanes.calibration", 1
_FILE: dict[str, type] = {"kind": str, "version": int, "model": str, "fits": list, "warnings": list}
_FIT: dict[str, type] = {
    "type": str,
    "options": int,
    "temperature": float,
    "rows": int,
    "before": float,
    "after": float,
}


def write(path: Path, model: str, fits: Sequence["Fit"], warnings: Sequence[str]) -> Path:
    """Write the file; no reader sees half of it."""
    shape = {
        "kind": _KIND,
        "version": _VERSION,
        "model": model,
        "fits": [asdict(fit) for fit in fits],
        "warnings": list(warnings),
    }
    words = json.dumps(shape, indent=2, allow_nan=False) + "\n"
    with replaced(path) as part:
        part.write_text(words, encoding="utf-8")
    return path


def load(path: Path) -> tuple[str, list[dict[str, Any]], tuple[str, ...]]:
    """The model, the fits and the warnings of a file; InvalidRequest where it is not what `write` makes."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except ValueError as error:
        raise InvalidRequest(f"{path} is no calibration: {error}; save it again") from None
    _check(found, _FILE, path)
    if found["kind"] != _KIND or found["version"] != _VERSION:
        raise InvalidRequest(
            f"{path} is {found['kind']!r}, version {found['version']}; this Lanes reads {_KIND!r}, version {_VERSION}: "
            "calibrate again"
        )
    for fit in found["fits"]:
        _check(fit, _FIT, path)
        if not fit["temperature"] > 0 or not all(
            math.isfinite(fit[name]) for name in ("temperature", "before", "after")
        ):
            raise InvalidRequest(f"{path} has the temperature {fit['temperature']!r}: calibrate again")
    if not all(isinstance(words, str) for words in found["warnings"]):
        raise InvalidRequest(f"{path} has warnings that are no texts: calibrate again")
    return found["model"], found["fits"], tuple(found["warnings"])


def _check(found: Any, fields: dict[str, type], path: Path) -> None:
    """Raise InvalidRequest unless this is an object with these fields, of these types, and no others."""
    if not isinstance(found, dict) or found.keys() != fields.keys():
        there = sorted(found) if isinstance(found, dict) else type(found).__name__
        raise InvalidRequest(f"{path} should have the fields {sorted(fields)}, it has {there}: calibrate again")
    wrong = [name for name, kind in fields.items() if type(found[name]) is not kind]
    if wrong:
        raise InvalidRequest(f"{path} has values of another type in {wrong}: calibrate again")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
