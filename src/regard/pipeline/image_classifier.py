"""Classify images with an encoder."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.inputs import PatchesConfig
from regard.config.model import ClassificationHeadConfig, EncoderOnlyConfig
from regard.data.batches.images import normalize
from regard.data.example import Image
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.nn.record import Record
from regard.pipeline.attention import RecordedAttention
from regard.pipeline.classifier import Label
from regard.pipeline.encoding import Pipeline, check_logits
from regard.pipeline.images import AnyImage, as_images, load_batches, load_patches

BATCH_IMAGES = 128


class ImageClassifier(Pipeline):
    """Classifies images with an encoder.

    classifier = regard.load_image_classifier("my-model")
    classifier.classify("shoe.png").label
    """

    kind = "classification model for images"

    def __init__(self, model: EncoderOnly, settings: EncoderOnlyConfig) -> None:
        if not isinstance(settings.head, ClassificationHeadConfig) or not isinstance(settings.source, PatchesConfig):
            hint = "Tune it on labeled images: `regard tune MODEL --images FOLDER --out NEW`."
            raise RegardError(f"This model's task is '{settings.task}': it does not label images.", hint=hint)
        self.model: EncoderOnly = model
        self.settings: EncoderOnlyConfig = settings
        self.patches = settings.source
        self.labels = settings.head.labels

    def predict(self, inputs: Sequence[str], *, report: Callable[[int], None] = lambda _: None) -> list[Label]:
        """Classify each file; what `regard predict` does."""
        return self.classify(inputs, report)

    @overload
    def classify(  # type: ignore[overload-overlap]
        self, images: str | PathLike[str] | Image | NDArray[np.uint8], report: Callable[[int], None] = ...
    ) -> Label: ...
    @overload
    def classify(self, images: Sequence[AnyImage], report: Callable[[int], None] = ...) -> list[Label]: ...

    def classify(
        self, images: AnyImage | Sequence[AnyImage], report: Callable[[int], None] = lambda _: None
    ) -> Label | list[Label]:
        """Classify one image, or each of several. They are brought to the size and channels of the training images.

        Args:
            images: Files, or arrays of 8-bit values, (height, width) or (height, width, 3).
            report: Called with the number of images that were just labeled.

        Returns:
            The label of one image, or a list with that of each image in their order.
        """
        sequence, is_single = as_images(images)
        results: list[Label] = []
        for pixels in load_batches(sequence, self.patches, BATCH_IMAGES):
            results += self.classify_pixels(pixels)
            report(len(pixels))
        return results[0] if is_single else results

    def record(self, image: AnyImage) -> RecordedAttention:
        """Record the attention of the model while it reads an image; patches are named by row and column."""
        pixels, record = load_patches(image, self.patches), Record()
        with torch.inference_mode(), eval_mode(self.model):
            self.model(torch.from_numpy(normalize(pixels[None], self.patches)).to(self.device), record=record)
        rows, columns = (side // self.patches.patch for side in pixels.shape[1:])
        names = tuple(f"{row},{column}" for row in range(rows) for column in range(columns))
        return RecordedAttention(("class token", *names) if self.patches.class_token else names, (), record)

    def classify_pixels(self, pixels: NDArray[np.uint8]) -> list[Label]:
        """Classify a batch of images, (B, channels, height, width), in the shape that the model reads."""
        source = torch.from_numpy(normalize(pixels, self.patches)).to(self.device)  # (B, C, height, width)
        with torch.inference_mode(), eval_mode(self.model):
            logits = self.model(source).float()
        check_logits(logits)
        return [Label.choose(self.labels, row) for row in logits.softmax(dim=-1).tolist()]

    def _describe_input(self) -> str:
        height, width = self.patches.size or ("any", "any")
        return f"images of {height} x {width} x {self.patches.channels}"

    def _describe(self) -> list[str]:
        return [f"{self.settings.task} with {pluralize(len(self.labels), 'label')}"]
