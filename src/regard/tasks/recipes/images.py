"""Recipes for image tasks: shape, patches or pixels, and model sizes."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import ceil, inf
from typing import Any, ClassVar

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.inputs import PatchesConfig
from regard.config.model import AnyModelConfig
from regard.config.run import AugmentationConfig
from regard.config.sources import AnySourceConfig, ImagesConfig
from regard.config.task_spec import PatchMaskingOptions
from regard.config.tokenizers import CodebookConfig, RunTokenizerConfig
from regard.data.stats import CorpusStats
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.language_models import CAUSAL_LM
from regard.tasks.recipes.recipe import ADAMW, HeadRule, ModelSize, TaskRecipe, TuningRule
from regard.tasks.recipes.text_rows import BATCH_TOKENS, TextRows
from regard.tasks.recipes.vocabulary import SPECIAL_TOKENS, Subwords, VocabularyRule, bytes_per_token

MAX_SIDE = 64  # pixels; larger images are scaled down, because the cost grows with the fourth power of the side
MAX_PATCHES = 64  # of an image, if the patch size is chosen
SHIFT_SHARE = 14  # images are shifted by up to this fraction of their smaller side
GRAYS, COLORS = 16, 64


@dataclass(frozen=True)
class ImageRows(TextRows):
    """Row format of images: rows of patches, with captions as rows of tokens."""

    reads_labels: bool = True
    mirrors: bool = True
    masked_share: float = 0.0  # of the patches

    amount: ClassVar[str] = "this many images"
    max_side: ClassVar[int] = MAX_SIDE

    @property
    def source(self) -> PatchesConfig:
        """Input settings of the preset or parent."""
        source = getattr(self.model, "source", None)
        assert isinstance(source, PatchesConfig)  # noqa: S101 - the task was chosen for such a model
        return source

    @property
    def is_captioned(self) -> bool:
        """Whether the images have captions."""
        return self.stats.target.characters > 0

    @cached_property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the model's images.

        Raises:
            RegardError: If the parent has no image size.
        """
        if self.corpus.parent is not None:
            if self.source.size is None:
                raise RegardError("The model has no image size.", hint="Set source.size in its model.toml.")
            return self.source.channels, *self.source.size
        patch, shapes = self.patch, self.stats.image_shapes
        channels = count_channels(self.corpus)
        requested = _find_size(self.corpus)
        if requested is not None:
            return channels, *requested[1]
        if len({shape[1:] for shape in shapes}) == 1:
            height, width = next(iter(shapes))[1:]
            if max(height, width) <= self.max_side and not height % patch and not width % patch:
                return channels, height, width
            scale = min(1.0, self.max_side / max(height, width))
            height, width = (max(patch, round(side * scale / patch) * patch) for side in (height, width))
            return channels, height, width
        side = min(self.max_side, sorted(min(shape[1:]) for shape in shapes.elements())[self.stats.examples // 2])
        side = max(patch, side // patch * patch)
        return channels, side, side

    @property
    def patch(self) -> int:
        """Patch size: the model's, or larger for large images; a divisor of a requested image size."""
        if self.corpus.parent is not None:
            return self.source.patch
        if (requested := self.corpus.requested("model.source.patch")) is not None:
            return requested
        sides = [min(MAX_SIDE, side) for shape in self.stats.image_shapes for side in shape[1:]]
        patch = max(self.source.patch, ceil(max(sides) / MAX_PATCHES**0.5 / 4) * 4)
        if (size := _find_size(self.corpus)) is None:
            return patch
        height, width = size[1]
        if not height % patch and not width % patch:
            return patch
        divisors = [side for side in range(1, 2 * patch) if not height % side and not width % side]
        fitting = [side for side in divisors if height * width <= MAX_PATCHES * side**2]
        return min(fitting, key=lambda side: abs(side - patch), default=patch)  # patches that do not fit are an error

    @property
    def n_patches(self) -> int:
        """The number of patches of an image."""
        _, height, width = self.image_shape
        return (height // self.patch) * (width // self.patch)

    @property
    def n_vectors(self) -> int:
        """The number of vectors of an image."""
        return self.n_patches + self.source.class_token

    def count_read(self, vocabulary_size: int) -> int:
        """Return the number of encoder vectors without masked ones, or of caption tokens if larger."""
        n_read = self.n_vectors - round(self.masked_share * self.n_patches)
        if not self.is_captioned:
            return n_read
        tokens = self.stats.target.bytes / bytes_per_token(vocabulary_size) / self.stats.examples
        return max(n_read, ceil(tokens) + 1)

    def check_labels(self) -> None:
        """Raise RegardError if only some images have labels."""
        missing = self.stats.unlabeled
        if self.reads_labels and self.stats.labels and missing:
            verb = "has" if missing == 1 else "have"
            message = f"{missing:,} of {self.stats.examples:,} images {verb} no label."
            hint = "Put the images into one folder per label; an idx file needs the label file next to it."
            raise RegardError(message, hint=hint)

    def typical_length(self, vocabulary_size: int, max_length: int) -> int:  # noqa: ARG002
        """Return the length of a row."""
        return self.count_read(vocabulary_size)

    def count_tokens(self, vocabulary_size: int) -> float:
        """Return the length of all rows."""
        return float(self.count_read(vocabulary_size) * self.stats.examples)

    def measure(self, stats: CorpusStats) -> int:
        """Return the number of images."""
        return stats.examples

    def describe_size(self) -> str:
        """Describe the number of images and their labels or captions."""
        size = pluralize(self.stats.examples, "image")
        if self.is_captioned:
            return f"{size} with captions of {self.stats.target.characters / self.stats.examples:.0f} characters"
        return f"{size} with {pluralize(len(self.labels), 'label')}" if self.labels and self.reads_labels else size

    def explain_input(self) -> list[str]:
        """Describe the images and patches."""
        token = " and the class token" if self.source.class_token else ""
        patch = f"{self.patch} x {self.patch} pixels"
        return [f"{self._describe_images()}. Patches of {patch}: {self.n_patches} vectors{token}."]

    def _describe_images(self) -> str:
        channels, height, width = self.image_shape
        shapes = self.stats.image_shapes
        color = "gray" if channels == 1 else "colored"
        text = f"Images: {height} x {width} pixels, {color}"
        if _find_size(self.corpus) is not None:
            return f"{text}, as you requested"
        if len(shapes) > 1:
            text += f"; they have {pluralize(len(shapes), 'shape')} and are scaled and center-cropped"
        elif (channels, height, width) not in shapes:
            text += "; they are scaled down and center-cropped, because many vectors are slow"
        return text

    def model_changes(self) -> dict[str, Any]:
        """Return the settings of patches and positions."""
        channels, height, width = self.image_shape
        return {
            "source.patch": self.patch,
            "source.channels": channels,
            "source.size": [height, width],
            "encoder.position.length": self.n_vectors,
        }

    @property
    def shift(self) -> int:
        """Maximum shift of training images in pixels."""
        return max(1, min(self.image_shape[1:]) // SHIFT_SHARE)

    def data_settings(self, model: AnyModelConfig, step_tokens: int) -> dict[str, Any]:
        """Return settings that convert all images to one shape and augment them randomly."""
        settings = super().data_settings(model, step_tokens)
        return settings | {
            "max_length": max(self.n_vectors, settings["max_length"] if self.is_captioned else 0),
            "train": self._convert(self.corpus.sources),
            "validation": self._convert(self.corpus.validation),
            "augmentation": AugmentationConfig(shift=self.shift, flip=self.mirrors),
        }

    def _convert(self, sources: tuple[AnySourceConfig, ...]) -> tuple[AnySourceConfig, ...]:
        channels, height, width = self.image_shape
        return tuple(source.model_copy(update={"size": (height, width), "channels": channels}) for source in sources)

    def explain_augmentation(self) -> list[str]:
        """Describe the augmentation and masking."""
        shifted = f"Augmentation: training images are shifted by up to {pluralize(self.shift, 'pixel')}"
        if not self.mirrors:
            return [f"{shifted} randomly, but not mirrored, because a caption may say left or right."]
        mirrored = "and half of them are mirrored, at random"
        reasons = [f"{shifted} {mirrored}; set data.augmentation.flip=false if left and right differ in meaning."]
        if self.masked_share:
            percent = f"{100 * self.masked_share:.0f} %"
            reasons.append(f"Masking: {percent} of the patches; the encoder reads only the others, which saves time.")
        return reasons


@dataclass(frozen=True)
class PixelRows(ImageRows):
    """Row format of images as pixels, one token per pixel."""

    amount: ClassVar[str] = "this many pixels"
    max_side: ClassVar[int] = 32  # one token per pixel, so attention costs the fourth power of the side
    patch: ClassVar[int] = 1

    @property
    def packs_sequences(self) -> bool:
        """Return True: every row is one full image."""
        return True

    @property
    def n_vectors(self) -> int:
        """Row length: bos, the label and the pixels."""
        return self.n_patches + 2

    def explain_input(self) -> list[str]:
        """Describe the images."""
        return [f"{self._describe_images()}. Each pixel is a token, row after row: {self.n_patches} per image."]

    def model_changes(self) -> dict[str, Any]:
        """Return the settings of the raster and the positions."""
        channels, height, width = self.image_shape
        changes: dict[str, Any] = {
            "raster": {"size": [height, width], "channels": channels},
            "starts_with_bos": False,
            "decoder.dropout.attention": 0.0,
        }
        if getattr(getattr(self.model, "decoder", None), "max_positions", None) is not None:
            changes["decoder.position.length"] = self.n_vectors
        return changes

    def data_settings(self, model: AnyModelConfig, step_tokens: int) -> dict[str, Any]:
        """Return settings that convert all images to one shape, without augmentation."""
        settings = super().data_settings(model, step_tokens)
        del settings["augmentation"]
        return settings | {"batch_tokens": max(self.n_vectors, BATCH_TOKENS)}

    def explain_augmentation(self) -> list[str]:
        """Return no description."""
        return []


class Colors(VocabularyRule):
    """One token per codebook color and per label."""

    def size(self, corpus: CorpusRequest, default: int) -> int:  # noqa: ARG002
        """Return the number of colors, labels and special tokens."""
        return self._count(corpus) + max(1, len(corpus.stats.labels)) + SPECIAL_TOKENS

    def choose(self, corpus: CorpusRequest, size: int, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        """Return a codebook."""
        kind = "grays" if count_channels(corpus) == 1 else "colors"
        labels = corpus.stats.labels
        prefix = f"; an image begins with its label, one of {len(labels)}" if labels else ""
        count = self._count(corpus)
        reasons.append(f"Vocabulary: {count} {kind}, the centers of k-means over the training images{prefix}.")
        return CodebookConfig(colors=count), size

    def _count(self, corpus: CorpusRequest) -> int:
        return corpus.requested("tokenizer.colors") or (GRAYS if count_channels(corpus) == 1 else COLORS)


def _find_size(corpus: CorpusRequest) -> tuple[int | None, tuple[int, int]] | None:
    """Return the channels and size set for the sources; None if not set."""
    sizes = {(source.channels, source.size) for source in corpus.sources if isinstance(source, ImagesConfig)}
    channels, size = next(iter(sizes))
    return (channels, size) if len(sizes) == 1 and size is not None else None


def count_channels(corpus: CorpusRequest) -> int:
    """Return the number of channels of the images."""
    requested = _find_size(corpus)
    return (requested[0] if requested else None) or max(channels for channels, _, _ in corpus.stats.image_shapes)


class _ImageGenerationRecipe(TaskRecipe):
    """A text preset takes its learning rate from the text recipe."""

    def for_preset(self, preset: str, size: int) -> ModelSize:
        row = self.for_size(size)
        if row.preset == preset:
            return row
        text = CAUSAL_LM.for_preset(preset, size * PixelRows.max_side**2)
        return replace(row, preset=preset, peak=text.peak, warmup=text.warmup)


_NEW_HEAD = "a new one for {}, which the parent does not predict"
IMAGE_CLASSIFICATION = TaskRecipe(
    learns_from=("images+labels",),
    sizes=(
        ModelSize(100_000, "vit", 0, 0.1, 30, 1e-3, 200, 3200,
            "a Vision Transformer of this size can learn from a few thousand images with shifts and flips"),
        ModelSize(inf, "vit", 0, 0.0, 10, 1e-3, 500, 6400,
            "it is the only preset for images; with more images, fewer epochs and no dropout are needed"),
    ),
    tuning=TuningRule(epochs=20, warmup=None),
    rows=ImageRows,
    vocabulary=VocabularyRule(),
    head=HeadRule({"kind": "classes", "pool": "first", "hidden": False}, _NEW_HEAD.format("the {count} labels"), True),
    optimizer=ADAMW.model_copy(update={"weight_decay": 0.05}),
    label_smoothing=0.1,
    smoothing_reason="a usual choice for images (Szegedy et al. 2016)",
    patience=0,
    misfit="does not read images",
)  # fmt: skip
MASKED_PATCHES = TaskRecipe(
    learns_from=("images", "images+labels"),
    sizes=(
        ModelSize(inf, "vit", 0, 0.0, 100, 1e-3, 500, 3200,
            "an encoder can learn from masked patches without labels (He et al. 2022)"),
    ),
    tuning=TuningRule(epochs=20, warmup=None),
    rows=partial(ImageRows, reads_labels=False, masked_share=PatchMaskingOptions().probability),
    vocabulary=VocabularyRule(),
    head=HeadRule({"kind": "pixels", "layers": 1}, _NEW_HEAD.format("the pixels of masked patches")),
    misfit="does not read images",
)  # fmt: skip
CAPTIONING = replace(
    IMAGE_CLASSIFICATION,
    learns_from=("images+text",),
    sizes=(
        ModelSize(100_000, "image-to-text", 1000, 0.1, 30, 1e-3, 200, 3200,
            "it is small enough for a few thousand shifted images"),
        ModelSize(inf, "image-to-text", 8000, 0.0, 10, 1e-3, 500, 6400,
            "it is the only preset for captioning; with more images, fewer epochs and no dropout are needed"),
    ),
    rows=partial(ImageRows, mirrors=False),
    vocabulary=Subwords(),
    head=None,
    patience=TaskRecipe.patience,
    misfit="does not write captions, but these images have captions",
    misfit_hint="; for labels, name the second column of the table 'label'",
)  # fmt: skip
IMAGE_GENERATION = _ImageGenerationRecipe(
    learns_from=("images", "images+labels"),
    sizes=(
        ModelSize(100_000, "image-gpt", 0, 0.0, 10, 3e-3, 200, 8192,
            "images are long rows of tokens, and a small model sees more of them in the same time"),
        ModelSize(inf, "image-gpt", 0, 0.0, 3, 3e-3, 500, 16384,
            "it is the only preset for image generation; with more images, fewer epochs are needed"),
    ),
    tuning=CAUSAL_LM.tuning,
    rows=PixelRows,
    vocabulary=Colors(),
    optimizer=CAUSAL_LM.optimizer,
    schedule="cosine",
    misfit="does not generate images",
)  # fmt: skip
