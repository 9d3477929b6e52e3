"""The [train] and [validation] settings of an automatic run, with a reason for each.

A recipe and a step budget determine the settings. Every choice appends one sentence, "Name: reason.", to a list shown
to the user; `mark_overridden` replaces the sentences of settings that the user set explicitly.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from regard.base.formatting import pluralize, round_digits
from regard.config.task_spec import Metric
from regard.config.training import (
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    MuonConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainingConfig,
    ValidationConfig,
)
from regard.measure.entities import has_entities
from regard.tasks.recipes.recipe import ModelSize, TaskRecipe

VALIDATIONS, FEW_VALIDATIONS = 32, 12  # approximate validations per run; at most FEW_VALIDATIONS if time is short
DOMINANT_SHARE = 0.6  # share of all labels; a more frequent label makes accuracy a poor metric
MAX_SENTENCES = 500  # validation sentences to translate; 50 per minute if the time is given
STACKS = ("model.encoder", "model.decoder")
MUON_PEAK = 0.01  # a peak learning rate of Muon that suits small translators
EXPLAINED_SETTINGS = {  # reason name: the settings that it explains
    "Vocabulary": ("tokenizer.kind", "tokenizer.vocabulary", "tokenizer.joint"),
    "Dropout": tuple(f"{stack}.dropout" for stack in STACKS),
    "Norms": tuple(f"{stack}.{name}" for stack in STACKS for name in ("norm_order", "final_norm")),
    "Masking": ("task_options",),
    "Augmentation": ("data.augmentation", "data.spec_augment"),
    "Validation data": ("data.held_out", "data.validation"),
    "Optimizer": ("train.optimizer",),
    "Learning rate": ("train.schedule",),
    "Checkpoint averaging": ("train.average",),
    "Label smoothing": ("train.label_smoothing",),
    "Precision": ("train.precision",),
    "Validation": ("validation.every_steps", "validation.metric", "validation.patience", "validation.sentences"),
}


@dataclass(frozen=True)
class Budget:
    """The length of a run."""

    steps: int
    step_tokens: int
    is_time_limited: bool = False  # the user's minutes allow fewer steps than the recipe's
    is_tuning: bool = False  # the run starts from a trained model
    minutes: float | None = None
    max_steps: int | None = None  # with `minutes`: the recipe's number of epochs
    validations: int = VALIDATIONS
    validation_sentences: int | None = None  # to translate at most, if time is short
    validation_max_tokens: int | None = None  # to score, if time is too short for all

    @property
    def is_short(self) -> bool:
        """Whether there is time for less than half of the recipe's steps."""
        return self.max_steps is not None and self.steps < self.max_steps / 2

    @property
    def decays_to_zero(self) -> bool:
        """Whether the learning rate decays to 0, which has an effect like averaging and gives the best scores last."""
        return self.is_time_limited or self.is_tuning


def training_settings(
    recipe: TaskRecipe,
    size: ModelSize,
    budget: Budget,
    use_bfloat16: bool,
    reasons: list[str],
    optimizer_kind: str | None = None,
) -> TrainingConfig:
    """Choose the [train] settings and append their reasons.

    The learning rate is chosen for the requested optimizer, `optimizer_kind`.
    """
    optimizer = _choose_optimizer(recipe, size, budget, optimizer_kind, reasons)
    schedule = _choose_schedule(recipe, size, budget, isinstance(optimizer, MuonConfig), reasons)
    average = 1 if budget.decays_to_zero else recipe.averaged_checkpoints.get(size.preset, 1)
    if average > 1:
        reasons.append(
            f"Checkpoint averaging: the final model is the mean of the last {average} checkpoints, which has a "
            "lower variance than a single one."
        )
    if recipe.label_smoothing:
        reasons.append(f"Label smoothing: {recipe.label_smoothing:g}, {recipe.smoothing_reason}.")
    if use_bfloat16:
        reasons.append(
            "Precision: matrix products in bfloat16, which is fast on this device; weights and sums stay in float32."
        )
    return TrainingConfig(
        steps=budget.steps,
        minutes=budget.minutes,
        max_steps=budget.max_steps,
        step_tokens=budget.step_tokens,
        schedule=schedule,
        optimizer=optimizer,
        label_smoothing=recipe.label_smoothing,
        precision="bfloat16" if use_bfloat16 else "float32",
        average=average,
        save_every=_choose_interval(budget),
    )


def _choose_optimizer(
    recipe: TaskRecipe, size: ModelSize, budget: Budget, requested_kind: str | None, reasons: list[str]
) -> OptimizerConfig:
    """Choose the optimizer of the published recipe, or Muon for a small translator with a short time limit."""
    is_small = size.preset in recipe.muon_presets and not budget.is_tuning
    if is_small and budget.is_short and requested_kind in (None, "muon"):
        reasons.append("Optimizer: Muon, which trains a small translator in about half as many steps as Adam.")
        return MuonConfig()
    return recipe.optimizer


def _choose_schedule(
    recipe: TaskRecipe, size: ModelSize, budget: Budget, uses_muon: bool, reasons: list[str]
) -> ScheduleConfig:
    """Choose a warmup that fits the number of steps, and a decay that fits the task."""
    is_inverse_sqrt = recipe.schedule == "inverse_sqrt" and not budget.decays_to_zero
    warmup = max(1, min(size.warmup, budget.steps // (4 if is_inverse_sqrt else 10)))
    # Fewer tokens per step make the gradient noisier, so scale Adam's rate with the square root of the batch size.
    adam_peak = float(f"{size.peak * min(1.0, budget.step_tokens / size.step_tokens) ** 0.5:.2g}")
    peak = MUON_PEAK if uses_muon else adam_peak
    warmup_text = f"Learning rate: warmup to {peak:g} over {pluralize(warmup, 'step')}"
    if is_inverse_sqrt:
        reasons.append(f"{warmup_text}, then decay with 1 / sqrt(step), independent of the total number of steps.")
        return InverseSqrtConfig(lr=peak, warmup=warmup)
    if recipe.schedule == "cosine" and not budget.is_tuning:
        reasons.append(f"{warmup_text}, then cosine decay to a tenth, as in nanoGPT.")
        return CosineConfig(lr=peak, warmup=warmup, end=0.1)
    reasons.append(f"{warmup_text}, then linear decay to 0, the best schedule for a fixed number of steps.")
    return LinearConfig(lr=peak, warmup=warmup, end=0.0)


def validation_settings(
    recipe: TaskRecipe, budget: Budget, validation_pairs: int, labels: Mapping[str, int], reasons: list[str]
) -> ValidationConfig:
    """Choose the [validation] settings and append the reason; at most `validation_pairs` pairs are translated."""
    metric, metric_reason = choose_label_metric(labels) if recipe.is_labeled else (recipe.metric, "")
    # If the learning rate decays to 0, the best scores come late, so do not stop early.
    patience = 0 if budget.decays_to_zero else recipe.patience
    every = _choose_interval(budget)
    max_sentences = budget.validation_sentences or MAX_SENTENCES
    max_tokens = budget.validation_max_tokens if recipe.samples_validation else None
    sentences = max(1, min(max_sentences, validation_pairs)) if metric == "chrf" else 0
    interval_text = f"every {pluralize(every, 'step')} (about {round_digits(budget.steps / every)} in all)"
    metric_text = f"chrF of {pluralize(sentences, 'translation')}" if sentences else metric
    patience_text = f", and {patience} validations without improvement stop the run" if patience else ""
    sample_text = "; because time is short, on a fixed random sample, with its sampling error (±)" if max_tokens else ""
    reasons.append(
        f"Validation: {interval_text}; {metric_text} selects the best model{metric_reason}{patience_text}{sample_text}."
    )
    return ValidationConfig(
        every_steps=every, metric=metric, patience=patience, sentences=sentences, max_tokens=max_tokens
    )


def choose_label_metric(labels: Mapping[str, int]) -> tuple[Metric, str]:
    """Choose accuracy or F1 for a corpus with these labels, with a reason.

    >>> choose_label_metric({"O": 950, "B-person": 50})
    ('f1', ' (entity F1, because 95 % of the words are outside entities, so accuracy says little)')
    >>> choose_label_metric({"yes": 55, "no": 45})
    ('accuracy', '')
    """
    label, count = max(labels.items(), key=itemgetter(1))
    share = count / sum(labels.values())
    if has_entities(labels):
        none = labels.get("O", 0) / sum(labels.values())
        return (
            "f1",
            f" (entity F1, because {_percent(none)} of the words are outside entities, so accuracy says little)",
        )
    if share > DOMINANT_SHARE:
        return (
            "f1",
            f" (macro F1, because {_percent(share)} of the labels are {label!r}, so accuracy says little)",
        )
    return "accuracy", ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _choose_interval(budget: Budget) -> int:
    if budget.steps < 2 * budget.validations:
        return max(1, budget.steps // 2)
    return max(1, round_digits(budget.steps / budget.validations, 1))


def mark_overridden(reasons: Sequence[str], settings: Collection[str]) -> tuple[str, ...]:
    """Mark the reasons of settings that the user set explicitly.

    >>> mark_overridden(["Dropout: 0.1, because.", "Validation: often."], ["validation.every_steps"])
    ('Dropout: 0.1, because.', 'Validation: set by you (validation.every_steps).')
    """
    return tuple(_mark_reason(reason, settings) for reason in reasons)


def _mark_reason(reason: str, settings: Collection[str]) -> str:
    name = reason.partition(":")[0]
    overridden = [path for path in settings if _overlaps(path, EXPLAINED_SETTINGS.get(name, ()))]
    return f"{name}: set by you ({', '.join(overridden)})." if overridden else reason


def _overlaps(path: str, explained: Sequence[str]) -> bool:
    """Whether `path` is an explained setting, or contains or is contained in one."""
    return any(f"{path}.".startswith(f"{setting}.") or f"{setting}.".startswith(f"{path}.") for setting in explained)
