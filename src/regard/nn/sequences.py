"""Token order of the sequences in a batch, so that a recurrent state never crosses sequences.

The tokens of one document in one row form a sequence; padding is excluded. torch runs sequences of unequal
length as a `PackedSequence`: all first tokens, then all second tokens, and so on.

    row 0   a0 a1 b0 b1 b2      documents a and b
    row 1   c0 c1 -- -- --      padding
    packed  b0 a0 c0  b1 a1 c1  b2
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from regard.nn.masks import Mask


@dataclass(frozen=True)
class Sequences:
    """The order in which the tokens of a batch are packed."""

    order: Tensor  # (N) indices into the flattened batch (B T)
    batch_sizes: Tensor  # on the CPU: the number of sequences that have a first token, a second token, ...
    valid: Tensor  # (B, T) False for padding

    def pack(self, x: Tensor) -> PackedSequence:
        """Pack the tokens (B, T, D)."""
        return PackedSequence(x.flatten(0, 1)[self.order], self.batch_sizes)

    def unpack(self, packed: PackedSequence) -> Tensor:
        """Return the tokens (B, T, D); zeros for padding."""
        data = packed.data
        flat = data.new_zeros(self.valid.numel(), data.size(-1)).index_copy(0, self.order, data)
        return flat.unflatten(0, self.valid.shape) * self.valid[..., None]


def find_sequences(mask: Mask, rows: int, length: int, device: torch.device) -> Sequences | None:
    """Return the sequences of a batch under a mask; None if every row is one sequence of full length.

    >>> from regard.nn.masks import padding, same_document
    >>> documents = torch.tensor([[0, 0, 1, 1, 1], [2, 2, 2, 2, 2]])
    >>> valid = torch.tensor([[True] * 5, [True, True, False, False, False]])
    >>> sequences = find_sequences(same_document(documents) & padding(valid), 2, 5, torch.device("cpu"))
    >>> sequences.order, sequences.batch_sizes
    (tensor([2, 0, 5, 3, 1, 6, 4]), tensor([3, 3, 1]))
    """
    if mask.valid is None and not mask.documents:
        return None
    valid = torch.ones(rows, length, dtype=torch.bool, device=device) if mask.valid is None else mask.valid
    valid = valid.expand(rows, length)
    # A row without valid tokens runs its first one, so that every parameter gets a gradient; `unpack` sets it to zero.
    is_used = valid.clone()
    is_used[:, 0] |= ~valid.any(dim=1)
    keys = [torch.arange(rows, device=device)[:, None].expand(rows, length), *mask.documents]
    used = is_used.flatten().nonzero()[:, 0]  # (N)
    tokens = torch.stack([key.expand(rows, length).flatten()[used] for key in keys], dim=1)  # (N, keys)
    _, numbers, lengths = tokens.unique(dim=0, return_inverse=True, return_counts=True)  # sequence of each token
    by_sequence = numbers.argsort(stable=True)  # (N) tokens of one sequence next to each other, in order
    starts = lengths.cumsum(0) - lengths
    offsets = torch.empty_like(numbers)  # of each token in its sequence
    offsets[by_sequence] = torch.arange(used.numel(), device=device) - starts.repeat_interleave(lengths)
    ranks = torch.empty_like(lengths)  # of each sequence: the longest is first
    ranks[lengths.argsort(descending=True, stable=True)] = torch.arange(lengths.numel(), device=device)
    order = used[(offsets * lengths.numel() + ranks[numbers]).argsort()]
    return Sequences(order, offsets.bincount().cpu(), valid)
