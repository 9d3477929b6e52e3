"""Minimal PyTorch models, as lean as we can write them: the cost of a step without any library.

Each has one architecture and no options, and computes the same as Regard's `tiny` and GPT-2 models: `bench.core` copies
the weights and compares losses and gradients before timing starts. Queries, keys and values have separate matrices. One
packed matrix, as a parameter or concatenated in every call, is no faster on a CPU at these sizes: splitting its
gradient costs what the larger product gains.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Multi-head attention: four projections and scaled_dot_product_attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None, is_causal: bool) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        batch_size, query_length, width = x.shape
        key_length, head_size = memory.size(1), width // self.heads
        q = self.q(x).view(batch_size, query_length, self.heads, head_size).transpose(1, 2)
        k = self.k(memory).view(batch_size, key_length, self.heads, head_size).transpose(1, 2)
        v = self.v(memory).view(batch_size, key_length, self.heads, head_size).transpose(1, 2)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=is_causal)
        return self.o(heads.transpose(1, 2).reshape(batch_size, query_length, width))


class TranslationLayer(nn.Module):
    """A post-norm layer: of an encoder or, with cross-attention, of a decoder."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float, has_cross: bool) -> None:
        super().__init__()
        self.dropout = dropout
        self.attention = Attention(width, heads)
        self.attention_norm = nn.LayerNorm(width)
        self.cross = Attention(width, heads) if has_cross else None
        self.cross_norm = nn.LayerNorm(width) if has_cross else None
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.feedforward_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, bias: Tensor, memory: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        p, t = self.dropout, self.training
        if self.cross is None or self.cross_norm is None or memory is None:
            x = self.attention_norm(x + F.dropout(self.attention(x, x, bias, False), p, t))
        else:
            x = self.attention_norm(x + F.dropout(self.attention(x, x, None, True), p, t))
            x = self.cross_norm(x + F.dropout(self.cross(x, memory, bias, False), p, t))
        return self.feedforward_norm(x + F.dropout(self.down(F.relu(self.up(x))), p, t))


class Translator(nn.Module):
    """Encoder and decoder with one embedding, shared with the output projection."""

    def __init__(
        self, vocabulary_size: int, width: int, heads: int, hidden: int, layers: int, dropout: float, length: int
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.sinusoids: Tensor
        self.register_buffer("sinusoids", make_sinusoids(length, width), persistent=False)
        self.encoder = nn.ModuleList(TranslationLayer(width, heads, hidden, dropout, False) for _ in range(layers))
        self.decoder = nn.ModuleList(TranslationLayer(width, heads, hidden, dropout, True) for _ in range(layers))

    def forward(self, source: Tensor, target: Tensor, source_valid: Tensor) -> Tensor:
        """Return logits (B, T, V)."""
        bias = torch.zeros(source_valid.shape).masked_fill_(~source_valid, -math.inf)[:, None, None]
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory, bias)
        x = self.embed(target)
        for layer in self.decoder:
            x = layer(x, bias, memory)
        return F.linear(x, self.embedding.weight)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embed tokens (B, T) -> (B, T, D)."""
        x = self.embedding(tokens) * self.scale + self.sinusoids[: tokens.size(1)]
        return F.dropout(x, self.dropout, self.training)


class LanguageModelLayer(nn.Module):
    """A pre-norm layer with causal self-attention."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.feedforward_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        y = self.attention_norm(x)
        x = x + self.attention(y, y, None, True)
        return x + self.down(F.gelu(self.up(self.feedforward_norm(x)), approximate="tanh"))


class LanguageModel(nn.Module):
    """GPT-2's shape without dropout."""

    def __init__(self, vocabulary_size: int, width: int, heads: int, hidden: int, layers: int, length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.position_embedding = nn.Embedding(length, width)
        self.decoder = nn.ModuleList(LanguageModelLayer(width, heads, hidden) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (B, T, V)."""
        x = self.embedding(tokens) + self.position_embedding.weight[: tokens.size(1)]
        for layer in self.decoder:
            x = layer(x)
        return F.linear(self.norm(x), self.embedding.weight)


def make_sinusoids(length: int, width: int) -> Tensor:
    """Return sinusoidal positions: all sines, then all cosines."""
    angles = torch.arange(length)[:, None] * 10000.0 ** -(torch.arange(0, width, 2) / width)
    return torch.cat((angles.sin(), angles.cos()), dim=-1)
