"""Settings of a model (`model.toml`): three families, their inputs and heads.

    d_model = 128
    family = "encoder_decoder"
    source = {kind = "tokens", vocabulary = 10000, scale = true}
    target = {kind = "shared"}
    [encoder] ...  [decoder] ...  [head] ...

`regard.config.codec` reads and writes it; `regard.models.build` turns it into a network.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from regard.base import limits
from regard.base.errors import Fault
from regard.config.inputs import (
    InputConfig,
    MelConfig,
    PatchesConfig,
    RasterConfig,
    SharedConfig,
    TokensConfig,
)
from regard.config.parts import (
    Activation,
    AnyCrossStackConfig,
    AnyStackConfig,
    AttentionConfig,
    CrossRecurrentConfig,
    CrossStackConfig,
    RecurrentConfig,
    SettingsModel,
    Sinusoidal2dConfig,
    Size,
    StackConfig,
)
from regard.config.task_spec import TaskName, TaskSpec, find_spec

INPUT_NAMES = {"tokens": "text", "patches": "images", "mel": "audio clips", "raster": "pixels"}


def _check_unique(labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(labels)) < len(labels):
        raise PydanticCustomError("labels", "labels must be different")
    return labels


Labels = Annotated[tuple[str, ...], Field(min_length=2, strict=False), AfterValidator(_check_unique)]


class LMHeadConfig(SettingsModel):
    """Language-model head: logits over the vocabulary at every position."""

    kind: Literal["lm"] = "lm"
    tied: bool = False
    """Tie the output matrix to the token embeddings."""
    bias: bool = False
    """Add a bias per token."""


class MLMHeadConfig(SettingsModel):
    """Masked-language-model head: a dense layer and a norm before the (tied) output matrix (BERT)."""

    kind: Literal["mlm"] = "mlm"
    tied: bool = True
    activation: Activation = "gelu"


class BagHeadConfig(SettingsModel):
    """The head of word2vec (Mikolov et al. 2013): a token from its neighbors, or a neighbor from a token."""

    kind: Literal["bag"] = "bag"
    window: Size = 5
    """Neighbors on each side."""


class ClassificationHeadConfig(SettingsModel):
    """One label for the whole sequence."""

    kind: Literal["classes"] = "classes"
    labels: Labels
    pool: Literal["first", "mean", "last"] = "first"
    """Which vector represents the sequence."""
    hidden: bool = True
    """A dense layer with tanh before the last one (BERT's pooler)."""


class TaggingHeadConfig(SettingsModel):
    """One label for every position."""

    kind: Literal["tags"] = "tags"
    labels: Labels


class PatchHeadConfig(SettingsModel):
    """Pixels of masked patches: a masked autoencoder (He et al. 2022).

    A few layers, like those in the encoder, read the encoded visible patches and a mask token for each masked patch,
    and predict the masked pixels.
    """

    kind: Literal["pixels"] = "pixels"
    layers: Annotated[int, Field(gt=0, le=limits.LAYERS)] = 1
    """Layers between the encoder and the pixels."""


class NoHeadConfig(SettingsModel):
    """No head: the output is the hidden states."""

    kind: Literal["none"] = "none"


AnyHeadConfig = (
    LMHeadConfig
    | MLMHeadConfig
    | BagHeadConfig
    | ClassificationHeadConfig
    | TaggingHeadConfig
    | PatchHeadConfig
    | NoHeadConfig
)


class XavierConfig(SettingsModel):
    """Xavier-uniform matrices, embeddings included (Glorot and Bengio 2010)."""

    kind: Literal["xavier"] = "xavier"


class ScaledResidualConfig(SettingsModel):
    """Normal weights (standard deviation 0.02); sublayer outputs are divided by sqrt(sublayers) (GPT-2)."""

    kind: Literal["scaled_residual"] = "scaled_residual"


class SmallEmbeddingConfig(SettingsModel):
    """Xavier matrices, zero biases, and embeddings of standard deviation 1/sqrt(d_model)."""

    kind: Literal["small_embedding"] = "small_embedding"


InitialConfig = Annotated[XavierConfig | ScaledResidualConfig | SmallEmbeddingConfig, Field(discriminator="kind")]


class CheckedSettings(SettingsModel):
    """A settings table with checks across its fields."""

    def find_faults(self) -> Iterator[Fault]:
        """Yield inconsistencies between fields, each of which is valid alone."""
        yield from ()

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        faults = list(self.find_faults())
        if faults:
            context: dict[str, Any] = {"faults": faults}
            raise PydanticCustomError("inconsistent", "inconsistent fields", context)
        return self


class BaseModelConfig(CheckedSettings):
    """Settings common to the three families."""

    format: Literal[1] = 1
    """Version of the file format."""
    d_model: Size
    """Size of the hidden states (d_model)."""
    initial: InitialConfig = SmallEmbeddingConfig()
    """Initialization of new weights."""
    languages: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Source and target language, or the languages of the text."""

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Show task, size and layers; `regard.config.codec.MODEL_FILES.dumps` writes all settings."""
        shown: dict[str, Any] = {"task": getattr(self, "task", None), "d_model": self.d_model}
        stacks = ((name, getattr(self, name, None)) for name in ("encoder", "decoder"))
        shown |= {f"{name}.layers": stack.layers for name, stack in stacks if stack is not None}
        yield from (shown | ({"languages": "-".join(self.languages)} if self.languages else {})).items()

    def with_context_length(self, length: int) -> Self:  # noqa: ARG002
        """Return the settings of a model that was trained on texts of this many tokens, if that limits its use."""
        return self


TokenIds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False)]


class GenerationConfig(SettingsModel):
    """Generation settings of an imported transcription model (Whisper)."""

    prompt: TokenIds = ()
    """Tokens that the decoder reads after bos, before it generates."""
    suppress_tokens: TokenIds = ()
    """Tokens that it never generates."""
    begin_suppress_tokens: TokenIds = ()
    """Tokens that it does not generate first, for example a blank."""
    beam_size: Size = 1
    """Default beam size; 1 is greedy."""


class EncoderDecoderConfig(BaseModelConfig):
    """Encoder-decoder: encodes the source, then generates the target token by token."""

    family: Literal["encoder_decoder"] = "encoder_decoder"
    task: TaskName = "translation"
    """Task of the model: translation, span_corruption, transcription (from audio) or captioning (from images)."""
    source: InputConfig
    target: Annotated[TokensConfig | SharedConfig, Field(discriminator="kind")]
    encoder: AnyStackConfig
    decoder: AnyCrossStackConfig
    head: LMHeadConfig = LMHeadConfig()
    max_length_ratio: Annotated[float, Field(gt=0, le=1000)] = 2.0
    """Maximum number of target tokens per source token, an upper bound; training computes it from the corpus."""
    generation: GenerationConfig | None = None
    """Generation settings for transcription; only imported models have them."""

    @property
    def target_tokens(self) -> TokensConfig:
        """The target embeddings: separate, or shared with the source."""
        tokens = self.source if isinstance(self.target, SharedConfig) else self.target
        assert isinstance(tokens, TokensConfig)  # noqa: S101 - `find_faults` rejects a shared target without tokens
        return tokens

    def find_faults(self) -> Iterator[Fault]:
        """Yield inconsistencies between fields, each of which is valid alone."""
        yield from find_stack_faults("encoder", self.encoder, self.d_model)
        yield from find_stack_faults("decoder", self.decoder, self.d_model)
        if isinstance(self.decoder, CrossStackConfig):
            yield from find_attention_faults("decoder.cross", self.decoder.cross, self.d_model)
        else:
            yield from find_memory_faults(self.encoder, self.decoder)
        yield from find_type_faults("source", self.source)
        yield from find_type_faults("target", self.target)
        yield from find_grid_faults("decoder", self.decoder)
        if isinstance(self.source, PatchesConfig):
            yield from find_image_faults(self.source, self.encoder)
        else:
            yield from find_grid_faults("encoder", self.encoder)
        if isinstance(self.source, MelConfig):
            yield from self.source.find_faults("source")
        yield from find_task_faults(self, self.source.kind)
        if isinstance(self.target, SharedConfig) and not isinstance(self.source, TokensConfig):
            yield Fault("target.kind", "is 'shared', but the source has no tokens.", "Use kind = 'tokens'.")
        elif self.generation is not None:
            yield from self._find_generation_faults(self.generation)

    def _find_generation_faults(self, generation: GenerationConfig) -> Iterator[Fault]:
        if self.task != "transcription":
            message = f"is set, but the task is '{self.task}': only transcription reads it."
            yield Fault("generation", message, "Remove it.")
        size, limit = self.target_tokens.vocabulary, self.decoder.max_positions
        for name in ("prompt", "suppress_tokens", "begin_suppress_tokens"):
            ids = getattr(generation, name)
            if max(ids, default=0) >= size:
                message = f"has the token {max(ids)}, but the vocabulary has {size:,} tokens."
                yield Fault(f"generation.{name}", message, "Use tokens of the vocabulary.")
        if limit is not None and len(generation.prompt) + 1 >= limit:
            message = f"fills all of the decoder's {limit} positions."
            yield Fault("generation.prompt", message, "Shorten it.")


class DecoderOnlyConfig(BaseModelConfig):
    """Decoder-only: continues a text; every token attends to earlier ones. An image or audio clip may be its prefix."""

    family: Literal["decoder_only"] = "decoder_only"
    task: TaskName = "causal_lm"
    """Task of the model: causal_lm, or image_generation if the tokens are pixels. Models of the tasks
    text_classification, embedding and captioning can be built, but not trained yet."""
    prefix: Annotated[PatchesConfig | MelConfig, Field(discriminator="kind")] | None = None
    """Optional input that precedes the tokens."""
    tokens: TokensConfig
    raster: RasterConfig | None = None
    """The tokens are pixels of images of this size; none means that they are text."""
    starts_with_bos: bool = True
    """Start every text with bos. Some imported models were trained without it, and images start with their label."""
    context_length: Size | None = None
    """Length of the training texts in tokens; training writes it into the trained model. Evaluation reads longer texts
    in windows of this length, and generation warns beyond it."""
    decoder: AnyStackConfig
    head: Annotated[LMHeadConfig | ClassificationHeadConfig | NoHeadConfig, Field(discriminator="kind")] = (
        LMHeadConfig()
    )

    def with_context_length(self, length: int) -> Self:
        """Return the settings of a model that was trained on texts of this many tokens."""
        return self if self.raster is not None else self.model_copy(update={"context_length": length})

    def find_faults(self) -> Iterator[Fault]:
        """Yield inconsistencies between fields, each of which is valid alone."""
        yield from find_stack_faults("decoder", self.decoder, self.d_model)
        yield from find_type_faults("tokens", self.tokens)
        yield from find_grid_faults("decoder", self.decoder)
        if self.task == "captioning" and self.prefix is None:
            yield Fault("task", "is 'captioning', but there is no prefix.", "Add prefix = {kind = 'patches'}.")
        if isinstance(self.head, ClassificationHeadConfig) and self.head.pool == "first":
            yield Fault("head.pool", "is 'first', but the first token attends only to itself.", "Use 'last' or 'mean'.")
        yield from find_task_faults(self, "tokens" if self.raster is None else "raster")
        if self.raster is not None:
            yield from self._find_raster_faults(self.raster)

    def _find_raster_faults(self, raster: RasterConfig) -> Iterator[Fault]:
        if self.prefix is not None:
            yield Fault("raster", "is set, but only a model without a prefix generates images.", "Remove prefix.")
        if self.starts_with_bos:
            yield Fault("starts_with_bos", "is true, but an image starts with its label.", "Use false.")
        if raster.pixels > limits.PIXELS:
            yield Fault("raster.size", f"is more than {limits.PIXELS:,} pixels.", "Use smaller images.")
        limit = self.decoder.max_positions
        if limit is not None and limit < raster.row_length:
            message = f"is {limit}, but an image is {raster.row_length} tokens long (bos, label and pixels)."
            yield Fault("decoder.position.length", message, f"Set it to {raster.row_length}.")


class EncoderOnlyConfig(BaseModelConfig):
    """Encoder-only: every position attends to every other one."""

    family: Literal["encoder_only"] = "encoder_only"
    task: TaskName = "masked_lm"
    """Task of the model: masked_lm, text_classification, tagging, embedding (from pairs of texts), cbow or skip_gram
    (vectors of words), image_classification, masked_patches or audio_classification."""
    source: InputConfig
    encoder: AnyStackConfig
    head: Annotated[
        MLMHeadConfig | BagHeadConfig | ClassificationHeadConfig | TaggingHeadConfig | PatchHeadConfig | NoHeadConfig,
        Field(discriminator="kind"),
    ]

    @property
    def has_pair_types(self) -> bool:
        """Whether the second text of a pair has its own token type."""
        return isinstance(self.source, TokensConfig) and self.source.types > 1

    def find_faults(self) -> Iterator[Fault]:
        """Yield inconsistencies between fields, each of which is valid alone."""
        yield from find_stack_faults(
            "encoder", self.encoder, self.d_model, may_be_empty=isinstance(self.head, BagHeadConfig)
        )
        if isinstance(self.source, PatchesConfig):
            yield from find_image_faults(self.source, self.encoder)
            if isinstance(self.head, PatchHeadConfig) and self.source.stem == "convolution":
                message = "is 'convolution', which mixes pixels of masked patches into visible patches."
                yield Fault("source.stem", message, "Use 'linear'.")
        else:
            yield from find_grid_faults("encoder", self.encoder)
        if isinstance(self.source, MelConfig):
            yield from self.source.find_faults("source")
        if isinstance(self.head, MLMHeadConfig | BagHeadConfig) and not isinstance(self.source, TokensConfig):
            yield Fault("head.kind", f"is '{self.head.kind}', but the source has no tokens.", "Use tokens.")
        if isinstance(self.head, PatchHeadConfig) and not isinstance(self.source, PatchesConfig):
            yield Fault("head.kind", "is 'pixels', but the source has no images.", "Use 'mlm'.")
        if isinstance(self.head, BagHeadConfig) and self.encoder.layers:
            message = f"is {self.encoder.layers}, but a layer would leak the tokens that the head must predict."
            yield Fault("encoder.layers", message, "Use 0.")
        yield from find_task_faults(self, self.source.kind)


ModelConfig = Annotated[EncoderDecoderConfig | DecoderOnlyConfig | EncoderOnlyConfig, Field(discriminator="family")]
AnyModelConfig = EncoderDecoderConfig | DecoderOnlyConfig | EncoderOnlyConfig


def find_stack_faults(
    path: str, stack: StackConfig | RecurrentConfig, width: int, *, may_be_empty: bool = False
) -> Iterator[Fault]:
    """Yield the faults between the parts of a stack."""
    if not stack.layers and not may_be_empty:
        yield Fault(f"{path}.layers", "is 0, but only the head of word2vec (bag) reads embeddings.", "Use 1 or more.")
    if isinstance(stack, RecurrentConfig):
        if stack.bidirectional and path == "decoder":
            yield Fault(f"{path}.bidirectional", "is true, but a decoder cannot read future tokens.", "Use false.")
        elif stack.bidirectional and width % 2:
            yield Fault(f"{path}.bidirectional", f"halves the state, but d_model is {width}.", "Use an even d_model.")
        return
    yield from find_attention_faults(f"{path}.attention", stack.attention, width)
    position = stack.position
    if position.kind == "relative" and position.distance <= position.buckets // 2:
        yield Fault(
            f"{path}.position.distance",
            f"is {position.distance}, but half of the {position.buckets} buckets already cover all distances up to it.",
            f"Use more than {position.buckets // 2}.",
        )
    if position.kind == "sinusoidal_2d" and width % 4:
        message = f"needs pairs of dimensions for rows and columns, but d_model is {width}."
        yield Fault(f"{path}.position", message, "Use a multiple of 4.")
    if position.kind == "sinusoidal" and width % 2:
        yield Fault(f"{path}.position", f"needs pairs of dimensions, but d_model is {width}.", "Use an even d_model.")
    if position.kind == "rotary" and (key_dim := stack.attention.dims(width)[0]) % 2:
        yield Fault(f"{path}.position", f"rotates pairs, but key_dim is {key_dim}.", "Use an even key_dim.")


def find_image_faults(source: PatchesConfig, encoder: StackConfig | RecurrentConfig) -> Iterator[Fault]:
    """Yield the faults between images and the encoder that reads them."""
    yield from source.find_faults("source")
    position = getattr(encoder, "position", None)
    if isinstance(position, Sinusoidal2dConfig):
        columns = None if source.size is None else source.size[1] // source.patch
        if columns not in (None, position.columns):
            message = f"is {position.columns}, but a row of an image has {columns} patches."
            yield Fault("encoder.position.columns", message, f"Set it to {columns}.")
        if position.first != source.class_token:
            message = f"is {position.first}, but {int(source.class_token)} vectors come before the patches."
            yield Fault("encoder.position.first", message, f"Set it to {int(source.class_token)}.")
    limit = encoder.max_positions
    if source.size is not None and limit is not None and limit < (count := source.count_vectors(*source.size)):
        message = f"is {limit}, but an image becomes {count} vectors (patches and class token)."
        yield Fault("encoder.position.length", message, f"Set it to {count}.")


def find_memory_faults(encoder: StackConfig | RecurrentConfig, decoder: CrossRecurrentConfig) -> Iterator[Fault]:
    """Yield a fault if the decoder reads only the encoder's last state and that state has not seen the whole source."""
    if decoder.cross.kind == "fixed_vector" and isinstance(encoder, RecurrentConfig) and encoder.bidirectional:
        message = "is 'fixed_vector', the encoder's last state, but its backward half has seen the last token only."
        yield Fault("decoder.cross.kind", message, "Use encoder.bidirectional = false, or attention.")


def find_attention_faults(path: str, attention: AttentionConfig, width: int) -> Iterator[Fault]:
    """Yield the faults between the sizes of an attention."""
    if attention.heads % attention.groups:
        yield Fault(
            f"{path}.key_value_heads",
            f"is {attention.groups}, which does not divide {attention.heads} heads.",
            f"Use one of {[n for n in range(1, attention.heads + 1) if attention.heads % n == 0]}.",
        )
    if attention.key_dim is None and width % attention.heads:
        yield Fault(
            f"{path}.heads",
            f"is {attention.heads}, which does not divide d_model = {width}.",
            "Change heads, or set key_dim.",
        )


def find_grid_faults(path: str, stack: SettingsModel) -> Iterator[Fault]:
    """Yield a fault for two-dimensional positions in a stack that does not read images."""
    if isinstance(getattr(stack, "position", None), Sinusoidal2dConfig):
        yield Fault(
            f"{path}.position.kind", "is 'sinusoidal_2d', but tokens have no rows and columns.", "Use 'sinusoidal'."
        )


def find_type_faults(path: str, source: SettingsModel) -> Iterator[Fault]:
    """Yield a fault for token types in a family that has no such input."""
    if isinstance(source, TokensConfig) and source.types:
        yield Fault(f"{path}.types", f"is {source.types}, but only encoder-only models have token types.", "Use 0.")


def find_task_faults(model: "AnyModelConfig", input_kind: str) -> Iterator[Fault]:
    """Yield the faults between the task of a model and its family, input and head."""
    spec, families = find_spec(model.task), {"encoder_decoder": "an encoder-decoder"}
    if model.family not in (spec.family, *spec.untrained_families):
        family = families.get(model.family, f"a model of the family {model.family}")
        yield Fault("task", f"is '{spec.name}', which {family} does not learn.", f"Use family '{spec.family}'.")
        return
    if model.family == spec.family and input_kind not in (spec.input, *spec.untrained_inputs):
        yield make_input_fault(spec, input_kind)
    if model.head.kind != spec.head:
        yield Fault("task", f"is '{spec.name}', but the head does not fit it.", f"Use head kind '{spec.head}'.")


def make_input_fault(spec: TaskSpec, input_kind: str) -> Fault:
    """Return the fault of a model whose input does not match its task."""
    needed, read = INPUT_NAMES[spec.input], INPUT_NAMES.get(input_kind, input_kind)
    message = f"is '{spec.name}', which is learned from {needed}, not from {read}."
    return Fault("task", message, f"Use an input of the kind '{spec.input}', or another task.")
