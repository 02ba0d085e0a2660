"""Models: `load` turns a name, a folder or a description into a model and a tokenizer ready to run.

A model is loaded, evaluated and run on one thread (MLX's streams belong to threads), so nothing here makes an array
before `load` is called.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanes import checks
from lanes.errors import ModelError
from lanes.models.tiny import TinySpec, tiny

if TYPE_CHECKING:
    from lanes.models.loaded import Loaded

__all__ = ["DEFAULT", "Loaded", "TinySpec", "describe", "load", "tiny"]

DEFAULT = "default"
CHOICES = '"default", a folder with a model in it, a hub id such as "mlx-community/NAME", or lanes.tiny("llama")'


def __getattr__(name: str) -> Any:
    """`Loaded` comes with MLX, which a mere description of a model does without."""
    if name == "Loaded":
        return import_module("lanes.models.loaded").Loaded
    raise AttributeError(f"module 'lanes.models' has no attribute {name!r}")


def load(model: "str | os.PathLike[str] | TinySpec" = DEFAULT, *, progress: bool = True) -> "Loaded":
    """Load a model on the calling thread, which must be the one that runs it.

    model: "default" (SmolLM2-135M-Instruct, fetched once), a folder, a hub id, or what `lanes.tiny` returned. On a CPU
    the weights become float32; on a GPU packed weights stay packed.
    progress: show a bar while something is fetched.

    Raises ModelError, which says what to do, where the model cannot be found, fetched, read or understood, and
    InvalidRequest for a `progress` that is neither True nor False.
    """
    checks.flag("progress", progress)
    if isinstance(model, TinySpec):
        from lanes.models.tiny import build

        return build(model)
    if not isinstance(model, str | os.PathLike) or not os.fspath(model):
        raise ModelError(f"{model!r} is not a model: give {CHOICES}")
    if model == DEFAULT:
        from lanes.models.default import load_default

        return load_default(progress=progress)
    from lanes.models.hub import load_folder, load_hub

    path = Path(model).expanduser()
    if path.is_dir():
        return load_folder(path)
    if path.is_file():
        raise ModelError(f"{path} is a file: give the folder that holds config.json and the safetensors files")
    return load_hub(os.fspath(model), CHOICES)


def describe(model: "str | os.PathLike[str] | TinySpec") -> str:
    """A short name for a model that need not be loaded yet."""
    return model.name if isinstance(model, TinySpec) else os.fspath(model)
