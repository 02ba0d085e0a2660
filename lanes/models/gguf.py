"""Read a llama model with its tokenizer out of one GGUF file, with MLX alone.

MLX unpacks Q4_1 and Q8_0 into its own affine format (groups of 32). What is left to do: llama.cpp's names become
Hugging Face's, and the rows of q and k go back to the order that Hugging Face's rotary embedding wants.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import llama

from lanes.models.loaded import Loaded, count_parameters
from lanes.models.tokens import byte_level

if TYPE_CHECKING:
    from mlx_lm.tokenizer_utils import TokenizerWrapper

GROUP = 32
SPECIAL = 3  # a token type in GGUF's metadata
NAMES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def load_gguf(path: Path, *, name: str, source: str, fingerprint: str, packed: bool | None = None) -> Loaded:
    """Load the llama model in the file.

    packed: keep the weights packed, or unpack them; by default packed on a GPU only, because a CPU multiplies packed
    weights about a hundred times slower. Activations are float32 either way: in float16 the logits of a model this
    small move by 0.6. Raises RuntimeError, KeyError or ValueError for a file that is not what it should be.
    """
    packed = mx.default_device() == mx.gpu if packed is None else packed
    arrays, metadata = cast(tuple[dict[str, mx.array], dict[str, Any]], mx.load(str(path), return_metadata=True))
    config = _config(metadata, tied="output.weight" not in arrays)
    weights = {_rename(key): value for key, value in _unpermuted(arrays, config).items()}
    model = llama.Model(llama.ModelArgs.from_dict(config))
    if packed:
        bits = {key.removesuffix(".scales"): _bits(weights, key) for key in weights if key.endswith(".scales")}
        nn.quantize(
            model,
            class_predicate=lambda path, _: {"group_size": GROUP, "bits": bits[path]} if path in bits else False,
        )
        weights = {k: v.astype(mx.float32) if v.dtype == mx.float16 else v for k, v in weights.items()}
    else:
        weights = _unpacked(weights)
    model.load_weights(list(weights.items()))
    model.eval()
    mx.eval(model.parameters())
    tokenizer = _tokenizer(metadata)
    return Loaded(
        model=model,
        tokenizer=tokenizer,
        name=name,
        arch="llama",
        source=source,
        quantization="4-bit, group 32" if packed else None,
        dtype="float32",
        context=config["max_position_embeddings"],
        parameters=count_parameters(model),
        fingerprint=fingerprint,
        eos_ids=frozenset(tokenizer.eos_token_ids),
        config=config,
    )


def _config(metadata: Mapping[str, Any], *, tied: bool) -> dict[str, Any]:
    if metadata["general.architecture"] != "llama":
        raise ValueError(f"the architecture is {metadata['general.architecture']!r}, and only llama is read")
    return {
        "model_type": "llama",
        "hidden_size": metadata["llama.embedding_length"].item(),
        "num_hidden_layers": metadata["llama.block_count"].item(),
        "intermediate_size": metadata["llama.feed_forward_length"].item(),
        "num_attention_heads": metadata["llama.attention.head_count"].item(),
        "num_key_value_heads": metadata["llama.attention.head_count_kv"].item(),
        "rms_norm_eps": metadata["llama.attention.layer_norm_rms_epsilon"].item(),
        "rope_theta": metadata["llama.rope.freq_base"].item(),
        "max_position_embeddings": metadata["llama.context_length"].item(),
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "tie_word_embeddings": tied,
    }


def _unpermuted(arrays: Mapping[str, mx.array], config: Mapping[str, Any]) -> dict[str, mx.array]:
    """Undo llama.cpp's row order of q and k: [heads, rows/heads/2, 2, ...] becomes [heads, 2, rows/heads/2, ...]."""
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}

    def undo(key: str, value: mx.array) -> mx.array:
        kind = key.split(".")[2] if key.startswith("blk.") else ""
        if kind not in heads:
            return value
        rows = value.shape[0]
        return value.reshape(heads[kind], rows // heads[kind] // 2, 2, -1).swapaxes(1, 2).reshape(value.shape)

    return {key: undo(key, value) for key, value in arrays.items()}


def _rename(key: str) -> str:
    """`blk.3.attn_q.scales` becomes `model.layers.3.self_attn.q_proj.scales`."""
    parts = key.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{NAMES[parts[2]]}.{parts[3]}"
    return f"{TOP_NAMES[parts[0]]}.{parts[1]}"


def _bits(weights: Mapping[str, mx.array], scales: str) -> int:
    """How many bits a packed weight has: its 32-bit words hold GROUP values for every scale."""
    words = weights[scales.replace(".scales", ".weight")].shape[-1]
    return words * 32 // (weights[scales].shape[-1] * GROUP)


def _unpacked(weights: Mapping[str, mx.array]) -> dict[str, mx.array]:
    """Every weight as float32. Scales go to float32 first, so no product is rounded to their float16."""
    out = {}
    for key, value in weights.items():
        base, _, leaf = key.rpartition(".")
        if leaf in ("scales", "biases"):
            continue
        scales = weights.get(f"{base}.scales")
        if scales is None:
            out[key] = value.astype(mx.float32)
            continue
        biases = weights[f"{base}.biases"].astype(mx.float32)
        bits = _bits(weights, f"{base}.scales")
        out[key] = mx.dequantize(value, scales.astype(mx.float32), biases, group_size=GROUP, bits=bits)
    return out


def _tokenizer(metadata: Mapping[str, Any]) -> "TokenizerWrapper":
    if metadata["tokenizer.ggml.model"] != "gpt2" or metadata["tokenizer.ggml.pre"] != "smollm":
        raise ValueError(f"the tokenizer {metadata['tokenizer.ggml.pre']!r} is not one that is read")
    tokens = metadata["tokenizer.ggml.tokens"]
    types = metadata["tokenizer.ggml.token_type"].tolist()
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    return byte_level(
        {token: i for i, token in enumerate(tokens)},
        merges,  # pyright: ignore[reportArgumentType]
        [token for token, kind in zip(tokens, types, strict=True) if kind == SPECIAL],
        eos=tokens[metadata["tokenizer.ggml.eos_token_id"].item()],
        chat_template=metadata.get("tokenizer.chat_template"),
        single_digits=True,
        more_eos=["<|endoftext|>"],
    )
