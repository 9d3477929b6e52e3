"""Apply a task's recipe to a corpus and the user's requests; returns a run with a reason for every choice."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

from regard.base.errors import ConfigError
from regard.base.formatting import format_count, pluralize, round_digits
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.parts import SettingsModel
from regard.config.run import ORIGINAL_WEIGHT, DataConfig, DistillationConfig, RunConfig
from regard.config.task_spec import TaskSpec
from regard.config.tokenizers import ByteBpeConfig, RunTokenizerConfig
from regard.config.toml_file import SettingsFile, to_dict, with_changes
from regard.config.training import TrainingConfig
from regard.data.example import FileInfo
from regard.data.stats import CorpusStats
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.recipe import ModelSize, TaskRecipe, find_recipe
from regard.tasks.recipes.text_rows import TextRows
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.recipes.finetune import Finetuning
from regard.training.recipes.hyperparameters import Budget, mark_overridden, training_settings, validation_settings
from regard.training.recipes.validation_data import choose_held_out, count_validation
from regard.training.vocabularies import read_prepared_tokenizers

MIN_STEPS, MAX_STEPS = 200, 300_000
MANY_EPOCHS = 10  # with fewer, strong dropout needs another reason
NORM_REASON = "Norms: pre-norm, which trains stably at any learning rate; post-norm may fail in a short run."


@dataclass(frozen=True)
class AutoRun:
    """A configured run, the reasons for its settings, and the corpus statistics."""

    run: RunConfig
    reasons: tuple[str, ...]
    stats: CorpusStats
    typical_length: int  # tokens per row, used to estimate costs
    file_infos: Mapping[str, FileInfo]  # size and sha256 of the corpus files, so that `fit` does not compute them again


@dataclass(frozen=True)
class CorpusRecipe:
    """A task's recipe combined with a corpus and the user's requests."""

    corpus: CorpusRequest
    spec: TaskSpec
    tuning: Finetuning | None = None

    @property
    def stats(self) -> CorpusStats:
        """Corpus statistics."""
        return self.corpus.stats

    @property
    def is_model_given(self) -> bool:
        """Whether the user chose the model (a preset or a parent)."""
        return self.corpus.preset is not None or self.tuning is not None

    @cached_property
    def recipe(self) -> TaskRecipe:
        """The recipe of the task."""
        return find_recipe(self.spec.name)

    @property
    def labels(self) -> Mapping[str, int]:
        """The predicted labels with their counts."""
        return dict.fromkeys(self.spec.labels, 1) or self.stats.labels

    @cached_property
    def rows(self) -> TextRows:
        """The row format of the examples.

        Raises:
            RegardError: If examples lack a field that the task needs.
        """
        preset = self.corpus.preset or self.recipe.for_size(self.stats.size).preset
        model = self.corpus.parent or codec.preset(preset)
        rows = self.recipe.rows(self.corpus, model, tuple(self.spec.labels or sorted(self.stats.labels)))
        if not self.spec.labels:
            rows.check_labels()
        return rows

    @cached_property
    def size(self) -> ModelSize:
        """The model and hyperparameters for this corpus, preset and parent."""
        if self.tuning is not None:
            return self.tuning.adapt(self.recipe.for_size(self.stats.size))
        preset = self.corpus.preset or self.recipe.for_size(self.stats.size).preset
        return self._distil(self.recipe.for_preset(preset, self.stats.size))

    @property
    def smaller_sizes(self) -> list[ModelSize]:
        """Model sizes for this corpus, largest first; empty if the user chose the model."""
        if self.tuning is not None:
            return []
        return [self._distil(size) for size in self.recipe.smaller_sizes(self.stats.size)]

    def _distil(self, size: ModelSize) -> ModelSize:
        """Several translations per source delay overfitting, so use dropout and epochs for that many pairs."""
        if self.distillation is None:
            return size
        originals = self.distillation.mode == "add"
        pairs = self.stats.size * (self.distillation.translations_per_source + originals)
        enlarged = self.recipe.for_size(pairs)
        return replace(size, dropout=enlarged.dropout, epochs=enlarged.epochs)

    @cached_property
    def distillation(self) -> DistillationConfig | None:
        """The requested distillation; None without teachers or with invalid settings, which the parser reports."""
        changes = {name: value for name, value in self.corpus.changes.items() if name.split(".")[0] == "distillation"}
        with suppress(ConfigError):
            table = with_changes({}, changes)
            return SettingsFile[DistillationConfig](DistillationConfig).parse(table["distillation"]) if table else None
        return None

    def make_run(self, size: ModelSize, budget: Budget | None = None) -> AutoRun:
        """Create the run for a model size; `budget` is set if the time is limited."""
        budget = replace(budget or self._choose_budget(size), is_tuning=self.tuning is not None)
        reasons = self.rows.explain_input()
        tokenizer, vocabulary_size = self._choose_tokenizer(size, reasons)
        model = self._choose_model(size, vocabulary_size, reasons)
        reasons += [self.recipe.reason] if self.recipe.reason else []
        reasons += [] if self.distillation is None else [_explain_distillation(self.distillation)]
        reasons += self.rows.explain_rows()
        data = DataConfig(
            **self.rows.data_settings(model, size.step_tokens), held_out=choose_held_out(self.corpus, reasons)
        )
        reasons += self.rows.explain_augmentation()
        is_requested = self.corpus.requested("train.steps") is not None
        reasons.append(_explain_steps(budget, self.size.epochs, self.epoch_tokens(size), is_requested))
        validation_pairs = count_validation(self.corpus, data.held_out)
        tables: dict[str, SettingsModel] = {
            "data": data.model_copy(update={"batch_tokens": self._choose_batch_tokens(data, budget)}),
            "tokenizer": tokenizer,
            "model": model,
            "train": self._choose_training(size, budget, reasons),
            "validation": validation_settings(self.recipe, budget, validation_pairs, self.labels, reasons),
        }
        if self.tuning is not None:
            tables["finetune"] = self.tuning.finetune
            reasons += self.tuning.explain(self.stats)
        run = codec.RUN_FILES.parse({name: to_dict(table) for name, table in tables.items()}, self.corpus.changes)
        reasons.insert(0, self._explain_size(size, run.model))
        validation_infos = {} if self.corpus.validation_stats is None else self.corpus.validation_stats.file_infos
        return AutoRun(
            run,
            mark_overridden(reasons, self.corpus.changes),
            self.stats,
            self.rows.typical_length(self.vocabulary_size(size), data.max_length),
            {**self.stats.file_infos, **validation_infos},
        )

    def _choose_training(self, size: ModelSize, budget: Budget, reasons: list[str]) -> TrainingConfig:
        table = self.corpus.changes.get("train.optimizer")
        optimizer_kind = (
            table.get("kind") if isinstance(table, dict) else self.corpus.changes.get("train.optimizer.kind")
        )
        return training_settings(self.recipe, size, budget, self._prefers_bfloat16, reasons, optimizer_kind)

    def _choose_budget(self, size: ModelSize) -> Budget:
        """Choose steps and tokens per step from the recipe, unless the user requested them."""
        step_tokens = self.corpus.requested("train.step_tokens") or size.step_tokens
        requested = self.corpus.requested("train.steps")
        steps = requested or min(
            MAX_STEPS, max(MIN_STEPS, round_digits(size.epochs * self.epoch_tokens(size) / step_tokens))
        )
        min_tokens = self.rows.min_step_tokens
        if step_tokens >= min_tokens:
            return Budget(steps, step_tokens)
        return Budget(requested or max(1, ceil(steps * step_tokens / min_tokens)), min_tokens)

    def _choose_batch_tokens(self, data: DataConfig, budget: Budget) -> int:
        """Choose tokens per batch. A step over sentences has at least two batches, to mix lengths."""
        batches = 1 if self.rows.packs_sequences or self.recipe.needs_large_batches else 2
        return min(data.batch_tokens, max(data.max_length, budget.step_tokens // batches))

    def vocabulary_size(self, size: ModelSize) -> int:
        """Choose the vocabulary size; CHARACTER_LEVEL if every character is a token."""
        if self.tuning is not None:
            return self.tuning.vocabulary_size
        if self._prepared_tokenizers is not None:
            return self._prepared_tokenizers.source.size
        return self.recipe.vocabulary.size(self.corpus, size.vocabulary)

    @cached_property
    def _prepared_tokenizers(self) -> TokenizerPair | None:
        """The tokenizers of the prepared corpus, if the user named one."""
        if self.corpus.prepared is None or not self.recipe.vocabulary.reads_text:
            return None
        return read_prepared_tokenizers(self.corpus.prepared)

    def epoch_tokens(self, size: ModelSize) -> float:
        """Estimate the tokens of one epoch, padding and the teachers' translations included."""
        pairs_per_source = 1.0 if self.distillation is None else self.distillation.pairs_per_source
        return pairs_per_source * self.rows.count_tokens(self.vocabulary_size(size))

    def validation_tokens(self, size: ModelSize, full_run: AutoRun) -> float:
        """Estimate the cost of a validation, in training tokens.

        A forward pass costs a third of a training step; generating a token costs about one training token.
        """
        share = full_run.run.data.held_out
        if self.corpus.validation_stats is not None:
            share = self.rows.measure(self.corpus.validation_stats) / max(1, self.rows.measure(self.stats))
        tokens = self.rows.count_tokens(self.vocabulary_size(size))
        return share * tokens / 3 + full_run.run.validation.sentences * full_run.typical_length

    @cached_property
    def _prefers_bfloat16(self) -> bool:
        """Whether the run's device is faster in bfloat16."""
        from regard.training.device import prefers_bfloat16  # imports torch: only when needed

        table = self.corpus.changes.get("device")
        requested = table.get("name") if isinstance(table, Mapping) else None
        return prefers_bfloat16(str(self.corpus.changes.get("device.name", requested or "auto")))

    def _choose_tokenizer(self, size: ModelSize, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        """Choose the tokenizer and its vocabulary size."""
        vocabulary, vocabulary_size = self.recipe.vocabulary, self.vocabulary_size(size)
        if self.tuning is not None and vocabulary.reads_text:
            return self.tuning.choose_tokenizer(reasons), vocabulary_size
        if self._prepared_tokenizers is not None:
            location = self.corpus.prepared
            reasons.append(f"Tokenizer: from the prepared corpus, {location}: {vocabulary_size:,} tokens.")
            return ByteBpeConfig(vocabulary=vocabulary_size), vocabulary_size  # a run of a prepared corpus learns none
        return vocabulary.choose(self.corpus, vocabulary_size, reasons)

    def _choose_model(self, size: ModelSize, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        """Adapt the parent or preset to this corpus: vocabulary, dropout, labels and languages."""
        model = codec.preset(size.preset) if self.tuning is None else self.tuning.parent
        changes: dict[str, Any] = {"task": self.spec.name}
        if self.stats.languages:
            changes["languages"] = list(self.stats.languages)
        head = self.recipe.head
        if head is not None and not head.fits(model, self.rows.labels):
            changes["head"] = head.make(self.rows.labels)
            if self.tuning is not None:
                reasons.append(f"Head: {head.reason.format(count=len(self.rows.labels))}.")
        if self.tuning is not None:
            return codec.MODEL_FILES.change(model, changes | self.tuning.vocabulary_sizes)
        reasons.append(self._explain_dropout(size))
        for stack in ("encoder", "decoder"):
            if hasattr(model, stack):
                changes |= {f"{stack}.dropout.{site}": size.dropout for site in ("embedding", "sublayer")}
                if self.recipe.uses_pre_norm and getattr(model, stack).kind == "attention":
                    changes |= {f"{stack}.norm_order": "pre", f"{stack}.final_norm": True}
                    reasons += [] if NORM_REASON in reasons else [NORM_REASON]
        for table in ("source", "target", "tokens"):
            if getattr(getattr(model, table, None), "kind", "") == "tokens":
                changes[f"{table}.vocabulary"] = vocabulary_size
        return codec.preset(size.preset, changes | self.rows.model_changes())

    def _explain_size(self, size: ModelSize, model: AnyModelConfig) -> str:
        from regard.models.cost import cost  # imports torch: only when needed

        parameters = format_count(cost(model, batch_size=1, source=1, target=1).parameters.total())
        if self.tuning is not None:
            return f"Parent: {self.tuning.finetune.parent} ({parameters} parameters)."
        summary = f"{self.rows.describe_size()}: preset {size.preset} ({parameters} parameters)"
        default = self.recipe.for_size(self.stats.size)
        if default.preset == size.preset:
            return f"{summary}, because {default.reason}."
        if self.corpus.preset is None:
            return f"{summary}, because there is no time for {default.preset}, the default for this corpus."
        return f"{summary}, as you requested; the default for this corpus is {default.preset}."

    def _explain_dropout(self, size: ModelSize) -> str:
        if size.dropout < self.size.dropout:
            usual = f"the default for this corpus is {self.size.dropout:g}"
            return f"Dropout: {size.dropout:g}, because the run makes few epochs; {usual}."
        if size.dropout > 0.1 and size.epochs < MANY_EPOCHS:
            return f"Dropout: {size.dropout:g}, because a model overfits so few examples within a few epochs."
        if size.dropout > 0.1:
            return f"Dropout: {size.dropout:g}, because the run makes many epochs over little text."
        if size.dropout:
            return f"Dropout: {size.dropout:g}, the default for a corpus of this size."
        return f"Dropout: none, because a model of this size does not overfit {self.rows.amount}."


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
        return f"{amount}; more would not help on this corpus, and they fit into {describe_minutes(budget.minutes)}."
    return f"{amount}; small corpora need many epochs." if epochs >= 100 else f"{amount}."


def describe_minutes(minutes: float) -> str:
    """Return the minutes as text: "1 minute", "2.5 minutes"."""
    return f"{minutes:g} minute{'' if minutes == 1 else 's'}"
