"""The two benchmark models in `torch.nn` and Hugging Face, and functions that copy the weights of a Regard model."""

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench.minimal_models import make_sinusoids
from regard.exchange.mapping import to_hf
from regard.exchange.weight_map import WeightMap

# Patterns that map a weight name of the minimal models to Regard's, applied in order.
NamePatterns = Mapping[str, str]
MINIMAL_NAMES: NamePatterns = {
    r"^(encoder|decoder)\.": r"\1.layers.",
    r"\.q\.": ".query.",
    r"\.k\.": ".key.",
    r"\.v\.": ".value.",
    r"\.o\.": ".output.",
    r"\.(\w+)_norm\.": r".\1_residual.norm.",
    r"\.(up|down)\.": r".feedforward.\1.",
}
TRANSLATOR_NAMES: NamePatterns = {r"^embedding\.": "source.embedding."}
LANGUAGE_MODEL_NAMES: NamePatterns = {
    r"^embedding\.": "tokens.embedding.",
    r"^position_embedding\.": "decoder.position.table.",
    r"^norm\.": "decoder.final_norm.",
}


@torch.no_grad()
def copy_weights(ours: nn.Module, theirs: nn.Module, names: NamePatterns) -> None:
    """Copy the weights of Regard's model by these names; `copy_stack` copies the stacks of `torch.nn`."""
    weights = dict(ours.named_parameters())
    for their_name, parameter in theirs.named_parameters():
        name = their_name
        for pattern, replacement in names.items():
            name = re.sub(pattern, replacement, name)
        if name in weights:
            parameter.copy_(weights[name])


def copy_stack(ours: nn.Module, theirs: nn.Module, weight_map: WeightMap) -> None:
    """Copy the layers of a Regard stack into a stack of `torch.nn`."""
    layers = {name: weight for name, weight in ours.state_dict().items() if name.startswith("layers.")}
    theirs.load_state_dict(to_hf(weight_map, layers))


class TorchTranslator(nn.Module):
    """`nn.TransformerEncoder` and `nn.TransformerDecoder`, without their final norms, with one shared embedding.

    Their layers also drop attention weights and hidden units of the feed-forward. The other contestants do not,
    so here these two are set to 0.
    """

    def __init__(
        self, vocabulary_size: int, width: int, heads: int, hidden: int, layers: int, dropout: float, length: int
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.sinusoids: Tensor
        self.register_buffer("sinusoids", make_sinusoids(length, width), persistent=False)
        self.dropout = nn.Dropout(dropout)
        encoder_layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout, batch_first=True)
        decoder_layer = nn.TransformerDecoderLayer(width, heads, hidden, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder_layer, layers)
        for module in self.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            if isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
                module.dropout.p = 0.0
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.mask: Tensor
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, source: Tensor, target: Tensor, source_valid: Tensor) -> Tensor:
        """Return logits (B, T, V)."""
        padding_mask = ~source_valid
        memory = self.encoder(self.embed(source), src_key_padding_mask=padding_mask)
        length = target.size(1)
        x = self.decoder(
            self.embed(target),
            memory,
            tgt_mask=self.mask[:length, :length],
            memory_key_padding_mask=padding_mask,
            tgt_is_causal=True,
        )
        return F.linear(x, self.embedding.weight)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embed tokens (B, T) -> (B, T, D)."""
        return self.dropout(self.embedding(tokens) * self.scale + self.sinusoids[: tokens.size(1)])


class TorchLanguageModel(nn.Module):
    """`nn.TransformerEncoder` under a causal mask: GPT-2's shape without dropout."""

    def __init__(self, vocabulary_size: int, width: int, heads: int, hidden: int, layers: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.position_embedding = nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, hidden, 0.0, nn.GELU("tanh"), batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.mask: Tensor
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (B, T, V)."""
        length = tokens.size(1)
        x = self.embedding(tokens) + self.position_embedding.weight[:length]
        x = self.encoder(x, mask=self.mask[:length, :length], is_causal=True)
        return F.linear(self.norm(x), self.embedding.weight)


def make_marian(
    vocabulary_size: int, width: int, heads: int, hidden: int, layers: int, dropout: float, length: int
) -> nn.Module:
    """Hugging Face's `MarianMTModel` of the same shape; its dropout acts at the same places."""
    import transformers

    config = transformers.MarianConfig(
        vocab_size=vocabulary_size,
        max_position_embeddings=length,
        d_model=width,
        encoder_layers=layers,
        encoder_attention_heads=heads,
        encoder_ffn_dim=hidden,
        decoder_layers=layers,
        decoder_attention_heads=heads,
        decoder_ffn_dim=hidden,
        activation_function="relu",
        dropout=dropout,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        pad_token_id=0,
        eos_token_id=1,
        forced_eos_token_id=None,
        decoder_start_token_id=0,
        attn_implementation="sdpa",
    )
    return _check_sdpa(transformers.MarianMTModel(config))


def make_gpt2(vocabulary_size: int, width: int, heads: int, hidden: int, layers: int, length: int) -> nn.Module:
    """Hugging Face's `GPT2LMHeadModel` of the same shape.

    Its GELU is torch's kernel (`gelu_pytorch_tanh`): the default `gelu_new` is the same formula, but slower.
    """
    import transformers

    config = transformers.GPT2Config(
        vocab_size=vocabulary_size,
        n_positions=length,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        n_inner=hidden,
        activation_function="gelu_pytorch_tanh",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="sdpa",
    )
    return _check_sdpa(transformers.GPT2LMHeadModel(config))


def _check_sdpa(model: Any) -> nn.Module:
    if model.config._attn_implementation != "sdpa":
        raise RuntimeError("Hugging Face ignored attn_implementation='sdpa'.")
    module: nn.Module = model
    return module
