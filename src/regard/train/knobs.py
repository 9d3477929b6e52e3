"""From a row of the table and a number of updates to the knobs of training and validation, each with its reason."""

from dataclasses import dataclass
from math import log10

from regard.config.training import (
    Adam,
    AdamW,
    Cosine,
    InverseSqrt,
    Linear,
    Metric,
    Optimizer,
    Schedule,
    Training,
    Validation,
)
from regard.train.auto.recipes import Recipe, TaskKind

VALIDATIONS, FEW_VALIDATIONS = 32, 12  # validations in a run, about; and where time is short
AVERAGED_CHECKPOINTS = {"mini": 10, "tiny": 10, "small": 5, "base": 5, "big": 5}  # checkpoints, by preset


@dataclass(frozen=True)
class Budget:
    """How much is learned."""

    updates: int
    update_tokens: int
    is_time_limited: bool = False  # there is less time than the corpus deserves


def training_settings(
    task: TaskKind, recipe: Recipe, budget: Budget, use_bfloat16: bool, reasons: list[str]
) -> Training:
    """The table [train]; `narrow` where the device is faster at bfloat16."""
    schedule = _choose_schedule(task, recipe, budget, reasons)
    optimizers: dict[TaskKind, Optimizer] = {
        "translate": Adam(betas=(0.9, 0.98)),
        "continue": AdamW(betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1),
    }
    average = (
        1 if budget.is_time_limited else AVERAGED_CHECKPOINTS.get(recipe.preset, 1)
    )  # a rate that falls to 0 has averaged already
    if average > 1:
        reasons.append(f"The end: the weights of the last {average} checkpoints are averaged, steadier than any one.")
    if task == "translate":
        reasons.append("Label smoothing: 0.1, as the 2017 paper; a model with a little doubt translates better.")
    if use_bfloat16:
        reasons.append("Precision: products in bfloat16, which is fast on this device; weights and sums stay float32.")
    return Training(
        updates=budget.updates,
        update_tokens=budget.update_tokens,
        schedule=schedule,
        optimizer=optimizers.get(task, AdamW(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)),
        label_smoothing=0.1 if task == "translate" else 0.0,
        precision="bfloat16" if use_bfloat16 else "float32",
        average=average,
        save_every=_choose_interval(budget),
    )


def _choose_schedule(task: TaskKind, recipe: Recipe, budget: Budget, reasons: list[str]) -> Schedule:
    """A warm-up that fits the number of updates, and a fall that fits the job."""
    is_inverse_sqrt = task == "translate" and not budget.is_time_limited
    warmup = max(1, min(recipe.warmup, budget.updates // (4 if is_inverse_sqrt else 10)))
    # Fewer tokens an update make its gradient noisier; Adam's steps shrink with the square root of the batch.
    peak = float(f"{recipe.peak * min(1.0, budget.update_tokens / recipe.update_tokens) ** 0.5:.2g}")
    warmup_text = f"Learning rate: up to {peak:g} over {warmup:,} updates"
    if is_inverse_sqrt:
        reasons.append(f"{warmup_text}, then down with 1 / sqrt(update), which need not know when training ends.")
        return InverseSqrt(peak=peak, warmup=warmup)
    if task == "continue":
        reasons.append(f"{warmup_text}, then down to a tenth along a cosine, as nanoGPT.")
        return Cosine(peak=peak, warmup=warmup, end=0.1)
    reasons.append(f"{warmup_text}, then straight down to 0: the most that a fixed number of updates gives.")
    return Linear(peak=peak, warmup=warmup, end=0.0)


def validation_settings(task: TaskKind, budget: Budget, validation_pairs: int, reasons: list[str]) -> Validation:
    """The table [validation]; `pairs` are there to be translated."""
    metrics: dict[TaskKind, Metric] = {"translate": "chrf", "classify": "accuracy", "tag": "accuracy"}
    metric = metrics.get(task, "loss")
    every, patience = _choose_interval(budget), 0 if budget.is_time_limited else 10
    sentences = max(1, min(500, validation_pairs)) if task == "translate" else 0
    metric_text = f"the chrF of {sentences} translations decides" if sentences else f"{metric} decides"
    patience_text = f", and {patience} without a better one end the run" if patience else ""
    reasons.append(f"Looks: one every {every:,} updates; {metric_text} which model is the best{patience_text}.")
    return Validation(every=every, metric=metric, patience=patience, sentences=sentences)


def _choose_interval(budget: Budget) -> int:
    validations = FEW_VALIDATIONS if budget.is_time_limited else VALIDATIONS
    return max(
        1, round_digits(budget.updates / validations, 1) if budget.updates >= 2 * validations else budget.updates // 2
    )


def round_digits(number: float, digits: int = 2) -> int:
    """The nearest number of which only the first digits are not zero.

    >>> round_digits(7985.3), round_digits(123), round_digits(7)
    (8000, 120, 7)
    """
    if number < 1:
        return round(number)
    scale = 10 ** max(0, int(log10(number)) - digits + 1)
    return round(number / scale) * scale


def format_count(number: float) -> str:
    """A large number in words that fit a line.

    >>> format_count(2605056), format_count(1115394), format_count(808064), format_count(950)
    ('2.6 million', '1.1 million', '810,000', '950')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} billion"
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{round_digits(number):,}"
