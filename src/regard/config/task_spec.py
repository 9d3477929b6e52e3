"""Task specs: the model family, input, head and metrics of each task, readable without importing torch.

A task is one object (`regard.tasks.task.Task`); its spec says which family, input and head it needs, which metrics it
has, and where its implementation is. A package adds a task through the entry-point group `regard.tasks`:

    [project.entry-points."regard.tasks"]
    rotation = "my_package:SPEC"
"""

import difflib
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from regard.base.errors import RegardError
from regard.config.parts import Positive, SettingsModel

GROUP = "regard.tasks"
Family = Literal["encoder_decoder", "decoder_only", "encoder_only"]
InputKind = Literal["tokens", "patches", "mel", "raster"]
Metric = Literal["loss", "perplexity", "bits_per_byte", "accuracy", "f1", "retrieval_at_1", "bleu", "chrf"]


class MaskingOptions(SettingsModel):
    """How the task `masked_lm` masks tokens."""

    probability: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Probability that a token, or a whole word, is masked; 0.15 as in BERT. A large model may learn faster from more
    (Wettig et al. 2023: 0.4). Every text has at least one."""
    replacement: Literal["mask", "bert"] = "mask"
    """What replaces a masked token: always the mask token ("mask"), or, as in BERT, the mask token in 80 %, a random
    token in 10 % and the token itself in 10 % of the cases ("bert")."""
    whole_words: bool = False
    """Mask all tokens of a word together (whole-word masking), so that no token is predicted from the rest of its word.
    Needs text with spaces between words."""


class PatchMaskingOptions(SettingsModel):
    """How the task `masked_patches` masks patches of images."""

    probability: Annotated[float, Field(gt=0, lt=1)] = 0.75
    """Share of masked patches; 0.75 is usual (He et al. 2022)."""


class ContrastiveOptions(SettingsModel):
    """The contrastive loss of the task `embedding`; the negatives of a pair are the rest of its batch.

    The vector of a text is the mean of its hidden states.
    """

    temperature: Positive = 0.05
    """Temperature that divides the cosine similarities; 0.05 as in SimCSE (Gao et al. 2021). Smaller values give hard
    negatives more weight."""


@dataclass(frozen=True)
class TaskSpec:
    """The spec of a task."""

    name: str
    family: Family
    """The family that learns it."""
    input: InputKind
    """What the model reads."""
    head: str
    """The kind of its head."""
    implementation: str
    """The class of the task, "package.module:Class"."""
    metrics: tuple[Metric, ...] = ("loss", "perplexity", "accuracy")
    """Metrics of a validation."""
    selects_by: Metric = "loss"
    """The metric that selects the best checkpoint by default."""
    options: type[SettingsModel] | None = None
    """The settings of `task_options` in a run."""
    counted: str = "target tokens"
    """Meaning of the label counts in the model card."""
    command: str = "predict"
    """The command that runs the model."""
    sample_input: str = "..."
    """Example input of that command, shown after training; empty: the command takes no text."""
    test_options: str | None = None
    """Options of `regard evaluate` that give it test data; None: there is no evaluation."""
    untrained_families: tuple[Family, ...] = ()
    """Families that a model of this task may have, although no run trains it yet."""
    untrained_inputs: tuple[InputKind, ...] = ()
    """Other inputs that a model of this task may read, although no run trains it yet."""
    labels: tuple[str, ...] = field(default=())
    """Labels that the task defines; empty: the corpus defines them."""
    recipe: str = ""
    """How settings are chosen for a corpus, "package.module:NAME" (`regard.tasks.recipes.recipe.TaskRecipe`); empty:
    only run files train it."""

    def load(self) -> type[Any]:
        """Import the class of the task."""
        return _import_object(self.implementation)

    def load_recipe(self) -> Any:
        """Import the recipe of the task; None if it has none."""
        return _import_object(self.recipe) if self.recipe else None


def _import_object(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


_CLASSIFIER: dict[str, Any] = {"family": "encoder_only", "head": "classes", "metrics": ("loss", "accuracy", "f1")}
_TEXTS: tuple[Metric, ...] = ("loss", "perplexity", "accuracy", "bits_per_byte")
SPECS = {
    spec.name: spec
    for spec in (
        TaskSpec(
            "translation", "encoder_decoder", "tokens", "lm", "regard.tasks.translation.task:TranslationTask",
            metrics=(*_TEXTS, "bleu", "chrf"), selects_by="chrf",
            command="translate", test_options="--source TEST --reference TEST",
            recipe="regard.tasks.recipes.translation:TRANSLATION",
        ),
        TaskSpec(
            "causal_lm", "decoder_only", "tokens", "lm", "regard.tasks.causal_lm.task:CausalLMTask", metrics=_TEXTS,
            command="generate", test_options="--text TEST",
            recipe="regard.tasks.recipes.language_models:CAUSAL_LM",
        ),
        TaskSpec(
            "masked_lm", "encoder_only", "tokens", "mlm", "regard.tasks.masked_lm:MaskedLMTask",
            options=MaskingOptions, counted="masked tokens", sample_input="... ___ ...", test_options="--text TEST",
            recipe="regard.tasks.recipes.language_models:MASKED_LM",
        ),
        TaskSpec(
            "span_corruption", "encoder_decoder", "tokens", "lm", "regard.tasks.span_corruption:SpanCorruptionTask",
        ),
        TaskSpec(
            "text_classification", input="tokens",
            implementation="regard.tasks.text_classification:TextClassificationTask",
            counted="labeled texts seen", test_options="--data TEST", untrained_families=("decoder_only",),
            **_CLASSIFIER,
            recipe="regard.tasks.recipes.labels:TEXT_CLASSIFICATION",
        ),
        TaskSpec(
            "image_classification", input="patches",
            implementation="regard.tasks.image_classification:ImageClassificationTask",
            counted="labeled images seen", sample_input="IMAGE", test_options="--images TEST", **_CLASSIFIER,
            recipe="regard.tasks.recipes.images:IMAGE_CLASSIFICATION",
        ),
        TaskSpec(
            "audio_classification", input="mel",
            implementation="regard.tasks.audio_classification:AudioClassificationTask",
            counted="labeled audio clips seen", sample_input="CLIP.wav", test_options="--audio TEST", **_CLASSIFIER,
            recipe="regard.tasks.recipes.audio:AUDIO_CLASSIFICATION",
        ),
        TaskSpec(
            "tagging", "encoder_only", "tokens", "tags", "regard.tasks.tagging:TaggingTask",
            metrics=("loss", "accuracy", "f1"), counted="tagged words seen", test_options="--data TEST",
            recipe="regard.tasks.recipes.labels:TAGGING",
        ),
        TaskSpec(
            "embedding", "encoder_only", "tokens", "none", "regard.tasks.embedding:EmbeddingTask",
            metrics=("loss", "retrieval_at_1"), options=ContrastiveOptions, counted="pairs seen",
            command="embed", test_options="--data TEST", untrained_families=("decoder_only",),
            untrained_inputs=("patches", "mel"),
            recipe="regard.tasks.recipes.labels:EMBEDDING",
        ),
        TaskSpec(
            "captioning", "encoder_decoder", "patches", "lm", "regard.tasks.captioning:CaptioningTask",
            sample_input="IMAGE.png", test_options="--images TEST", untrained_families=("decoder_only",),
            recipe="regard.tasks.recipes.images:CAPTIONING",
        ),
        TaskSpec(
            "transcription", "encoder_decoder", "mel", "lm", "regard.tasks.transcription:TranscriptionTask",
            sample_input="CLIP.wav", test_options="--audio TEST",
            recipe="regard.tasks.recipes.audio:TRANSCRIPTION",
        ),
        TaskSpec(
            "masked_patches", "encoder_only", "patches", "pixels", "regard.tasks.masked_patches:MaskedPatchesTask",
            metrics=("loss",), options=PatchMaskingOptions, counted="masked patches", command="tune",
            sample_input="--images LABELED --out TUNED",
            recipe="regard.tasks.recipes.images:MASKED_PATCHES",
        ),
        TaskSpec(
            "image_generation", "decoder_only", "raster", "lm", "regard.tasks.image_generation:ImageGenerationTask",
            command="generate", sample_input="--out IMAGES", test_options="--images TEST",
            recipe="regard.tasks.recipes.images:IMAGE_GENERATION",
        ),
        TaskSpec(
            "cbow", "encoder_only", "tokens", "bag", "regard.tasks.word_vectors:CbowTask",
            counted="tokens seen", command="embed",
        ),
        TaskSpec(
            "skip_gram", "encoder_only", "tokens", "bag", "regard.tasks.word_vectors:SkipGramTask",
            counted="tokens seen", command="embed",
        ),
    )
}  # fmt: skip
"""The built-in tasks by name."""


@cache
def find_spec(name: str) -> TaskSpec:
    """Return the spec of a task: a built-in one, or one that an installed package adds.

    Raises:
        RegardError: No task has this name.
    """
    if name in SPECS:
        return SPECS[name]
    added = entry_points(group=GROUP)
    if name in added.names:
        spec = added[name].load()
        if not isinstance(spec, TaskSpec) or spec.name != name:
            message = f"The entry point '{name}' of {GROUP} is not a TaskSpec with this name."
            raise RegardError(message, location=added[name].value, hint="Fix the package that provides it.")
        return spec
    names = sorted({*SPECS, *added.names})
    close = difflib.get_close_matches(name, names, n=1) or [task for task in names if name and name[:5] in task]
    hint = f"Did you mean '{close[0]}'?" if close else f"Use one of: {', '.join(names)}."
    raise RegardError(f"There is no task '{name}'.", hint=hint)


def _check_name(name: str) -> str:
    try:
        find_spec(name)
    except RegardError as error:
        hint = (error.hint or "").rstrip(".")
        raise PydanticCustomError("task", "No installed package has this task. {hint}", {"hint": hint}) from None
    return name


TaskName = Annotated[str, AfterValidator(_check_name), Field(json_schema_extra={"examples": list(SPECS)})]
"""The name of a task in settings."""
