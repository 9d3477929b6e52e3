"""Fine-tuning: how a recipe changes for a run that starts from a trained model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.config import codec
from regard.config.finetune import FinetuneConfig
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig
from regard.config.tokenizers import ParentTokenizerConfig
from regard.config.toml_file import SettingsFile, with_changes
from regard.data.stats import CorpusStats
from regard.store.model_path import MODEL, find_model
from regard.tasks.recipes.recipe import ModelSize, TuningRule
from regard.text.chat_template import find_chat_template
from regard.training.vocabularies import list_vocabulary_sizes

PARENT = "parent"  # in the place of a preset
BASE_RATE, BASE_WIDTH = 3e-5, 768  # BERT-base was fine-tuned with 2e-5 to 5e-5 (Devlin et al. 2019)
MAX_RATE = 5e-4
LORA_FACTOR = 10  # adapters start at zero and are small: they need about ten times the learning rate


@dataclass(frozen=True)
class Finetuning:
    """The model to fine-tune and the user's requests."""

    parent: AnyModelConfig
    rule: TuningRule
    changes: Mapping[str, Any]

    def adapt(self, size: ModelSize) -> ModelSize:
        """Return the hyperparameters for this model and fine-tuning method."""
        peak = min(
            MAX_RATE, BASE_RATE * (BASE_WIDTH / self.parent.d_model) ** 1.5
        )  # narrow models learn at higher rates
        peak *= LORA_FACTOR if self.finetune.lora is not None else 1
        return replace(
            size,
            preset=PARENT,
            epochs=self.rule.epochs,
            peak=float(f"{peak:.2g}"),
            warmup=size.warmup if self.rule.warmup is None else self.rule.warmup,
            step_tokens=min(size.step_tokens, self.rule.max_step_tokens),
        )

    @cached_property
    def finetune(self) -> FinetuneConfig:
        """The requested fine-tuning settings."""
        changes = {name: value for name, value in self.changes.items() if name.split(".")[0] == "finetune"}
        table = with_changes({}, changes)["finetune"]
        defaults: dict[str, Any] = {} if "lora" in table else {"layer_decay": self.rule.layer_decay}
        if self.rule.uses_chat_template:
            defaults["chat_template"] = find_chat_template(find_model(Path(table["parent"]))) or ""
        return SettingsFile[FinetuneConfig](FinetuneConfig).parse(defaults | table)

    @property
    def vocabulary_size(self) -> int:
        """The parent's vocabulary size including added tokens; 0 if it has no vocabulary."""
        return next(iter(self.vocabulary_sizes.values()), 0)

    @cached_property
    def vocabulary_sizes(self) -> dict[str, int]:
        """Vocabulary sizes by setting, including added tokens."""
        if not self.finetune.add_tokens:
            return self._parent_sizes
        from regard.training.tokenizers import load_parent_tokenizers  # imports torch: only when needed

        tokenizers = load_parent_tokenizers(self.finetune)
        return list_vocabulary_sizes(self.parent, tokenizers.source.size, tokenizers.target.size)

    @property
    def _parent_sizes(self) -> dict[str, int]:
        tables = {f"{name}.vocabulary": getattr(self.parent, name, None) for name in ("source", "tokens", "target")}
        return {name: table.vocabulary for name, table in tables.items() if isinstance(table, TokensConfig)}

    def choose_tokenizer(self, reasons: list[str]) -> ParentTokenizerConfig:
        """Choose the parent's tokenizers and append the reason."""
        size = self.vocabulary_size
        if new := sum(self.vocabulary_sizes.values()) - sum(self._parent_sizes.values()):
            reasons.append(f"Vocabulary: {size:,} tokens: the parent's and {new:,} new ones.")
        else:
            reasons.append(f"Vocabulary: the {size:,} tokens of the parent, which match its embeddings.")
        return ParentTokenizerConfig()

    def explain(self, stats: CorpusStats) -> list[str]:
        """Describe which parameters are trained, and how."""
        finetune, reasons = self.finetune, []
        if finetune.lora is not None:
            reasons.append(
                f"Tuning: LoRA of rank {finetune.lora.rank}: the parent is frozen, and the default learning rate is "
                f"{LORA_FACTOR} times higher than for full fine-tuning, because adapters start at zero."
            )
        elif finetune.layers is not None:
            reasons.append(f"Tuning: the last {finetune.layers} layers of each stack; the others are frozen.")
        else:
            reasons.append(
                "Tuning: all parameters, by default at about a tenth of the learning rate for training from scratch, "
                "to avoid forgetting."
            )
        if finetune.chat_template and stats.content == "pairs":
            reasons.append("Prompts: rendered with the chat template, which is stored with the model for the server.")
        if finetune.layer_decay < 1:
            reasons.append(
                f"Layers: each learns with {finetune.layer_decay:g} times the rate of the layer above, because lower "
                "layers are more general (Howard and Ruder 2018)."
            )
        return reasons


def read_parent(folder: Path, extra_layers: int | None = None) -> AnyModelConfig:
    """Return the settings of the model to fine-tune, with extra layers in each stack.

    Raises:
        RegardError: If the folder has no model.
    """
    settings = codec.MODEL_FILES.load(find_model(folder) / MODEL)
    stacks = {name: getattr(settings, name) for name in ("encoder", "decoder") if hasattr(settings, name)}
    changes = {f"{name}.layers": stack.layers + (extra_layers or 0) for name, stack in stacks.items()}
    return codec.MODEL_FILES.change(settings, changes) if extra_layers else settings
