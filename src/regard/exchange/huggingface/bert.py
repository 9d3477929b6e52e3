"""BERT with each of its heads, and the code that ESM shares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from regard.config.inputs import TokensConfig
from regard.config.model import (
    AnyModelConfig,
    ClassificationHeadConfig,
    EncoderOnlyConfig,
    MLMHeadConfig,
    TaggingHeadConfig,
)
from regard.config.parts import attention_stack
from regard.exchange.huggingface.architecture import Architecture, ConfigKey, FixedValues, Keys, SettingsTable
from regard.exchange.huggingface.architecture_rules import ALL_BIASES, POSITION_TABLES, ArchitectureRules
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.weight_map import (
    SOURCE_EMBEDDING,
    WEIGHT_AND_BIAS,
    Constant,
    MappingRule,
    NameMap,
    Tensors,
    WeightMap,
    add_prefix,
    make_position_rules,
    make_rules,
)

if TYPE_CHECKING:
    from torch import Tensor

MAX_LABELS = 100_000
OUTPUT = "head.lm_head.projection.weight"  # our output projection, which is tied


@dataclass(frozen=True)
class HubHead:
    """Names of an encoder's head in `transformers`, on the hub and in Regard."""

    suffix: str
    auto_class: str
    pipeline_tag: str
    task: str


HEADS = {  # by the kind of our head
    "mlm": HubHead("ForMaskedLM", "AutoModelForMaskedLM", "fill-mask", "masked_lm"),
    "classes": HubHead(
        "ForSequenceClassification", "AutoModelForSequenceClassification", "text-classification", "text_classification"
    ),
    "tags": HubHead("ForTokenClassification", "AutoModelForTokenClassification", "token-classification", "tagging"),
    "none": HubHead("Model", "AutoModel", "feature-extraction", "embedding"),
}
LAYER = {
    **add_prefix("attention", "attention.self", {name: name for name in ("query", "key", "value")}),
    "attention.output": "attention.output.dense",
    "attention_residual.norm": "attention.output.LayerNorm",
    "feedforward.up": "intermediate.dense",
    "feedforward.down": "output.dense",
    "feedforward_residual.norm": "output.LayerNorm",
}


class EncoderOnlyArchitecture(Architecture[EncoderOnlyConfig]):
    """An encoder of text with one head."""

    family = "encoder_only"
    stacks = ("encoder",)
    class_prefix: ClassVar[str]
    stack_names: ClassVar[NameMap]
    head_names: ClassVar[Mapping[str, NameMap]]
    keys: Keys = (
        ConfigKey("vocab_size", "source.vocabulary"),
        ConfigKey("hidden_size", "d_model", 768),
        ConfigKey("num_hidden_layers", "encoder.layers", 12),
        ConfigKey("num_attention_heads", "encoder.attention.heads", 12),
        ConfigKey("intermediate_size", "encoder.feedforward.d_ff", 3072),
        ConfigKey("layer_norm_eps", "encoder.norm.eps", 1e-12, "number"),
        ConfigKey("hidden_dropout_prob", "encoder.dropout.sublayer encoder.dropout.embedding", 0.1, "rate"),
        ConfigKey("attention_probs_dropout_prob", "encoder.dropout.attention", 0.1, "rate"),
    )
    constants: FixedValues = (("tie_word_embeddings", True),)
    required: FixedValues = (("is_decoder", False), ("add_cross_attention", False))

    def __init__(self, head: str) -> None:
        self.head = head
        self.name = self.class_prefix + HEADS[head].suffix
        self.auto_class, self.pipeline_tag = HEADS[head].auto_class, HEADS[head].pipeline_tag
        self.prefix = "" if head == "none" else f"{self.model_type}."
        """Prefix of all tensor names outside the head."""

    def is_candidate(self, model: AnyModelConfig) -> bool:
        """Whether a model of this family and head may become one of these."""
        return super().is_candidate(model) and (model.head.kind if model.head.kind in HEADS else "none") == self.head

    def find_obstacles(self, model: EncoderOnlyConfig) -> Iterator[str]:
        """Yield the settings of a model that the architecture cannot represent exactly."""
        yield from super().find_obstacles(model)
        if not isinstance(model.source, TokensConfig):
            yield f"source is {model.source.kind} (it requires tokens)"
        elif model.source.scale:
            yield "source.scale is not supported"
        if isinstance(model.head, ClassificationHeadConfig) and (not model.head.hidden or model.head.pool != "first"):
            yield "its classifier has a hidden layer over the first vector (train with --set model.head.pool=first)"
        if isinstance(model.head, MLMHeadConfig):
            if model.head.activation != attention_stack(model.encoder).feedforward.activation:
                yield "it requires the same activation in feed-forward and head"
            if not model.head.tied:
                yield "head.tied is false"  # untied, it has a second bias that its output does not use

    def write_config(self, model: EncoderOnlyConfig, max_positions: int) -> Config:
        """Return the config of a model."""
        config = super().write_config(model, max_positions)
        if isinstance(model.head, ClassificationHeadConfig | TaggingHeadConfig):
            config["id2label"] = {str(number): label for number, label in enumerate(model.head.labels)}
            config["label2id"] = {label: number for number, label in enumerate(model.head.labels)}
        return config

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        settings = super().read_settings(config, tensors)
        settings |= {"task": HEADS[self.head].task, "source.kind": "tokens", "head.kind": self.head}
        if self.head == "mlm":
            settings["head.activation"] = settings["encoder.feedforward.activation"]
        elif self.head != "none":
            settings["head.labels"] = _read_labels(config)
        return settings

    def map_modules(self) -> tuple[MappingRule, ...]:
        """Map the modules of all layers and of the head, which have the same parameters on both sides."""
        names = {ours: f"{self.prefix}{theirs}" for ours, theirs in self.stack_names.items()}
        return make_rules(names | dict(self.head_names[self.head]))

    def map_embedding(self, output: str) -> MappingRule:
        """Map the embedding, which is also the output projection `output` of the MLM head."""
        theirs = f"{self.prefix}embeddings.word_embeddings.weight"
        if self.head != "mlm":
            return MappingRule(SOURCE_EMBEDDING, theirs)
        return MappingRule(SOURCE_EMBEDDING, theirs, regard_copies=(OUTPUT,), hf_copies=(output,))


def _read_labels(config: ConfigReader) -> list[str]:
    """Read `id2label`; without it the labels are LABEL_0, LABEL_1, ..."""
    if config.config.get("problem_type") is not None:
        config.require("problem_type", "single_label_classification", None)
    table = config.table("id2label").config
    if not table:
        count = config.integer("num_labels", 2, minimum=2)
        if count > MAX_LABELS:
            raise config.error(f"'num_labels' is {count:,}; the limit is {MAX_LABELS:,}.")
        return [f"LABEL_{number}" for number in range(count)]
    labels = [table.get(str(number)) for number in range(len(table))]
    if not all(isinstance(label, str) for label in labels):
        raise config.error("'id2label' must map 0, 1, 2, ... to the names of the labels.")
    return [str(label) for label in labels]


STACK = {
    "encoder.input_norm": "embeddings.LayerNorm",
    **add_prefix("encoder.layers.{i}", "encoder.layer.{i}", LAYER),
}
HEAD_MODULES: dict[str, NameMap] = {
    "mlm": {"head.dense": "cls.predictions.transform.dense", "head.norm": "cls.predictions.transform.LayerNorm"},
    "classes": {"head.dense": "bert.pooler.dense", "head.classes": "classifier"},
    "tags": {"head.tags": "classifier"},
    "none": {},
}


class BertArchitecture(EncoderOnlyArchitecture):
    """`BertForMaskedLM` and the other classes; a `BertModel` has `add_pooling_layer=False`."""

    class_prefix, model_type = "Bert", "bert"
    rules = ArchitectureRules("post", "layer", True, ("learned+0", *POSITION_TABLES), ("plain",), (ALL_BIASES,), True)
    positions = ("max_position_embeddings", 512)
    keys = (
        *EncoderOnlyArchitecture.keys,
        ConfigKey("hidden_act", "encoder.feedforward.activation", "gelu", "activation"),
        ConfigKey("type_vocab_size", "source.types", 2),
    )
    constants = (*EncoderOnlyArchitecture.constants, ("position_embedding_type", "absolute"))
    stack_names, head_names = STACK, HEAD_MODULES

    def write_config(self, model: EncoderOnlyConfig, max_positions: int) -> Config:
        """Return the config of a model; one without token types has a single one of zeros."""
        config = super().write_config(model, max_positions)
        return config | {"type_vocab_size": max(1, config["type_vocab_size"])}

    def make_weight_map(self, model: EncoderOnlyConfig, max_positions: int) -> WeightMap:
        """Return the weight map of a model."""
        embeddings = f"{self.prefix}embeddings"
        position_rules, constants = make_position_rules(
            {"encoder.position.table": f"{embeddings}.position_embeddings"},
            attention_stack(model.encoder).position,
            max_positions,
            SOURCE_EMBEDDING,
        )
        rules = (self.map_embedding("cls.predictions.decoder.weight"), *position_rules, *self.map_modules())
        if self.head == "mlm":
            copies = ("cls.predictions.decoder.bias",)
            rules += (MappingRule("head.lm_head.bias", "cls.predictions.bias", hf_copies=copies),)
        types = f"{embeddings}.token_type_embeddings"
        if isinstance(model.source, TokensConfig) and model.source.types:
            rules += make_rules({"source.types": types}, "weight")
        else:

            def make_zeros(ours: Tensors) -> "Tensor":
                return ours[SOURCE_EMBEDDING].new_zeros(1, ours[SOURCE_EMBEDDING].size(1))

            reason = "all zeros, because Regard's model has no token types."
            constants += (Constant(f"{types}.weight", reason, make_zeros),)
        constants += (Constant(f"{embeddings}.position_ids", "0, 1, 2, ..., which older files contain."),)
        reason = "part of the next-sentence task, which this head does not use."
        unused = ("cls.seq_relationship", *(() if self.head == "classes" else (f"{self.prefix}pooler.dense",)))
        constants += tuple(Constant(f"{module}.{field}", reason) for module in unused for field in WEIGHT_AND_BIAS)
        return WeightMap(self.name, rules, constants)


BERTS = tuple(BertArchitecture(head) for head in HEADS)
