"""Make a run that fine-tunes a model of images, with a reason for every choice."""

from dataclasses import dataclass, replace
from typing import Any

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.inputs import PatchesConfig
from regard.config.model import AnyModelConfig
from regard.config.tokenizers import RunTokenizerConfig
from regard.config.toml_file import to_dict
from regard.training.recipes.captions import CaptionPlan
from regard.training.recipes.finetune import BASE_RATE, BASE_WIDTH, LORA_FACTOR, MAX_RATE, PARENT, TuningPlan
from regard.training.recipes.images import ImagePlan
from regard.training.recipes.sizes import Recipe, TaskKind

EPOCHS = 20


@dataclass(frozen=True, kw_only=True)
class ImageTuningPlan(TuningPlan, ImagePlan):
    """Statistics of images, the user's requests and the model to tune, from which a run is made."""

    @property
    def task(self) -> TaskKind:
        """Classification if the images have labels, captions if they have texts; else masked patches."""
        return super(TuningPlan, self).task  # that of images

    @property
    def patches(self) -> PatchesConfig:
        """The input of the parent.

        Raises:
            RegardError: If the parent reads text.
        """
        source = getattr(self.parent, "source", None)
        if not isinstance(source, PatchesConfig):
            raise RegardError("The model reads text, and this corpus holds images.", hint="Tune a model of images.")
        return source

    @property
    def recipe(self) -> Recipe:
        """The hyperparameters for this model, these images and this way of tuning.

        Raises:
            RegardError: If the parent cannot learn the task of these images.
        """
        self._check_parent()
        peak = min(MAX_RATE, BASE_RATE * (BASE_WIDTH / self.parent.d_model) ** 1.5)
        peak *= LORA_FACTOR if self.finetune.lora is not None else 1
        return replace(self.default_recipe, preset=PARENT, epochs=EPOCHS, peak=float(f"{peak:.2g}"))

    def _check_parent(self) -> None:
        _ = self.patches  # raises an error if the parent reads no images
        can_caption, has_captions = self.parent.task == "caption", self.task == "caption"
        if can_caption != has_captions:
            has = "captions" if has_captions else "labels" if self.task == "classify" else "no captions"
            needed = "captions (first line: file, tab, caption)" if can_caption else "labels"
            message = f"The model's task is '{self.parent.task}', and these images have {has}."
            raise RegardError(message, hint=f"Give images with {needed}, or tune another model.")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """The shape that the parent reads."""
        size = self.patches.size
        if size is None:
            raise RegardError("The model has no image size.", hint="Set source.size in its model.toml.")
        return self.patches.channels, *size

    @property
    def patch(self) -> int:
        """The side of a patch of the parent."""
        return self.patches.patch

    def vocabulary_size(self, recipe: Recipe) -> int:  # noqa: ARG002
        """None: the model reads images."""
        return 0

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        return super(TuningPlan, self)._choose_tokenizer(recipe, reasons)

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:  # noqa: ARG002
        changes: dict[str, Any] = {"task": self.task} if self.parent.task != self.task else {}
        head, own = self._make_head(), to_dict(self.parent.head)
        if any(own.get(name) != head.get(name) for name in ("kind", "labels")):
            changes["head"] = head
            message = f"the {len(head['labels'])} labels" if "labels" in head else "the pixels of masked patches"
            reasons.append(f"Head: a new one for {message}, which the parent does not predict.")
        return codec.MODEL_FILES.change(self.parent, changes)


@dataclass(frozen=True, kw_only=True)
class CaptionTuningPlan(ImageTuningPlan, CaptionPlan):
    """Statistics of images with captions, the user's requests and the model to tune, from which a run is made."""

    def vocabulary_size(self, recipe: Recipe) -> int:
        """That of the parent, with the tokens that the run adds."""
        return TuningPlan.vocabulary_size(self, recipe)

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        self._explain_images(reasons)
        return TuningPlan._choose_tokenizer(self, recipe, reasons)

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        return TuningPlan._choose_model(self, recipe, vocabulary_size, reasons)
