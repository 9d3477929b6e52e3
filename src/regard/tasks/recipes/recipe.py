"""The recipe of a task: models and hyperparameters by corpus size, as data.

`regard.training.recipes` applies it. A package derives its recipe from a built-in one with `dataclasses.replace` and
sets it as the `recipe` of its `TaskSpec`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.task_spec import Metric, find_spec
from regard.config.toml_file import to_dict
from regard.config.training import AdamWConfig, OptimizerConfig
from regard.data.stats import CorpusStats
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.text_rows import TextRows
from regard.tasks.recipes.vocabulary import Subwords, VocabularyRule

ADAMW = AdamWConfig(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
PATIENCE = 10  # validations without improvement before a run stops


@dataclass(frozen=True)
class ModelSize:
    """Model and hyperparameters for corpora up to `max_size`.

    Vocabulary, dropout and epochs depend on the corpus; learning rate, warmup and tokens per step depend on the model.
    """

    max_size: float  # pairs, labeled or tagged sentences, images, audio clips; characters of running text
    preset: str
    vocabulary: int
    dropout: float
    epochs: int  # at most
    peak: float  # peak learning rate
    warmup: int  # steps until the peak
    step_tokens: int
    reason: str


@dataclass(frozen=True)
class TuningRule:
    """Fine-tuning settings for the task."""

    epochs: int
    warmup: int | None = 2000  # maximum warmup steps; a tenth of the run. None: as for a new model
    max_step_tokens: int = 8192
    layer_decay: float = 1.0
    uses_chat_template: bool = False


@dataclass(frozen=True)
class HeadRule:
    """The head that the task needs."""

    settings: Mapping[str, Any]
    reason: str  # why a fine-tuned model gets a new head; {count} is the number of labels
    has_labels: bool = False

    def make(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the settings of a head for these labels.

        Raises:
            RegardError: If there is only one label.
        """
        if not self.has_labels:
            return dict(self.settings)
        if len(labels) < 2:
            message = f"Every example has the same label, {labels[0]!r}."
            raise RegardError(message, hint="Give examples with at least two labels.")
        return {**self.settings, "labels": list(labels)}

    def fits(self, model: AnyModelConfig, labels: Sequence[str]) -> bool:
        """Return whether a model already has a matching head."""
        head, own = self.make(labels), to_dict(model.head)
        return all(own.get(name) == head.get(name) for name in ("kind", "labels"))


@dataclass(frozen=True, kw_only=True)
class TaskRecipe:
    """Rules for choosing the settings of a run."""

    learns_from: tuple[str, ...]
    """Corpus kinds, named as in `regard.data.stats.KINDS`."""
    tunes_on: tuple[str, ...] = ()
    """Additional corpus kinds for fine-tuning."""
    sizes: tuple[ModelSize, ...]
    tuning: TuningRule
    rows: Callable[[CorpusRequest, AnyModelConfig, tuple[str, ...]], TextRows] = TextRows
    """Row estimates and settings, from (corpus, model, labels)."""
    vocabulary: VocabularyRule = field(default_factory=Subwords)
    head: HeadRule | None = None
    """None uses the preset's."""
    optimizer: OptimizerConfig = ADAMW
    muon_presets: tuple[str, ...] = ()
    """Presets that train faster with Muon if time is short."""
    schedule: Literal["inverse_sqrt", "cosine", "linear"] = "linear"
    averaged_checkpoints: Mapping[str, int] = field(default_factory=dict)
    """Number of averaged checkpoints by preset; none for other presets."""
    label_smoothing: float = 0.0
    smoothing_reason: str = ""
    uses_pre_norm: bool = False
    """Whether attention stacks use pre-norm regardless of the preset."""
    metric: Metric = "loss"
    """Metric that selects the best checkpoint; chosen from the labels if there are any."""
    patience: int = PATIENCE
    samples_validation: bool = True
    """Whether a sample of the validation data is enough if time is short."""
    needs_large_batches: bool = False
    """Whether a step is one batch."""
    reason: str = ""
    """Description of the task, if it is not obvious from the corpus."""
    misfit: str = ""
    """What an unsuitable preset cannot do; if empty, its family describes it."""
    misfit_hint: str = ""

    @property
    def is_labeled(self) -> bool:
        """Whether the model predicts labels."""
        return self.head is not None and self.head.has_labels

    def accepts(self, stats: CorpusStats, is_tuning: bool = False) -> bool:
        """Return whether the task supports such a corpus."""
        return stats.kind in self.learns_from or (is_tuning and stats.kind in self.tunes_on)

    def for_size(self, size: int) -> ModelSize:
        """Return the model and hyperparameters for a corpus of this size."""
        return next(row for row in self.sizes if size <= row.max_size)

    def for_preset(self, preset: str, size: int) -> ModelSize:
        """Return the settings for this size with the preset's learning rate, warmup and tokens per step.

        A preset without a row uses the row whose model is closest in width.
        """
        row = self.for_size(size)
        if row.preset == preset:
            return row
        width = codec.preset(preset).d_model
        nearest = min(self.sizes, key=lambda row: (row.preset != preset, abs(codec.preset(row.preset).d_model - width)))
        return replace(row, preset=preset, peak=nearest.peak, warmup=nearest.warmup, step_tokens=nearest.step_tokens)

    def smaller_sizes(self, size: int) -> list[ModelSize]:
        """Return the rows of this size and of smaller presets, largest first: candidates when time is short."""
        rows: dict[str, ModelSize] = {}
        for row in reversed([row for row in self.sizes if row.max_size <= self.for_size(size).max_size]):
            rows.setdefault(row.preset, row)
        return list(rows.values())


def find_recipe(task: str) -> TaskRecipe:
    """Return the recipe of a task.

    >>> find_recipe("translation").for_size(29_000).preset
    'tiny'

    Raises:
        RegardError: The task has no recipe.
    """
    recipe = find_spec(task).load_recipe()
    if not isinstance(recipe, TaskRecipe):
        raise RegardError(f"There is no recipe for the task '{task}'.", hint="Write a run file (docs/guides/train.md).")
    return recipe
