"""How far rounded weights move what a model says: KL divergence and agreement with the model as it was.

Weights are rounded by mlx's own affine quantisation and unpacked again to float32, so what is measured is the rounding
of the weights alone, layer by layer, and not another kernel's sums. For the thread that loaded the model.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lanes.decisions.trie import log_softmax
from lanes.errors import InvalidRequest

if TYPE_CHECKING:
    from lanes.models import Loaded

Logits = Sequence[np.ndarray]
"""Of each text, [tokens, vocabulary] float32."""


@dataclass(frozen=True)
class Distance:
    """How far next-token distributions lie from those of the reference, over `tokens` places in texts.

    kl: mean of KL(reference || other) in nats; kl_worst: the largest. agree: the share of places at which both think
    the same token likeliest.
    """

    tokens: int
    kl: float
    kl_worst: float
    agree: float

    def values(self) -> dict[str, float]:
        """As the values of a sample."""
        return {"places": self.tokens, "kl": self.kl, "kl_worst": self.kl_worst, "agree": self.agree}


def distance(reference: Logits, other: Logits) -> Distance:
    """Compare logits place by place, in float64."""
    kls: list[np.ndarray] = []
    same: list[np.ndarray] = []
    for one, two in zip(reference, other, strict=True):
        logs = log_softmax(one)
        kls.append((np.exp(logs) * (logs - log_softmax(two))).sum(axis=-1))
        same.append(one.argmax(axis=-1) == two.argmax(axis=-1))
    kl, agree = np.concatenate(kls), np.concatenate(same)
    # A sum of rounded terms can end up a little below zero, which no divergence is.
    return Distance(len(kl), max(0.0, float(kl.mean())), max(0.0, float(kl.max())), float(agree.mean()))


def logits(model: Any, texts: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """The model's logits at every place of each text, one forward a text."""
    import mlx.core as mx

    return [np.array(model(mx.array([text]))[0].astype(mx.float32)) for text in texts]


def stages(model: Any) -> list[list[Any]]:
    """What is rounded one after the other: the parts of each layer, then the embedding and the head."""
    inside = [_roundable(layer) for layer in model.layers]
    within = {id(part) for layer in inside for part in layer}
    return [*inside, [part for part in _roundable(model) if id(part) not in within]]


@contextmanager
def rounded(loaded: "Loaded", bits: int, group: int, depth: int) -> Iterator[None]:
    """Meanwhile the weights of the model's first `depth` stages are rounded; afterwards they are what they were.

    bits and group: those of `mlx.nn.quantize`. Raises InvalidRequest for a model whose weights are packed already: it
    is no reference.
    """
    if loaded.quantization is not None:
        raise InvalidRequest(
            f"{loaded.name} is packed ({loaded.quantization}), so it is no reference: load it on a CPU"
        )
    parts = [part for stage in stages(loaded.model)[:depth] for part in stage]
    kept = [part.weight for part in parts]
    try:
        _round(parts, bits, group)
        yield
    finally:
        for part, weight in zip(parts, kept, strict=True):
            part.weight = weight


def _round(parts: Sequence[Any], bits: int, group: int) -> None:
    import mlx.core as mx

    for part in parts:
        packed = part.to_quantized(group_size=group, bits=bits)
        part.weight = mx.dequantize(packed.weight, packed.scales, packed.biases, group_size=group, bits=bits)
    mx.eval([part.weight for part in parts])


def _roundable(module: Any) -> list[Any]:
    """The parts of a module that `mlx.nn.quantize` would pack."""
    return [part for _, part in module.named_modules() if hasattr(part, "to_quantized")]


def write_packed(load: Callable[[], "Loaded"], folder: Path, bits: int, group: int) -> Path:
    """Pack a model that is loaded for it, and write it where `lanes.Engine(folder)` finds it; returns the folder."""
    import mlx.nn as nn
    from mlx_lm.utils import save_config, save_model

    loaded = load()
    nn.quantize(loaded.model, group_size=group, bits=bits)
    save_model(folder, loaded.model)
    packing = {"group_size": group, "bits": bits}
    config = {**loaded.config, "quantization": packing, "eos_token_id": sorted(loaded.eos_ids)}
    save_config(config, folder / "config.json")
    loaded.tokenizer.save_pretrained(folder)  # pyright: ignore[reportAttributeAccessIssue]
    del loaded
    gc.collect()
    return folder
