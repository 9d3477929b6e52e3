"""Configure a run from a corpus, with a reason for every choice: `regard train` without a run file.

auto_run = configure(Lines(source="train.en", target="train.de"))
auto_run.run          # every setting, as run.toml holds it
auto_run.reasons      # one sentence for each choice
"""

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from regard.base.errors import ConfigError, RegardError
from regard.config import codec
from regard.config.run import RunConfig, find_untrainable
from regard.config.sources import AnySourceConfig
from regard.config.toml_file import with_changes
from regard.data.doctor.one_pass import TrainingCheck, TrainingCheckResult
from regard.training.recipes.audio import AudioPlan
from regard.training.recipes.captions import CaptionPlan
from regard.training.recipes.corpus_stats import CorpusStats, collect_stats
from regard.training.recipes.finetune import PARENT, TuningPlan, read_parent
from regard.training.recipes.finetune_audio import AudioTuningPlan
from regard.training.recipes.finetune_images import CaptionTuningPlan, ImageTuningPlan
from regard.training.recipes.image_gpt import ImageGptPlan
from regard.training.recipes.images import ImagePlan
from regard.training.recipes.minutes import StepTimer, configure_for_minutes
from regard.training.recipes.text import AutoRun, CorpusRecipe

PREPARATION_PASSES = 3  # learning the vocabulary and writing shards take about as long as reading the corpus so often
MIN_TRAINING_SHARE = 0.2  # of the minutes, if reading the corpus takes nearly all of them


def configure(
    source: AnySourceConfig | Sequence[AnySourceConfig],
    *,
    validation: Sequence[AnySourceConfig] = (),
    preset: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    changes: Mapping[str, Any] | None = None,
    timer: StepTimer | None = None,
    started: float | None = None,
    review: Callable[[TrainingCheckResult], None] | None = None,
    parent: Path | None = None,
) -> AutoRun:
    """Configure a run that suits a corpus.

    Args:
        source: The training corpus.
        validation: Validation corpora; without any, a part of the training corpus is held out.
        preset: Model preset; by default the recipe of the corpus size decides.
        minutes: Fit the run into this time. Without a preset, a smaller model is chosen if time is short.
        steps: Number of steps; excludes `minutes`.
        changes: Settings that override every choice, {"a.b": value}.
        timer: Measures the seconds of a step; default `measure_step`.
        started: When the command began (`time.perf_counter()`); `minutes` count from there. Default: now.
        review: Called with the corpus doctor's verdict before settings are chosen; it may raise an error. Without it,
            the doctor is not asked.
        parent: Fine-tune this model; `changes` may hold settings of `finetune`. Excludes `preset`.

    Raises:
        RegardError: If the corpus is too small or arguments contradict each other.
    """
    if preset is not None:
        codec.preset(preset)  # reports an unknown preset before the corpus is read
    if faults := list(codec.RUN_FILES.find_wrong_changes(changes or {})):
        raise ConfigError(faults)
    if faults := list(find_untrainable(with_changes({}, changes or {}).get("model", {}))):
        raise ConfigError(faults, location="the settings that override automatic choices")
    if minutes is not None and not 0 < minutes < inf:
        raise RegardError(f"The minutes must be more than 0 and finite, got {minutes:g}.", hint="Give at least 1.")
    if steps is not None:
        changes = {**(changes or {}), "train.steps": steps}
    if minutes is not None and "train.steps" in (changes or {}):
        raise RegardError("Both minutes and a number of steps were given.", hint="Give one of the two.")
    sources = tuple(source) if isinstance(source, Sequence) else (source,)
    reading_started = time.perf_counter()
    check = None if review is None else TrainingCheck(sources, validation)
    stats = collect_stats(sources, None if check is None else check.add)
    reading_seconds = time.perf_counter() - reading_started
    plan_class: type[CorpusRecipe] = {"images": ImagePlan, "audio": AudioPlan}.get(stats.content, CorpusRecipe)
    if stats.content == "images":
        plan_class = _choose_image_plan(stats, preset, changes or {})
    corpus_plan = plan_class(sources, tuple(validation), stats, dict(changes or {}), preset, check)
    if parent is not None:
        changes = {**(changes or {}), "finetune.parent": str(parent)}
        settings = read_parent(parent, changes.get("finetune.extra_layers"))
        media = {"mel": "audio", "patches": "images"}.get(getattr(getattr(settings, "source", None), "kind", ""))
        if media not in (None, stats.content):
            message = f"The model reads {media}, and this corpus holds {stats.content}."
            raise RegardError(message, hint=f"Tune it with --{media}.")
        if settings.family == "decoder_only" and settings.raster is not None:
            hint = "Train a new one: `regard train --images FOLDER --preset image-gpt`."
            raise RegardError("A model that generates images cannot be tuned yet.", hint=hint)
        tuning_classes = {"images": ImageTuningPlan, "audio": AudioTuningPlan}
        tuning_class: type[TuningPlan] = tuning_classes.get(stats.content, TuningPlan)
        tuning_class = CaptionTuningPlan if plan_class is CaptionPlan else tuning_class
        corpus_plan = tuning_class(sources, tuple(validation), stats, changes, PARENT, check, parent=settings)
    if check is not None and review is not None:
        validation_stats = corpus_plan.validation_stats  # reads the validation data, which the doctor compares
        if validation_stats is None or validation_stats.content == stats.content:  # otherwise an error follows
            review(check.conclude())
    if minutes is None:
        return corpus_plan.make_run(corpus_plan.recipe)

    def count_seconds() -> float:
        """Return the seconds for training: without those that have passed, and those of vocabulary and shards."""
        passed = 0.0 if started is None else time.perf_counter() - started + PREPARATION_PASSES * reading_seconds
        return max(60 * minutes - passed, MIN_TRAINING_SHARE * 60 * minutes)

    return configure_for_minutes(corpus_plan, minutes, count_seconds, timer or measure_step)


def _choose_image_plan(stats: CorpusStats, preset: str | None, changes: Mapping[str, Any]) -> type[ImagePlan]:
    """Return the plan for images.

    A decoder generates them, an encoder labels them or predicts masked patches, an encoder-decoder writes captions.
    """
    if stats.target.characters:
        return CaptionPlan
    is_decoder = preset is not None and codec.preset(preset).family == "decoder_only"
    return ImageGptPlan if is_decoder or changes.get("model.task") == "causal_lm" else ImagePlan


def measure_step(run: RunConfig, length: int, *, should_tune: bool = False) -> float:
    """Measure the seconds per step with a few trial steps; a time budget needs no exact figure."""
    from regard.training.autotune import seconds_per_step  # imports torch: only when needed

    return seconds_per_step(run, length, should_tune=should_tune)
