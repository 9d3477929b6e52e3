"""A small GGUF file, written from a model of ours."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from tests.exchange.models import make_stack, parse_settings, randomize_weights
from tests.fuzz.seeds import make_gguf_metadata, write_gguf

WIDTH, HEADS, VOCABULARY = 32, 2, 37
NAMES = {
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.output": "attn_output",
    "attention_residual.norm": "attn_norm",
    "feedforward.gate": "ffn_gate",
    "feedforward.up": "ffn_up",
    "feedforward.down": "ffn_down",
    "feedforward_residual.norm": "ffn_norm",
}


def make_model() -> DecoderOnly:
    """Make a small Llama that prefers some tokens strongly."""
    no_bias = {"query": False, "key": False, "value": False, "output": False}
    decoder = make_stack(
        "pre",
        layers=1,
        norm={"kind": "rms", "eps": 1e-5},
        position={"kind": "rotary", "theta": 10000.0},
        attention={"heads": HEADS, "key_value_heads": 1, "bias": no_bias},
        feedforward={"kind": "gated", "d_ff": 64},
    )
    tokens = {"kind": "tokens", "vocabulary": VOCABULARY}
    settings = {"family": "decoder_only", "d_model": WIDTH, "tokens": tokens, "decoder": decoder}
    model = build(parse_settings(settings | {"head": {"kind": "lm", "tied": False}}), seed=0)
    assert isinstance(model, DecoderOnly)
    randomize_weights(model)
    with torch.no_grad():
        for name in ("query", "key"):
            getattr(model.decoder.layers[0].attention, name).weight.mul_(5.0)  # so that positions matter
    return model


def interleave(weight: Tensor, heads: int) -> Tensor:
    """Reorder the rows as the converter of llama.cpp does."""
    return weight.view(heads, 2, -1, weight.size(1)).transpose(1, 2).reshape(weight.shape)


def write_model(model: DecoderOnly, path: Path, *, is_interleaved: bool = True, **changes: Any) -> None:
    weights = model.state_dict()
    tensors = {
        "token_embd.weight": weights["tokens.embedding.weight"],
        "output.weight": weights["head.projection.weight"],
        "output_norm.weight": weights["decoder.final_norm.weight"],
    }
    for ours, theirs in NAMES.items():
        weight = weights[f"decoder.layers.0.{ours}.weight"]
        if is_interleaved and theirs in ("attn_q", "attn_k"):
            weight = interleave(weight, HEADS if theirs == "attn_q" else 1)
        tensors[f"blk.0.{theirs}.weight"] = weight
    tokens = ["<s>", *(chr(ord("!") + number) for number in range(VOCABULARY - 1))]
    stored = {name: (tuple(tensor.shape), 0, tensor.numpy().tobytes()) for name, tensor in tensors.items()}
    metadata = make_gguf_metadata(tokens, []) | changes
    path.write_bytes(write_gguf({key: value for key, value in metadata.items() if value is not None}, stored))
