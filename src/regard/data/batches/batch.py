"""A batch as tensors: model inputs, labels, and the numbers of its samples."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.labels import IGNORE_INDEX
from regard.data.batches.arrays import BatchArrays, FloatArray, IntArray, StoredSamples
from regard.data.batches.rows import RowMaker


@dataclass(frozen=True)
class Batch:
    """Rows of samples. Fields have the names of the models' arguments; fields that a task does not use are None.

    An encoder-decoder is called as `model(batch.source, batch.target, batch.source_valid)`, a decoder as
    `model(batch.target, positions=batch.positions, documents=batch.documents)`, an encoder as
    `model(batch.source, batch.source_valid)`.
    """

    number: int | None  # of the global batch; None for an empty batch that keeps ranks in sync
    labels: Tensor  # (B, T) or (B): expected outputs; IGNORE_INDEX where there is no loss
    samples: Tensor  # (N) sample numbers: one per row, or packed, one per document; -1 if empty
    languages: Tensor  # (N) of each sample, an index into the corpus' `languages`
    source: Tensor | None = None  # (B, S), images (B, channels, height, width), or spectrograms (B, frames, bins)
    source_valid: Tensor | None = None  # (B, S) False for padding; of images (B, patches), of audio clips (B, frames)
    types: Tensor | None = None  # (B, S) token types of pairs; None: all 0
    target: Tensor | None = None  # (B, T)
    target_valid: Tensor | None = None  # (B, T) if the encoder reads the target, too: False for padding
    documents: Tensor | None = None  # (B, T) packed: an index into `samples`; -1 for padding
    positions: Tensor | None = None  # (B, T) packed: from 0 in every document; of images, the visible vectors

    @property
    def label_count(self) -> int:
        """Number of positions with a label; the loss is normalized by their sum over all ranks."""
        return int((self.labels != IGNORE_INDEX).sum())

    @property
    def input_count(self) -> int:
        """Number of tokens, patches or frames that the model reads, source and target together, without padding."""
        count = 0
        if self.source is not None and self.source.dim() == 4 and self.positions is not None:
            return self.positions.numel()  # the visible patches of images
        if self.source is not None:
            count += self.source.numel() if self.source_valid is None else int(self.source_valid.sum())
        if self.target_valid is not None:
            count += int(self.target_valid.sum())
        elif self.target is not None:
            count += self.label_count  # a decoder reads one token for each that it predicts
        return count

    @property
    def is_divisible(self) -> bool:
        """Whether the loss is a sum over rows; a contrastive loss compares all rows of a batch."""
        return self.target_valid is None

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device."""
        tensors: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                tensors[field.name] = value.to(device, non_blocking=True)
        return replace(self, **tensors)


def drop_trivial_masks(batch: Batch) -> Batch:
    """Remove masks without masked positions, so that attention stays on its fast path."""
    source_valid, documents, positions = batch.source_valid, batch.documents, batch.positions
    if source_valid is not None and bool(source_valid.all()):
        source_valid = None
    if documents is not None and bool(((documents == documents[:, :1]) | (documents < 0)).all()):
        documents = positions = None  # one text per row; padding behind it is never attended to
    return replace(batch, source_valid=source_valid, documents=documents, positions=positions)


def make_batch(number: int | None, records: StoredSamples, arrays: BatchArrays) -> Batch:
    """Convert a task's arrays to tensors."""
    inputs = (arrays.source, arrays.images, arrays.audio)
    optional = {"source": next((array for array in inputs if array is not None), None)}
    for name in ("source_valid", "types", "target", "target_valid", "documents", "positions"):
        optional[name] = getattr(arrays, name)
    return Batch(
        number=number,
        labels=_to_tensor(arrays.labels),
        samples=_to_tensor(records.samples),
        languages=_to_tensor(records.languages),
        **{name: _to_tensor(array) for name, array in optional.items() if array is not None},
    )


def empty_batch(rows: RowMaker) -> Batch:
    """Make one row of special tokens without labels: the model can run it, and its gradient is zero."""
    zero = np.zeros(1, np.int64)
    records = StoredSamples(
        tokens=np.zeros(0, np.int64),
        lengths=np.full((len(rows.needs), 1), int(rows.packs_sequences)),  # packed: the bos token alone is one position
        samples=zero - 1,
        draws=zero,
        languages=zero,
        labels=zero - 1,
        starts=zero,
        document_lengths=zero,
        rows=zero,
    )
    arrays = rows.make_arrays(records)
    return make_batch(None, records, replace(arrays, labels=np.full_like(arrays.labels, IGNORE_INDEX)))


def _to_tensor(array: IntArray | FloatArray | NDArray[np.bool_]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
