"""Models in Hugging Face's layout, from a folder or the hub, through mlx-lm: any architecture that it knows."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map
from mlx_lm import utils as mlx_lm_utils

from lanes.errors import ModelError
from lanes.models.loaded import Loaded, activation_dtype, context_length, count_parameters

SAMPLE = 1 << 20  # bytes hashed at each end of a weights file


def load_hub(name: str, choices: str) -> Loaded:
    """Load `owner/name` from the hub's cache, fetching it first where it is missing. Raises ModelError."""
    try:
        folder = mlx_lm_utils._download(name)
    except Exception as error:  # the hub client raises many kinds, also of its HTTP library
        reason = str(error).strip().splitlines()
        raise ModelError(
            f"there is no folder {name!r} here and the hub did not give a model of that name: give {choices}. "
            "If the name is right, check the network and, for a gated model, your token "
            f"({type(error).__name__}: {reason[0] if reason else 'no reason given'})"
        ) from error
    return load_folder(Path(folder), name=name)


def load_folder(folder: Path, name: str | None = None) -> Loaded:
    """Load the model in a folder with config.json, safetensors files and a tokenizer.

    On a CPU packed weights are unpacked and everything becomes float32; on a GPU the weights stay as they are. The
    fingerprint covers config.json and, of each weights file, its name, its size and a mebibyte at each end: enough to
    tell models apart, without reading tens of gigabytes. Raises ModelError.
    """
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no config.json: give the folder of a model in Hugging Face's layout")
    try:
        model, config = mlx_lm_utils.load_model(folder, lazy=True)
        tokenizer = mlx_lm_utils.load_tokenizer(folder, eos_token_ids=config.get("eos_token_id"))
        if mx.default_device() == mx.cpu:
            model = _plain_float32(model)
        mx.eval(model.parameters())
    except Exception as error:  # a broken file shows as almost anything: RuntimeError, KeyError, JSON and type errors
        raise ModelError(
            f"the model in {folder} cannot be loaded ({type(error).__name__}: {error}): check that its files are "
            "complete and that this version of mlx-lm knows its model_type"
        ) from error
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        name=name or folder.resolve().name,
        arch=config["model_type"],
        source=name or str(folder),
        quantization=_packing(model),
        dtype=activation_dtype(model),
        context=context_length(config),
        parameters=count_parameters(model),
        fingerprint=_fingerprint(folder),
        eos_ids=frozenset(tokenizer.eos_token_ids),
        config=config,
    )


def _plain_float32(model: nn.Module) -> nn.Module:
    """Unpack packed layers and make every number float32, the one type that a CPU multiplies fast."""
    model = mlx_lm_utils.dequantize_model(model)

    def widen(value: Any) -> Any:
        return value.astype(mx.float32) if mx.issubdtype(value.dtype, mx.floating) else value

    model.update(tree_map(widen, model.parameters()))
    return model


def _packing(model: nn.Module) -> str | None:
    bits = sorted({module.bits for _, module in model.named_modules() if hasattr(module, "bits")})
    return "/".join(f"{b}" for b in bits) + "-bit" if bits else None


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256(_canonical(json.loads((folder / "config.json").read_text())))
    for path in sorted(folder.glob("model*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with open(path, "rb") as file:
            digest.update(file.read(SAMPLE))
            file.seek(max(SAMPLE, size - SAMPLE))
            digest.update(file.read(SAMPLE))
    return digest.hexdigest()


def _canonical(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, sort_keys=True).encode()
