"""Read a Llama model from a GGUF file: its settings, weights and tokenizer.

llama.cpp's converter reorders the rows of queries and keys so that rotary pairs are neighbors. Without `_restore_rows`,
the model would generate fluent but wrong text.
"""

import math
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.progress import track
from regard.config.codec import MODEL_FILES
from regard.config.model import DecoderOnlyConfig
from regard.exchange.gguf.dequantize import dequantize
from regard.exchange.gguf.format import GgufFile, parse_file, require
from regard.exchange.gguf.tokenizer import read_tokenizer
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.huggingface.llama import LLAMA
from regard.exchange.huggingface.read import convert_tensors
from regard.exchange.imported_model import ImportedModel
from regard.exchange.provenance import Provenance
from regard.store.size_check import BYTES_PER_PARAMETER, check_fits_memory
from regard.text.tokenizer_pair import TokenizerPair

NAMES = {  # Hugging Face names, which the weight map reads
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
LAYER = re.compile(r"blk\.(\d{1,4})\.([a-z_]+)\.weight", re.ASCII)


def read_gguf(path: Path) -> ImportedModel:
    """Read a GGUF file.

    Raises:
        RegardError: The file is damaged, is not a Llama model, or uses an unsupported feature.
    """
    location = str(path)
    file = parse_file(path)
    config = read_config(file, location=location)
    settings = MODEL_FILES.parse(LLAMA.read_config(ConfigReader(config, location), {}), location=location)
    assert isinstance(settings, DecoderOnlyConfig)  # noqa: S101 - it is a Llama
    max_positions = config["max_position_embeddings"]
    expected = check_fits_memory(settings, location=location) // BYTES_PER_PARAMETER
    if (elements := sum(math.prod(tensor.shape) for tensor in file.tensors.values())) > expected + config["head_dim"]:
        message = f"The tensors have {elements:,} numbers; the model has {expected:,} parameters."
        raise RegardError(message, location=location, hint="Use a plain Llama model.")
    tensors = convert_names(file, config, location=location)
    weights = convert_tensors(LLAMA, settings, tensors, max_positions, location=location)
    foreign = read_tokenizer(file.metadata, config["vocab_size"], location=location)
    settings = settings.model_copy(update={"starts_with_bos": bool(foreign.inserted.before)})
    origin = Provenance("gguf", LLAMA.name, "float32", max_positions)
    name = file.metadata.get("general.name")
    card = f"# {name[:200] if isinstance(name, str) else path.name}\n\nImported from a GGUF file.\n"
    template = file.metadata.get("tokenizer.chat_template")
    return ImportedModel(
        settings,
        TokenizerPair.joint(foreign.tokenizer),
        weights,
        origin,
        card,
        chat_template=template if isinstance(template, str) and template else None,
    )


def read_config(file: GgufFile, *, location: str) -> dict[str, Any]:
    """Return the metadata of a Llama as a config of Hugging Face."""
    metadata = file.metadata
    kind = metadata.get("general.architecture")
    if kind != "llama":
        hint = "Get the model as a Hugging Face folder with safetensors."
        raise RegardError(f"The architecture is {str(kind)[:40]!r}, not 'llama'.", location=location, hint=hint)

    def integer(key: str, default: int | None = None) -> int:
        value: int = require(metadata, f"llama.{key}", int, location=location, default=default)
        return value

    heads, width = integer("attention.head_count"), integer("embedding_length")
    if heads < 1:
        raise RegardError("'llama.attention.head_count' is not positive.", location=location, hint="Use another file.")
    key_dim = integer("attention.key_length", width // heads)
    _check_supported(file, key_dim, location=location)
    embedding = file.tensors.get("token_embd.weight")
    vocabulary = embedding.shape[0] if embedding is not None and len(embedding.shape) == 2 else 0
    return {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": integer("feed_forward_length"),
        "num_hidden_layers": integer("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": integer("attention.head_count_kv", heads),
        "head_dim": key_dim,
        "rms_norm_eps": round_float32(
            require(metadata, "llama.attention.layer_norm_rms_epsilon", float, location=location)
        ),
        "rope_theta": require(metadata, "llama.rope.freq_base", float, location=location, default=10000.0),
        "max_position_embeddings": integer("context_length"),
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in file.tensors,
    }


def round_float32(number: float) -> float:
    """Return the shortest decimal number that a float32 stands for.

    >>> round_float32(9.999999747378752e-06)
    1e-05
    """
    return float(f"{number:.7g}")


def _check_supported(file: GgufFile, key_dim: int, *, location: str) -> None:
    """Reject metadata and tensors of variants with a different forward pass."""
    metadata = file.metadata
    hint = "Use a Llama model without this variant."
    rotated = metadata.get("llama.rope.dimension_count", key_dim)
    if rotated != key_dim:
        raise RegardError(
            f"Rotary positions rotate {rotated!r:.20} of {key_dim} dimensions.", location=location, hint=hint
        )
    if metadata.get("llama.attention.value_length", key_dim) != key_dim:
        raise RegardError("Values and keys have different sizes.", location=location, hint=hint)
    factors_given = [metadata.get(f"llama.rope.{key}", 1.0) for key in ("scaling.factor", "scale_linear")]
    is_scaled = any(factor not in (0, 1) for factor in factors_given)  # linear if no type is given
    if metadata.get("llama.rope.scaling.type", "none") != "none" or is_scaled:
        raise RegardError("Rotary positions are scaled, which Regard does not support.", location=location, hint=hint)
    if metadata.get("llama.expert_count", 0):
        raise RegardError(
            "The model is a mixture of experts, which Regard does not support.", location=location, hint=hint
        )
    factors = file.tensors.get("rope_freqs.weight")
    is_long = factors is not None and math.prod(factors.shape) > key_dim  # it has one factor per rotary pair
    if factors is not None and (is_long or not torch.equal(scale := dequantize(factors), torch.ones_like(scale))):
        raise RegardError("Rotary positions are scaled, which Regard does not support.", location=location, hint=hint)


def convert_names(file: GgufFile, config: dict[str, Any], *, location: str) -> dict[str, Tensor]:
    """Return the tensors in float32 under the names of Hugging Face, with the rows of queries and keys restored."""
    tensors: dict[str, Tensor] = {}
    for name, stored in track(file.tensors.items(), "reading the weights"):
        if name == "rope_freqs.weight":
            continue  # all ones, as checked
        match = LAYER.fullmatch(name)
        theirs = NAMES.get(name)
        if match is not None and match[2] in LAYER_NAMES:
            theirs = f"model.layers.{int(match[1])}.{LAYER_NAMES[match[2]]}.weight"
        if theirs is None:
            hint = "Use a plain Llama model."
            raise RegardError(f"The tensor '{name[:60]}' is not part of a Llama.", location=location, hint=hint)
        tensor = dequantize(stored)
        if match is not None and match[2] in ("attn_q", "attn_k"):
            heads = config["num_attention_heads" if match[2] == "attn_q" else "num_key_value_heads"]
            tensor = _restore_rows(tensor, heads, name, location=location)
        tensors[theirs] = tensor
    return tensors


def _restore_rows(weight: Tensor, heads: int, name: str, *, location: str) -> Tensor:
    """Undo the interleaving of the rows of each head: (0, d/2, 1, d/2 + 1, ...) becomes (0, 1, ..., d - 1)."""
    if weight.dim() != 2 or heads < 1 or weight.size(0) % (2 * heads):
        hint = "Restore an intact copy of the file."
        raise RegardError(f"The rows of '{name[:60]}' are not pairs for {heads} heads.", location=location, hint=hint)
    rows = weight.view(heads, weight.size(0) // heads // 2, 2, weight.size(1))
    return rows.transpose(1, 2).reshape(weight.shape).contiguous()
