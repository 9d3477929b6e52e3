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
from regard.train.recipes import Job, Row

LOOKS, FEWER = 32, 12  # validations in a run, about; and where time is short
AVERAGED = {"mini": 10, "tiny": 10, "small": 5, "base": 5, "big": 5}  # checkpoints, by preset


@dataclass(frozen=True)
class Plan:
    """How much is learned."""

    updates: int
    update_tokens: int
    hurried: bool = False  # there is less time than the corpus deserves


def training(job: Job, row: Row, plan: Plan, narrow: bool, reasons: list[str]) -> Training:
    """The table [train]; `narrow` where the device is faster at bfloat16."""
    schedule = _schedule(job, row, plan, reasons)
    optimizers: dict[Job, Optimizer] = {
        "translate": Adam(betas=(0.9, 0.98)),
        "continue": AdamW(betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1),
    }
    average = 1 if plan.hurried else AVERAGED.get(row.preset, 1)  # a rate that falls to 0 has averaged already
    if average > 1:
        reasons.append(f"The end: the weights of the last {average} checkpoints are averaged, steadier than any one.")
    if job == "translate":
        reasons.append("Label smoothing: 0.1, as the 2017 paper; a model with a little doubt translates better.")
    if narrow:
        reasons.append("Precision: products in bfloat16, which is fast on this device; weights and sums stay float32.")
    return Training(
        updates=plan.updates,
        update_tokens=plan.update_tokens,
        schedule=schedule,
        optimizer=optimizers.get(job, AdamW(betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)),
        label_smoothing=0.1 if job == "translate" else 0.0,
        precision="bfloat16" if narrow else "float32",
        average=average,
        save_every=_every(plan),
    )


def _schedule(job: Job, row: Row, plan: Plan, reasons: list[str]) -> Schedule:
    """A warm-up that fits the number of updates, and a fall that fits the job."""
    falls_slowly = job == "translate" and not plan.hurried
    warmup = max(1, min(row.warmup, plan.updates // (4 if falls_slowly else 10)))
    # Fewer tokens an update make its gradient noisier; Adam's steps shrink with the square root of the batch.
    peak = float(f"{row.peak * min(1.0, plan.update_tokens / row.update_tokens) ** 0.5:.2g}")
    rise = f"Learning rate: up to {peak:g} over {warmup:,} updates"
    if falls_slowly:
        reasons.append(f"{rise}, then down with 1 / sqrt(update), which need not know when training ends.")
        return InverseSqrt(peak=peak, warmup=warmup)
    if job == "continue":
        reasons.append(f"{rise}, then down to a tenth along a cosine, as nanoGPT.")
        return Cosine(peak=peak, warmup=warmup, end=0.1)
    reasons.append(f"{rise}, then straight down to 0: the most that a fixed number of updates gives.")
    return Linear(peak=peak, warmup=warmup, end=0.0)


def validation(job: Job, plan: Plan, pairs: int, reasons: list[str]) -> Validation:
    """The table [validation]; `pairs` are there to be translated."""
    metrics: dict[Job, Metric] = {"translate": "chrf", "classify": "accuracy", "tag": "accuracy"}
    metric = metrics.get(job, "loss")
    every, patience = _every(plan), 0 if plan.hurried else 10
    sentences = max(1, min(500, pairs)) if job == "translate" else 0
    decides = f"the chrF of {sentences} translations decides" if sentences else f"{metric} decides"
    stops = f", and {patience} without a better one end the run" if patience else ""
    reasons.append(f"Looks: one every {every:,} updates; {decides} which model is the best{stops}.")
    return Validation(every=every, metric=metric, patience=patience, sentences=sentences)


def _every(plan: Plan) -> int:
    looks = FEWER if plan.hurried else LOOKS
    return max(1, rounded(plan.updates / looks, 1) if plan.updates >= 2 * looks else plan.updates // 2)


def rounded(number: float, digits: int = 2) -> int:
    """The nearest number of which only the first digits are not zero.

    >>> rounded(7985.3), rounded(123), rounded(7)
    (8000, 120, 7)
    """
    if number < 1:
        return round(number)
    scale = 10 ** max(0, int(log10(number)) - digits + 1)
    return round(number / scale) * scale


def many(number: float) -> str:
    """A large number in words that fit a line.

    >>> many(2605056), many(1115394), many(808064), many(950)
    ('2.6 million', '1.1 million', '810,000', '950')
    """
    if number >= 1e9:
        return f"{number / 1e9:.1f} billion"
    return f"{number / 1e6:.1f} million" if number >= 1e6 else f"{rounded(number):,}"
