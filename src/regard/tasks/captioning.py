"""Caption images with an encoder-decoder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config.run import RunConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples, shift_target
from regard.data.batches.batch import Batch
from regard.data.batches.images import ImageRowMaker
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards, select_first_stream
from regard.tasks.generation import MediaToText
from regard.tasks.image_classification import ImageTask
from regard.tasks.inputs.image import AnyImage, ImageInput
from regard.tasks.pipeline import one_or_many
from regard.tasks.results import GeneratedText
from regard.tasks.search import Search
from regard.tasks.task import AnyAugmentation, make_synthetic_batch, require_tokenizers
from regard.text.specials import SpecialIds
from regard.text.tokenizer_pair import TokenizerPair


class ImageCaptioner(MediaToText[AnyImage]):
    """Captions images with an encoder-decoder.

    captioner = regard.load_image_captioner("my-model")
    captioner.caption("shoe.png").text
    """

    kind = "captioning model"
    loader = "load_image_captioner"
    test_data, stage = "captions", "captioning"
    ability, output_name = "caption images", "caption"
    training_data = "--images TABLE"
    input_class = ImageInput

    @one_or_many
    def caption(
        self,
        images: Sequence[AnyImage],
        search: Search | None = None,
        *,
        n_best: int = 1,
        max_new_tokens: int | None = None,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[GeneratedText]:
        """Caption one or several images. They are converted to the size and channels of the training images.

        Args:
            images: Files, or arrays of 8-bit values, (height, width) or (height, width, 3).
            search: Search strategy (`regard.tasks.search`): `Beam(1)` is greedy, default `Beam(5)`.
            n_best: Number of hypotheses per image: the best is the text, the others its `alternatives`.
            max_new_tokens: Maximum number of tokens, eos included. Default: `max_length_ratio * vectors + 20`.
            seed: Random seed for sampling.
            report: Called after each batch with the number of captioned images.

        Returns:
            The caption of one image, or a list of captions.

        Raises:
            RegardError: An image cannot be read.
        """
        return self.generate_texts(
            images, search, n_best=n_best, max_new_tokens=max_new_tokens, seed=seed, report=report
        )


@dataclass(frozen=True)
class CaptioningRows(ImageRowMaker):
    """Captions by teacher forcing: image; [bos] + caption -> caption + [eos]."""

    specials: SpecialIds | None = None
    needs: ClassVar[tuple[str, ...]] = ("image", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the number of vectors of each image and of tokens of each caption, including eos."""
        return np.concatenate((super().row_lengths(lengths), lengths[1:2] + 1))

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of images and their captions."""
        assert self.specials is not None  # noqa: S101 - it has a default because those of the base class have one
        is_image = select_first_stream(records.lengths)
        images = self.make_images(records, records.tokens[is_image])
        labels, target = shift_target(records, records.tokens[~is_image], self.specials)
        valid = np.ones((len(images), self.n_patches), np.bool_)
        return BatchArrays(labels, images=images, source_valid=valid, target=target)


class CaptioningTask(ImageTask):
    """Image captioning task, trained with teacher forcing."""

    pipeline_class = ImageCaptioner
    text_sides = ("target",)
    has_length_ratio = True

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Return rows of images with captions."""
        specials = require_tokenizers(tokenizers).target.specials
        return shards, CaptioningRows(**self.image_rows(run, shards, augmentation), specials=specials)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random images with random captions of half their length."""
        text = torch.zeros(rows, max(1, length // 2), dtype=torch.long)  # (B, T)
        return make_synthetic_batch(text, source=self.random_images(run, rows, length), target=text)
