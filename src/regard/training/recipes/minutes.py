"""Fit a run into a given number of minutes: model size, number of steps, tokens per step.

`regard.training.time_budget` adapts the number of steps later, when the speed is known.
"""

from collections.abc import Callable
from dataclasses import replace

from regard.base.formatting import round_digits
from regard.config.run import RunConfig
from regard.training.recipes.apply import AutoRun, CorpusRecipe, describe_minutes
from regard.training.recipes.hyperparameters import FEW_VALIDATIONS, MAX_SENTENCES, Budget

MIN_EPOCHS = 3  # if fewer fit into the available time, a smaller model is chosen,
# unless it sees this many tokens per parameter: measured in docs/decisions/0003-training.md
MIN_TOKENS_PER_PARAMETER = 2
FEW_EPOCHS = 20  # with fewer epochs, even a small corpus is not overfitted; for labels, half as many
MIN_VALIDATIONS, MIN_SENTENCES = 3, 20  # per run, and per validation to translate
MIN_VALIDATION_SHARE, MAX_VALIDATION_SHARE = 0.03, 0.1  # of the minutes for all validations,
MAX_OTHER_SHARE = 0.25  # and for them and the preparation together: at least 70 % are for steps
StepTimer = Callable[[RunConfig, int], float]  # (run, typical row length) -> seconds per step


def configure_for_minutes(
    corpus_recipe: CorpusRecipe, minutes: float, count_seconds: Callable[[], float], timer: StepTimer
) -> AutoRun:
    """Choose the largest model that can make enough epochs in the time, with dropout for that many epochs."""
    sizes = [corpus_recipe.size] if corpus_recipe.is_model_given else corpus_recipe.smaller_sizes
    for size in sizes:
        full_run = corpus_recipe.make_run(size)
        is_size_fixed = not {"train.step_tokens", "data.batch_tokens"}.isdisjoint(corpus_recipe.corpus.changes)
        seconds = timer(full_run.run, min(full_run.typical_length, full_run.run.data.max_length))
        available_seconds = count_seconds()
        budget = _fit_budget(
            full_run.run,
            minutes,
            available_seconds,
            seconds,
            corpus_recipe.validation_tokens(size, full_run),
            full_run.typical_length,
            is_size_fixed,
        )
        if not budget.is_time_limited:
            return corpus_recipe.make_run(size, budget)
        epochs = budget.steps * budget.step_tokens / corpus_recipe.epoch_tokens(size)
        if epochs >= MIN_EPOCHS or size is sizes[-1] or _sees_enough(corpus_recipe, full_run.run, budget):
            few_epochs = size.epochs / 2 if corpus_recipe.recipe.is_labeled else FEW_EPOCHS
            size = replace(size, dropout=min(size.dropout, 0.1)) if epochs < few_epochs else size
            auto_run = corpus_recipe.make_run(size, budget)
            if epochs >= 1:
                return auto_run
            warning = _warn_of_few_epochs(corpus_recipe, auto_run, epochs, minutes)
            return replace(auto_run, reasons=(*auto_run.reasons, warning))
    raise AssertionError("the last size is always taken")  # pragma: no cover


def _sees_enough(corpus_recipe: CorpusRecipe, run: RunConfig, budget: Budget) -> bool:
    """Whether part of a large corpus gives the model enough text in the time."""
    from regard.store.size_check import count_parameters  # imports torch: only when needed

    tokens = budget.steps * budget.step_tokens
    return not corpus_recipe.recipe.is_labeled and tokens >= MIN_TOKENS_PER_PARAMETER * count_parameters(run.model)


def _warn_of_few_epochs(corpus_recipe: CorpusRecipe, auto_run: AutoRun, epochs: float, minutes: float) -> str:
    """Return a warning that the run sees only part of the corpus, and suggest a smaller model that sees all of it."""
    from regard.training.autotune import count_flops  # imports torch: only when needed

    def flops_per_token(run: RunConfig) -> float:
        return count_flops(run, auto_run.typical_length) / run.data.batch_tokens

    flops = flops_per_token(auto_run.run)
    seen = f"Warning: in {describe_minutes(minutes)} the run sees about {epochs:.0%} of the corpus"
    for size in corpus_recipe.smaller_sizes:
        smaller_epochs = epochs * flops / flops_per_token(corpus_recipe.make_run(size).run)
        if smaller_epochs >= max(1.0, 1.2 * epochs):
            return f"{seen}; --preset {size.preset} would make about {smaller_epochs:.1f} epochs."
    needed = round_digits(minutes / epochs) + 1
    no_smaller = ", and no smaller preset would see all of it" if corpus_recipe.smaller_sizes else ""
    return f"{seen}{no_smaller}; one epoch takes about {needed:,} minutes."


def _fit_budget(
    run: RunConfig,
    minutes: float,
    available_seconds: float,
    seconds_per_step: float,
    validation_tokens: float,
    typical_length: int,
    is_size_fixed: bool,
) -> Budget:
    """Fit steps and validations into the time, with at most the recipe's number of steps.

    Validations get a share of the time, and use a sample if that is too short. If few steps fit, each gets fewer
    tokens, unless the user set `step_tokens`: more steps train better.
    """
    full_steps, step_tokens = run.train.steps, run.train.step_tokens
    total_seconds, token_seconds = 60 * minutes, seconds_per_step / step_tokens
    validations = int(min(FEW_VALIDATIONS, max(MIN_VALIDATIONS, 2 * minutes)))
    share = min(MAX_VALIDATION_SHARE, MAX_OTHER_SHARE - (total_seconds - available_seconds) / total_seconds)
    validation_seconds = max(MIN_VALIDATION_SHARE, share) * total_seconds
    tokens = validation_seconds / validations / token_seconds  # training tokens that take as long as one validation
    scored_tokens = 3 * (validation_tokens - run.validation.sentences * typical_length)
    max_sentences = min(MAX_SENTENCES, round(50 * max(1, minutes)))
    if run.validation.sentences:  # half of the tokens; an untrained model generates more than twice the usual length
        tokens /= 2
        max_sentences = min(max_sentences, max(MIN_SENTENCES, int(tokens / (2 * typical_length + 50))))
    max_tokens = round_digits(3 * tokens) if 3 * tokens < scored_tokens else None
    validation_seconds = min(validation_seconds, validations * token_seconds * validation_tokens)
    affordable_steps = (available_seconds - validation_seconds) / seconds_per_step
    if affordable_steps >= full_steps:
        return Budget(
            full_steps, step_tokens, minutes=minutes, max_steps=full_steps, validation_sentences=max_sentences
        )
    max_steps = full_steps
    while not is_size_fixed and step_tokens >= 4096 and affordable_steps < full_steps / 2:
        step_tokens, affordable_steps, max_steps = step_tokens // 2, affordable_steps * 2, max_steps * 2
    steps = max(1, int(affordable_steps))
    return Budget(
        steps,
        step_tokens,
        is_time_limited=True,
        minutes=minutes,
        max_steps=max_steps,
        validations=validations,
        validation_sentences=max_sentences,
        validation_max_tokens=max_tokens,
    )
