"""Settings of the layers of a stack.

Each choice is a tagged union: `position = {kind = "rotary", theta = 10000.0}` has a theta because rotary
positions have one, and `{kind = "alibi"}` has none. The names mirror the modules of `regard.nn`.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.base import limits
from regard.base.errors import RegardError

Size = Annotated[int, Field(gt=0, le=limits.SIZE)]
Heads = Annotated[int, Field(gt=0, le=limits.HEADS)]
Rate = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PixelSize = Annotated[tuple[Size, Size], Field(strict=False)]  # height and width


class SettingsModel(BaseModel):
    """A settings table: immutable; unknown keys are errors."""

    # `defer_build`: a command builds only the tables of its own file.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            """Raise an error: settings are immutable."""
            hint = f"Make changed settings, for example regard.preset('tiny', {{'{name}': {value!r}}})."
            raise RegardError(f"Settings cannot be changed in place: `{name}`.", hint=hint)


class LayerNormConfig(SettingsModel):
    """Layer norm (Ba et al. 2016): subtract the mean, divide by the standard deviation, scale and shift."""

    kind: Literal["layer"] = "layer"
    eps: Positive = 1e-5
    """Added to the variance, so that a constant vector does not divide by zero."""
    bias: bool = True
    """Whether the norm also shifts."""


class RmsNormConfig(SettingsModel):
    """RMS norm (Zhang and Sennrich 2019): divide by the root mean square and scale; no mean, no shift."""

    kind: Literal["rms"] = "rms"
    eps: Positive = 1e-6
    """Added to the mean square, so that a zero vector does not divide by zero."""


NormConfig = Annotated[LayerNormConfig | RmsNormConfig, Field(discriminator="kind")]


class SinusoidalConfig(SettingsModel):
    """Sines and cosines of falling frequency, added to the input (Vaswani et al. 2017)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    layout: Literal["interleaved", "halves"] = "halves"
    """`interleaved`: sin, cos, sin, cos, as in the paper; `halves`: all sines, then all cosines, as in Marian."""
    base: Positive = 10000.0
    """The longest wavelength, divided by 2 pi."""


class Sinusoidal2dConfig(SettingsModel):
    """Sinusoids of a patch's row and column, half of the dimensions each, added to the image input."""

    kind: Literal["sinusoidal_2d"] = "sinusoidal_2d"
    columns: Size
    """Patches in a row of the image."""
    first: Annotated[int, Field(ge=0)] = 1
    """Number of vectors before the first patch, which get no position: 1 with a class token."""
    base: Positive = 10000.0
    """The longest wavelength, divided by 2 pi."""


class LearnedConfig(SettingsModel):
    """One learned vector per position, added to the input; a sequence longer than `length` is an error."""

    kind: Literal["learned"] = "learned"
    length: Size
    """Number of positions."""
    offset: Annotated[int, Field(ge=0)] = 0
    """Rows of the table before the first position (BART keeps 2)."""


class RotaryConfig(SettingsModel):
    """Rotate queries and keys by an angle proportional to the position (RoPE, Su et al. 2021)."""

    kind: Literal["rotary"] = "rotary"
    theta: Positive = 10000.0
    """The base of the frequencies; larger for longer contexts."""
    layout: Literal["halves", "interleaved"] = "halves"
    """How dimensions are paired: i with i + d/2 (Llama), or 2i with 2i + 1 (RoFormer)."""


class AlibiConfig(SettingsModel):
    """Subtract a bias proportional to the distance, with a slope per head (ALiBi, Press et al. 2021)."""

    kind: Literal["alibi"] = "alibi"


class RelativeConfig(SettingsModel):
    """Add a learned number per head and distance bucket to the scores of every layer (Raffel et al. 2020, T5)."""

    kind: Literal["relative"] = "relative"
    buckets: Annotated[int, Field(ge=4)] = 32
    """Number of distance buckets; half of them hold one distance each, the rest are logarithmic."""
    distance: Size = 128
    """All distances from here on share the last bucket."""


class NoPositionConfig(SettingsModel):
    """No position encoding: without a causal mask the model sees a bag of tokens."""

    kind: Literal["none"] = "none"


class CustomConfig(SettingsModel):
    """A module of your own, registered with `regard.register` (docs/extending)."""

    kind: Literal["custom"] = "custom"
    name: str
    """The name that it was registered under."""


PositionConfig = Annotated[
    SinusoidalConfig
    | Sinusoidal2dConfig
    | LearnedConfig
    | RotaryConfig
    | AlibiConfig
    | RelativeConfig
    | NoPositionConfig
    | CustomConfig,
    Field(discriminator="kind"),
]


class ScaledDotConfig(SettingsModel):
    """q.k times a scale, 1/sqrt(d_k) by default."""

    kind: Literal["scaled_dot"] = "scaled_dot"
    scale: Positive | None = None
    """The factor; T5 uses 1."""


class DotConfig(SettingsModel):
    """q.k without a scale."""

    kind: Literal["dot"] = "dot"


class GeneralConfig(SettingsModel):
    """q.Wk: a learned matrix between query and key (Luong et al. 2015)."""

    kind: Literal["general"] = "general"


class ConcatConfig(SettingsModel):
    """v.tanh(W[q; k]): one layer over the concatenated query and key (Luong et al. 2015)."""

    kind: Literal["concat"] = "concat"
    hidden: Size
    """Size of the hidden layer, per head."""


class AdditiveConfig(SettingsModel):
    """v.tanh(W1 q + W2 k) (Bahdanau et al. 2015)."""

    kind: Literal["additive"] = "additive"
    hidden: Size
    """Size of the hidden layer, per head."""


ScoreConfig = Annotated[
    ScaledDotConfig | DotConfig | GeneralConfig | ConcatConfig | AdditiveConfig | CustomConfig,
    Field(discriminator="kind"),
]


class ProjectionBiasConfig(SettingsModel):
    """Which of the four projections of an attention have a bias."""

    query: bool = True
    key: bool = True
    value: bool = True
    output: bool = True


class AttentionConfig(SettingsModel):
    """Heads, sizes and score function of an attention."""

    heads: Heads
    """Query heads."""
    key_value_heads: Heads | None = None
    """Key and value heads: as many as query heads (MHA, the default), fewer (GQA) or one (MQA)."""
    key_dim: Size | None = None
    """d_k, the size of a head's queries and keys; d_model / heads if not given."""
    value_dim: Size | None = None
    """d_v, the size of a head's values; d_k if not given."""
    bias: ProjectionBiasConfig = ProjectionBiasConfig()
    score: ScoreConfig = ScaledDotConfig()
    query_key_norm: NormConfig | None = None
    """Normalize each head's queries and keys before the scores are computed (Qwen3)."""

    def dims(self, width: int) -> tuple[int, int]:
        """Return (d_k, d_v) in a model of this d_model."""
        key_dim = self.key_dim or width // self.heads
        return key_dim, self.value_dim or key_dim

    @property
    def groups(self) -> int:
        """The number of key and value heads."""
        return self.key_value_heads or self.heads


Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]


class FeedForwardConfig(SettingsModel):
    """Two matrices with an activation between them: W2 f(W1 x)."""

    kind: Literal["plain"] = "plain"
    d_ff: Size
    """Size of the hidden layer; usually 2 to 8 times d_model."""
    activation: Activation = "relu"
    bias: bool = True


class GLUConfig(SettingsModel):
    """Gated feed-forward: W2 (f(Wg x) * W1 x); SwiGLU with silu."""

    kind: Literal["gated"] = "gated"
    d_ff: Size
    """Size of the hidden layer."""
    activation: Activation = "silu"
    bias: bool = False


class CustomFeedForwardConfig(CustomConfig):
    """A feed-forward of your own, registered with `regard.register` (docs/extending/feed-forward.md)."""

    d_ff: Size
    """Size of the hidden layer; estimates of cost count two matrices."""
    activation: Activation = "relu"
    bias: bool = True


AnyFeedForwardConfig = Annotated[FeedForwardConfig | GLUConfig | CustomFeedForwardConfig, Field(discriminator="kind")]


class DropoutConfig(SettingsModel):
    """Dropout probabilities at five places."""

    token: Rate = 0.0
    """Drops whole input embeddings, before positions are added."""
    embedding: Rate = 0.0
    """The sum of embeddings and positions."""
    sublayer: Rate = 0.0
    """The output of each sublayer (attention or feed-forward), before it is added to the residual."""
    attention: Rate = 0.0
    """Attention weights."""
    feedforward: Rate = 0.0
    """The hidden layer of the feed-forward."""


class StackConfig(SettingsModel):
    """A stack of equal Transformer layers, with its positions and norms."""

    kind: Literal["attention"] = "attention"
    layers: Annotated[int, Field(ge=0, le=limits.LAYERS)]
    """Number of layers; 0 only for word2vec, whose embeddings go straight to the head."""
    norm_order: Literal["pre", "post"]
    """The norm before each sublayer (pre) or after each sum (post, the 2017 paper)."""
    norm: NormConfig = LayerNormConfig()
    input_norm: bool = False
    """Normalize the sum of embeddings and positions (BERT, BART)."""
    final_norm: bool
    """Normalize the output of the last layer; pre-norm stacks need it."""
    position: PositionConfig
    attention: AttentionConfig
    feedforward: AnyFeedForwardConfig
    window: Size | None = None
    """Attention window: a token attends to itself and to window - 1 neighbors on each permitted side."""
    dropout: DropoutConfig = DropoutConfig()

    @property
    def max_positions(self) -> int | None:
        """Number of learned positions; None if the positions have no upper limit."""
        return self.position.length if self.position.kind == "learned" else None


class CrossStackConfig(StackConfig):
    """A stack with cross-attention: the decoder of an encoder-decoder."""

    cross: AttentionConfig
    """The attention from the decoder to the encoder's output."""


class RecurrentDropoutConfig(SettingsModel):
    """Dropout probabilities of a recurrent stack."""

    token: Rate = 0.0
    """Whole input embeddings."""
    embedding: Rate = 0.0
    """The input of the first layer."""
    sublayer: Rate = 0.0
    """The output of each layer; the recurrent state is never dropped."""
    attention: Rate = 0.0
    """Attention weights."""


class RecurrentConfig(SettingsModel):
    """A stack of recurrent layers: one step per token, each starting from the previous step's state."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["rnn", "gru", "lstm"] = "gru"
    """Vanilla RNN with tanh, GRU (Cho et al. 2014) or LSTM (Hochreiter and Schmidhuber 1997)."""
    layers: Annotated[int, Field(gt=0, le=limits.LAYERS)]
    bidirectional: bool = False
    """Encoders only: half of each state is computed forwards, the other half backwards from the last token."""
    dropout: RecurrentDropoutConfig = RecurrentDropoutConfig()

    @property
    def max_positions(self) -> None:
        """No upper limit."""
        return


class FixedVectorConfig(SettingsModel):
    """The encoder's last state is the context of every step (Cho et al. 2014): no attention."""

    kind: Literal["fixed_vector"] = "fixed_vector"


class LuongConfig(SettingsModel):
    """Attention after the cell, with the new state (Luong et al. 2015): all steps at once."""

    kind: Literal["luong"] = "luong"
    score: ScoreConfig = GeneralConfig()


class BahdanauConfig(SettingsModel):
    """Attention before the cell, with the previous step's state (Bahdanau et al. 2014): step by step."""

    kind: Literal["bahdanau"] = "bahdanau"
    score: ScoreConfig


RecurrentMemoryConfig = Annotated[FixedVectorConfig | LuongConfig | BahdanauConfig, Field(discriminator="kind")]


class CrossRecurrentConfig(RecurrentConfig):
    """A recurrent stack that reads a memory: the decoder of an encoder-decoder."""

    cross: RecurrentMemoryConfig
    """How each layer reads the encoder's output."""


AnyStackConfig = Annotated[StackConfig | RecurrentConfig, Field(discriminator="kind")]
AnyCrossStackConfig = Annotated[CrossStackConfig | CrossRecurrentConfig, Field(discriminator="kind")]


def attention_stack(stack: StackConfig | RecurrentConfig) -> StackConfig:
    """Return the stack as Transformer layers; the caller has already rejected other kinds."""
    assert isinstance(stack, StackConfig)  # noqa: S101
    return stack


def attention_cross_stack(stack: CrossStackConfig | CrossRecurrentConfig) -> CrossStackConfig:
    """Return the stack as Transformer layers with cross-attention; the caller has already rejected other kinds."""
    assert isinstance(stack, CrossStackConfig)  # noqa: S101
    return stack
