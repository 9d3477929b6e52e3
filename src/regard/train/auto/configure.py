"""Configure a run from a corpus, with a reason for every choice: `regard train` without a run file.

auto_run = configure(Lines(source="train.en", target="train.de"))
auto_run.run          # every setting, as run.toml holds it
auto_run.reasons      # one sentence for each choice
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log10
from typing import Any

from regard.base.errors import ConfigError, RegardError
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.model import AnyModel
from regard.config.run import (
    LABEL_TASKS,
    AnySource,
    AnyTokenizer,
    ByteBpe,
    CharacterLevel,
    Data,
    Distillation,
    Run,
    find_untrainable,
)
from regard.config.toml_file import SettingsFile, to_dict, with_changes
from regard.data.doctor.one_pass import TrainingCheck, TrainingVerdict
from regard.data.example import FileInfo
from regard.train.auto.corpus_stats import CorpusStats, SideStats, collect_stats, is_running_text
from regard.train.auto.hyperparameters import (
    FEW_VALIDATIONS,
    Budget,
    format_count,
    mark_overridden,
    round_digits,
    training_settings,
    validation_settings,
)
from regard.train.auto.recipes import (
    CHARACTER_LEVEL,
    Recipe,
    TaskKind,
    model_for,
    recipe_for_preset,
    recipe_for_size,
    smaller_recipes,
)

MIN_EXAMPLES = 50  # fewer examples cannot be split into training and validation
MIN_CHARACTERS = 2000  # the same for running text
BATCH_TOKENS = 4096  # tokens per batch
MAX_CHARACTER_VOCABULARY = 500  # distinct characters; with more, subwords are used
MIN_UPDATES, MAX_UPDATES = 200, 300_000
MIN_EPOCHS = 3  # if fewer fit into the available time, a smaller model is chosen
MANY_EPOCHS = 10  # with fewer, strong dropout needs another reason
FEW_EPOCHS = 20  # with fewer, even a small corpus is not overfitted; labels are, so half of theirs count
SHORT_SENTENCE = 25  # characters; shorter examples count for less
NORM_REASON = "Norms: pre-norm, which trains stably at any learning rate; with post-norm (2017) a short run may fail."
MAX_ENTRY_CHARACTERS = 12  # mean length up to which the examples are single words (a lexicon), not sentences
FALLBACK_VOCABULARY = 4000  # for a text with too many distinct characters for a character-level model
LEXICON_VOCABULARY = 512  # for a lexicon: letters and frequent letter groups
SPECIAL_TOKENS = 7  # in every vocabulary
PREPARATION_PASSES = 3  # learning the vocabulary and writing shards take about as long as reading the corpus so often
MIN_TRAINING_SHARE = 0.2  # of the minutes, if reading the corpus takes nearly all of them

UpdateTimer = Callable[[Run, int], float]  # (run, typical row length) -> seconds per update


@dataclass(frozen=True)
class AutoRun:
    """A configured run, the reasons for its settings, and the statistics of the corpus."""

    run: Run
    reasons: tuple[str, ...]
    stats: CorpusStats
    typical_length: int  # tokens per row, used to estimate costs
    file_infos: Mapping[str, FileInfo]  # size and sha256 of the corpus files: `fit` need not compute them again


def configure(
    source: AnySource | Sequence[AnySource],
    *,
    validation: Sequence[AnySource] = (),
    preset: str | None = None,
    minutes: float | None = None,
    updates: int | None = None,
    changes: Mapping[str, Any] | None = None,
    timer: UpdateTimer | None = None,
    started: float | None = None,
    review: Callable[[TrainingVerdict], None] | None = None,
) -> AutoRun:
    """Configure a run that suits a corpus.

    Args:
        source: The training corpus.
        validation: Validation corpora; without any, a part of the training corpus is held out.
        preset: Model preset; by default the recipe of the corpus size decides.
        minutes: Fit the run into this time. Without a preset, a smaller model is chosen if time is short.
        updates: Number of updates; excludes `minutes`.
        changes: Settings that override every choice, {"a.b": value}.
        timer: Measures the seconds of an update; default `measure_update`.
        started: When the command began (`time.perf_counter()`); `minutes` count from there. Default: now.
        review: Called with the corpus doctor's verdict before settings are chosen; it may raise an error. Without it,
            the doctor is not asked.

    Raises:
        RegardError: If the corpus is too small or arguments contradict each other.
    """
    if preset is not None:
        codec.preset(preset)  # reports an unknown preset before the corpus is read
    if faults := list(find_untrainable(with_changes({}, changes or {}).get("model", {}))):
        raise ConfigError(faults, where="the settings that override automatic choices")
    if minutes is not None and not 0 < minutes < inf:
        raise RegardError(f"The minutes must be more than 0 and finite, got {minutes:g}.", fix="Give at least 1.")
    if updates is not None:
        changes = {**(changes or {}), "train.updates": updates}
    if minutes is not None and "train.updates" in (changes or {}):
        raise RegardError("Both minutes and a number of updates were given.", fix="Give one of the two.")
    sources = tuple(source) if isinstance(source, Sequence) else (source,)
    reading_started = time.perf_counter()
    check = None if review is None else TrainingCheck(sources, validation)
    stats = collect_stats(sources, None if check is None else check.add)
    reading_seconds = time.perf_counter() - reading_started
    corpus_plan = CorpusPlan(sources, tuple(validation), stats, dict(changes or {}), preset, check)
    if check is not None and review is not None:
        validation_stats = corpus_plan.validation_stats  # reads the validation data, which the doctor compares
        if validation_stats is None or validation_stats.content == stats.content:  # otherwise an error follows
            review(check.judge())
    if minutes is None:
        return corpus_plan.make_run(corpus_plan.recipe)

    def count_seconds() -> float:
        """Return the seconds for training: without those that have passed, and those of vocabulary and shards."""
        passed = 0.0 if started is None else time.perf_counter() - started + PREPARATION_PASSES * reading_seconds
        return max(60 * minutes - passed, MIN_TRAINING_SHARE * 60 * minutes)

    return _configure_for_minutes(corpus_plan, minutes, count_seconds, timer or measure_update)


def _configure_for_minutes(
    corpus_plan: "CorpusPlan", minutes: float, count_seconds: Callable[[], float], timer: UpdateTimer
) -> AutoRun:
    """Choose the largest model that makes enough epochs in the time, with dropout for that many epochs."""
    recipes = (
        [corpus_plan.recipe] if corpus_plan.preset is not None else smaller_recipes(corpus_plan.task, corpus_plan.size)
    )
    for recipe in recipes:
        full_run = corpus_plan.make_run(recipe)
        is_size_fixed = not {"train.update_tokens", "data.batch_tokens"}.isdisjoint(corpus_plan.changes)
        seconds = timer(full_run.run, min(full_run.typical_length, full_run.run.data.max_length))
        validation_seconds = (
            FEW_VALIDATIONS
            * seconds
            * corpus_plan.validation_tokens(recipe, full_run)
            / full_run.run.train.update_tokens
        )
        budget = _fit_budget(full_run.run, minutes, count_seconds(), seconds, validation_seconds, is_size_fixed)
        if not budget.is_time_limited:
            return corpus_plan.make_run(recipe, budget)
        epochs = budget.updates * budget.update_tokens / corpus_plan.epoch_tokens(recipe)
        if epochs >= MIN_EPOCHS or recipe is recipes[-1]:
            few_epochs = recipe.epochs / 2 if corpus_plan.task in LABEL_TASKS else FEW_EPOCHS
            recipe = replace(recipe, dropout=min(recipe.dropout, 0.1)) if epochs < few_epochs else recipe
            auto_run = corpus_plan.make_run(recipe, budget)
            if epochs >= 1:
                return auto_run
            warning = _warn_of_few_epochs(corpus_plan, auto_run, epochs, minutes)
            return replace(auto_run, reasons=(*auto_run.reasons, warning))
    raise AssertionError("the last recipe is always taken")  # pragma: no cover


def _warn_of_few_epochs(corpus_plan: "CorpusPlan", auto_run: AutoRun, epochs: float, minutes: float) -> str:
    """Say that the run sees only a part of the corpus, and which smaller model would see all of it."""
    from regard.train.autotune import count_flops  # imports torch: only when needed

    def flops_per_token(run: Run) -> float:
        return count_flops(run, auto_run.typical_length) / run.data.batch_tokens

    flops = flops_per_token(auto_run.run)
    seen = f"Warning: in {_describe_minutes(minutes)} the run sees about {epochs:.0%} of the corpus"
    for recipe in smaller_recipes(corpus_plan.task, corpus_plan.size):
        smaller_epochs = epochs * flops / flops_per_token(corpus_plan.make_run(recipe).run)
        if smaller_epochs >= max(1.0, 1.2 * epochs):
            return f"{seen}; --preset {recipe.preset} would make about {smaller_epochs:.1f} epochs."
    needed = round_digits(minutes / epochs) + 1
    return f"{seen}, and no smaller preset would see all of it; one epoch takes about {needed:,} minutes."


def measure_update(run: Run, length: int) -> float:
    """Measure the seconds per update with a few trial steps."""
    from regard.train.autotune import seconds_per_update  # imports torch: only when needed

    return seconds_per_update(run, length)


@dataclass(frozen=True)
class CorpusPlan:
    """Corpus statistics and the user's requests, from which a run is made."""

    sources: tuple[AnySource, ...]
    validation: tuple[AnySource, ...]
    stats: CorpusStats
    changes: Mapping[str, Any]
    preset: str | None
    check: TrainingCheck | None = None

    @property
    def task(self) -> TaskKind:
        """The task, from the content of the corpus and, for running text, from the preset."""
        tasks: dict[str, TaskKind] = {"pairs": "translate", "text": "continue", "labels": "classify", "tags": "tag"}
        task = tasks[self.stats.content]
        return model_for(task, self.preset)[0] if self.preset is not None else task

    @property
    def size(self) -> int:
        """The corpus size for the recipes; short examples count for less than sentences."""
        if self.stats.content == "text":
            return self.stats.source.characters
        return round(self.stats.examples * min(1.0, self.stats.mean_length / SHORT_SENTENCE))

    @property
    def recipe(self) -> Recipe:
        """The recipe for this corpus and preset."""
        recipe = recipe_for_size(self.task, self.size)
        recipe = recipe_for_preset(self.task, self.preset or recipe.preset, self.size)
        if self.distillation is None:
            return recipe
        # With several translations of each source a model overfits later: dropout and epochs of as many pairs.
        originals = self.distillation.mode == "add"
        enlarged = recipe_for_size(self.task, self.size * (self.distillation.translations_per_source + originals))
        return replace(recipe, dropout=enlarged.dropout, epochs=enlarged.epochs)

    @cached_property
    def distillation(self) -> Distillation | None:
        """The requested distillation; None without teachers, or if its settings are invalid (the parser reports it)."""
        changes = {name: value for name, value in self.changes.items() if name.split(".")[0] == "distillation"}
        with suppress(ConfigError):
            table = with_changes({}, changes)
            return SettingsFile[Distillation](Distillation).parse(table["distillation"]) if table else None
        return None

    def make_run(self, recipe: Recipe, budget: Budget | None = None) -> AutoRun:
        """Make the run of a recipe; `budget` is given if the time is."""
        reasons: list[str] = []
        tokenizer, vocabulary_size = self._choose_tokenizer(recipe, reasons)
        model = self._choose_model(recipe, vocabulary_size)
        reasons.append(_explain_dropout(recipe))
        if self.task == "translate":
            reasons.append(NORM_REASON)
        if self.distillation is not None:
            reasons.append(_explain_distillation(self.distillation))
        data = self._choose_data(recipe, model, reasons)
        typical_length = self.typical_length(recipe, data.max_length)
        epoch_tokens = self.epoch_tokens(recipe)
        requested_updates = self._requested("train.updates")
        budget = budget or self._choose_budget(recipe, epoch_tokens)
        reasons.append(_explain_updates(budget, self.recipe.epochs, epoch_tokens, requested_updates is not None))
        validation_pairs = (
            self.validation_stats.examples
            if self.validation_stats is not None
            else round(data.held_out * self.stats.examples)
        )
        tables = {
            "data": data.model_copy(update={"batch_tokens": self._choose_batch_tokens(data, budget)}),
            "tokenizer": tokenizer,
            "model": model,
            "train": training_settings(self.task, recipe, budget, self._prefers_bfloat16, reasons),
            "validation": validation_settings(self.task, budget, validation_pairs, self.stats.labels, reasons),
        }
        run = codec.RUN_FILES.parse({name: to_dict(table) for name, table in tables.items()}, self.changes)
        reasons.insert(0, self._explain_preset(recipe, run.model))
        validation_infos = self.validation_stats.file_infos if self.validation_stats is not None else {}
        file_infos = {**self.stats.file_infos, **validation_infos}
        return AutoRun(run, mark_overridden(reasons, self.changes), self.stats, typical_length, file_infos)

    def _choose_budget(self, recipe: Recipe, epoch_tokens: float) -> Budget:
        """Choose updates and tokens per update from the recipe, unless the user requested them."""
        update_tokens = self._requested("train.update_tokens") or recipe.update_tokens
        updates = self._requested("train.updates")
        return Budget(
            updates or min(MAX_UPDATES, max(MIN_UPDATES, round_digits(recipe.epochs * epoch_tokens / update_tokens))),
            update_tokens,
        )

    def _requested(self, setting: str) -> int | None:
        """Return a positive number that the user requested; invalid values are reported later by the parser."""
        value = self.changes.get(setting)
        return value if isinstance(value, int) and value > 0 else None

    def _choose_batch_tokens(self, data: Data, budget: Budget) -> int:
        """Choose tokens per batch. An update over sentences has at least two batches, so that it mixes lengths."""
        share = budget.update_tokens if self.task == "continue" else budget.update_tokens // 2
        return min(data.batch_tokens, max(data.max_length, share))

    def typical_length(self, recipe: Recipe, max_length: int) -> int:
        """Estimate tokens per row: the longer side of a pair, both sides of a labelled text, or a full row of text."""
        if self.task == "continue" or is_running_text(self.stats, self.sources):  # documents are split into full rows
            return max_length
        sides = [
            _estimate_tokens(side, self.vocabulary_size(recipe)) for side in (self.stats.source, self.stats.target)
        ]
        tokens = (sum if self.stats.content == "labels" else max)(sides) / self.stats.examples
        return min(max_length, max(4, round(tokens) + 1))

    def vocabulary_size(self, recipe: Recipe) -> int:
        """Choose the vocabulary size; CHARACTER_LEVEL if every character is a token."""
        stats = self.stats
        if requested := self._requested("tokenizer.vocabulary"):
            return requested
        kind = self.changes.get("tokenizer.kind", "character" if recipe.vocabulary == CHARACTER_LEVEL else "")
        if kind == "character" and len(stats.source.alphabet | stats.target.alphabet) <= MAX_CHARACTER_VOCABULARY:
            return CHARACTER_LEVEL
        if stats.content == "pairs" and stats.mean_length <= MAX_ENTRY_CHARACTERS:
            return LEXICON_VOCABULARY
        return min(recipe.vocabulary or FALLBACK_VOCABULARY, self._max_useful_vocabulary)

    @property
    def _max_useful_vocabulary(self) -> int:
        return max(512, 2 * self.stats.distinct_count)

    def epoch_tokens(self, recipe: Recipe) -> float:
        """Estimate the tokens of one epoch, padding and the teachers' translations included."""
        pairs_per_source = 1.0 if self.distillation is None else self.distillation.pairs_per_source
        return pairs_per_source * self.corpus_tokens(recipe)

    def corpus_tokens(self, recipe: Recipe) -> float:
        """Estimate the tokens of the corpus, padding included."""
        if self.task == "continue" or is_running_text(self.stats, self.sources):
            return _estimate_tokens(self.stats.source, self.vocabulary_size(recipe)) * (
                1.0 if self.task == "continue" else 1.1
            )
        return 1.1 * self.typical_length(recipe, self._requested("data.max_length") or 512) * self.stats.examples

    def validation_tokens(self, recipe: Recipe, full_run: "AutoRun") -> float:
        """Estimate the cost of a validation, in training tokens.

        A forward pass costs a third of a training step; generating a token costs about one training token.
        """
        share = full_run.run.data.held_out
        if self.validation_stats is not None:
            share = self.validation_stats.source.characters / max(1, self.stats.source.characters)
        return share * self.corpus_tokens(recipe) / 3 + full_run.run.validation.sentences * full_run.typical_length

    @cached_property
    def validation_stats(self) -> CorpusStats | None:
        """Statistics of the user's validation corpus, if there is one."""
        if not self.validation:
            return None
        return collect_stats(self.validation, None if self.check is None else self.check.add_validation)

    @cached_property
    def _prefers_bfloat16(self) -> bool:
        """Whether the device of the run is faster in bfloat16."""
        from regard.train.device import prefers_bfloat16  # imports torch: only when needed

        table = self.changes.get("device")
        requested = table.get("name") if isinstance(table, Mapping) else None
        return prefers_bfloat16(str(self.changes.get("device.name", requested or "auto")))

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[AnyTokenizer, int]:
        """Choose the tokenizer and its vocabulary size."""
        stats, vocabulary_size = self.stats, self.vocabulary_size(recipe)
        if vocabulary_size == CHARACTER_LEVEL:
            character_count = len(stats.source.alphabet | stats.target.alphabet)
            reasons.append(f"Vocabulary: the {character_count} distinct characters of the text.")
            return CharacterLevel(), character_count + SPECIAL_TOKENS
        sides = ", shared by both sides" if stats.content == "pairs" else ""
        if stats.content == "pairs" and stats.mean_length <= MAX_ENTRY_CHARACTERS:
            reasons.append(
                f"Vocabulary: {vocabulary_size} tokens of byte-level BPE{sides}: the examples are words "
                f"({stats.mean_length:.0f} characters), and larger subwords would hide their spelling."
            )
        else:
            only = "only " if vocabulary_size == self._max_useful_vocabulary else ""
            reasons.append(
                f"Vocabulary: {vocabulary_size:,} tokens of byte-level BPE (no unknown tokens){sides}; "
                f"the text has {only}{stats.distinct_count:,} distinct words."
            )
        return ByteBpe(vocabulary=vocabulary_size), vocabulary_size

    def _explain_preset(self, recipe: Recipe, model: AnyModel) -> str:
        from regard.models.cost import cost  # imports torch: only when needed

        parameters = cost(model, batch_size=1, source=1, target=1).parameters.total()
        is_short = self.stats.content != "text" and self.stats.mean_length < SHORT_SENTENCE
        size_text = _describe_size(self.stats) + f" of {self.stats.mean_length:.0f} characters" * is_short
        summary = f"{size_text}: preset {recipe.preset} ({format_count(parameters)} parameters)"
        default_recipe = recipe_for_size(self.task, self.size)
        if default_recipe.preset == recipe.preset:
            return f"{summary}, because {default_recipe.reason}."
        if self.preset is None:
            return f"{summary}, because there is no time for {default_recipe.preset}, the default for this corpus."
        return f"{summary}, as you requested; the default for this corpus is {default_recipe.preset}."

    def _choose_model(self, recipe: Recipe, vocabulary_size: int) -> AnyModel:
        """Adapt the preset to the vocabulary, dropout, labels and languages of this corpus."""
        task, model = model_for(self.task, recipe.preset)
        changes: dict[str, Any] = {"task": task, "languages": list(self.stats.languages)}
        for stack in ("encoder", "decoder"):
            if hasattr(model, stack):
                changes |= {
                    f"{stack}.dropout.{dropout_site}": recipe.dropout for dropout_site in ("embedding", "sublayer")
                }
                if task == "translate":
                    changes |= {f"{stack}.placement": "pre", f"{stack}.final_norm": True}
        for table in ("source", "target", "tokens"):
            if getattr(getattr(model, table, None), "kind", "") == "tokens":
                changes[f"{table}.vocabulary"] = vocabulary_size
        if task in ("classify", "tag"):
            labels = sorted(self.stats.labels)
            if len(labels) < 2:
                what = f"Every example has the same label, {labels[0]!r}."
                raise RegardError(what, fix="Give examples with at least two labels.")
            kind = {"kind": "classes", "pool": "mean"} if task == "classify" else {"kind": "tags"}
            changes["head"] = {**kind, "labels": labels}
        return codec.preset(recipe.preset, changes)

    def _choose_data(self, recipe: Recipe, model: AnyModel, reasons: list[str]) -> Data:
        max_length = _choose_max_length(self.task, model)
        batch_tokens = max(max_length, min(BATCH_TOKENS, recipe.update_tokens))
        data = Data(train=self.sources, validation=self.validation, batch_tokens=batch_tokens, max_length=max_length)
        if self.validation_stats is not None:
            validation_stats = self.validation_stats
            if validation_stats.content != self.stats.content:
                kinds = f"{validation_stats.content}, and the training corpus holds {self.stats.content}"
                what = f"The validation corpus holds {kinds}."
                raise RegardError(what, fix="Give validation files of the same kind.")
            reasons.append(f"Validation data: {_describe_size(validation_stats)} of your own.")
            return data
        share = self._choose_held_out()
        if is_running_text(self.stats, self.sources):
            amount, method = f"{format_count(share * self.stats.source.characters)} characters", "the end of the text"
        else:
            amount, method = (
                f"{format_count(share * self.stats.examples)} {_unit_name(self.stats)}s",
                "chosen at random; equal sources stay in one part",
            )
        reasons.append(f"Validation data: about {amount} ({share:.2%}) are held out, {method}.")
        return data.model_copy(update={"held_out": share})

    def _choose_held_out(self) -> float:
        """Choose the held-out share: enough to compare models, at most a fifth."""
        stats = self.stats
        if is_running_text(stats, self.sources):
            if stats.source.characters < MIN_CHARACTERS:
                what = f"The text has {stats.source.characters:,} characters, too few to hold some out for validation."
                raise RegardError(what, fix=f"Give at least {MIN_CHARACTERS:,}, better a hundred times as many.")
            return _held_out_fraction(500_000, stats.source.characters, 0.1)
        if stats.examples < MIN_EXAMPLES:
            verb = "is" if stats.examples == 1 else "are"
            raise RegardError(
                f"{_count_examples(stats)} {verb} too few to hold some out for validation.",
                fix=f"Give at least {MIN_EXAMPLES}, or validation data: {_validation_options(stats)}.",
            )
        target_examples = 1000 if stats.examples < 1_000_000 else 2000
        return _held_out_fraction(target_examples, stats.examples, 0.1 if stats.examples >= 200 else 0.2)


def _validation_options(stats: CorpusStats) -> str:
    pairs = "--validation-source and --validation-target, or " if stats.content == "pairs" else ""
    return f"{pairs}--validation"


def _explain_distillation(settings: Distillation) -> str:
    translators = {"each": "one by each teacher", "ensemble": "by the ensemble of the teachers"}[settings.combine]
    translators = translators if len(settings.teachers) > 1 else "by the teacher"
    count = pluralize(settings.translations_per_source, "translation")
    translations = f"{count} of every training source, {translators}"
    originals = f"the pairs, each {settings.original_weight:g} times per epoch, and " if settings.mode == "add" else ""
    search = f"beam size {settings.beam_size}, length penalty {settings.length_penalty:g}"
    return f"Training data: {originals}{translations} ({search}; made before the first update)."


def _explain_dropout(recipe: Recipe) -> str:
    if recipe.dropout > 0.1 and recipe.epochs < MANY_EPOCHS:
        return f"Dropout: {recipe.dropout:g}, because a model overfits so few examples within a few epochs."
    if recipe.dropout > 0.1:
        return f"Dropout: {recipe.dropout:g}, because the run makes many epochs over little text."
    if recipe.dropout:
        return f"Dropout: {recipe.dropout:g}, because there is some risk of overfitting."
    return "Dropout: none, because a model of this size does not overfit so much text."


def _explain_updates(budget: Budget, epochs: int, epoch_tokens: float, is_requested: bool) -> str:
    epochs_made = budget.updates * budget.update_tokens / epoch_tokens
    epochs_text = format_count(epochs_made) if epochs_made >= 10 else f"{epochs_made:.1f}"
    amount = f"Updates: {budget.updates:,} of {budget.update_tokens:,} tokens, about {epochs_text} epochs"
    if is_requested:
        return f"{amount}, as you requested."
    if budget.minutes is not None and budget.is_time_limited:
        limit = f"as many as fit into {_describe_minutes(budget.minutes)} here"
        return f"{amount}, {limit}; the run adapts them to its speed. {epochs} epochs would be better."
    if budget.minutes is not None:
        return f"{amount}: no more are useful for this corpus, and they fit into {_describe_minutes(budget.minutes)}."
    return f"{amount}; small corpora need many epochs." if epochs >= 100 else f"{amount}."


def _describe_minutes(minutes: float) -> str:
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


def _fit_budget(
    run: Run,
    minutes: float,
    available_seconds: float,
    seconds_per_update: float,
    validation_seconds: float,
    is_size_fixed: bool,
) -> Budget:
    """Fit the updates into the time beside validation; at most as many as suit the corpus.

    If few updates fit, each gets fewer tokens, unless the user fixed this size: more updates train better.
    """
    full_updates, update_tokens = run.train.updates, run.train.update_tokens
    affordable_updates = max(available_seconds - validation_seconds, available_seconds / 2) / seconds_per_update
    if affordable_updates >= full_updates:
        return Budget(full_updates, update_tokens, minutes=minutes, max_updates=full_updates)
    max_updates = full_updates
    while not is_size_fixed and update_tokens >= 4096 and affordable_updates < full_updates / 2:
        update_tokens, affordable_updates, max_updates = update_tokens // 2, affordable_updates * 2, max_updates * 2
    updates = max(1, int(affordable_updates))
    return Budget(updates, update_tokens, is_time_limited=True, minutes=minutes, max_updates=max_updates)


def _held_out_fraction(target: int, total: int, max_share: float) -> float:
    share = min(max_share, target / total)
    return round(share, 2 - int(log10(share)))


def _choose_max_length(task: TaskKind, model: AnyModel) -> int:
    """Choose the maximum tokens per row: for running text the context length; at most the learned positions."""
    stack = model.encoder if model.family == "encoder_only" else model.decoder
    context_length = 256 if model.width < 256 else 512 if model.width < 768 else 1024
    max_length = context_length if task == "continue" else 512
    return min(max_length, stack.position.length) if stack.position.kind == "learned" else max_length


def _estimate_tokens(side: SideStats, vocabulary_size: int) -> float:
    return side.characters if vocabulary_size == CHARACTER_LEVEL else side.bytes / bytes_per_token(vocabulary_size)


def bytes_per_token(vocabulary_size: int) -> float:
    """Estimate bytes per token: fitted to English and German with vocabularies of 1,000 to 32,000."""
    return max(1.0, 0.66 * log(vocabulary_size) - 1.8)


def _describe_size(stats: CorpusStats) -> str:
    if stats.content == "text":
        return f"{format_count(stats.source.characters)} characters"
    return _count_examples(stats)


def _count_examples(stats: CorpusStats) -> str:
    return pluralize(stats.examples, _unit_name(stats))


def _unit_name(stats: CorpusStats) -> str:
    """Return the name of one example, in the singular."""
    names = {"pairs": "pair", "labels": "labelled text", "tags": "tagged sentence", "text": "line"}
    return names[stats.content]
