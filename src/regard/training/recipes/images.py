"""Make a run from images and the user's requests, with a reason for every choice."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf
from typing import Any, ClassVar

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.inputs import PatchesConfig
from regard.config.model import AnyModelConfig, EncoderOnlyConfig
from regard.config.run import AugmentationConfig, DataConfig, MaskingConfig
from regard.config.sources import AnySourceConfig, ImagesConfig
from regard.config.tokenizers import NoTokenizerConfig, RunTokenizerConfig
from regard.config.training import TrainingConfig
from regard.training.recipes.corpus_stats import CorpusStats
from regard.training.recipes.hyperparameters import Budget, format_count
from regard.training.recipes.sizes import Recipe, TaskKind
from regard.training.recipes.text import CorpusRecipe, make_label_head

MAX_SIDE = 64  # pixels: larger images are scaled down, because the cost grows with the fourth power of the side
MAX_PATCHES = 64  # of an image, if the patch size is chosen
SHIFT_SHARE = 14  # images are shifted by up to this part of their smaller side
LABEL_SMOOTHING, WEIGHT_DECAY = 0.1, 0.05
IMAGES = (
    Recipe(100_000, "vit", 0, 0.1, 30, 1e-3, 200, 3200,
        "a Vision Transformer of this size learns from a few thousand images, if they are shifted and mirrored"),
    Recipe(inf, "vit", 0, 0.0, 10, 1e-3, 500, 6400,
        "it is the only preset for images; more of them need fewer epochs and no dropout"),
)  # fmt: skip
MASKED_IMAGES = (
    Recipe(inf, "vit", 0, 0.0, 100, 1e-3, 500, 3200,
        "masked patches teach an encoder what images look like, without labels (He et al. 2022)"),
)  # fmt: skip
MASK_PROBABILITY = 0.75  # as He et al. 2022


@dataclass(frozen=True)
class ImagePlan(CorpusRecipe):
    """Statistics of images and the user's requests, from which a run is made."""

    max_side: ClassVar[int] = MAX_SIDE

    @property
    def task(self) -> TaskKind:
        """Classification; without labels, or on request, masked patches are predicted."""
        return "masked_lm" if self.changes.get("model.task") == "masked_lm" or not self.stats.labels else "classify"

    @property
    def size(self) -> int:
        """The number of images."""
        return self.stats.examples

    @property
    def default_recipe(self) -> Recipe:
        """The recipe for this number of images and its own preset."""
        return recipe_for_images(self.task, self.stats)

    @property
    def recipe(self) -> Recipe:
        """The recipe for this number of images."""
        recipe = self.default_recipe
        preset = self.preset or recipe.preset
        model = codec.preset(preset)
        if not isinstance(model, EncoderOnlyConfig) or not isinstance(model.source, PatchesConfig):
            raise RegardError(f"Preset '{preset}' reads no images.", hint=f"Use {recipe.preset}.")
        return replace(recipe, preset=preset)

    @property
    def smaller_recipes(self) -> list[Recipe]:
        """The one preset for images."""
        return [self.recipe]

    @cached_property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that the model reads."""
        patch, shapes = self.patch, self.stats.image_shapes
        channels = max(channels for channels, _, _ in shapes)
        requested = self._requested_shape
        if requested is not None:
            return requested[0] or channels, *requested[1]
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
    def _requested_shape(self) -> tuple[int | None, tuple[int, int]] | None:
        """The channels and size that the sources already have; None if they have no size."""
        sizes = {(source.channels, source.size) for source in self.sources if isinstance(source, ImagesConfig)}
        channels, size = next(iter(sizes))
        return (channels, size) if len(sizes) == 1 and size is not None else None

    @property
    def patch(self) -> int:
        """The side of a patch: that of the preset, larger for large images; it divides a requested size."""
        requested = self._requested("model.source.patch")
        source = getattr(codec.preset(self.recipe.preset), "source", None)
        assert isinstance(source, PatchesConfig)  # noqa: S101 - `recipe` checked it
        if requested is not None:
            return requested
        sides = [min(MAX_SIDE, side) for shape in self.stats.image_shapes for side in shape[1:]]
        patch = max(source.patch, ceil(max(sides) / MAX_PATCHES**0.5 / 4) * 4)
        if self._requested_shape is None:
            return patch
        height, width = self._requested_shape[1]
        if not height % patch and not width % patch:
            return patch
        divisors = [side for side in range(1, 2 * patch) if not height % side and not width % side]
        fitting = [side for side in divisors if height * width <= MAX_PATCHES * side**2]
        return min(fitting, key=lambda side: abs(side - patch), default=patch)  # patches that do not fit are an error

    @property
    def n_vectors(self) -> int:
        """The number of vectors of an image: its patches and the class token."""
        _, height, width = self.image_shape
        return (height // self.patch) * (width // self.patch) + 1

    @property
    def n_read(self) -> int:
        """The number of vectors that the encoder reads: those of masked patches are left out."""
        if self.task == "classify":
            return self.n_vectors
        return self.n_vectors - round(MASK_PROBABILITY * (self.n_vectors - 1))

    def vocabulary_size(self, recipe: Recipe) -> int:  # noqa: ARG002
        """None: the model reads images."""
        return 0

    def typical_length(self, recipe: Recipe, max_length: int) -> int:  # noqa: ARG002
        """The vectors of an image that the encoder reads."""
        return self.n_read

    def corpus_tokens(self, recipe: Recipe) -> float:  # noqa: ARG002
        """The vectors of all images that the encoder reads."""
        return float(self.n_read * self.stats.examples)

    def validation_tokens(self, recipe: Recipe, full_run: Any) -> float:
        """Estimate the cost of a validation, in training tokens: a forward pass costs a third of a training step."""
        share = full_run.run.data.held_out
        if self.validation_stats is not None:
            share = self.validation_stats.examples / max(1, self.stats.examples)
        return float(share) * self.corpus_tokens(recipe) / 3

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:  # noqa: ARG002
        patch = f"{self.patch} x {self.patch} pixels"
        vectors = f"{self.n_vectors - 1} vectors and the class token"
        reasons.append(f"{self._describe_images()}. Patches of {patch}: {vectors}.")
        return NoTokenizerConfig(), 0

    def _describe_images(self) -> str:
        channels, height, width = self.image_shape
        shapes = self.stats.image_shapes
        color = "gray" if channels == 1 else "colored"
        text = f"Images: {height} x {width} pixels, {color}"
        if self._requested_shape is not None:
            return f"{text}, as you requested"
        if len(shapes) > 1:
            text += f"; they have {pluralize(len(shapes), 'shape')}, and are scaled and cropped at the center"
        elif (channels, height, width) not in shapes:
            text += "; they are scaled down and cropped at the center, because many vectors cost much time"
        return text

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:  # noqa: ARG002
        self._explain_dropout(recipe, reasons)
        changes = self._source_changes() | {"task": self.task, "head": self._make_head()}
        changes |= {f"encoder.dropout.{site}": recipe.dropout for site in ("embedding", "sublayer")}
        return codec.preset(recipe.preset, changes)

    def _explain_dropout(self, recipe: Recipe, reasons: list[str]) -> None:
        reasons.append(
            f"Dropout: {recipe.dropout:g}, the default for a corpus of this size."
            if recipe.dropout
            else "Dropout: none, because a model of this size does not overfit this many images."
        )

    def _source_changes(self) -> dict[str, Any]:
        """Return the settings of a model that follow from the images."""
        channels, height, width = self.image_shape
        return {
            "source.patch": self.patch,
            "source.channels": channels,
            "source.size": [height, width],
            "encoder.position.length": self.n_vectors,
        }

    def _make_head(self) -> dict[str, Any]:
        if self.task == "masked_lm":
            return {"kind": "pixels", "layers": 1}
        return {**make_label_head("classify", self.stats), "pool": "first", "hidden": False}

    def _choose_data(self, recipe: Recipe, model: AnyModelConfig, reasons: list[str]) -> DataConfig:
        data = super()._choose_data(recipe, model, reasons)
        _, height, width = self.image_shape
        shift = max(1, min(height, width) // SHIFT_SHARE)
        augmentation = AugmentationConfig(shift=shift, flip=True)
        reasons.append(
            f"Augmentation: training images are shifted by up to {pluralize(shift, 'pixel')} and every second one is "
            "mirrored, another way each time; set data.augmentation.flip=false where left and right differ in meaning."
        )
        if self.task == "masked_lm":
            data = data.model_copy(update={"masking": MaskingConfig(probability=MASK_PROBABILITY)})
            reasons[:] = [reason for reason in reasons if not reason.startswith("Masking:")]
            percent = f"{100 * MASK_PROBABILITY:.0f} %"
            reasons.append(f"Masking: {percent} of the patches; the encoder reads the others only, which saves time.")
        return data.model_copy(
            update={
                "max_length": self.n_vectors,
                "train": self._convert(self.sources),
                "validation": self._convert(self.validation),
                "augmentation": augmentation,
            }
        )

    def _convert(self, sources: tuple[AnySourceConfig, ...]) -> tuple[AnySourceConfig, ...]:
        """Return sources that bring all images to one shape."""
        channels, height, width = self.image_shape
        return tuple(source.model_copy(update={"size": (height, width), "channels": channels}) for source in sources)

    def _choose_training(self, recipe: Recipe, budget: Budget, reasons: list[str]) -> TrainingConfig:
        training = super()._choose_training(recipe, budget, reasons)
        if self.task == "masked_lm":
            return training
        reasons.append(f"Label smoothing: {LABEL_SMOOTHING:g}, a usual choice for images (Szegedy et al. 2016).")
        optimizer = training.optimizer.model_copy(update={"weight_decay": WEIGHT_DECAY})
        return training.model_copy(update={"label_smoothing": LABEL_SMOOTHING, "optimizer": optimizer})

    def _explain_preset(self, recipe: Recipe, model: AnyModelConfig) -> str:
        from regard.models.cost import cost  # imports torch: only when needed

        parameters = cost(model, batch_size=1, source=1, target=1).parameters.total()
        size = f"{format_count(parameters)} parameters"
        return f"{self._describe_size()}: preset {recipe.preset} ({size}), because {recipe.reason}."

    def _describe_size(self) -> str:
        size = pluralize(self.stats.examples, "image")
        if self.stats.labels and self.task != "masked_lm":
            size += f" with {pluralize(len(self.stats.labels), 'label')}"
        return size


def recipe_for_images(task: TaskKind, stats: CorpusStats) -> Recipe:
    """Return the recipe for a task and a number of images.

    Raises:
        RegardError: If an image that is to be classified has no label.
    """
    if task == "classify":
        check_labeled(stats)
    recipes = IMAGES if task == "classify" else MASKED_IMAGES
    return next(recipe for recipe in recipes if stats.examples <= recipe.max_size)


def check_labeled(stats: CorpusStats) -> None:
    """Raise RegardError if an image has no label."""
    labeled = sum(stats.labels.values())
    if labeled < stats.examples:
        missing = stats.examples - labeled
        message = f"{missing:,} of {stats.examples:,} images {'has' if missing == 1 else 'have'} no label."
        hint = "Put the images into one folder per label; for an idx file give the file of labels beside it."
        raise RegardError(message, hint=hint)
