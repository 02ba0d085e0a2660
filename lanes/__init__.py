"""Lanes: text streams and decisions from one small language-model engine inside the notebook's own kernel.

Importing this package puts a fast BLAS in place (Linux CPUs only), which must happen before `mlx.core` is imported.
The public names load their modules on first use, so `import lanes` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lanes import blas as _blas

if TYPE_CHECKING:  # for editors and type checkers alone; _HOME says the same to the interpreter
    from lanes.asking import ask as ask
    from lanes.decisions.answers import Answer as Answer
    from lanes.decisions.answers import Answers as Answers
    from lanes.decisions.priors import Prior as Prior
    from lanes.decisions.questions import Choice as Choice
    from lanes.decisions.questions import Noul as Noul
    from lanes.decisions.questions import Score as Score
    from lanes.decisions.results import Scored as Scored
    from lanes.doctor import examine as examine
    from lanes.engine import Engine as Engine
    from lanes.engine import Pending as Pending
    from lanes.engine import Stream as Stream
    from lanes.errors import Busy as Busy
    from lanes.errors import Cancelled as Cancelled
    from lanes.errors import DeadlineExceeded as DeadlineExceeded
    from lanes.errors import DeviceStalled as DeviceStalled
    from lanes.errors import EngineClosed as EngineClosed
    from lanes.errors import EngineFailed as EngineFailed
    from lanes.errors import InvalidRequest as InvalidRequest
    from lanes.errors import LanesError as LanesError
    from lanes.errors import ModelError as ModelError
    from lanes.errors import PromptTooLong as PromptTooLong
    from lanes.evaluation import Calibration as Calibration
    from lanes.evaluation import Conformal as Conformal
    from lanes.evaluation import Drift as Drift
    from lanes.evaluation import Evaluation as Evaluation
    from lanes.evaluation import Threshold as Threshold
    from lanes.evaluation import calibrate as calibrate
    from lanes.evaluation import conformal as conformal
    from lanes.evaluation import drift as drift
    from lanes.evaluation import evaluate as evaluate
    from lanes.evaluation import threshold as threshold
    from lanes.inspecting import LabelReport as LabelReport
    from lanes.inspecting import inspect_labels as inspect_labels
    from lanes.labelled import Examples as Examples
    from lanes.labelled import examples as examples
    from lanes.models import Loaded as Loaded
    from lanes.models import load as load
    from lanes.models import tiny as tiny
    from lanes.record import Rounds as Rounds
    from lanes.record import Snapshot as Snapshot
    from lanes.serving import Server as Server
    from lanes.serving import serve as serve
    from lanes.simulation import Arrival as Arrival
    from lanes.simulation import Cost as Cost
    from lanes.simulation import Workload as Workload
    from lanes.simulation import every as every
    from lanes.simulation import poisson as poisson
    from lanes.simulation import simulate as simulate
    from lanes.sweeping import sweep as sweep

__version__ = "0.1.0"

_HOME = {
    "LanesError": "errors",
    "InvalidRequest": "errors",
    "PromptTooLong": "errors",
    "Busy": "errors",
    "DeadlineExceeded": "errors",
    "Cancelled": "errors",
    "EngineClosed": "errors",
    "EngineFailed": "errors",
    "DeviceStalled": "errors",
    "ModelError": "errors",
    "Engine": "engine",
    "Stream": "engine",
    "Pending": "engine",
    "ask": "asking",
    "Noul": "decisions.questions",
    "Choice": "decisions.questions",
    "Score": "decisions.questions",
    "Answer": "decisions.answers",
    "Answers": "decisions.answers",
    "Prior": "decisions.priors",
    "Scored": "decisions.results",
    "Rounds": "record",
    "Snapshot": "record",
    "simulate": "simulation",
    "Workload": "simulation",
    "Arrival": "simulation",
    "Cost": "simulation",
    "poisson": "simulation",
    "every": "simulation",
    "evaluate": "evaluation",
    "calibrate": "evaluation",
    "threshold": "evaluation",
    "conformal": "evaluation",
    "drift": "evaluation",
    "Evaluation": "evaluation",
    "Calibration": "evaluation",
    "Threshold": "evaluation",
    "Conformal": "evaluation",
    "Drift": "evaluation",
    "inspect_labels": "inspecting",
    "LabelReport": "inspecting",
    "sweep": "sweeping",
    "serve": "serving",
    "Server": "serving",
    "Examples": "labelled",
    "examples": "labelled",
    "load": "models",
    "tiny": "models",
    "Loaded": "models",
    "examine": "doctor",
}

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]

_blas.preload()


def __getattr__(name: str) -> Any:
    """Load a public name from its home module on first use and keep it."""
    if name not in _HOME:
        raise AttributeError(f"module 'lanes' has no attribute {name!r}")
    value = getattr(import_module(f"lanes.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
