"""Contrastive loss: pulls the vectors of a pair together and pushes other texts of the batch apart.

With vectors of length 1, s(i, j) = cos(first_i, second_j) / temperature, and the loss of pair i is the mean of two
cross-entropies (InfoNCE, van den Oord et al. 2018; in both directions as in CLIP, Radford et al. 2021):

    1/2 ( -log softmax_j s(i, j) [i]  -  log softmax_j s(j, i) [i] )

Negatives come only from the same batch, not from other batches of the step or other ranks. The loss of a step is
therefore a sum over its batches and does not depend on the number of ranks.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.base.labels import IGNORE_INDEX
from regard.models.loss.sums import LossSums

PADDING = -1  # no token has this id


def contrastive_loss(
    first: Tensor, second: Tensor, labels: Tensor, temperature: float, duplicates: Tensor | None = None
) -> LossSums:
    """Compute the loss of pairs, summed over both directions and halved.

    Args:
        first: Vectors of the first texts (B, D), of any length.
        second: Vectors of their partners (B, D).
        labels: The number of each pair's partner (B), its own; IGNORE_INDEX: no loss.
        temperature: Divides the cosines; smaller values weigh the hardest negatives more.
        duplicates: (B, B) True where texts i and j are not negatives because both pairs contain the same text.

    >>> vectors = torch.eye(2)
    >>> loss = contrastive_loss(vectors, vectors, torch.arange(2), temperature=1.0)
    >>> round(loss.total.item(), 4), loss.correct.item()  # 2 log(1 + 1/e)
    (0.6265, 2)
    """
    with torch.autocast(first.device.type, enabled=False):
        first, second = (F.normalize(vectors.float(), dim=-1) for vectors in (first, second))
        similarities = first @ second.t() / temperature  # (B, B)
        if duplicates is not None:
            similarities = similarities.masked_fill(duplicates, float("-inf"))
        forwards, backwards = (
            F.cross_entropy(side, labels, ignore_index=IGNORE_INDEX, reduction="sum")
            for side in (similarities, similarities.t())
        )
        total = (forwards + backwards) / 2
    correct = (similarities.argmax(dim=-1) == labels).sum()
    return LossSums(total, total.detach(), correct)


def find_duplicates(
    first: Tensor, second: Tensor, first_valid: Tensor | None = None, second_valid: Tensor | None = None
) -> Tensor:
    """Return (B, B): True where second text j of another pair is not a negative of first text i.

    This is the case if the pairs share a first or second text, or if second text j equals first text i. Tokens are
    (B, T) and (B, S), with False in `valid` for padding.
    """
    width = max(first.size(1), second.size(1))
    sides = []
    for tokens, valid in ((first, first_valid), (second, second_valid)):
        masked_tokens = tokens if valid is None else tokens.masked_fill(~valid, PADDING)
        sides.append(F.pad(masked_tokens, (0, width - tokens.size(1)), value=PADDING))
    first, second = sides
    same = torch.zeros(first.size(0), first.size(0), dtype=torch.bool, device=first.device)
    for rows, columns in ((first, first), (second, second), (first, second)):
        same |= (rows[:, None] == columns).all(dim=-1)  # (B, 1, T) and (B, T)
    return same.fill_diagonal_(False)
