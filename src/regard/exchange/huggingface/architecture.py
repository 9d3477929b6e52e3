"""Base classes of Hugging Face architectures: rules, config keys and weight maps.

Each architecture has its own module, and `architectures` lists them. An architecture finds out whether it can represent
a model (`find_obstacles`), reads and writes the config, and maps the weights. Most of a config is a table of
`ConfigKey`, which works in both directions. These modules import no torch, because training also checks them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Generic, Literal, TypeVar

from regard.config.inputs import SharedConfig, TokensConfig
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig, LMHeadConfig
from regard.config.parts import attention_cross_stack, attention_stack
from regard.config.toml_file import with_changes
from regard.exchange.huggingface.architecture_rules import ArchitectureRules
from regard.exchange.huggingface.config_reader import ACTIVATIONS, Config, ConfigReader
from regard.exchange.weight_map import HEAD_WEIGHT, TOKEN_EMBEDDING, MappingRule, Rules, Tensors, WeightMap

SettingsTable = dict[str, Any]
Settings = TypeVar("Settings", bound=AnyModelConfig)
DEFAULT_POSITIONS = 1024  # rows of a stored sinusoid, and the declared maximum of positions without an upper limit


@dataclass(frozen=True)
class ConfigKey:
    """A key of a config, and the settings that hold its value."""

    name: str
    paths: str
    """Paths of settings, separated by spaces; `*` stands for each stack. Reading sets all, writing takes the first."""
    default: float | str | None = None
    """The value if the key is missing; None: the key is required."""
    kind: Literal["integer", "number", "rate", "flag", "activation"] = "integer"
    """The method of `ConfigReader` that reads it."""

    def read(self, config: ConfigReader, stacks: tuple[str, ...]) -> SettingsTable:
        """Read the key as settings by path."""
        value = getattr(config, self.kind)(self.name, self.default)
        return {path.replace("*", stack): value for path in self.paths.split() for stack in stacks}

    def write(self, model: AnyModelConfig, stacks: tuple[str, ...]) -> Any:
        """Return the value of the key for a model."""
        path = self.paths.split()[0].replace("*", stacks[0])
        value: Any = reduce(getattr, path.split("."), model)
        return ACTIVATIONS[value] if self.kind == "activation" else value


Keys = tuple[ConfigKey, ...]
FixedValues = tuple[tuple[str, Any], ...]  # keys of a config and their values


class Architecture(Generic[Settings]):
    """A Hugging Face architecture: its rules, and how to read and write it."""

    name: str
    """The class, as `architectures` of a config names it."""
    model_type: str
    auto_class: str
    """The `Auto*` class of `transformers` that loads it."""
    pipeline_tag: str
    """The task in the front matter of a model card."""
    family: ClassVar[str]
    stacks: ClassVar[tuple[str, ...]]
    rules: ClassVar[ArchitectureRules]
    keys: Keys
    """Keys that hold a setting."""
    constants: FixedValues = ()
    """Keys with a fixed value: it is written, and any other value is rejected."""
    required: FixedValues = ()
    """Keys that are not written, but must have this value if a file has them."""
    positions: ClassVar[tuple[str, int]] = ("max_position_embeddings", 1024)
    """The key of the number of positions, and its default."""
    is_written: ClassVar[bool] = True
    """Whether Regard exports to it; if not, it only imports from it."""
    stored_copies: ClassVar[frozenset[str]] = frozenset()
    """Second names of tied tensors that a file must have."""
    special_ids: ClassVar[tuple[str, ...]] = ()
    """Roles of special tokens that its config names in addition to pad, bos and eos."""
    has_own_tokenizer: ClassVar[bool] = False
    """Whether `AutoTokenizer` of transformers 5 changes its tokenizer.json."""

    @property
    def load_arguments(self) -> dict[str, Any]:
        """Additional arguments of the `Auto*` class's `from_pretrained`."""
        return {"add_pooling_layer": False} if self.auto_class == "AutoModel" else {}

    def is_candidate(self, model: AnyModelConfig) -> bool:
        """Whether a model has the family and head of this architecture."""
        return self.is_written and model.family == self.family

    def find_obstacles(self, model: Settings) -> Iterator[str]:
        """Yield the settings of a candidate that the architecture cannot represent exactly."""
        for name in self.stacks:
            yield from self.rules.find_stack_obstacles(name, attention_stack(getattr(model, name)), model.d_model)

    def write_config(self, model: Settings, max_positions: int) -> Config:
        """Return the config of a model; `max_positions` counts only if the model does not learn its positions."""
        config = {key.name: key.write(model, self.stacks) for key in self.keys}
        stack = attention_stack(getattr(model, self.stacks[0]))
        return config | {self.positions[0]: stack.max_positions or max_positions} | dict(self.constants)

    def read_config(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config; the file's tensors fill in what the config leaves open."""
        for name, value in (*self.constants, *self.required):
            config.require(name, value, value)
        settings = self.read_settings(config, tensors)
        return with_changes({}, {path: value for path, value in settings.items() if value is not None})

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:  # noqa: ARG002
        """Return the settings of a config by path."""
        settings: SettingsTable = {"family": self.family}
        rules, length = self.rules.list_settings(), config.integer(*self.positions)
        for stack in self.stacks:
            settings |= {f"{stack}.{path}": value for path, value in rules.items()}
            if rules["position.kind"] == "learned":
                settings[f"{stack}.position.length"] = length
        for key in self.keys:
            settings |= key.read(config, self.stacks)
        return settings

    def read_generation(self, config: ConfigReader) -> SettingsTable | None:  # noqa: ARG002
        """Return the settings `generation` from a generation config, which older folders have in their config."""
        return None

    def make_weight_map(self, model: Settings, max_positions: int) -> WeightMap:
        """Return the weight map of a model."""
        raise NotImplementedError

    def prepare_weights(self, weights: Tensors) -> Tensors:
        """Fold weights that the architecture lacks, such as token types, into other weights."""
        return weights

    def breaks_cache(self, model: Settings) -> bool:  # noqa: ARG002
        """Whether the cache of `transformers` is too small for a model."""
        return False

    def list_notes(self, model: Settings) -> Iterator[str]:  # noqa: ARG002
        """Yield the differences from the model in Regard, one sentence each."""
        if self.has_own_tokenizer:
            name = self.model_type
            yield f"AutoTokenizer replaces the tokenizer of {name} models: use PreTrainedTokenizerFast (README.md)."


class EncoderDecoderArchitecture(Architecture[EncoderDecoderConfig]):
    """An encoder-decoder that reads and writes text."""

    auto_class, pipeline_tag = "AutoModelForSeq2SeqLM", "translation"
    family = "encoder_decoder"
    stacks = ("encoder", "decoder")
    can_separate_target: ClassVar[bool] = False
    """Whether the target may have its own embeddings."""
    must_tie_head: ClassVar[bool] = True

    def find_obstacles(self, model: EncoderDecoderConfig) -> Iterator[str]:
        """Yield the settings of a model that the architecture cannot represent exactly."""
        yield from super().find_obstacles(model)
        encoder, decoder = attention_stack(model.encoder), attention_cross_stack(model.decoder)
        yield from self.rules.find_attention_obstacles("decoder.cross", decoder.cross, model.d_model)
        if not isinstance(model.source, TokensConfig):
            yield f"source is {model.source.kind} (it requires tokens)"
        if not isinstance(model.target, SharedConfig) and not self.can_separate_target:
            yield "target has its own embeddings (it requires shared embeddings)"
        if isinstance(model.source, TokensConfig) and model.source.scale != model.target_tokens.scale:
            yield "source.scale is not target.scale"
        if encoder.position != decoder.position:
            yield "encoder and decoder have different positions"
        if encoder.feedforward.activation != decoder.feedforward.activation:
            yield "encoder and decoder have different activations"
        if decoder.cross.heads != decoder.attention.heads:
            yield "decoder.cross.heads is not decoder.attention.heads"
        if self.must_tie_head and not model.head.tied:
            yield "head.tied is false"

    def read_config(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config; the decoder's attentions have the same settings."""
        table = super().read_config(config, tensors)
        table["decoder"]["cross"] = table["decoder"]["attention"]
        return table

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        inputs = {"task": "translation", "source.kind": "tokens", "target.kind": "shared"}
        return super().read_settings(config, tensors) | inputs | {"head.kind": "lm", "head.tied": True}


class DecoderOnlyArchitecture(Architecture[DecoderOnlyConfig]):
    """A language model."""

    auto_class, pipeline_tag = "AutoModelForCausalLM", "text-generation"
    family = "decoder_only"
    stacks = ("decoder",)

    def find_obstacles(self, model: DecoderOnlyConfig) -> Iterator[str]:
        """Yield the settings of a model that the architecture cannot represent exactly."""
        yield from super().find_obstacles(model)
        if model.prefix is not None:
            yield f"prefix of {model.prefix.kind} is not supported"
        if model.tokens.scale:
            yield "tokens.scale is not supported"
        if not isinstance(model.head, LMHeadConfig):
            yield f"head is {model.head.kind} (it requires lm)"
        elif model.head.bias:
            yield "head.bias is not supported"

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        return super().read_settings(config, tensors) | {"tokens.kind": "tokens", "head.kind": "lm"}

    def map_tokens(self, model: DecoderOnlyConfig, theirs: str) -> Rules:
        """Map embedding and output projection: one tensor if tied, otherwise two."""
        if isinstance(model.head, LMHeadConfig) and model.head.tied:
            return (MappingRule(TOKEN_EMBEDDING, theirs, regard_copies=(HEAD_WEIGHT,), hf_copies=("lm_head.weight",)),)
        return MappingRule(TOKEN_EMBEDDING, theirs), MappingRule(HEAD_WEIGHT, "lm_head.weight")
