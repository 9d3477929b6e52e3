"""Make a run that fine-tunes a model on a corpus, with a reason for every choice."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.finetune import FinetuneConfig
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig
from regard.config.parts import SettingsModel
from regard.config.tokenizers import ParentTokenizerConfig, RunTokenizerConfig
from regard.config.toml_file import SettingsFile, to_dict, with_changes
from regard.store.model_path import MODEL, find_model
from regard.text.chat_template import find_chat_template
from regard.training.recipes.hyperparameters import Budget, format_count
from regard.training.recipes.sizes import Recipe, TaskKind, recipe_for_size
from regard.training.recipes.text import AutoRun, CorpusRecipe, make_label_head

PARENT = "parent"  # in the place of a preset
EPOCHS: dict[TaskKind, int] = {"translate": 10, "causal_lm": 3, "masked_lm": 3, "classify": 4, "tag": 4, "embed": 3}
LABELED_STEP_TOKENS = 1024  # about 32 sentences, as BERT was tuned
BASE_RATE, BASE_WIDTH = 3e-5, 768  # BERT-base was tuned with 2e-5 to 5e-5 (Devlin et al. 2019)
MAX_RATE = 5e-4
LORA_FACTOR = 10  # adapters start at zero and are small: they need about ten times the learning rate
LABEL_LAYER_DECAY = 0.9  # as Howard and Ruder 2018 and Clark et al. 2020 found useful for labels
TASKS: dict[tuple[str, str], TaskKind] = {
    ("encoder_decoder", "pairs"): "translate",
    ("decoder_only", "text"): "causal_lm",
    ("decoder_only", "pairs"): "causal_lm",
    ("encoder_only", "text"): "masked_lm",
    ("encoder_only", "labels"): "classify",
    ("encoder_only", "tags"): "tag",
    ("encoder_only", "pairs"): "embed",
}
_NEEDED = {
    "encoder_decoder": "pairs of texts",
    "decoder_only": "running text, or pairs of prompts and responses",
    "encoder_only": "labeled texts, tagged words, pairs of texts or running text",
}


@dataclass(frozen=True, kw_only=True)
class TuningPlan(CorpusRecipe):
    """Corpus statistics, the user's requests and the model to tune, from which a run is made."""

    parent: AnyModelConfig

    @property
    def task(self) -> TaskKind:
        """The task, from the family of the parent and the content of the corpus."""
        family = self.parent.family
        if (family, self.stats.content) not in TASKS:
            message = f"A model of the family {family} learns from {_NEEDED[family]}; this corpus holds other examples."
            raise RegardError(message, hint="Give another corpus, or tune another model.")
        return TASKS[family, self.stats.content]

    @property
    def recipe(self) -> Recipe:
        """The hyperparameters for this model, corpus and way of tuning."""
        recipe, width = recipe_for_size(self.task, self.size), self.parent.d_model
        peak = min(MAX_RATE, BASE_RATE * (BASE_WIDTH / width) ** 1.5)  # narrow models are trained with higher rates
        peak *= LORA_FACTOR if self.finetune.lora is not None else 1
        is_labeled = self.task in ("classify", "tag")
        return replace(
            recipe,
            preset=PARENT,
            epochs=EPOCHS[self.task],
            peak=float(f"{peak:.2g}"),
            warmup=2000,  # at most; a tenth of the steps
            step_tokens=LABELED_STEP_TOKENS if is_labeled else min(recipe.step_tokens, 8192),
        )

    @cached_property
    def finetune(self) -> FinetuneConfig:
        """The settings of tuning, as requested."""
        changes = {name: value for name, value in self.changes.items() if name.split(".")[0] == "finetune"}
        table = with_changes({}, changes)["finetune"]
        defaults: dict[str, Any] = {}
        if "lora" not in table and self.stats.content in ("labels", "tags"):
            defaults["layer_decay"] = LABEL_LAYER_DECAY
        if self.parent.family == "decoder_only":
            defaults["chat_template"] = _find_template(Path(table["parent"]))
        return SettingsFile[FinetuneConfig](FinetuneConfig).parse(defaults | table)

    @property
    def smaller_recipes(self) -> list[Recipe]:
        """None: the model is given."""
        return []

    def vocabulary_size(self, recipe: Recipe) -> int:  # noqa: ARG002
        """The size of the parent's vocabulary, with the tokens that the run adds."""
        return next(iter(self._vocabulary_sizes.values()))

    @cached_property
    def _vocabulary_sizes(self) -> dict[str, int]:
        """The sizes of the vocabularies, by the name of the setting."""
        sizes, finetune = _list_vocabulary_sizes(self.parent), self.finetune
        if finetune.add_tokens:
            from regard.training.tokenizers import load_parent_tokenizers  # imports torch: only when needed

            tokenizers = load_parent_tokenizers(finetune)
            sizes = {name: (tokenizers.target if name == "target" else tokenizers.source).size for name in sizes}
        return sizes

    def make_run(self, recipe: Recipe, budget: Budget | None = None) -> AutoRun:
        """Make the run of a recipe; `budget` is given if the time is."""
        budget = budget or self._choose_budget(recipe, self.epoch_tokens(recipe))
        return super().make_run(recipe, replace(budget, is_tuning=True))

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        size = self.vocabulary_size(recipe)
        if new := sum(self._vocabulary_sizes.values()) - sum(_list_vocabulary_sizes(self.parent).values()):
            reasons.append(f"Vocabulary: {size:,} tokens, those of the parent and {new:,} new ones.")
        else:
            reasons.append(f"Vocabulary: the {size:,} tokens of the parent, to which its embeddings belong.")
        return ParentTokenizerConfig(), size

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:  # noqa: ARG002
        parent = self.parent
        changes: dict[str, Any] = {f"{name}.vocabulary": size for name, size in self._vocabulary_sizes.items()}
        if parent.task != self.task:
            changes["task"] = self.task
        if self.task in ("classify", "tag"):
            head, own = make_label_head(self.task, self.stats), to_dict(parent.head)
            if any(own.get(name) != head[name] for name in ("kind", "labels")):
                changes["head"] = head
                reasons.append(f"Head: a new one for the {len(head['labels'])} labels, which the parent does not know.")
        elif self.task == "masked_lm" and parent.head.kind != "mlm":
            changes["head"] = {"kind": "mlm"}
            reasons.append("Head: a new one for masked tokens, because the parent has none.")
        elif self.task == "embed" and parent.head.kind != "none":
            changes["head"] = {"kind": "none"}
            reasons.append("Head: none, because the hidden states become the vector of a text.")
        if self.stats.languages:
            changes["languages"] = list(self.stats.languages)
        return codec.MODEL_FILES.change(parent, changes)

    def _explain_preset(self, recipe: Recipe, model: AnyModelConfig) -> str:  # noqa: ARG002
        from regard.models.cost import cost  # imports torch: only when needed

        parameters = cost(model, batch_size=1, source=1, target=1).parameters.total()
        return f"Parent: {self.finetune.parent} ({format_count(parameters)} parameters)."

    def _further_tables(self, reasons: list[str]) -> dict[str, SettingsModel]:
        finetune = self.finetune
        if finetune.lora is not None:
            reasons.append(
                f"Tuning: LoRA of rank {finetune.lora.rank}: the parent is frozen, and the default learning rate is "
                f"{LORA_FACTOR} times that of full tuning, because adapters start at zero."
            )
        elif finetune.layers is not None:
            reasons.append(f"Tuning: the last {finetune.layers} layers of each stack; the others stay as they are.")
        else:
            reasons.append(
                "Tuning: all parameters, by default at about a tenth of the learning rate of training from scratch, so "
                "that the model keeps what it has learned."
            )
        if finetune.chat_template and self.stats.content == "pairs":
            reasons.append("Prompts: in the words of the chat template, which the model keeps for the server.")
        if finetune.layer_decay < 1:
            reasons.append(
                f"Layers: each learns with {finetune.layer_decay:g} times the rate of the one above it, because low "
                "layers hold what all tasks share (Howard and Ruder 2018)."
            )
        return {"finetune": finetune}


def _list_vocabulary_sizes(model: AnyModelConfig) -> dict[str, int]:
    """Return the sizes of a model's own vocabularies, by the name of the table of settings."""
    tables = {name: getattr(model, name, None) for name in ("source", "tokens", "target")}
    return {name: table.vocabulary for name, table in tables.items() if isinstance(table, TokensConfig)}


def _find_template(folder: Path) -> str:
    return find_chat_template(find_model(folder)) or ""


def read_parent(folder: Path, extra_layers: int | None = None) -> AnyModelConfig:
    """Return the settings of the model to tune, with as many extra layers in each stack.

    Raises:
        RegardError: If the folder holds no model.
    """
    settings = codec.MODEL_FILES.load(find_model(folder) / MODEL)
    stacks = {name: getattr(settings, name) for name in ("encoder", "decoder") if hasattr(settings, name)}
    changes = {f"{name}.layers": stack.layers + (extra_layers or 0) for name, stack in stacks.items()}
    return codec.MODEL_FILES.change(settings, changes) if extra_layers else settings
