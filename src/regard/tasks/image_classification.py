"""Classify images with an encoder."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.base.labels import IGNORE_INDEX
from regard.config.inputs import PatchesConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples
from regard.data.batches.batch import Batch
from regard.data.batches.images import ImageRowMaker, check_shape
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.tasks.classification import MediaClassifier
from regard.tasks.inputs.image import AnyImage, ImageInput
from regard.tasks.task import AnyAugmentation, Task, make_synthetic_batch
from regard.tasks.validation import ValidationContext, score_labels
from regard.text.tokenizer_pair import TokenizerPair


class ImageClassifier(MediaClassifier[AnyImage]):
    """Classifies images with an encoder.

    classifier = regard.load_image_classifier("my-model")
    classifier.classify("shoe.png").label
    """

    kind = "classification model for images"
    loader = "load_image_classifier"
    test_data = "images"
    ability = "label images"
    hint = "Fine-tune it on labeled images: `regard tune MODEL --images FOLDER --out NEW`."
    input_class = ImageInput


@dataclass(frozen=True)
class ImageClassificationRows(ImageRowMaker):
    """Image classification: one label per image."""

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with one label per image."""
        images = self.make_images(records, records.tokens)
        return BatchArrays(
            np.where(records.labels < 0, IGNORE_INDEX, records.labels),
            images=images,
            source_valid=np.ones((len(images), self.n_patches), np.bool_),
        )


class ImageTask(Task):
    """Base class of tasks on images."""

    def image_rows(self, run: RunConfig, shards: Shards, augmentation: AnyAugmentation) -> dict[str, Any]:
        """Return the common options of image rows: patches, size, augmentation and seed."""
        patches: PatchesConfig = run.model.source  # type: ignore[union-attr,assignment]
        return {
            "patches": patches,
            "size": check_shape(shards, patches),
            "augmentation": augmentation,
            "seed": run.data.seed,
        }

    def random_images(self, run: RunConfig, rows: int, length: int) -> Tensor:
        """Return random images (B, channels, height, width) of the corpus size, or with `length` patches."""
        source: PatchesConfig = run.model.source  # type: ignore[union-attr,assignment]
        height, width = source.size or (source.patch, source.patch * (length - source.class_token))
        return torch.rand(rows, source.channels, height, width)


class ImageClassificationTask(ImageTask):
    """Image classification task."""

    pipeline_class = ImageClassifier

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Shift and mirror the images randomly."""
        del tokenizers
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
        return shards, ImageClassificationRows(**self.image_rows(run, shards, augmentation))

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Score the labels."""
        return score_labels(context)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random images with the first label."""
        return make_synthetic_batch(torch.zeros(rows, dtype=torch.long), source=self.random_images(run, rows, length))
