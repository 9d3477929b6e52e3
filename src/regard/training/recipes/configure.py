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
from regard.data.stats import collect_stats
from regard.tasks.recipes.choose import choose_task
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.recipe import find_recipe
from regard.training.recipes.apply import AutoRun, CorpusRecipe
from regard.training.recipes.finetune import Finetuning, read_parent
from regard.training.recipes.minutes import StepTimer, configure_for_minutes

PREPARATION_PASSES = (
    3  # learning the vocabulary and writing shards take about as long as reading the corpus this many times
)
MIN_TRAINING_SHARE = 0.2  # minimum share of the minutes, if reading the corpus takes nearly all of them


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
        validation: Validation corpora; by default a part of the training corpus is held out.
        preset: Model preset; chosen by corpus size by default.
        minutes: Fit the run into this time. Without a preset, a smaller model may be chosen.
        steps: Number of steps; mutually exclusive with `minutes`.
        changes: Settings that override every choice, {"a.b": value}.
        timer: Measures the seconds per step; default `measure_step`.
        started: Start time of the command (`time.perf_counter()`), from which `minutes` count. Default: now.
        review: Called with the corpus check result before settings are chosen; may raise an error. By default the
            corpus is not checked.
        parent: Fine-tune this model; `changes` may contain `finetune` settings. Mutually exclusive with `preset`.

    Raises:
        RegardError: If the corpus is too small or arguments contradict each other.
    """
    if preset is not None:
        codec.preset(preset)  # reports an unknown preset before the corpus is read
    changes = _check_changes(changes or {}, minutes, steps)
    sources = tuple(source) if isinstance(source, Sequence) else (source,)
    reading_started = time.perf_counter()
    check = None if review is None else TrainingCheck(sources, validation)
    stats = collect_stats(sources, None if check is None else check.add)
    reading_seconds = time.perf_counter() - reading_started
    model = None
    if parent is not None:
        changes = {**changes, "finetune.parent": str(parent)}
        model = read_parent(parent, changes.get("finetune.extra_layers"))
    corpus = CorpusRequest(sources, stats, tuple(validation), changes, preset, model, check)
    spec = choose_task(corpus)
    tuning = None if model is None else Finetuning(model, find_recipe(spec.name).tuning, changes)
    corpus_recipe = CorpusRecipe(corpus, spec, tuning)
    if check is not None and review is not None:
        validation_stats = corpus.validation_stats  # reads the validation data, which the corpus check compares
        if validation_stats is None or validation_stats.content == stats.content:  # otherwise an error follows
            review(check.conclude())
    if minutes is None:
        return corpus_recipe.make_run(corpus_recipe.size)

    def count_seconds() -> float:
        """Return the seconds left for training, without the elapsed time and the time for vocabulary and shards."""
        passed = 0.0 if started is None else time.perf_counter() - started + PREPARATION_PASSES * reading_seconds
        return max(60 * minutes - passed, MIN_TRAINING_SHARE * 60 * minutes)

    return configure_for_minutes(corpus_recipe, minutes, count_seconds, timer or measure_step)


def _check_changes(changes: Mapping[str, Any], minutes: float | None, steps: int | None) -> dict[str, Any]:
    """Return the changes with the number of steps; raise an error for contradictions."""
    if faults := list(codec.RUN_FILES.find_wrong_changes(changes)):
        raise ConfigError(faults)
    if faults := list(find_untrainable(with_changes({}, changes).get("model", {}))):
        raise ConfigError(faults, location="the settings that override automatic choices")
    if minutes is not None and not 0 < minutes < inf:
        raise RegardError(f"The minutes must be more than 0 and finite, got {minutes:g}.", hint="Give at least 1.")
    if steps is not None:
        changes = {**changes, "train.steps": steps}
    if minutes is not None and "train.steps" in changes:
        raise RegardError("Both minutes and a number of steps were given.", hint="Give one of the two.")
    return dict(changes)


def measure_step(run: RunConfig, length: int, *, should_tune: bool = False) -> float:
    """Estimate the seconds per step with a few trial steps."""
    from regard.training.autotune import seconds_per_step  # imports torch: only when needed

    return seconds_per_step(run, length, should_tune=should_tune)
