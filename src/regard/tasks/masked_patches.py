"""Masked autoencoder for images (He et al. 2022)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.keyed_random import derive
from regard.base.labels import IGNORE_INDEX
from regard.config.inputs import PatchesConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples, derive_sample_keys
from regard.data.batches.batch import Batch
from regard.data.batches.images import ImageRowMaker
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.models.batch_inputs import require
from regard.models.inputs import cut_patches
from regard.models.loss.pixel import pixel_loss
from regard.models.loss.sums import LossSums
from regard.tasks.image_classification import ImageClassifier, ImageTask
from regard.tasks.task import AnyAugmentation, LossContext, make_synthetic_batch
from regard.tasks.validation import ValidationContext, sum_loss
from regard.text.tokenizer_pair import TokenizerPair

MASK = 103  # random key, different for every task


@dataclass(frozen=True)
class MaskedPatchesRows(ImageRowMaker):
    """Masked patches (He et al. 2022): the encoder reads only the visible patches, and the others are predicted.

    Every image has the same number of masked patches, chosen randomly. The label of a masked patch is 0, and of a
    visible patch IGNORE_INDEX. The loss is the squared error of the pixels.
    """

    mask_probability: float = 0.75

    @property
    def n_visible(self) -> int:
        """The number of visible patches, at least 1."""
        return max(1, self.n_patches - round(self.mask_probability * self.n_patches))

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of encoder vectors: visible patches and the class token."""
        return np.full_like(lengths[:1], self.n_visible + int(self.patches.class_token))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Create a batch of images with the positions of their visible patches."""
        images = self.make_images(records, records.tokens)
        keys = derive(derive_sample_keys(self.seed, records, MASK)[:, None], np.arange(self.n_patches)[None])
        order = np.argsort(keys, axis=1)  # (B, patches)
        visible = np.sort(order[:, : self.n_visible], axis=1)
        labels = np.zeros(order.shape, np.int64)
        np.put_along_axis(labels, visible, IGNORE_INDEX, axis=1)
        first = int(self.patches.class_token)
        positions = np.concatenate((np.zeros((len(images), first), np.int64), visible + first), axis=1)
        return BatchArrays(labels, images=images, positions=positions)


class MaskedPatchesTask(ImageTask):
    """Predict masked patches of images: a masked autoencoder."""

    pipeline_class = ImageClassifier
    counts_labels = False

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Mask most patches of each image."""
        del tokenizers
        probability = run.options.probability
        return shards, MaskedPatchesRows(**self.image_rows(run, shards, augmentation), mask_probability=probability)

    def loss(self, context: LossContext, batch: Batch) -> LossSums:
        """Return the squared error of the pixels of masked patches."""
        x, _ = context.read(batch)
        model: Any = context.model  # the settings only allow a patch encoder with a pixel head
        batch, inputs = batch.to(x.device), model.source
        images = require(batch.source)
        predicted = model.head(x, None, batch.positions, inputs.count_vectors(images))  # (B, patches, pixels)
        return pixel_loss(predicted, cut_patches(images, inputs.patch), batch.labels != IGNORE_INDEX)

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Compute the squared error, which is not a likelihood."""
        return {"loss": sum_loss(context).loss}

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random images with `length` visible vectors."""
        source: PatchesConfig = run.model.source  # type: ignore[union-attr,assignment]
        images = self.random_images(run, rows, length)
        patches = source.count_vectors(*images.shape[2:]) - source.class_token
        positions = torch.arange(length).expand(rows, -1)  # (B, visible)
        return make_synthetic_batch(torch.zeros(rows, patches, dtype=torch.long), source=images, positions=positions)
