"""The [train] and [validation] settings of an automatic run, and the reason for each.

A recipe and a budget of steps determine the settings. Every choice appends one sentence, "Name: reason.", to a list
that the user sees; `mark_overridden` replaces the sentences of settings that the user chose explicitly.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from operator import itemgetter

from regard.base.formatting import pluralize
from regard.config.run import LABEL_TASKS
from regard.config.training import (
    AdamConfig,
    AdamWConfig,
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    Metric,
    MuonConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainingConfig,
    ValidationConfig,
)
from regard.measure.entities import has_entities
from regard.training.recipes.sizes import Recipe, TaskKind

VALIDATIONS, FEW_VALIDATIONS = 32, 12  # approximate validations per run; at most FEW_VALIDATIONS if time is short
DOMINANT_SHARE = 0.6  # of all labels; one that is more frequent makes accuracy a poor metric
MAX_SENTENCES = 500  # validation sentences to translate; 50 per minute if the time is given
PATIENCE = 10  # validations without a better score that end a run
AVERAGED_CHECKPOINTS = {"mini": 10, "tiny": 10, "small": 5, "base": 5, "big": 5}  # how many, by preset
STACKS = ("model.encoder", "model.decoder")
MUON_PRESETS, MUON_PEAK = ("mini", "tiny"), 0.01  # translators, and a peak learning rate that suits both
EXPLAINED_SETTINGS = {  # the name of a reason: the settings that it explains
    "Vocabulary": ("tokenizer.kind", "tokenizer.vocabulary", "tokenizer.joint"),
    "Dropout": tuple(f"{stack}.dropout" for stack in STACKS),
    "Norms": tuple(f"{stack}.{name}" for stack in STACKS for name in ("norm_order", "final_norm")),
    "Masking": ("data.masking",),
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
    """How long a run trains."""

    steps: int
    step_tokens: int
    is_time_limited: bool = False  # the user's minutes allow fewer steps than suit the corpus
    is_tuning: bool = False  # the run starts from a trained model
    minutes: float | None = None
    max_steps: int | None = None  # with `minutes`: as many as suit the corpus
    validations: int = VALIDATIONS
    validation_sentences: int | None = None  # to translate at most, if time is short
    validation_max_tokens: int | None = None  # to score, if time is too short for all

    @property
    def is_short(self) -> bool:
        """Whether there is time for less than half of the steps that suit the corpus."""
        return self.max_steps is not None and self.steps < self.max_steps / 2

    @property
    def decays_to_zero(self) -> bool:
        """Whether the learning rate ends at 0, which has the effect of averaging and brings the best scores last."""
        return self.is_time_limited or self.is_tuning


def training_settings(
    task: TaskKind,
    recipe: Recipe,
    budget: Budget,
    use_bfloat16: bool,
    reasons: list[str],
    optimizer_kind: str | None = None,
) -> TrainingConfig:
    """Choose the [train] settings and append their reasons.

    Args:
        task: The task.
        recipe: Model and hyperparameters for the size of the corpus.
        budget: How long the run trains.
        use_bfloat16: Whether matrix products in bfloat16 are fast on this device.
        reasons: The list of reasons.
        optimizer_kind: The optimizer that the user requested, so that the learning rate suits it.
    """
    optimizer = _choose_optimizer(task, recipe, budget, optimizer_kind, reasons)
    schedule = _choose_schedule(task, recipe, budget, isinstance(optimizer, MuonConfig), reasons)
    average = 1 if budget.decays_to_zero else AVERAGED_CHECKPOINTS.get(recipe.preset, 1)
    if average > 1:
        reasons.append(
            f"Checkpoint averaging: the final model is the mean of the last {average} checkpoints, "
            "which varies less than any single one."
        )
    if task == "translate":
        reasons.append("Label smoothing: 0.1, as in the 2017 paper; it raises translation scores.")
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
        label_smoothing=0.1 if task == "translate" else 0.0,
        precision="bfloat16" if use_bfloat16 else "float32",
        average=average,
        save_every=_choose_interval(budget),
    )


def _choose_optimizer(
    task: TaskKind, recipe: Recipe, budget: Budget, requested_kind: str | None, reasons: list[str]
) -> OptimizerConfig:
    """Choose the optimizer of the published recipe, or Muon for a small translator with little time."""
    is_small = task == "translate" and recipe.preset in MUON_PRESETS and not budget.is_tuning
    if is_small and budget.is_short and requested_kind in (None, "muon"):
        reasons.append("Optimizer: Muon, with which a small translator learns in about half the steps of Adam.")
        return MuonConfig()
    optimizers: dict[TaskKind, OptimizerConfig] = {
        "translate": AdamConfig(betas=(0.9, 0.98)),
        "causal_lm": AdamWConfig(betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1),
    }
    return optimizers.get(task, AdamWConfig(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01))


def _choose_schedule(
    task: TaskKind, recipe: Recipe, budget: Budget, uses_muon: bool, reasons: list[str]
) -> ScheduleConfig:
    """Choose a warmup that fits the number of steps, and a decay that fits the task."""
    is_inverse_sqrt = task == "translate" and not budget.decays_to_zero
    warmup = max(1, min(recipe.warmup, budget.steps // (4 if is_inverse_sqrt else 10)))
    # Fewer tokens per step make its gradient noisier; Adam's steps shrink with the square root of the batch.
    adam_peak = float(f"{recipe.peak * min(1.0, budget.step_tokens / recipe.step_tokens) ** 0.5:.2g}")
    peak = MUON_PEAK if uses_muon else adam_peak
    warmup_text = f"Learning rate: warmup to {peak:g} over {pluralize(warmup, 'step')}"
    if is_inverse_sqrt:
        reasons.append(f"{warmup_text}, then decay with 1 / sqrt(step), independent of the total number of steps.")
        return InverseSqrtConfig(lr=peak, warmup=warmup)
    if task == "causal_lm" and not budget.is_tuning:
        reasons.append(f"{warmup_text}, then cosine decay to a tenth, as in nanoGPT.")
        return CosineConfig(lr=peak, warmup=warmup, end=0.1)
    reasons.append(f"{warmup_text}, then linear decay to 0, the best schedule for a fixed number of steps.")
    return LinearConfig(lr=peak, warmup=warmup, end=0.0)


def validation_settings(
    task: TaskKind, budget: Budget, validation_pairs: int, labels: Mapping[str, int], reasons: list[str]
) -> ValidationConfig:
    """Choose the [validation] settings and append their reason.

    Args:
        task: The task.
        budget: How long the run trains.
        validation_pairs: Number of validation pairs; no more are translated.
        labels: Labels of the training corpus and how often each occurs.
        reasons: The list of reasons.
    """
    metric: Metric = "chrf" if task == "translate" else "loss"
    metric_reason = ""
    if task == "embed":
        metric = "retrieval_at_1"
    if task in LABEL_TASKS:
        metric, metric_reason = choose_label_metric(labels)
    # Where the learning rate decays to 0 at the last step, the best scores come late: the run must get there.
    patience = 0 if budget.decays_to_zero or task in (*LABEL_TASKS, "embed") else PATIENCE
    every = _choose_interval(budget)
    max_sentences = budget.validation_sentences or MAX_SENTENCES
    max_tokens = None if task == "embed" else budget.validation_max_tokens  # retrieval is easier among fewer texts
    sentences = max(1, min(max_sentences, validation_pairs)) if task == "translate" else 0
    interval_text = f"every {pluralize(every, 'step')} (about {round_digits(budget.steps / every)} in all)"
    metric_text = f"chrF of {pluralize(sentences, 'translation')}" if sentences else metric
    patience_text = f", and {patience} validations without improvement end the run" if patience else ""
    sample_text = "; because time is short, on a fixed random sample, with its sampling error (±)" if max_tokens else ""
    reasons.append(
        f"Validation: {interval_text}; {metric_text} selects the best model{metric_reason}{patience_text}{sample_text}."
    )
    return ValidationConfig(
        every_steps=every, metric=metric, patience=patience, sentences=sentences, max_tokens=max_tokens
    )


def choose_label_metric(labels: Mapping[str, int]) -> tuple[Metric, str]:
    """Choose accuracy or F1 for a corpus with these labels, and say why.

    >>> choose_label_metric({"O": 950, "B-person": 50})
    ('f1', ' (entity F1, because 95 % of the words are in no entity: tagging nothing is accurate)')
    >>> choose_label_metric({"yes": 55, "no": 45})
    ('accuracy', '')
    """
    label, count = max(labels.items(), key=itemgetter(1))
    share = count / sum(labels.values())
    if has_entities(labels):
        none = labels.get("O", 0) / sum(labels.values())
        return (
            "f1",
            f" (entity F1, because {_percent(none)} of the words are in no entity: tagging nothing is accurate)",
        )
    if share > DOMINANT_SHARE:
        return (
            "f1",
            f" (macro F1, because {_percent(share)} of the labels are {label!r}: predicting no other is accurate)",
        )
    return "accuracy", ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _choose_interval(budget: Budget) -> int:
    if budget.steps < 2 * budget.validations:
        return max(1, budget.steps // 2)
    return max(1, round_digits(budget.steps / budget.validations, 1))


def mark_overridden(reasons: Sequence[str], settings: Collection[str]) -> tuple[str, ...]:
    """Mark the reasons of settings that the user chose explicitly.

    >>> mark_overridden(["Dropout: 0.1, because.", "Validation: often."], ["validation.every_steps"])
    ('Dropout: 0.1, because.', 'Validation: changed by you (validation.every_steps).')
    """
    return tuple(_mark_reason(reason, settings) for reason in reasons)


def _mark_reason(reason: str, settings: Collection[str]) -> str:
    name = reason.partition(":")[0]
    overridden = [path for path in settings if _overlaps(path, EXPLAINED_SETTINGS.get(name, ()))]
    return f"{name}: changed by you ({', '.join(overridden)})." if overridden else reason


def _overlaps(path: str, explained: Sequence[str]) -> bool:
    """Whether `path` is one of the explained settings, or lies inside one, or contains one."""
    return any(f"{path}.".startswith(f"{setting}.") or f"{setting}.".startswith(f"{path}.") for setting in explained)


def round_digits(number: float, digits: int = 2) -> int:
    """Round a number to a few significant digits.

    >>> round_digits(7985.3), round_digits(123), round_digits(7)
    (8000, 120, 7)
    """
    if number < 1:
        return round(number)
    scale = 10 ** max(0, int(log10(number)) - digits + 1)
    return round(number / scale) * scale


def format_count(number: float) -> str:
    """Format a large number with two significant digits.

    >>> format_count(2605056), format_count(1115394), format_count(808064), format_count(950)
    ('2.6 million', '1.1 million', '810,000', '950')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} billion"
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{round_digits(number):,}"
