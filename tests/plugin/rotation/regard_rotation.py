"""A task of another package: by how many quarter turns was an image rotated? (Gidaris et al. 2018)

It teaches an encoder the shapes of things without any label.
"""

from dataclasses import dataclass, replace

import numpy as np

from regard.base.keyed_random import integers
from regard.config.run import RunConfig
from regard.config.task_spec import find_spec
from regard.data.batches.arrays import BatchArrays, StoredSamples, derive_sample_keys
from regard.data.batches.images import ImageRowMaker
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.tasks.image_classification import ImageClassificationTask
from regard.tasks.recipes.images import IMAGE_CLASSIFICATION
from regard.tasks.task import AnyAugmentation
from regard.text.tokenizer_pair import TokenizerPair

TURN = 1000  # the purpose of the random key: no other random number of a sample has it
SPEC = replace(
    find_spec("image_classification"),
    name="rotation",
    implementation="regard_rotation:RotationTask",
    recipe="regard_rotation:RECIPE",
    labels=("0", "90", "180", "270"),
    counted="rotated images",
)
RECIPE = replace(IMAGE_CLASSIFICATION, learns_from=("images", "images+labels"))


@dataclass(frozen=True)
class RotationRows(ImageRowMaker):
    """Rotates every image by 0 to 3 quarter turns; the label is their number."""

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of rotated images."""
        images = self.make_images(records, records.tokens)  # (B, channels, height, width), augmented and normalized
        turns = integers(derive_sample_keys(self.seed, records, TURN), 4)  # (B)
        rotated = np.stack([np.rot90(image, turn, axes=(1, 2)) for image, turn in zip(images, turns, strict=True)])
        valid = np.ones((len(images), self.n_patches), np.bool_)
        return BatchArrays(turns, images=rotated, source_valid=valid)


class RotationTask(ImageClassificationTask):
    """Predict the rotation of images; everything else is image classification."""

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Rotate the images; labels of the corpus are not used."""
        del tokenizers
        return shards, RotationRows(**self.image_rows(run, shards, augmentation))
