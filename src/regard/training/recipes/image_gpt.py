"""Make a run that learns to generate images, pixel by pixel, with a reason for every choice."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.run import DataConfig
from regard.config.tokenizers import CodebookConfig, RunTokenizerConfig
from regard.config.training import TrainingConfig
from regard.training.recipes.hyperparameters import Budget
from regard.training.recipes.images import ImagePlan, check_labeled
from regard.training.recipes.sizes import Recipe, TaskKind, recipe_for_preset
from regard.training.recipes.text import BATCH_TOKENS, SPECIAL_TOKENS, CorpusRecipe

GRAYS, COLORS = 16, 64
RECIPES = (
    Recipe(100_000, "image-gpt", 0, 0.0, 10, 3e-3, 200, 8192,
        "an image is a long row of tokens, and in the same time a small model sees more images"),
    Recipe(inf, "image-gpt", 0, 0.0, 3, 3e-3, 500, 16384,
        "it is the only preset that generates images; more of them need fewer epochs"),
)  # fmt: skip


@dataclass(frozen=True)
class ImageGptPlan(ImagePlan):
    """Statistics of images and the user's requests, from which a run is made that generates images."""

    max_side: ClassVar[int] = 32  # a token for each pixel: attention costs the fourth power of the side

    @property
    def task(self) -> TaskKind:
        """Language modeling."""
        return "causal_lm"

    @property
    def packs_sequences(self) -> bool:
        """Yes: a row is full with one image."""
        return True

    @property
    def recipe(self) -> Recipe:
        """The recipe for this number of images."""
        if self.stats.labels:
            check_labeled(self.stats)
        recipe = next(recipe for recipe in RECIPES if self.stats.examples <= recipe.max_size)
        preset = self.preset or recipe.preset
        if codec.preset(preset).family != "decoder_only":
            raise RegardError(f"Preset '{preset}' generates no images.", hint=f"Use {recipe.preset}.")
        if preset == recipe.preset:
            return recipe
        text_recipe = recipe_for_preset("causal_lm", preset, self.stats.examples * self.n_vectors)
        return replace(recipe, preset=preset, peak=text_recipe.peak, warmup=text_recipe.warmup)

    @property
    def patch(self) -> int:
        """A pixel is a token."""
        return 1

    @property
    def n_vectors(self) -> int:
        """The length of a row: bos, the label and the pixels."""
        _, height, width = self.image_shape
        return height * width + 2

    @property
    def n_read(self) -> int:
        """All tokens of a row are read."""
        return self.n_vectors

    @property
    def n_colors(self) -> int:
        """The number of colors: as requested, or few grays and more colors."""
        return self._requested("tokenizer.colors") or (GRAYS if self.image_shape[0] == 1 else COLORS)

    def vocabulary_size(self, recipe: Recipe) -> int:  # noqa: ARG002
        """The colors, the labels and the special tokens."""
        return self.n_colors + max(1, len(self.stats.labels)) + SPECIAL_TOKENS

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        channels, height, width = self.image_shape
        kind = "grays" if channels == 1 else "colors"
        reasons.append(f"{self._describe_images()}. Each pixel is a token, row after row: {height * width} per image.")
        labels = f"; an image begins with its label, one of {len(self.stats.labels)}" if self.stats.labels else ""
        reasons.append(f"Vocabulary: {self.n_colors} {kind}, the centers of k-means over the training images{labels}.")
        return CodebookConfig(colors=self.n_colors), self.vocabulary_size(recipe)

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        reasons.append("Dropout: none, because a model of this size does not overfit this many pixels.")
        channels, height, width = self.image_shape
        changes: dict[str, Any] = {
            "task": "causal_lm",
            "tokens.vocabulary": vocabulary_size,
            "raster": {"size": [height, width], "channels": channels},
            "starts_with_bos": False,
            "decoder.dropout": {"embedding": recipe.dropout, "sublayer": recipe.dropout},
        }
        if getattr(getattr(codec.preset(recipe.preset), "decoder", None), "max_positions", None) is not None:
            changes["decoder.position.length"] = self.n_vectors
        return codec.preset(recipe.preset, changes)

    def _choose_data(self, recipe: Recipe, model: AnyModelConfig, reasons: list[str]) -> DataConfig:
        data = CorpusRecipe._choose_data(self, recipe, model, reasons)  # images are not changed at random
        return data.model_copy(
            update={
                "max_length": self.n_vectors,
                "batch_tokens": max(self.n_vectors, BATCH_TOKENS),
                "train": self._convert(self.sources),
                "validation": self._convert(self.validation),
            }
        )

    def _choose_training(self, recipe: Recipe, budget: Budget, reasons: list[str]) -> TrainingConfig:
        return CorpusRecipe._choose_training(self, recipe, budget, reasons)
