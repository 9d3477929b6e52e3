"""Output heads: map hidden states (B, T, D) to token, class or tag logits or to pixels, or return them unchanged.

Every head takes the hidden states and their padding mask (True for tokens; None: no padding). A language model's output
matrix is a separate Linear or the tied input embedding.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base.labels import IGNORE_INDEX
from regard.models.loss.sums import LossSettings, LossSums
from regard.models.loss.token import class_loss, token_loss
from regard.nn.feedforward import ACTIVATIONS
from regard.nn.masks import no_mask
from regard.nn.stack import Stack


class LMHead(nn.Module):
    """Language-model head: logits over the vocabulary at every position, from its own matrix or the tied embedding.

    A tied head shares the embedding module, not just its parameter, so the tie survives moving the model to a device.
    """

    def __init__(self, projection: nn.Linear | nn.Embedding, bias: nn.Parameter | None) -> None:
        super().__init__()
        self.projection = projection  # its weight is (vocabulary, D)
        self.bias = bias  # (vocabulary)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """(B, T, D) -> (B, T, vocabulary)."""
        return F.linear(x, self.projection.weight, self.bias)

    if TYPE_CHECKING:
        __call__ = forward

    def loss(self, x: Tensor, labels: Tensor, valid: Tensor | None, settings: LossSettings) -> LossSums:
        """Return the loss of the labeled positions; padding never reaches the output matrix."""
        del valid
        return self.token_loss(*gather_labeled(x, labels), settings)

    def token_loss(self, x: Tensor, labels: Tensor, settings: LossSettings) -> LossSums:
        """Return the loss of hidden states (N, D) with labels (N)."""
        weight, bias = self.projection.weight, self.bias
        return token_loss(x, labels.to(x.device), weight, bias, settings.label_smoothing, settings.logit_rows)


class MLMHead(nn.Module):
    """Masked-language-model head of BERT: dense layer, activation and norm before the output matrix."""

    def __init__(self, dense: nn.Linear, activation: str, norm: nn.Module, lm_head: LMHead) -> None:
        super().__init__()
        self.dense = dense
        self.activation: Callable[[Tensor], Tensor] = ACTIVATIONS[activation]
        self.norm = norm
        self.lm_head = lm_head

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, vocabulary)."""
        return self.lm_head(self.transform(x), valid)

    if TYPE_CHECKING:
        __call__ = forward

    def transform(self, x: Tensor) -> Tensor:
        """Return the input of the output matrix: (..., D) -> (..., D)."""
        return self.norm(self.activation(self.dense(x)))

    def loss(self, x: Tensor, labels: Tensor, valid: Tensor | None, settings: LossSettings) -> LossSums:
        """Return the loss of the masked positions; other positions are skipped."""
        del valid
        x, labels = gather_labeled(x, labels)  # (N, D), (N)
        return self.lm_head.token_loss(self.transform(x), labels, settings)


class BagHead(nn.Module):
    """Head of word2vec: at every position the mean of the vectors around it, then the output matrix.

    Args:
        window: Neighbors on each side; 0: the vector of the position itself (skip-gram).
        lm_head: The output matrix.
    """

    def __init__(self, window: int, lm_head: LMHead) -> None:
        super().__init__()
        self.window = window
        self.lm_head = lm_head

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, vocabulary)."""
        return self.lm_head(self.average(x, valid), valid)

    if TYPE_CHECKING:
        __call__ = forward

    def average(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """Return the mean of up to `window` valid vectors on each side: (B, T, D) -> (B, T, D)."""
        if not self.window:
            return x
        weights = x.new_ones(x.shape[:2]) if valid is None else valid.to(x.dtype)  # (B, T)
        x = x * weights[..., None]
        sums, counts = (self._sum_windows(values) - values for values in (x, weights[..., None]))
        return sums / counts.clamp(min=1)

    def loss(self, x: Tensor, labels: Tensor, valid: Tensor | None, settings: LossSettings) -> LossSums:
        """Return the loss of every token, from its neighbors."""
        return self.lm_head.loss(self.average(x, valid), labels, valid, settings)

    def _sum_windows(self, x: Tensor) -> Tensor:
        width = 2 * self.window + 1
        means = F.avg_pool1d(x.transpose(1, 2), width, stride=1, padding=self.window)  # (B, D, T); beyond the ends 0
        return width * means.transpose(1, 2)


class ClassHead(nn.Module):
    """Classification head: one label per sequence, from its first or last valid vector or the mean of valid vectors."""

    def __init__(self, dense: nn.Linear | None, classes: nn.Linear, pool: str) -> None:
        super().__init__()
        self.dense = dense
        self.classes = classes
        self.pool = pool

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, labels)."""
        pooled = self.pool_states(x, valid)  # (B, D)
        if self.dense is not None:
            pooled = torch.tanh(self.dense(pooled))
        return self.classes(pooled)

    if TYPE_CHECKING:
        __call__ = forward

    def pool_states(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """Return the pooled vector of each sequence, (B, D)."""
        return pool_states(x, valid, self.pool)

    def loss(self, x: Tensor, labels: Tensor, valid: Tensor | None, settings: LossSettings) -> LossSums:
        """Return the loss of the labels (B)."""
        return label_loss(self(x, valid), labels, settings)


def pool_states(x: Tensor, valid: Tensor | None, pool: str) -> Tensor:
    """Return one vector for each sequence of hidden states: (B, T, D) -> (B, D).

    Args:
        x: The hidden states.
        valid: False for padding; None: no padding.
        pool: "first" or "last" valid vector, or "mean" of the valid ones.
    """
    if pool == "first":
        return x[:, 0]
    if pool == "last":
        if valid is None:
            return x[:, -1]
        index = torch.arange(x.size(1), device=x.device)
        last = torch.where(valid, index, 0).argmax(dim=1)  # (B)
        return x[torch.arange(x.size(0), device=x.device), last]
    if valid is None:
        return x.mean(dim=1)
    return (x * valid[..., None]).sum(dim=1) / valid.sum(dim=1, keepdim=True).clamp(min=1)


class TagHead(nn.Module):
    """Tagging head: one label per position."""

    def __init__(self, tags: nn.Linear) -> None:
        super().__init__()
        self.tags = tags

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """(B, T, D) -> (B, T, labels)."""
        return self.tags(x)

    if TYPE_CHECKING:
        __call__ = forward

    def loss(self, x: Tensor, labels: Tensor, valid: Tensor | None, settings: LossSettings) -> LossSums:
        """Return the loss of the labels (B, T)."""
        return label_loss(self(x, valid), labels, settings)


class PixelHead(nn.Module):
    """Masked autoencoder: predicts the pixels of patches from the encoded visible ones (He et al. 2022).

    A mask token replaces every patch that the encoder did not see; a small stack with its own positions then processes
    all patches.
    """

    def __init__(self, mask_token: nn.Parameter, stack: Stack, pixels: nn.Linear, n_first: int) -> None:
        super().__init__()
        self.mask_token = mask_token  # (D)
        self.stack = stack
        self.pixels = pixels  # D -> channels * patch * patch
        self.n_first = n_first  # vectors before the patches: 1 with a class token

    def forward(
        self,
        x: Tensor,
        valid: Tensor | None = None,  # noqa: ARG002
        positions: Tensor | None = None,
        n_vectors: int | None = None,
    ) -> Tensor:
        """Return the pixels of all patches: (B, V, D) -> (B, patches, channels * patch * patch).

        Args:
            x: The hidden states of the encoder.
            valid: Not used: images have no padding.
            positions: Which vectors `x` holds, (B, V); default: all.
            n_vectors: Number of vectors of a whole image; default: V.
        """
        if positions is not None and n_vectors is not None:
            whole = self.mask_token.to(x.dtype).expand(x.size(0), n_vectors, -1)  # (B, N, D)
            x = whole.scatter(1, positions[..., None].expand_as(x), x)
        return self.pixels(self.stack(x, no_mask(), None)[:, self.n_first :])

    if TYPE_CHECKING:
        __call__ = forward


class IdentityHead(nn.Module):
    """No head: returns the hidden states."""

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Return x, (B, T, D)."""
        return x

    if TYPE_CHECKING:
        __call__ = forward


def gather_labeled(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the hidden states (N, D) and labels (N) of the labeled positions of x (B, T, D) and labels (B, T)."""
    x, labels = x.flatten(0, 1), labels.flatten()  # (B T, D), (B T)
    indices = (labels != IGNORE_INDEX).nonzero()[:, 0]
    if indices.numel() < labels.numel():
        x, labels = x.index_select(0, indices.to(x.device)), labels[indices]  # (N, D), (N)
    return x, labels


def compute_labeled_logits(head: nn.Module, x: Tensor, labels: Tensor, valid: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return logits (N, C), in float32, and labels (N) of the labeled positions, or of the labeled sequences."""
    if isinstance(head, LMHead | MLMHead):  # padding never reaches the output matrix
        x, labels = gather_labeled(x, labels)
        return head(x).float(), labels.to(x.device)
    logits = head(x, valid)  # (B, C) or (B, T, C)
    labels = labels.to(logits.device).flatten()
    is_labeled = labels != IGNORE_INDEX
    return logits.flatten(0, -2)[is_labeled].float(), labels[is_labeled]


def label_loss(logits: Tensor, labels: Tensor, settings: LossSettings) -> LossSums:
    """Return the classification loss without chunking, and the predictions in evaluation mode."""
    sums = class_loss(logits, labels.to(logits.device), settings.label_smoothing)
    return sums._replace(predictions=logits.argmax(dim=-1)) if settings.should_predict else sums


Head = LMHead | MLMHead | BagHead | ClassHead | TagHead | PixelHead | IdentityHead
