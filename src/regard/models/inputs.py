"""Model inputs: map tokens, image patches or mel frames to embeddings (B, T, D) and an optional padding mask."""

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regard.base.errors import ShapeError

EmbeddedInput = tuple[Tensor, Tensor | None]  # embeddings (B, T, D) and padding mask (B, T), True for tokens


def pad(rows: list[list[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Pad rows to a tensor (B, T).

    Returns:
        The tokens, and a mask (B, T) that is True where a token is valid; None if no row is padded (models are
        faster without a mask).
    """
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    tokens = torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows], device=device)  # (B, T)
    if min(lengths) == longest:
        return tokens, None
    return tokens, torch.arange(longest, device=device) < torch.tensor(lengths, device=device)[:, None]


class TokenInput(nn.Module):
    """Token embedding, optionally scaled by sqrt(D), plus token-type embedding if the model has types."""

    def __init__(self, embedding: nn.Embedding, types: nn.Embedding | None, scale: bool) -> None:
        super().__init__()
        self.embedding = embedding
        self.types = types
        self.scale = math.sqrt(embedding.embedding_dim) if scale else None

    def forward(self, tokens: Tensor, valid: Tensor | None = None, types: Tensor | None = None) -> EmbeddedInput:
        """Tokens (B, T) -> (B, T, D)."""
        x = self.embedding(tokens)  # (B, T, D)
        if self.scale is not None:
            x = x * self.scale
        if self.types is not None:
            x = x + self.types(torch.zeros_like(tokens) if types is None else types)
        elif types is not None:
            raise ShapeError(
                "The model has no token types, but types were passed.", hint="Build the model with types > 0."
            )
        return x, valid

    if TYPE_CHECKING:
        __call__ = forward


class PatchInput(nn.Module):
    """Image patches: each square patch is flattened and projected (ViT)."""

    def __init__(self, project: nn.Linear, channels: int, patch: int, class_token: nn.Parameter | None) -> None:
        super().__init__()
        self.project = project  # channels * patch * patch -> D
        self.channels = channels
        self.patch = patch
        self.class_token = class_token  # (D)

    def forward(self, image: Tensor, valid: Tensor | None = None, types: Tensor | None = None) -> EmbeddedInput:
        """Images (B, channels, height, width) -> (B, patches, D), row by row; `valid` is (B, patches)."""
        if image.size(-2) % self.patch or image.size(-1) % self.patch:
            raise ShapeError(
                f"{image.size(-2)} x {image.size(-1)} pixels do not divide into {self.patch} x {self.patch} patches.",
                hint="Resize or pad the images.",
            )
        if image.size(1) != self.channels:
            raise ShapeError(f"Images have {image.size(1)} channels, but the model was built for {self.channels}.")
        _reject_types(types)
        x = self.project(self.cut(image))  # (B, h w, D)
        if self.class_token is not None:
            x = torch.cat((self.class_token.expand(x.size(0), 1, -1), x), dim=1)  # (B, 1 + h w, D)
            if valid is not None:
                valid = torch.cat((valid.new_ones(valid.size(0), 1), valid), dim=1)  # (B, 1 + h w)
        return x, valid

    if TYPE_CHECKING:
        __call__ = forward

    def cut(self, image: Tensor) -> Tensor:
        """Return the pixels of each patch before projection: (B, C, height, width) -> (B, h w, C p p)."""
        return cut_patches(image, self.patch)

    def count_vectors(self, image: Tensor) -> int:
        """Return the number of vectors of an image: its patches, and the class token."""
        patches = (image.size(-2) // self.patch) * (image.size(-1) // self.patch)
        return patches + (self.class_token is not None)


def cut_patches(image: Tensor, patch: int) -> Tensor:
    """Return the pixels of each square patch, row by row: (B, C, height, width) -> (B, patches, C * patch * patch)."""
    patches = image.unfold(2, patch, patch).unfold(3, patch, patch)  # (B, C, h, w, p, p)
    return patches.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


class ConvolutionInput(PatchInput):
    """Image patches with a convolutional stem: stride-2 convolutions reduce each patch to one pixel."""

    def __init__(
        self, stem: nn.Sequential, project: nn.Linear, channels: int, patch: int, class_token: nn.Parameter | None
    ) -> None:
        super().__init__(project, channels, patch, class_token)  # the projection is D -> D
        self.stem = stem

    def cut(self, image: Tensor) -> Tensor:
        """Return the stem's output pixels: (B, C, height, width) -> (B, h w, D)."""
        return self.stem(image).flatten(2).transpose(1, 2)


class MelInput(nn.Module, ABC):
    """Mel spectrogram: each group of `frames` neighboring frames becomes one vector."""

    def __init__(self, bins: int, frames: int) -> None:
        super().__init__()
        self.bins = bins
        self.frames = frames

    def forward(self, mel: Tensor, valid: Tensor | None = None, types: Tensor | None = None) -> EmbeddedInput:
        """Spectrograms (B, time, bins) -> (B, time / frames, D); `valid` is (B, time). Pads the last group."""
        if mel.size(-1) != self.bins:
            raise ShapeError(f"The spectrogram has {mel.size(-1)} mel bins, but the model was built for {self.bins}.")
        _reject_types(types)
        if valid is not None:
            mel = mel.masked_fill(~valid[..., None], 0.0)  # padding in a partly valid group must not matter
        x = self.embed(mel, valid)  # (B, time / frames, D)
        if valid is not None:
            padding = -mel.size(1) % self.frames
            valid = nn.functional.pad(valid, (0, padding)).unflatten(1, (-1, self.frames)).any(dim=-1)
        return x, valid

    if TYPE_CHECKING:
        __call__ = forward

    @abstractmethod
    def embed(self, mel: Tensor, valid: Tensor | None) -> Tensor:
        """Return the vectors: (B, time, bins), where padding is zero, -> (B, time / frames, D)."""


class LinearMelInput(MelInput):
    """Mel spectrogram whose groups of frames are flattened and projected."""

    def __init__(self, project: nn.Linear, bins: int, frames: int) -> None:
        super().__init__(bins, frames)
        self.project = project  # frames * bins -> D

    def embed(self, mel: Tensor, valid: Tensor | None) -> Tensor:  # noqa: ARG002 - padding is zero
        """Project each group of frames."""
        mel = nn.functional.pad(mel, (0, 0, 0, -mel.size(1) % self.frames))  # (B, time', bins)
        return self.project(mel.unflatten(1, (-1, self.frames)).flatten(2))  # (B, time'/frames, D)


class ConvolutionMelInput(MelInput):
    """Mel spectrogram with two convolutions and GELU, the second with stride `frames` (Whisper)."""

    def __init__(self, conv1: nn.Conv1d, conv2: nn.Conv1d, bins: int, frames: int) -> None:
        super().__init__(bins, frames)
        self.conv1 = conv1  # bins -> D, stride 1
        self.conv2 = conv2  # D -> D, stride frames

    def embed(self, mel: Tensor, valid: Tensor | None) -> Tensor:
        """Convolve over time; padding after the last valid frame stays zero, as at the end of a single clip."""
        x = nn.functional.gelu(self.conv1(mel.transpose(1, 2)))  # (B, D, time)
        if valid is not None:
            x = x.masked_fill(~valid[:, None], 0.0)
        return nn.functional.gelu(self.conv2(x)).transpose(1, 2)  # (B, time / frames, D)


Input = TokenInput | PatchInput | MelInput


def _reject_types(types: Tensor | None) -> None:
    if types is not None:
        raise ShapeError("Only token inputs have token types.")
