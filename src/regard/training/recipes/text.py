"""Make a run from the statistics of a corpus and the user's requests, with a reason for every choice."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, log10
from typing import Any

from regard.base.errors import ConfigError, RegardError
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.parts import SettingsModel
from regard.config.run import ORIGINAL_WEIGHT, DataConfig, DistillationConfig, MaskingConfig, RunConfig
from regard.config.sources import AnySourceConfig
from regard.config.tokenizers import ByteBpeConfig, CharacterLevelConfig, RunTokenizerConfig
from regard.config.toml_file import SettingsFile, to_dict, with_changes
from regard.config.training import TrainingConfig
from regard.data.doctor.one_pass import TrainingCheck
from regard.data.example import FileInfo
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.recipes.corpus_stats import CorpusStats, SideStats, collect_stats, is_running_text
from regard.training.recipes.hyperparameters import (
    Budget,
    format_count,
    mark_overridden,
    round_digits,
    training_settings,
    validation_settings,
)
from regard.training.recipes.sizes import (
    CHARACTER_LEVEL,
    Recipe,
    TaskKind,
    model_for,
    recipe_for_preset,
    recipe_for_size,
    smaller_recipes,
)
from regard.training.vocabularies import count_prepared_validation, read_prepared_tokenizers

MIN_EXAMPLES = 50  # fewer examples cannot be split into training and validation
MIN_CHARACTERS = 2000  # the same for running text
BATCH_TOKENS = 4096  # tokens per batch
MAX_CHARACTER_VOCABULARY = 500  # distinct characters; with more, subwords are used
MIN_STEPS, MAX_STEPS = 200, 300_000
MANY_EPOCHS = 10  # with fewer, strong dropout needs another reason
SHORT_SENTENCE = 25  # characters; shorter examples count for less
NORM_REASON = "Norms: pre-norm, which trains stably at any learning rate; with post-norm (2017) a short run may fail."
EMBED_REASON = (
    "Task: an encoder on pairs learns sentence embeddings: partners get similar vectors, other texts of a batch do not."
)
MAX_ENTRY_CHARACTERS = 12  # mean length up to which the examples are single words (a lexicon), not sentences
FALLBACK_VOCABULARY = 4000  # for a text with too many distinct characters for a character-level model
LEXICON_VOCABULARY = 512  # for a lexicon: letters and frequent letter groups
SPECIAL_TOKENS = 7  # in every vocabulary


@dataclass(frozen=True)
class AutoRun:
    """A configured run, the reasons for its settings, and the statistics of the corpus."""

    run: RunConfig
    reasons: tuple[str, ...]
    stats: CorpusStats
    typical_length: int  # tokens per row, used to estimate costs
    file_infos: Mapping[str, FileInfo]  # size and sha256 of the corpus files: `fit` need not compute them again


@dataclass(frozen=True)
class CorpusRecipe:
    """Corpus statistics and the user's requests, from which a run is made."""

    sources: tuple[AnySourceConfig, ...]
    validation: tuple[AnySourceConfig, ...]
    stats: CorpusStats
    changes: Mapping[str, Any]
    preset: str | None
    check: TrainingCheck | None = None

    @property
    def task(self) -> TaskKind:
        """The task, from the content of the corpus; an encoder fills gaps of running text and embeds pairs."""
        tasks: dict[str, TaskKind] = {"pairs": "translate", "text": "causal_lm", "labels": "classify", "tags": "tag"}
        task = tasks[self.stats.content]
        if task == "translate" and self.changes.get("model.task") == "embed":
            task = "embed"
        return model_for(task, self.preset)[0] if self.preset is not None else task

    @property
    def packs_sequences(self) -> bool:
        """Whether texts are laid end to end in full rows."""
        return self.task == "causal_lm" and self.stats.content == "text"

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
        return self._distil(recipe_for_preset(self.task, self.preset or recipe.preset, self.size))

    @property
    def smaller_recipes(self) -> list[Recipe]:
        """The recipes of this corpus size and of smaller presets, largest first."""
        return [self._distil(recipe) for recipe in smaller_recipes(self.task, self.size)]

    def _distil(self, recipe: Recipe) -> Recipe:
        """With several translations of each source a model overfits later: dropout and epochs of as many pairs."""
        if self.distillation is None:
            return recipe
        originals = self.distillation.mode == "add"
        enlarged = recipe_for_size(self.task, self.size * (self.distillation.translations_per_source + originals))
        return replace(recipe, dropout=enlarged.dropout, epochs=enlarged.epochs)

    @cached_property
    def distillation(self) -> DistillationConfig | None:
        """The requested distillation; None without teachers, or if its settings are invalid (the parser reports it)."""
        changes = {name: value for name, value in self.changes.items() if name.split(".")[0] == "distillation"}
        with suppress(ConfigError):
            table = with_changes({}, changes)
            return SettingsFile[DistillationConfig](DistillationConfig).parse(table["distillation"]) if table else None
        return None

    def make_run(self, recipe: Recipe, budget: Budget | None = None) -> AutoRun:
        """Make the run of a recipe; `budget` is given if the time is."""
        reasons: list[str] = []
        tokenizer, vocabulary_size = self._choose_tokenizer(recipe, reasons)
        model = self._choose_model(recipe, vocabulary_size, reasons)
        if self.task == "embed":
            reasons.append(EMBED_REASON)
        if self.distillation is not None:
            reasons.append(_explain_distillation(self.distillation))
        data = self._choose_data(recipe, model, reasons)
        typical_length = self.typical_length(recipe, data.max_length)
        epoch_tokens = self.epoch_tokens(recipe)
        requested_steps = self._requested("train.steps")
        budget = budget or self._choose_budget(recipe, epoch_tokens)
        reasons.append(_explain_steps(budget, self.recipe.epochs, epoch_tokens, requested_steps is not None))
        validation_pairs = self._validation_examples
        if validation_pairs is None:
            validation_pairs = round(data.held_out * self.stats.examples)
        tables = {
            "data": data.model_copy(update={"batch_tokens": self._choose_batch_tokens(data, budget)}),
            "tokenizer": tokenizer,
            "model": model,
            "train": self._choose_training(recipe, budget, reasons),
            "validation": validation_settings(self.task, budget, validation_pairs, self.stats.labels, reasons),
            **self._further_tables(reasons),
        }
        run = codec.RUN_FILES.parse({name: to_dict(table) for name, table in tables.items()}, self.changes)
        reasons.insert(0, self._explain_preset(recipe, run.model))
        validation_infos = self.validation_stats.file_infos if self.validation_stats is not None else {}
        file_infos = {**self.stats.file_infos, **validation_infos}
        return AutoRun(run, mark_overridden(reasons, self.changes), self.stats, typical_length, file_infos)

    def _choose_training(self, recipe: Recipe, budget: Budget, reasons: list[str]) -> TrainingConfig:
        table = self.changes.get("train.optimizer")
        optimizer_kind = table.get("kind") if isinstance(table, dict) else self.changes.get("train.optimizer.kind")
        return training_settings(self.task, recipe, budget, self._prefers_bfloat16, reasons, optimizer_kind)

    def _further_tables(self, reasons: list[str]) -> dict[str, SettingsModel]:  # noqa: ARG002
        """Return tables of the run that only some plans have, and append their reasons."""
        return {}

    def _choose_budget(self, recipe: Recipe, epoch_tokens: float) -> Budget:
        """Choose steps and tokens per step from the recipe, unless the user requested them."""
        step_tokens = self._requested("train.step_tokens") or recipe.step_tokens
        steps = self._requested("train.steps")
        return Budget(
            steps or min(MAX_STEPS, max(MIN_STEPS, round_digits(recipe.epochs * epoch_tokens / step_tokens))),
            step_tokens,
        )

    def _requested(self, setting: str) -> int | None:
        """Return a positive number that the user requested; invalid values are reported later by the parser."""
        value = self.changes.get(setting)
        return value if isinstance(value, int) and value > 0 else None

    def _choose_batch_tokens(self, data: DataConfig, budget: Budget) -> int:
        """Choose tokens per batch. A step over sentences has at least two batches, so that it mixes lengths."""
        share = budget.step_tokens if self.packs_sequences or self.task == "embed" else budget.step_tokens // 2
        return min(data.batch_tokens, max(data.max_length, share))

    def typical_length(self, recipe: Recipe, max_length: int) -> int:
        """Estimate tokens per row: the longer side of a pair, both sides of a labeled text, or a full row of text."""
        if self.packs_sequences or is_running_text(self.stats, self.sources):  # documents are split into full rows
            return max_length
        sides = [
            _estimate_tokens(side, self.vocabulary_size(recipe)) for side in (self.stats.source, self.stats.target)
        ]
        is_one_row = self.stats.content == "labels" or self.task == "causal_lm"
        tokens = (sum if is_one_row else max)(sides) / self.stats.examples
        return min(max_length, max(4, round(tokens) + 1))

    def vocabulary_size(self, recipe: Recipe) -> int:
        """Choose the vocabulary size; CHARACTER_LEVEL if every character is a token."""
        stats = self.stats
        if self._prepared_tokenizers is not None:
            return self._prepared_tokenizers.source.size
        if requested := self._requested("tokenizer.vocabulary"):
            return requested
        kind = self.changes.get("tokenizer.kind", "character" if recipe.vocabulary == CHARACTER_LEVEL else "")
        if kind == "character" and len(stats.source.alphabet | stats.target.alphabet) <= MAX_CHARACTER_VOCABULARY:
            return CHARACTER_LEVEL
        if stats.content == "pairs" and stats.mean_length <= MAX_ENTRY_CHARACTERS:
            return LEXICON_VOCABULARY
        return min(recipe.vocabulary or FALLBACK_VOCABULARY, self._max_useful_vocabulary)

    @cached_property
    def _prepared_tokenizers(self) -> TokenizerPair | None:
        """The tokenizers of the prepared corpus, if the user named one."""
        return None if self._prepared is None else read_prepared_tokenizers(self._prepared)

    @cached_property
    def _validation_examples(self) -> int | None:
        """The number of the user's validation examples; None if some are held out."""
        if self._prepared is not None:
            return count_prepared_validation(self._prepared)
        return None if self.validation_stats is None else self.validation_stats.examples

    @property
    def _prepared(self) -> str | None:
        """Folder or URL of the prepared corpus, if the user named one."""
        location = self.changes.get("data.prepared")
        return location if isinstance(location, str) else None  # the parser reports anything else

    @property
    def _max_useful_vocabulary(self) -> int:
        return max(512, 2 * self.stats.distinct_count)

    def epoch_tokens(self, recipe: Recipe) -> float:
        """Estimate the tokens of one epoch, padding and the teachers' translations included."""
        pairs_per_source = 1.0 if self.distillation is None else self.distillation.pairs_per_source
        return pairs_per_source * self.corpus_tokens(recipe)

    def corpus_tokens(self, recipe: Recipe) -> float:
        """Estimate the tokens of the corpus, padding included."""
        if self.packs_sequences or is_running_text(self.stats, self.sources):
            return _estimate_tokens(self.stats.source, self.vocabulary_size(recipe)) * (
                1.0 if self.packs_sequences else 1.1
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
        from regard.training.device import prefers_bfloat16  # imports torch: only when needed

        table = self.changes.get("device")
        requested = table.get("name") if isinstance(table, Mapping) else None
        return prefers_bfloat16(str(self.changes.get("device.name", requested or "auto")))

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        """Choose the tokenizer and its vocabulary size."""
        stats, vocabulary_size = self.stats, self.vocabulary_size(recipe)
        if self._prepared_tokenizers is not None:
            reasons.append(f"Tokenizer: that of the prepared corpus, {self._prepared}: {vocabulary_size:,} tokens.")
            return ByteBpeConfig(vocabulary=vocabulary_size), vocabulary_size  # a run of a prepared corpus learns none
        if vocabulary_size == CHARACTER_LEVEL:
            character_count = len(stats.source.alphabet | stats.target.alphabet)
            reasons.append(f"Vocabulary: the {character_count} distinct characters of the text.")
            return CharacterLevelConfig(), character_count + SPECIAL_TOKENS
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
        return ByteBpeConfig(vocabulary=vocabulary_size), vocabulary_size

    def _explain_preset(self, recipe: Recipe, model: AnyModelConfig) -> str:
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

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        """Adapt the preset to the vocabulary, dropout, labels and languages of this corpus."""
        reasons.append(self.explain_dropout(recipe))
        task, model = model_for(self.task, recipe.preset)
        changes: dict[str, Any] = {"task": task, "languages": list(self.stats.languages)}
        for stack in ("encoder", "decoder"):
            if hasattr(model, stack):
                changes |= {
                    f"{stack}.dropout.{dropout_site}": recipe.dropout for dropout_site in ("embedding", "sublayer")
                }
                if task == "translate" and getattr(model, stack).kind == "attention":
                    changes |= {f"{stack}.norm_order": "pre", f"{stack}.final_norm": True}
                    reasons += [] if NORM_REASON in reasons else [NORM_REASON]
        for table in ("source", "target", "tokens"):
            if getattr(getattr(model, table, None), "kind", "") == "tokens":
                changes[f"{table}.vocabulary"] = vocabulary_size
        if task in ("classify", "tag"):
            changes["head"] = make_label_head(task, self.stats)
        if task == "embed":
            changes["head"] = {"kind": "none"}
        return codec.preset(recipe.preset, changes)

    def explain_dropout(self, recipe: Recipe) -> str:
        """Return the reason for the dropout rate."""
        if recipe.dropout < self.recipe.dropout:
            usual = f"the default for this corpus is {self.recipe.dropout:g}"
            return f"Dropout: {recipe.dropout:g}, because the run makes few epochs; {usual}."
        if recipe.dropout > 0.1 and recipe.epochs < MANY_EPOCHS:
            return f"Dropout: {recipe.dropout:g}, because a model overfits so few examples within a few epochs."
        if recipe.dropout > 0.1:
            return f"Dropout: {recipe.dropout:g}, because the run makes many epochs over little text."
        if recipe.dropout:
            return f"Dropout: {recipe.dropout:g}, the default for a corpus of this size."
        return "Dropout: none, because a model of this size does not overfit so much text."

    def _choose_data(self, recipe: Recipe, model: AnyModelConfig, reasons: list[str]) -> DataConfig:
        max_length = _choose_max_length(self.task, model)
        batch_tokens = max(max_length, min(BATCH_TOKENS, recipe.step_tokens))
        data = DataConfig(
            train=self.sources, validation=self.validation, batch_tokens=batch_tokens, max_length=max_length
        )
        if self.task == "masked_lm":
            data = data.model_copy(update={"masking": MaskingConfig()})
            percent = f"{100 * MaskingConfig().probability:.0f} %"
            reasons.append(f"Masking: {percent} of the tokens, each replaced by the mask token.")
        if self._prepared is not None:  # the run reads no text: other validation files are not used
            count = self._validation_examples
            amount = f"the {pluralize(count, 'sample')} that" if count else "none:"
            verb = "holds for it" if count else "has no validation part"
            reasons.append(f"Validation data: {amount} {self._prepared} {verb}.")
            return data
        if self.validation_stats is not None:
            validation_stats = self.validation_stats
            if validation_stats.content != self.stats.content:
                kinds = f"{validation_stats.content}, and the training corpus holds {self.stats.content}"
                message = f"The validation corpus holds {kinds}."
                raise RegardError(message, hint="Give validation files of the same kind.")
            reasons.append(f"Validation data: {_describe_size(validation_stats)} of your own.")
            return data
        share = self._choose_held_out()
        if is_running_text(self.stats, self.sources):
            amount, method = f"{format_count(share * self.stats.source.characters)} characters", "the end of the text"
        else:
            media = self.stats.content
            amount, method = (
                f"{format_count(share * self.stats.examples)} {_unit_name(self.stats)}s",
                f"chosen at random; equal {media if media in ('images', 'audio') else 'sources'} stay in one part",
            )
        reasons.append(f"Validation data: about {amount} ({share:.2%}) are held out, {method}.")
        return data.model_copy(update={"held_out": share})

    def _choose_held_out(self) -> float:
        """Choose the held-out share: enough to compare models, at most a fifth."""
        stats = self.stats
        if is_running_text(stats, self.sources):
            if stats.source.characters < MIN_CHARACTERS:
                message = (
                    f"The text has {stats.source.characters:,} characters, too few to hold some out for validation."
                )
                raise RegardError(message, hint=f"Give at least {MIN_CHARACTERS:,}, better a hundred times as many.")
            return _held_out_fraction(500_000, stats.source.characters, 0.1)
        if stats.examples < MIN_EXAMPLES:
            verb = "is" if stats.examples == 1 else "are"
            raise RegardError(
                f"{_count_examples(stats)} {verb} too few to hold some out for validation.",
                hint=f"Give at least {MIN_EXAMPLES}, or validation data: {_validation_options(stats)}.",
            )
        target_examples = 1000 if stats.examples < 1_000_000 else 2000
        return _held_out_fraction(target_examples, stats.examples, 0.1 if stats.examples >= 200 else 0.2)


def make_label_head(task: TaskKind, stats: CorpusStats) -> dict[str, Any]:
    """Return the settings of a head for the labels of a corpus.

    Raises:
        RegardError: If there is only one label.
    """
    labels = sorted(stats.labels)
    if len(labels) < 2:
        message = f"Every example has the same label, {labels[0]!r}."
        raise RegardError(message, hint="Give examples with at least two labels.")
    kind = {"kind": "classes", "pool": "mean"} if task == "classify" else {"kind": "tags"}
    return {**kind, "labels": labels}


def _validation_options(stats: CorpusStats) -> str:
    pairs = "--validation-source and --validation-target, or " if stats.content == "pairs" else ""
    return f"{pairs}--validation"


def _explain_distillation(settings: DistillationConfig) -> str:
    translators = {"each": "one by each teacher", "ensemble": "by the ensemble of the teachers"}[settings.combine]
    translators = translators if len(settings.teachers) > 1 else "by the teacher"
    count = pluralize(settings.translations_per_source, "translation")
    translations = f"{count} of every training source, {translators}"
    originals = f"the pairs, each {ORIGINAL_WEIGHT:g} times per epoch, and " if settings.mode == "add" else ""
    return f"Training data: {originals}{translations} (beam size {settings.beam_size}; made before the first step)."


def _explain_steps(budget: Budget, epochs: int, epoch_tokens: float, is_requested: bool) -> str:
    epochs_made = budget.steps * budget.step_tokens / epoch_tokens
    epochs_text = f"{format_count(epochs_made) if epochs_made >= 10 else f'{epochs_made:.1f}'} epochs"
    if epochs_made < 0.95:
        epochs_text = f"{100 * epochs_made:.2g} % of one epoch"
    amount = f"Steps: {budget.steps:,} of {budget.step_tokens:,} tokens, about {epochs_text}"
    if is_requested:
        return f"{amount}, as you requested."
    if budget.minutes is not None and budget.is_time_limited:
        limit = f"as many as fit into {describe_minutes(budget.minutes)} here"
        return f"{amount}, {limit}; the run adapts them to its speed. {epochs} epochs would be better."
    if budget.minutes is not None:
        return f"{amount}; no more are useful for this corpus, and they fit into {describe_minutes(budget.minutes)}."
    return f"{amount}; small corpora need many epochs." if epochs >= 100 else f"{amount}."


def describe_minutes(minutes: float) -> str:
    """Return the minutes as text: "1 minute", "2.5 minutes"."""
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"


def _held_out_fraction(target: int, total: int, max_share: float) -> float:
    share = min(max_share, target / total)
    return round(share, 2 - int(log10(share)))


def _choose_max_length(task: TaskKind, model: AnyModelConfig) -> int:
    """Choose the maximum tokens per row: for running text the context length; at most the learned positions."""
    stack = model.encoder if model.family == "encoder_only" else model.decoder
    context_length = 256 if model.d_model < 256 else 512 if model.d_model < 768 else 1024
    max_length = context_length if task == "causal_lm" else 512
    return max_length if stack.max_positions is None else min(max_length, stack.max_positions)


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
    names = {"pairs": "pair", "labels": "labeled text", "tags": "tagged sentence", "text": "line"}
    return names.get(stats.content, stats.content.removesuffix("s"))
