"""Seeded random models of real architectures, small enough for tests: real classes and caches, no meaning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanes.errors import ModelError

if TYPE_CHECKING:
    from lanes.models.loaded import Loaded

# One attention head pattern for all: 4 query heads over 2 KV heads of 16 numbers each.
_COMMON: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-6,
    "vocab_size": 512,
    "max_position_embeddings": 4096,
}
_MIXED: dict[str, Any] = {"rope_theta": 10000.0, "tie_word_embeddings": False}
_WINDOW: dict[str, Any] = {
    "num_hidden_layers": 4,
    "sliding_window": 32,
    "sliding_window_pattern": 2,
    "query_pre_attn_scalar": 16,
}
ARCHITECTURES: Mapping[str, Mapping[str, Any]] = {
    "llama": {**_COMMON, **_MIXED},
    "qwen3": {**_COMMON, **_MIXED},
    "qwen3_moe": {
        **_COMMON,
        **_MIXED,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "mlp_only_layers": (),
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
    },
    # Three layers in four are recurrent (gated delta nets), the fourth attends.
    "qwen3_5": {
        **_COMMON,
        "num_hidden_layers": 4,
        "full_attention_interval": 4,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "tie_word_embeddings": False,
    },
    # Every second layer sees only the last `sliding_window` tokens.
    "gemma3_text": {**_COMMON, **_WINDOW},
    "gemma3": {**_COMMON, **_WINDOW},
}


@dataclass(frozen=True)
class TinySpec:
    """A tiny model that `load` will build on the engine's thread; making one makes no array."""

    arch: str
    seed: int = 0
    sizes: tuple[tuple[str, Any], ...] = ()  # what differs from ARCHITECTURES[arch], sorted by name

    @property
    def name(self) -> str:
        changed = "".join(f", {name}={value}" for name, value in self.sizes)
        return f"tiny({self.arch}, seed={self.seed}{changed})"

    @property
    def config(self) -> dict[str, Any]:
        """The configuration that mlx-lm's class takes."""
        flat = {**ARCHITECTURES[self.arch], **dict(self.sizes), "model_type": self.arch}
        flat = {name: list(value) if isinstance(value, tuple) else value for name, value in flat.items()}
        if self.arch == "gemma3":
            return {"model_type": "gemma3", "vocab_size": flat["vocab_size"], "text_config": flat}
        return flat


def tiny(arch: str = "llama", seed: int = 0, **sizes: Any) -> TinySpec:
    """Describe a tiny random model: float32, 512 tokens, a context of 4,096.

    The same arguments give the same weights on the same kind of device.

    sizes: keys of ARCHITECTURES[arch] to change, such as num_hidden_layers=4. Raises ModelError for an unknown
    architecture or size.
    """
    if arch not in ARCHITECTURES:
        raise ModelError(f"there is no tiny {arch!r}: choose one of {', '.join(ARCHITECTURES)}")
    known = ARCHITECTURES[arch]
    for name, value in sizes.items():
        if name not in known:
            raise ModelError(f"a tiny {arch} has no size {name!r}: it has {', '.join(sorted(known))}")
        if isinstance(value, int | float) and not isinstance(value, bool) and value <= 0:
            raise ModelError(f"{name}={value!r} must be above zero")
    if sizes.get("vocab_size", 512) < 300:
        raise ModelError("vocab_size must be 300 or more: the bytes and the special tokens need 259")
    frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in sizes.items()}
    return TinySpec(arch, seed, tuple(sorted(frozen.items())))


def build(spec: TinySpec) -> "Loaded":
    """Make the model on this thread. Its fingerprint covers every weight."""
    import mlx.core as mx
    from mlx_lm.utils import _get_classes

    from lanes.models.loaded import Loaded, count_parameters, hash_parameters
    from lanes.models.tokens import tiny_tokenizer

    config = spec.config
    model_class, args_class = _get_classes(config)
    try:
        model = model_class(args_class.from_dict(config))
    except (TypeError, ValueError) as error:
        raise ModelError(f"{spec.name} does not fit together: {error}") from error
    _draw(model, spec.seed)
    model.eval()
    mx.eval(model.parameters())
    tokenizer = tiny_tokenizer(config["vocab_size"])
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        name=spec.name,
        arch=spec.arch,
        source="random weights",
        quantization=None,
        dtype="float32",
        context=(config.get("text_config") or config)["max_position_embeddings"],
        parameters=count_parameters(model),
        fingerprint=hash_parameters(model),
        eos_ids=frozenset(tokenizer.eos_token_ids),
        config=config,
    )


def _draw(model: Any, seed: int) -> None:
    """Give every matrix normal weights that keep the scale of what passes through; vectors stay as they are."""
    import mlx.core as mx

    from lanes.models.loaded import named_arrays

    drawn = []
    named = named_arrays(model)
    for key, (name, array) in zip(mx.random.split(mx.random.key(seed), len(named)), named, strict=True):
        if name.endswith("A_log"):
            # Slow decay: with the class's own draw a recurrent state forgets everything within a token.
            drawn.append((name, mx.log(mx.random.uniform(0.001, 0.05, array.shape, key=key))))
        elif array.ndim >= 2:
            fan_in = 1 if "embed" in name else array.shape[1] if "conv" in name else array.shape[-1]
            drawn.append((name, mx.random.normal(array.shape, scale=fan_in**-0.5, key=key)))
    model.load_weights(drawn, strict=False)
