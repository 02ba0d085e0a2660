"""What a loaded model is: the module, its tokenizer, and the facts that the rest of Lanes asks about it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.tokenizer_utils import TokenizerWrapper

DEFAULT_CONTEXT = 4096  # for configurations that name no limit


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What is known of a model, without its weights."""

    name: str  # what people call it
    arch: str  # mlx-lm's model type, e.g. "llama"
    source: str  # where the weights came from
    quantization: str | None  # how the running weights are packed, e.g. "4-bit"; None: plain arrays
    dtype: str  # of the activations, e.g. "float32"
    context: int  # tokens of prompt and text together that the model was made for
    parameters: int  # weights, counted unpacked
    fingerprint: str  # sha256, hex; what it covers is said where each kind of model is loaded
    eos_ids: frozenset[int]  # tokens that end a text
    config: Mapping[str, Any] = field(repr=False)  # as mlx-lm's classes take it


@dataclass(frozen=True, kw_only=True)
class Loaded(ModelInfo):
    """A model that is ready to run: every parameter is evaluated, on the thread that called `load`."""

    model: nn.Module = field(repr=False)
    tokenizer: TokenizerWrapper = field(repr=False)

    @property
    def info(self) -> ModelInfo:
        """The facts alone, for whoever must not keep the weights alive."""
        return ModelInfo(**{fact.name: getattr(self, fact.name) for fact in fields(ModelInfo)})


def named_arrays(model: nn.Module) -> list[tuple[str, mx.array]]:
    """Every parameter with its dotted name, sorted by name."""
    return sorted(cast(list[tuple[str, mx.array]], tree_flatten(model.parameters())), key=lambda pair: pair[0])


def count_parameters(model: nn.Module) -> int:
    """The number of weights, packed ones counted as what they stand for (scales and biases not counted)."""
    total = 0
    modules = dict(model.named_modules())
    for name, array in named_arrays(model):
        owner, _, leaf = name.rpartition(".")
        bits = getattr(modules.get(owner), "bits", None)
        if bits is None:
            total += array.size
        elif leaf == "weight":
            total += array.size * 32 // bits
        elif leaf == "bias":
            total += array.size
    return total


def activation_dtype(model: nn.Module) -> str:
    """The floating dtype that most of the model's unpacked numbers have, e.g. "float32"."""
    sizes: dict[str, int] = {}
    for _, array in named_arrays(model):
        if mx.issubdtype(array.dtype, mx.floating):
            name = str(array.dtype).rpartition(".")[2]
            sizes[name] = sizes.get(name, 0) + array.size
    return max(sizes, key=lambda name: sizes[name]) if sizes else "float32"


def context_length(config: Mapping[str, Any]) -> int:
    """The context window that a configuration states, in tokens."""
    text = config.get("text_config") or {}
    for part in (config, text):
        for key in ("max_position_embeddings", "model_max_length", "n_positions", "max_seq_len", "seq_length"):
            if isinstance(part.get(key), int):
                return part[key]
    return DEFAULT_CONTEXT


def hash_parameters(model: nn.Module) -> str:
    """sha256 over the names, shapes and bytes of every parameter, in the order of their names."""
    digest = hashlib.sha256()
    for name, array in named_arrays(model):
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(bytes(memoryview(array)))  # pyright: ignore[reportArgumentType]
    return digest.hexdigest()
