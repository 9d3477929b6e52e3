"""Fit a run into the minutes that the user gives: model size, number of steps, tokens per step.

`regard.training.time_budget` adapts the number of steps later, when the run knows its speed.
"""

from collections.abc import Callable
from dataclasses import replace

from regard.config.run import (
    LABEL_TASKS,
    RunConfig,
)
from regard.training.recipes.hyperparameters import (
    FEW_VALIDATIONS,
    MAX_SENTENCES,
    Budget,
    round_digits,
)
from regard.training.recipes.text import AutoRun, CorpusRecipe, describe_minutes

MIN_EPOCHS = 3  # if fewer fit into the available time, a smaller model is chosen,
# unless it sees as many tokens as this for each parameter: measured in docs/decisions/0003-training.md
MIN_TOKENS_PER_PARAMETER = 2
FEW_EPOCHS = 20  # with fewer, even a small corpus is not overfitted; labels are, so half of theirs count
MIN_VALIDATIONS, MIN_SENTENCES = 3, 20  # per run, and per validation to translate
MIN_VALIDATION_SHARE, MAX_VALIDATION_SHARE = 0.03, 0.1  # of the minutes for all validations,
MAX_OTHER_SHARE = 0.25  # and for them and the preparation together: at least 70 % are for steps
StepTimer = Callable[[RunConfig, int], float]  # (run, typical row length) -> seconds per step


def configure_for_minutes(
    corpus_plan: CorpusRecipe, minutes: float, count_seconds: Callable[[], float], timer: StepTimer
) -> AutoRun:
    """Choose the largest model that makes enough epochs in the time, with dropout for that many epochs."""
    recipes = [corpus_plan.recipe] if corpus_plan.preset is not None else corpus_plan.smaller_recipes
    for recipe in recipes:
        full_run = corpus_plan.make_run(recipe)
        is_size_fixed = not {"train.step_tokens", "data.batch_tokens"}.isdisjoint(corpus_plan.changes)
        seconds = timer(full_run.run, min(full_run.typical_length, full_run.run.data.max_length))
        available_seconds = count_seconds()
        budget = _fit_budget(
            full_run.run,
            minutes,
            available_seconds,
            seconds,
            corpus_plan.validation_tokens(recipe, full_run),
            full_run.typical_length,
            is_size_fixed,
        )
        if not budget.is_time_limited:
            return corpus_plan.make_run(recipe, budget)
        epochs = budget.steps * budget.step_tokens / corpus_plan.epoch_tokens(recipe)
        if epochs >= MIN_EPOCHS or recipe is recipes[-1] or _sees_enough(corpus_plan, full_run.run, budget):
            few_epochs = recipe.epochs / 2 if corpus_plan.task in LABEL_TASKS else FEW_EPOCHS
            recipe = replace(recipe, dropout=min(recipe.dropout, 0.1)) if epochs < few_epochs else recipe
            auto_run = corpus_plan.make_run(recipe, budget)
            if epochs >= 1:
                return auto_run
            warning = _warn_of_few_epochs(corpus_plan, auto_run, epochs, minutes)
            return replace(auto_run, reasons=(*auto_run.reasons, warning))
    raise AssertionError("the last recipe is always taken")  # pragma: no cover


def _sees_enough(corpus_plan: CorpusRecipe, run: RunConfig, budget: Budget) -> bool:
    """Whether a large corpus gives the model enough text in the time, although it sees a part of it only."""
    from regard.store.size_check import count_parameters  # imports torch: only when needed

    tokens = budget.steps * budget.step_tokens
    return corpus_plan.task not in LABEL_TASKS and tokens >= MIN_TOKENS_PER_PARAMETER * count_parameters(run.model)


def _warn_of_few_epochs(corpus_plan: CorpusRecipe, auto_run: AutoRun, epochs: float, minutes: float) -> str:
    """Say that the run sees only a part of the corpus, and which smaller model would see all of it."""
    from regard.training.autotune import count_flops  # imports torch: only when needed

    def flops_per_token(run: RunConfig) -> float:
        return count_flops(run, auto_run.typical_length) / run.data.batch_tokens

    flops = flops_per_token(auto_run.run)
    seen = f"Warning: in {describe_minutes(minutes)} the run sees about {epochs:.0%} of the corpus"
    for recipe in corpus_plan.smaller_recipes:
        smaller_epochs = epochs * flops / flops_per_token(corpus_plan.make_run(recipe).run)
        if smaller_epochs >= max(1.0, 1.2 * epochs):
            return f"{seen}; --preset {recipe.preset} would make about {smaller_epochs:.1f} epochs."
    needed = round_digits(minutes / epochs) + 1
    no_smaller = ", and no smaller preset would see all of it" if corpus_plan.smaller_recipes else ""
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
    """Fit steps and validations into the time; at most as many steps as suit the corpus.

    Validations get a share of the time, and score a sample if that is too little. If few steps fit, each gets fewer
    tokens, unless the user fixed this size: more steps train better.
    """
    full_steps, step_tokens = run.train.steps, run.train.step_tokens
    total_seconds, token_seconds = 60 * minutes, seconds_per_step / step_tokens
    validations = int(min(FEW_VALIDATIONS, max(MIN_VALIDATIONS, 2 * minutes)))
    share = min(MAX_VALIDATION_SHARE, MAX_OTHER_SHARE - (total_seconds - available_seconds) / total_seconds)
    validation_seconds = max(MIN_VALIDATION_SHARE, share) * total_seconds
    tokens = validation_seconds / validations / token_seconds  # training tokens that take as long as one validation
    scored_tokens = 3 * (validation_tokens - run.validation.sentences * typical_length)
    max_sentences = min(MAX_SENTENCES, round(50 * max(1, minutes)))
    if run.validation.sentences:  # half of the tokens; an untrained model stops late: twice the length and some more
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
