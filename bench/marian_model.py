"""A Regard model as a model file of Marian: `model.npz` and `vocabulary.yml`.

Marian's post-norm Transformer is the one of Regard's presets `tiny` and `base`, but for three constants of its program:

- The decoder starts with an embedding of zeros instead of that of bos (`follow_marian` clears bos).
- The frequencies of its sinusoids are 10000^(-i / (D/2 - 1)), i < D/2, instead of 10000^(-i / (D/2)); Regard's setting
  `base` can express it (`follow_marian`).
- Its layer norms have eps = 1e-6; the presets' is 1e-5. Activations differ by about five millionths.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import Sinusoidal

PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
# A module of Regard's layers -> Marian's names of its weight and bias.
LAYER_NAMES = {
    **{
        f"{ours}.{projection}": (f"{theirs}_W{letter}", f"{theirs}_b{letter}")
        for ours, theirs in (("attention", "self"), ("cross", "context"))
        for projection, letter in PROJECTIONS.items()
    },
    "attention_residual.norm": ("self_Wo_ln_scale", "self_Wo_ln_bias"),
    "cross_residual.norm": ("context_Wo_ln_scale", "context_Wo_ln_bias"),
    "feedforward.up": ("ffn_W1", "ffn_b1"),
    "feedforward.down": ("ffn_W2", "ffn_b2"),
    "feedforward_residual.norm": ("ffn_ffn_ln_scale", "ffn_ffn_ln_bias"),
}


@torch.no_grad()
def follow_marian(model: EncoderDecoder, bos: int) -> None:
    """Give a model Marian's start of the decoder and Marian's sinusoids."""
    model.target.embedding.weight[bos] = 0.0
    for stack in (model.encoder, model.decoder):
        if not isinstance(stack.position, Sinusoidal) or stack.position.interleaved:
            raise ValueError("Marian has sinusoidal positions with all sines first (layout `halves`).")
        count = stack.position.width // 2
        stack.position.base = 10000.0 ** (count / (count - 1))


def write_marian_model(
    settings: EncoderDecoderConfig, model: EncoderDecoder, folder: Path, *, eos: int, unknown: int
) -> None:
    """Write `model.npz` and `vocabulary.yml`, in which the word t17 is token 17.

    Args:
        settings: The settings of the model: post-norm, one embedding for source, target and output.
        model: The model, after `follow_marian`.
        folder: Where to write.
        eos: The end-of-sequence token, which Marian calls </s>.
        unknown: Any token that no text contains: Marian needs an <unk>.
    """
    words = [f"t{token}" for token in range(settings.target_tokens.vocabulary)]
    words[eos], words[unknown] = "</s>", "<unk>"
    (folder / "vocabulary.yml").write_text("".join(f'"{word}": {token}\n' for token, word in enumerate(words)))
    config = "".join(f"{name}: {value}\n" for name, value in _make_config(settings).items())
    config_bytes = np.frombuffer(config.encode() + b"\0", dtype=np.int8)
    arrays: dict[str, Any] = {**to_marian(model.state_dict()), "special:model.yml": config_bytes}
    np.savez(folder / "model.npz", **arrays)


def to_marian(weights: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Return Marian's weights by name: matrices (in, out) and vectors (1, D)."""
    embedding = weights["target.embedding.weight"]
    bias = weights.get("head.bias", embedding.new_zeros(embedding.size(0)))
    theirs = {"Wemb": embedding, "decoder_ff_logit_out_b": bias[None]}
    for name, weight in weights.items():
        stack, _, layer_name = name.partition(".layers.")
        if not layer_name:
            continue
        number, _, module_name = layer_name.partition(".")
        module, _, kind = module_name.rpartition(".")
        their_name = LAYER_NAMES[module][0 if kind == "weight" else 1]
        theirs[f"{stack}_l{int(number) + 1}_{their_name}"] = weight.T if weight.dim() == 2 else weight[None]
    return {name: np.ascontiguousarray(weight.detach().numpy()) for name, weight in theirs.items()}


def _make_config(settings: EncoderDecoderConfig) -> dict[str, object]:
    """Return the settings that Marian reads from the model file."""
    encoder, decoder = attention_stack(settings.encoder), attention_stack(settings.decoder)
    return {
        "type": "transformer",
        "version": "v1.12.0",
        "dim-vocabs": [settings.target_tokens.vocabulary] * 2,
        "dim-emb": settings.d_model,
        "enc-depth": encoder.layers,
        "dec-depth": decoder.layers,
        "transformer-heads": decoder.attention.heads,
        "transformer-dim-ffn": decoder.feedforward.d_ff,
        "transformer-ffn-activation": "relu",
        "transformer-ffn-depth": 2,
        "transformer-preprocess": '""',
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "d",
        "transformer-no-projection": "false",
        "transformer-dropout": 0,
        "transformer-dropout-attention": 0,
        "transformer-dropout-ffn": 0,
        "tied-embeddings-all": "true",
    }
