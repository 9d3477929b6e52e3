"""From a corpus to a run, with a reason for every choice: what `regard train` does without a configuration.

choice = choose(Lines(source="train.en", target="train.de"))
choice.run          # every knob, as run.toml holds it
choice.reasons      # one sentence for each
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log10
from typing import Any

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModel
from regard.config.run import AnySource, AnyTokenizer, ByteBpe, CharacterLevel, Data, Run
from regard.config.toml_file import to_dict
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

MIN_EXAMPLES = 50  # examples: of fewer, none can be spared to see whether anything was learned
MIN_CHARACTERS = 2000  # characters of running text
BATCH_TOKENS = 4096  # tokens that go through the model at once
MAX_CHARACTER_VOCABULARY = 500  # different characters that are still few
MIN_UPDATES, MAX_UPDATES = 200, 300_000  # updates
MIN_EPOCHS = 3  # times through the corpus: a model that is slower than that in the time there is is too large
FEW_EPOCHS = 20  # so few times through the corpus, even a small one is not learned by heart
SHORT_SENTENCE = 25  # characters of a short sentence
NORM_REASON = "Norms: before each sublayer, which learns steadily at any rate; after it (2017) a short run may fail."
MAX_WORD_CHARACTERS = 12  # characters: examples that are usually no longer are words, and are read letter by letter
FALLBACK_VOCABULARY = 4000  # pieces for a text that has too many characters to read it by them
WORD_LIST_VOCABULARY = 512  # pieces for words: letters, and the commonest groups of them
SPECIAL_TOKENS = 7  # special tokens of a vocabulary

UpdateTimer = Callable[[Run, int], float]  # a run and the usual length of its rows -> seconds an update


@dataclass(frozen=True)
class AutoRun:
    """A run, why it is so, and what was found in the corpus."""

    run: Run
    reasons: tuple[str, ...]
    stats: CorpusStats
    typical_length: int  # tokens of a usual row, by which costs are told


def configure(
    source: AnySource | Sequence[AnySource],
    *,
    validation: Sequence[AnySource] = (),
    preset: str | None = None,
    minutes: float | None = None,
    updates: int | None = None,
    changes: Mapping[str, Any] | None = None,
    timer: UpdateTimer | None = None,
) -> AutoRun:
    """A run that suits a corpus. `changes` ({"a.b": value}) have the last word.

    With `minutes` the number of updates follows from how long one takes here, which `pace` measures; without a
    `preset` a smaller model is taken where there is no time for a larger one.
    """
    if preset is not None:
        codec.preset(preset)  # an unknown one is said before a long reading
    if minutes is not None and not 0 < minutes < inf:
        raise RegardError(f"There is nothing to learn in {minutes:g} minutes.", fix="Give at least 1.")
    if updates is not None:
        changes = {**(changes or {}), "train.updates": updates}
    if minutes is not None and "train.updates" in (changes or {}):
        raise RegardError("Both minutes and a number of updates were given.", fix="Say one of the two.")
    sources = tuple(source) if isinstance(source, Sequence) else (source,)
    corpus_plan = CorpusPlan(sources, tuple(validation), collect_stats(sources), dict(changes or {}), preset)
    if minutes is None:
        return corpus_plan.make_run(corpus_plan.recipe)
    return _configure_for_minutes(corpus_plan, minutes, timer or measure_update)


def _configure_for_minutes(corpus_plan: "CorpusPlan", minutes: float, timer: UpdateTimer) -> AutoRun:
    """The largest model that gets a few times through the corpus; with dropout for as many times as it will be."""
    recipes = (
        [corpus_plan.recipe] if corpus_plan.preset is not None else smaller_recipes(corpus_plan.task, corpus_plan.size)
    )
    for recipe in recipes:
        full_run = corpus_plan.make_run(recipe)
        is_fixed = not {"train.update_tokens", "data.batch_tokens"}.isdisjoint(corpus_plan.changes)
        seconds = timer(full_run.run, min(full_run.typical_length, full_run.run.data.max_length))
        validation_seconds = (
            FEW_VALIDATIONS
            * seconds
            * corpus_plan.validation_tokens(recipe, full_run)
            / full_run.run.train.update_tokens
        )
        budget = _fit_budget(full_run.run, minutes, seconds, validation_seconds, is_fixed)
        if budget is None:
            return full_run
        epochs = budget.updates * budget.update_tokens / corpus_plan.epoch_tokens(recipe)
        if epochs >= MIN_EPOCHS or recipe is recipes[-1]:
            recipe = replace(recipe, dropout=min(recipe.dropout, 0.1)) if epochs < FEW_EPOCHS else recipe
            return corpus_plan.make_run(recipe, budget, minutes)
    raise AssertionError("the last row is always taken")  # pragma: no cover


def measure_update(run: Run, length: int) -> float:
    """Seconds an update, by a few trial steps."""
    from regard.train.autotune import seconds_per_update  # torch: only when it is needed

    return seconds_per_update(run, length)


@dataclass(frozen=True)
class CorpusPlan:
    """A corpus that was counted, and what its owner asked for."""

    sources: tuple[AnySource, ...]
    validation: tuple[AnySource, ...]
    stats: CorpusStats
    changes: Mapping[str, Any]
    preset: str | None

    @property
    def task(self) -> TaskKind:
        """What is to be learned: it follows from the corpus, and for running text from the preset."""
        tasks: dict[str, TaskKind] = {"pairs": "translate", "text": "continue", "labels": "classify", "tags": "tag"}
        task = tasks[self.stats.content]
        return model_for(task, self.preset)[0] if self.preset is not None else task

    @property
    def size(self) -> int:
        """What the table goes by; words and phrases teach less than as many sentences do."""
        if self.stats.content == "text":
            return self.stats.source.characters
        return round(self.stats.examples * min(1.0, self.stats.mean_length / SHORT_SENTENCE))

    @property
    def recipe(self) -> Recipe:
        """The row of the table."""
        recipe = recipe_for_size(self.task, self.size)
        return recipe_for_preset(self.task, self.preset or recipe.preset, self.size)

    def make_run(self, recipe: Recipe, budget: Budget | None = None, minutes: float | None = None) -> AutoRun:
        """The run of a row; a plan and its minutes where time is short."""
        reasons: list[str] = []
        tokenizer, vocabulary_size = self._choose_tokenizer(recipe, reasons)
        model = self._choose_model(recipe, vocabulary_size)
        reasons.append(_explain_dropout(recipe))
        if self.task == "translate":
            reasons.append(NORM_REASON)
        data = self._choose_data(recipe, model, reasons)
        typical_length = self.typical_length(recipe, data.max_length)
        epoch_tokens = self.epoch_tokens(recipe)
        requested_updates = self._requested("train.updates")
        budget = budget or self._choose_budget(recipe, epoch_tokens)
        epochs = recipe_for_size(self.task, self.size).epochs
        reasons.append(_explain_updates(budget, epochs, epoch_tokens, minutes, requested_updates is not None))
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
            "validation": validation_settings(self.task, budget, validation_pairs, reasons),
        }
        run = codec.RUN_FILES.parse({name: to_dict(table) for name, table in tables.items()}, self.changes)
        reasons.insert(0, self._explain_preset(recipe, run.model))
        return AutoRun(run, mark_overridden(reasons, self.changes), self.stats, typical_length)

    def _choose_budget(self, recipe: Recipe, epoch_tokens: float) -> Budget:
        """As much as the corpus deserves, unless its owner says how much."""
        update_tokens = self._requested("train.update_tokens") or recipe.update_tokens
        updates = self._requested("train.updates")
        return Budget(
            updates or min(MAX_UPDATES, max(MIN_UPDATES, round_digits(recipe.epochs * epoch_tokens / update_tokens))),
            update_tokens,
        )

    def _requested(self, setting: str) -> int | None:
        """A number that was given; what makes no sense is refused later, with all other settings."""
        value = self.changes.get(setting)
        return value if isinstance(value, int) and value > 0 else None

    def _choose_batch_tokens(self, data: Data, budget: Budget) -> int:
        """Tokens of a batch. An update of sentences has two at least, of unlike lengths: one is a lopsided teacher."""
        share = budget.update_tokens if self.task == "continue" else budget.update_tokens // 2
        return min(data.batch_tokens, max(data.max_length, share))

    def typical_length(self, recipe: Recipe, max_length: int) -> int:
        """Tokens of a usual row: the longer side of a pair, both of a labelled one, or a full row of running text."""
        if self.task == "continue" or is_running_text(self.stats, self.sources):  # documents are cut into rows
            return max_length
        sides = [
            _estimate_tokens(side, self.vocabulary_size(recipe)) for side in (self.stats.source, self.stats.target)
        ]
        tokens = (sum if self.stats.content == "labels" else max)(sides) / self.stats.examples
        return min(max_length, max(4, round(tokens) + 1))

    def vocabulary_size(self, recipe: Recipe) -> int:
        """How many pieces the vocabulary will have; CHARACTERS where every character is one."""
        stats = self.stats
        if requested := self._requested("tokenizer.vocabulary"):
            return requested
        kind = self.changes.get("tokenizer.kind", "character" if recipe.vocabulary == CHARACTER_LEVEL else "")
        if kind == "character" and len(stats.source.alphabet | stats.target.alphabet) <= MAX_CHARACTER_VOCABULARY:
            return CHARACTER_LEVEL
        if stats.content == "pairs" and stats.mean_length <= MAX_WORD_CHARACTERS:
            return WORD_LIST_VOCABULARY
        return min(recipe.vocabulary or FALLBACK_VOCABULARY, self._max_useful_vocabulary)

    @property
    def _max_useful_vocabulary(self) -> int:
        return max(512, 2 * self.stats.distinct_word_count)

    def epoch_tokens(self, recipe: Recipe) -> float:
        """Tokens of the whole corpus as batches count them, padding and what stays empty included."""
        if self.task == "continue" or is_running_text(self.stats, self.sources):
            return _estimate_tokens(self.stats.source, self.vocabulary_size(recipe)) * (
                1.0 if self.task == "continue" else 1.1
            )
        return 1.1 * self.typical_length(recipe, self._requested("data.max_length") or 512) * self.stats.examples

    def validation_tokens(self, recipe: Recipe, full_run: "AutoRun") -> float:
        """What a look at validation costs, as tokens that are learned from.

        Reading a token takes a third of learning from it, and writing one takes about as long.
        """
        share = full_run.run.data.held_out
        if self.validation_stats is not None:
            share = self.validation_stats.source.characters / max(1, self.stats.source.characters)
        return share * self.epoch_tokens(recipe) / 3 + full_run.run.validation.sentences * full_run.typical_length

    @cached_property
    def validation_stats(self) -> CorpusStats | None:
        """The validation corpus of its owner."""
        return collect_stats(self.validation) if self.validation else None

    @cached_property
    def _prefers_bfloat16(self) -> bool:
        """Whether the device that it will run on is faster at bfloat16."""
        from regard.train.device import prefers_bfloat16  # torch: only when it is needed

        table = self.changes.get("device")
        requested = table.get("name") if isinstance(table, Mapping) else None
        return prefers_bfloat16(str(self.changes.get("device.name", requested or "auto")))

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[AnyTokenizer, int]:
        """The kind of vocabulary, and the rows of its table."""
        stats, vocabulary_size = self.stats, self.vocabulary_size(recipe)
        if vocabulary_size == CHARACTER_LEVEL:
            character_count = len(stats.source.alphabet | stats.target.alphabet)
            reasons.append(f"Vocabulary: the {character_count} different characters of the text.")
            return CharacterLevel(), character_count + SPECIAL_TOKENS
        sides = ", the same for both sides" if stats.content == "pairs" else ""
        if stats.content == "pairs" and stats.mean_length <= MAX_WORD_CHARACTERS:
            reasons.append(
                f"Vocabulary: {vocabulary_size} pieces of byte-pair encoding over bytes{sides}: the examples are words "
                f"({stats.mean_length:.0f} characters), and larger pieces would hide how they are spelt."
            )
        else:
            only = "only " if vocabulary_size == self._max_useful_vocabulary else ""
            reasons.append(
                f"Vocabulary: {vocabulary_size:,} pieces of byte-pair encoding over bytes (nothing is ever unknown){sides}; "
                f"the text has {only}{stats.distinct_word_count:,} different words."
            )
        return ByteBpe(vocabulary=vocabulary_size), vocabulary_size

    def _explain_preset(self, recipe: Recipe, model: AnyModel) -> str:
        from regard.models.cost import cost  # torch: only when it is needed

        parameters = cost(model, batch_size=1, source=1, target=1).parameters.total()
        is_short = self.stats.content != "text" and self.stats.mean_length < SHORT_SENTENCE
        size_text = _describe_size(self.stats) + f" of {self.stats.mean_length:.0f} characters" * is_short
        summary = f"{size_text}: preset {recipe.preset} ({format_count(parameters)} parameters)"
        default_recipe = recipe_for_size(self.task, self.size)
        if default_recipe.preset == recipe.preset:
            return f"{summary}, because {default_recipe.reason}."
        if self.preset is None:
            return f"{summary}, because there is no time for {default_recipe.preset}, which would suit this corpus."
        return f"{summary}, as you asked; by itself it would be {default_recipe.preset}."

    def _choose_model(self, recipe: Recipe, vocabulary_size: int) -> AnyModel:
        """The preset with the vocabulary, dropout, labels and languages of this corpus."""
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
                what = f"All {self.stats.examples:,} examples have the same label, {labels[0]!r}."
                raise RegardError(what, fix="Give examples of at least two kinds.")
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
                what = f"The validation corpus is {validation_stats.content}, and the training corpus is {self.stats.content}."
                raise RegardError(what, fix="Give validation files of the same kind.")
            reasons.append(f"Validation data: {_describe_size(validation_stats)} of your own.")
            return data
        share = self._choose_held_out()
        if is_running_text(self.stats, self.sources):
            amount, method = f"{format_count(share * self.stats.source.characters)} characters", "the end of the text"
        else:
            amount, method = (
                f"{format_count(share * self.stats.examples)} {_unit_name(self.stats)}",
                "by chance; equal sources stay together",
            )
        reasons.append(f"Validation data: about {amount} ({share:.2%}) are held out, {method}.")
        return data.model_copy(update={"held_out": share})

    def _choose_held_out(self) -> float:
        """Enough to tell two models apart, and never more than a fifth."""
        stats = self.stats
        if is_running_text(stats, self.sources):
            if stats.source.characters < MIN_CHARACTERS:
                what = f"The text has {stats.source.characters:,} characters, too few to learn from and hold some out."
                raise RegardError(what, fix=f"Give at least {MIN_CHARACTERS:,}, better a hundred times as many.")
            return _held_out_fraction(500_000, stats.source.characters, 0.1)
        if stats.examples < MIN_EXAMPLES:
            raise RegardError(
                f"{stats.examples:,} {_unit_name(stats)} are too few to hold some out for validation.",
                fix=f"Give at least {MIN_EXAMPLES}, or validation data: {_validation_options(stats)}.",
            )
        target_examples = 1000 if stats.examples < 1_000_000 else 2000
        return _held_out_fraction(target_examples, stats.examples, 0.1 if stats.examples >= 200 else 0.2)


def _validation_options(stats: CorpusStats) -> str:
    pairs = "--validation-source and --validation-target, or " if stats.content == "pairs" else ""
    return f"{pairs}--validation"


def _explain_dropout(recipe: Recipe) -> str:
    if recipe.dropout > 0.1:
        return f"Dropout: {recipe.dropout:g}, because it goes many times through little text."
    if recipe.dropout:
        return f"Dropout: {recipe.dropout:g}, because there is some danger of learning the text by heart."
    return "Dropout: none, because so much text is not learned by heart."


def _explain_updates(
    budget: Budget, epochs: int, epoch_tokens: float, minutes: float | None, is_requested: bool
) -> str:
    passes = budget.updates * budget.update_tokens / epoch_tokens
    passes_text = format_count(passes) if passes >= 10 else f"{passes:.1f}"
    amount = (
        f"Updates: {budget.updates:,} of {budget.update_tokens:,} tokens, about {passes_text} times through the corpus"
    )
    if is_requested:
        return f"{amount}, as you asked."
    if minutes is not None:
        return f"{amount}, because {minutes:g} minutes have room for no more here; {epochs} times would be better."
    return f"{amount}; small corpora need many." if epochs >= 100 else f"{amount}."


def _fit_budget(run: Run, minutes: float, seconds: float, validation_seconds: float, is_fixed: bool) -> Budget | None:
    """As many updates as there is time for beside the seconds of `looking`, or nothing if that is all of them.

    Where it is few, they are made smaller, unless their size is fixed: more steps teach more.
    """
    full_updates, update_tokens = run.train.updates, run.train.update_tokens
    available_seconds = 0.95 * 60 * minutes  # the rest is for checkpoints
    affordable_updates = max(available_seconds - validation_seconds, available_seconds / 2) / seconds
    if affordable_updates >= full_updates:
        return None
    while not is_fixed and update_tokens >= 4096 and affordable_updates < full_updates / 2:
        update_tokens, affordable_updates = update_tokens // 2, affordable_updates * 2
    return Budget(max(1, int(affordable_updates)), update_tokens, is_time_limited=True)


def _held_out_fraction(target: int, total: int, max_share: float) -> float:
    share = min(max_share, target / total)
    return round(share, 2 - int(log10(share)))


def _choose_max_length(task: TaskKind, model: AnyModel) -> int:
    """Tokens of a row: what fits the model's positions; for running text, how far it looks back."""
    stack = model.encoder if model.family == "encoder_only" else model.decoder
    context_length = 256 if model.width < 256 else 512 if model.width < 768 else 1024
    max_length = context_length if task == "continue" else 512
    return min(max_length, stack.position.length) if stack.position.kind == "learned" else max_length


def _estimate_tokens(side: SideStats, vocabulary_size: int) -> float:
    return side.characters if vocabulary_size == CHARACTER_LEVEL else side.bytes / bytes_per_token(vocabulary_size)


def bytes_per_token(vocabulary_size: int) -> float:
    """How many bytes a piece stands for, about: fitted to English and German with 1,000 to 32,000 pieces."""
    return max(1.0, 0.66 * log(vocabulary_size) - 1.8)


def _describe_size(stats: CorpusStats) -> str:
    if stats.content == "text":
        return f"{format_count(stats.source.characters)} characters"
    return f"{stats.examples:,} {_unit_name(stats)}"


def _unit_name(stats: CorpusStats) -> str:
    names = {"pairs": "pairs", "labels": "labelled texts", "tags": "tagged sentences", "text": "lines"}
    return names[stats.content]
