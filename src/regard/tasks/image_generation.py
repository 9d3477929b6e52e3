"""Generate images with a decoder-only model whose tokens are pixels (ImageGPT)."""

from collections.abc import Callable, Sequence
from math import log
from typing import NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.base.progress import begin
from regard.config.inputs import RasterConfig
from regard.config.model import DecoderOnlyConfig
from regard.data.codebook import Codebook
from regard.decode.filters import Filters
from regard.decode.sample import sample
from regard.measure.likelihood import bits_per_byte, mean_interval
from regard.models.build import AnyModel
from regard.models.cpu_decoder import LazyCpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.causal_lm.task import CausalLMTask
from regard.tasks.evaluation.options import Evaluation, EvaluationData, EvaluationOptions
from regard.tasks.inputs.image import AnyImage, load_pixels
from regard.tasks.pipeline import Pipeline
from regard.tasks.requests import DEFAULT_OPTIONS, ReplayOptions
from regard.tasks.scorer import Scorer
from regard.tasks.search import make_generator
from regard.tasks.task import Task
from regard.tasks.teacher_forcing import Row
from regard.tasks.validation import Scores, ValidationContext, describe_loss, sum_loss
from regard.text.tokenizer_pair import TokenizerPair

DEFAULT_FILTERS = Filters()
BATCH_IMAGES = 64
Pixels = NDArray[np.uint8]  # (height, width), or (height, width, 3)
Tokens = NDArray[np.int64]


class ImageGenerator(Pipeline):
    """Generates and completes images, and computes their likelihood.

    generator = regard.load_image_generator("my-model")
    generator.generate("shoe", count=4)
    """

    kind = "model that generates images"
    loader = "load_image_generator"
    command = "generate"
    test_data = "images"
    needs_labels = False

    def __init__(self, model: DecoderOnly, tokenizers: TokenizerPair, settings: DecoderOnlyConfig) -> None:
        if settings.raster is None:
            raise RegardError("The tokens of this model are text, not pixels.", hint="Use regard.load_generator.")
        check_vocabulary_sizes(settings, tokenizers, location="ImageGenerator")
        self.model: DecoderOnly = model
        self.tokenizers = tokenizers
        self.settings: DecoderOnlyConfig = settings
        self.raster = settings.raster
        self.codebook = Codebook(tokenizers.source)
        self._decoder = LazyCpuDecoder()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the training images; empty if unlabeled."""
        return tuple(self.codebook.labels)

    def generate(
        self,
        label: str | None = None,
        count: int = 1,
        *,
        filters: Filters = DEFAULT_FILTERS,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[Pixels]:
        """Sample images of a label, pixel by pixel.

        Args:
            label: The label; None if the training images were unlabeled.
            count: Number of images.
            filters: Temperature and filters; the default samples from the model's distribution.
            seed: Random seed; by default every call samples different images.
            report: Called after each batch with the number of sampled images.
        """
        if count < 1:
            raise RegardError(f"The number of images must be at least 1, got {count}.", hint="Use 1 or more.")
        prompts = np.full((count, 1), self.codebook.find_label(label))
        return self._sample(prompts, filters, seed, report)

    def complete(
        self,
        images: Sequence[AnyImage],
        labels: Sequence[str | None] | None = None,
        *,
        rows: int | None = None,
        filters: Filters = DEFAULT_FILTERS,
        seed: int | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[Pixels]:
        """Keep the upper rows of images and sample the rest.

        Args:
            images: Files or arrays; they are converted to the size and channels of the training images. labels: The
                label of each image. Default: the most probable label given its upper rows.
            rows: Number of rows to keep. Default: the upper half.
            filters: Temperature and filters.
            seed: Random seed.
            report: Called after each batch with the number of completed images.

        Returns:
            The completed images, in the colors of the codebook.
        """
        height, width = self.raster.size
        rows = height // 2 if rows is None else rows
        if not 0 < rows < height:
            message = f"{pluralize(rows, 'row')} cannot be kept: the images have {height} rows."
            raise RegardError(message, hint=f"Keep 1 to {height - 1}.")
        visible = self._encode(images)[:, : rows * width]
        if labels is None:
            labels = self._find_labels(visible)
        if len(labels) != len(visible):
            message = f"{pluralize(len(labels), 'label')} for {pluralize(len(visible), 'image')}."
            raise RegardError(message, hint="Give one label for each image.")
        first_tokens = np.array([self.codebook.find_label(label) for label in labels])
        return self._sample(np.concatenate((first_tokens[:, None], visible), axis=1), filters, seed, report)

    def find_labels(self, images: Sequence[AnyImage], rows: int | None = None) -> list[str]:
        """Return the most probable label of each image given its upper rows (default: all rows).

        With equally frequent labels this is Bayes' rule: an image generator can also classify images.
        """
        if not self.labels:
            raise RegardError("The training images had no labels.", hint="Train on images with labels.")
        pixels = self._encode(images)[:, : (rows or self.raster.size[0]) * self.raster.size[1]]
        return [label for label in self._find_labels(pixels) if label is not None]

    def bits_per_pixel(
        self,
        images: Sequence[AnyImage],
        labels: Sequence[str | None] | None = None,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[float]:
        """Return the bits per pixel of each image, -log2 p(image | label) / pixels.

        Args:
            images: Files or arrays; they are brought to the size and channels of the training images.
            labels: The label of each image; None if the training images were unlabeled.
            report: Called after each batch with the number of scored images.
        """
        results: list[float] = []
        for start in range(0, len(images), BATCH_IMAGES):
            batch = images[start : start + BATCH_IMAGES]
            own = [None] * len(batch) if labels is None else labels[start : start + BATCH_IMAGES]
            first_tokens = np.array([self.codebook.find_label(label) for label in own])
            results += [
                -value / self.raster.pixels / log(2) for value in self._score(self._encode(batch), first_tokens)
            ]
            report(len(batch))
        return results

    def evaluate(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Compute the likelihood of images."""
        options.check_used("models that generate images", ())
        images, labels = data.inputs or [], None if data.labels is None else [label for (label,) in data.labels]
        bits = self.bits_per_pixel(images, labels, begin("scoring", len(images)))
        mean, low, high = mean_interval(bits)
        value = {"value": mean, "interval": [low, high], "colors": len(self.codebook.tokens)}
        return {"images": len(images), "bits_per_pixel": value}

    def _encode(self, images: Sequence[AnyImage]) -> Tokens:
        """Return the tokens of the pixels, (B, pixels)."""
        if not images:
            raise RegardError("There are no images.", hint="Give at least one.")
        raster = self.raster
        return self.codebook.encode(np.stack([load_pixels(image, raster.size, raster.channels) for image in images]))

    def _find_labels(self, pixels: Tokens) -> list[str | None]:
        """Return the most probable label of the pixels (B, n); None if there are no labels."""
        if not self.labels:
            return [None] * len(pixels)
        scores = [self._score(pixels, np.full(len(pixels), token)) for token in self.codebook.labels.values()]
        return [self.labels[number] for number in np.argmax(scores, axis=0)]

    def _score(self, pixels: Tokens, first_tokens: Tokens) -> list[float]:
        """Return the log-probability of the pixels (B, n) that follow a first token (B)."""
        inputs = np.concatenate((first_tokens[:, None], pixels[:, :-1]), axis=1)
        sides = zip(inputs.tolist(), pixels.tolist(), strict=True)
        rows = [Row(number, [], row_inputs, row_labels) for number, (row_inputs, row_labels) in enumerate(sides)]
        return [sum(logprobs) for logprobs in Scorer(self.model, self.tokenizers, self.settings).score_rows(rows)]

    def _sample(
        self, prompts: Tokens, filters: Filters, seed: int | None, report: Callable[[int], None]
    ) -> list[Pixels]:
        """Sample the pixels after prompts (B, k) of equal length, and return the full images."""
        height, width = self.raster.size
        count = 1 + self.raster.pixels - prompts.shape[1]
        generator = make_generator(seed, self.device)
        suppress_tokens = np.setdiff1d(np.arange(self.tokenizers.source.size), self.codebook.tokens)  # all but colors
        images: list[Pixels] = []
        with self._decoder.prepared(self.model), torch.inference_mode():
            for start in range(0, len(prompts), BATCH_IMAGES):
                batch = prompts[start : start + BATCH_IMAGES]
                hypotheses = sample(
                    self._decoder.step,
                    self.model.start(1 + self.raster.pixels),
                    torch.from_numpy(batch).to(self.device),
                    eos=self.tokenizers.source.specials.eos,
                    max_lengths=[count] * len(batch),
                    suppress_tokens=torch.from_numpy(suppress_tokens).to(self.device),
                    filters=filters,
                    generator=generator,
                )
                sampled = np.array([hypothesis.tokens for hypothesis in hypotheses])
                colors = self.codebook.decode(np.concatenate((batch[:, 1:], sampled), axis=1), height, width)
                images += list(colors[..., 0] if self.raster.channels == 1 else colors)
                report(len(batch))
        return images

    def _describe_input(self) -> str:
        height, width = self.raster.size
        return f"images of {height} x {width} x {self.raster.channels}"

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> NoReturn:  # noqa: ARG002
        """Raise an error: `look` does not support this model."""
        message = "`look` supports text tokens, but this model's tokens are pixels."
        raise RegardError(message, hint="See docs/guides/images.md.")

    def _describe(self) -> list[str]:
        return [
            pluralize(len(self.codebook.tokens), "color"),
            *([pluralize(len(self.labels), "label")] * bool(self.labels)),
        ]


class ImageGenerationTask(CausalLMTask):
    """Image generation task: a language model over pixels."""

    pipeline_class = ImageGenerator  # type: ignore[assignment]

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Compute the likelihood of the images, including bits per pixel."""
        totals = sum_loss(context)
        raster: RasterConfig = context.model_settings.raster  # type: ignore[union-attr, assignment]
        pixels = raster.pixels * len(context.loader.shards)  # the end of an image, which is always certain, also counts
        size = round(pixels * context.scored_share(totals.labels))
        return describe_loss(totals) | {"bits_per_pixel": bits_per_byte(totals.negative_log_likelihood, size)}

    film_probes = Task.film_probes

    def generates(self, context: ValidationContext) -> bool:  # noqa: ARG002
        """Return False: validation does not generate images."""
        return False

    def score_outputs(self, context: ValidationContext, model: AnyModel) -> Scores:  # noqa: ARG002
        """Return no scores."""
        return Scores()
