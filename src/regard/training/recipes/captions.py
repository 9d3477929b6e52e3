"""Make a run that learns to caption images, with a reason for every choice."""

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.inputs import PatchesConfig
from regard.config.model import AnyModelConfig, EncoderDecoderConfig
from regard.config.run import AugmentationConfig, DataConfig
from regard.config.tokenizers import RunTokenizerConfig
from regard.training.recipes.images import SHIFT_SHARE, ImagePlan
from regard.training.recipes.sizes import Recipe, TaskKind
from regard.training.recipes.text import CorpusRecipe, bytes_per_token

RECIPES = (
    Recipe(100_000, "image-to-text", 1000, 0.1, 30, 1e-3, 200, 3200,
        "it is small enough for a few thousand images, if they are shifted"),
    Recipe(inf, "image-to-text", 8000, 0.0, 10, 1e-3, 500, 6400,
        "it is the only preset that captions images; more of them need fewer epochs and no dropout"),
)  # fmt: skip


@dataclass(frozen=True)
class CaptionPlan(ImagePlan):
    """Statistics of images with captions and the user's requests, from which a run is made."""

    @property
    def task(self) -> TaskKind:
        """Captions."""
        return "caption"

    @property
    def default_recipe(self) -> Recipe:
        """The recipe for this number of images and its own preset."""
        return next(recipe for recipe in RECIPES if self.stats.examples <= recipe.max_size)

    @property
    def recipe(self) -> Recipe:
        """The recipe for this number of images.

        Raises:
            RegardError: If the preset writes no captions.
        """
        recipe = self.default_recipe
        preset = self.preset or recipe.preset
        model = codec.preset(preset)
        if not isinstance(model, EncoderDecoderConfig) or not isinstance(model.source, PatchesConfig):
            message = f"Preset '{preset}' writes no captions, and these images have captions."
            raise RegardError(
                message, hint=f"Use {recipe.preset}; for labels, name the second column of the table 'label'."
            )
        return replace(recipe, preset=preset)

    @property
    def n_vectors(self) -> int:
        """The number of vectors of an image: its patches."""
        _, height, width = self.image_shape
        return (height // self.patch) * (width // self.patch)

    @property
    def n_read(self) -> int:
        """The vectors of an image, or the tokens of a caption, if they are more: the length of a row."""
        tokens = self.stats.target.bytes / bytes_per_token(self.vocabulary_size(self.recipe)) / self.stats.examples
        return max(self.n_vectors, ceil(tokens) + 1)

    def vocabulary_size(self, recipe: Recipe) -> int:
        """That of texts of this size."""
        return CorpusRecipe.vocabulary_size(self, recipe)

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        self._explain_images(reasons)
        return CorpusRecipe._choose_tokenizer(self, recipe, reasons)

    def _explain_images(self, reasons: list[str]) -> None:
        patch = f"{self.patch} x {self.patch} pixels"
        reasons.append(f"{self._describe_images()}. Patches of {patch}: {self.n_vectors} vectors.")

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        self._explain_dropout(recipe, reasons)
        changes: dict[str, Any] = self._source_changes() | {"target.vocabulary": vocabulary_size}
        for stack in ("encoder", "decoder"):
            changes |= {f"{stack}.dropout.{site}": recipe.dropout for site in ("embedding", "sublayer")}
        return codec.preset(recipe.preset, changes)

    def _choose_data(self, recipe: Recipe, model: AnyModelConfig, reasons: list[str]) -> DataConfig:
        data = CorpusRecipe._choose_data(self, recipe, model, reasons)
        shift = max(1, min(self.image_shape[1:]) // SHIFT_SHARE)
        reasons.append(
            f"Augmentation: training images are shifted by up to {pluralize(shift, 'pixel')}, another way each time, "
            "but not mirrored: a caption may say left or right."
        )
        return data.model_copy(
            update={
                "max_length": max(self.n_vectors, data.max_length),
                "train": self._convert(self.sources),
                "validation": self._convert(self.validation),
                "augmentation": AugmentationConfig(shift=shift, flip=False),
            }
        )

    def _describe_size(self) -> str:
        characters = self.stats.target.characters / self.stats.examples
        return f"{pluralize(self.stats.examples, 'image')} with captions of {characters:.0f} characters"
