"""A model's knobs: three families, their inputs and heads. This is what `model.toml` holds.

    width = 128
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

from regard.base.errors import Fault
from regard.config.parts import Activation, Attention, CrossStack, Frozen, Positive, Size, Stack

TaskHeads = dict[str, type[Frozen]]  # the head that each task needs


def _check_unique(labels: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(labels)) < len(labels):
        raise PydanticCustomError("labels", "labels must be different")
    return labels


Labels = Annotated[tuple[str, ...], Field(min_length=2, strict=False), AfterValidator(_check_unique)]


class Tokens(Frozen):
    """A table of embeddings: one vector per word of the vocabulary."""

    kind: Literal["tokens"] = "tokens"
    vocabulary: Size
    scale: bool = False
    """Multiply embeddings by sqrt(width), as the 2017 paper does."""
    types: Annotated[int, Field(ge=0)] = 0
    """Token types (BERT's first and second sentence); 0 means none."""


class Shared(Frozen):
    """The target is read with the source's table."""

    kind: Literal["shared"] = "shared"


class Patches(Frozen):
    """An image, cut into squares; each square becomes one vector (ViT)."""

    kind: Literal["patches"] = "patches"
    patch: Size
    """The side of a square, in pixels."""
    channels: Size = 1
    class_token: bool = False
    """Put one learned vector before the squares, for a classifier to read."""


class Mel(Frozen):
    """A mel spectrogram; each group of frames becomes one vector."""

    kind: Literal["mel"] = "mel"
    bins: Size
    """Frequencies per frame."""
    frames: Size = 2
    """Frames per vector."""


Input = Annotated[Tokens | Patches | Mel, Field(discriminator="kind")]


class LMHead(Frozen):
    """A score for every word of the vocabulary, at every position."""

    kind: Literal["lm"] = "lm"
    tied: bool = False
    """Use the embedding table of the tokens as output matrix."""
    bias: bool = False
    """Add a learned number per word."""


class MLMHead(Frozen):
    """Words for masked positions: a dense layer and a norm before the (tied) output matrix (BERT)."""

    kind: Literal["mlm"] = "mlm"
    tied: bool = True
    activation: Activation = "gelu"


class Classes(Frozen):
    """One label for the whole sequence."""

    kind: Literal["classes"] = "classes"
    labels: Labels
    pool: Literal["first", "mean", "last"] = "first"
    """Which vector speaks for the sequence."""
    hidden: bool = True
    """A dense layer with tanh before the last one (BERT's pooler)."""


class Tags(Frozen):
    """One label for every position."""

    kind: Literal["tags"] = "tags"
    labels: Labels


class NoHead(Frozen):
    """No head: the vectors themselves are the answer."""

    kind: Literal["none"] = "none"


class Xavier(Frozen):
    """Every matrix uniform by fan-in and fan-out, embeddings too: the lectures' code."""

    kind: Literal["xavier"] = "xavier"


class ScaledResidual(Frozen):
    """Normal weights; those that write to the residual are divided by sqrt(number of sublayers) (GPT-2)."""

    kind: Literal["scaled_residual"] = "scaled_residual"
    std: Positive = 0.02


class SmallEmbedding(Frozen):
    """Xavier matrices, zero biases, and embeddings of standard deviation 1/sqrt(width)."""

    kind: Literal["small_embedding"] = "small_embedding"


Initial = Annotated[Xavier | ScaledResidual | SmallEmbedding, Field(discriminator="kind")]


class Consistent(Frozen):
    """A table whose fields are checked together, too."""

    def find_faults(self) -> Iterator[Fault]:
        """What is wrong between fields that are right by themselves."""
        yield from ()

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        faults = list(self.find_faults())
        if faults:
            context: dict[str, Any] = {"faults": faults}
            raise PydanticCustomError("inconsistent", "fields that do not fit together", context)
        return self


class Model(Consistent):
    """What the three families have in common."""

    format: Literal[1] = 1
    """The version of this file's layout."""
    width: Size
    """The size of the vectors that travel through the layers (d_model)."""
    initial: Initial = SmallEmbedding()
    """How a new model's weights are drawn."""
    languages: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Source and target language, or the languages of the text."""


class EncoderDecoder(Model):
    """Read the source as a whole, then write the target word by word."""

    family: Literal["encoder_decoder"] = "encoder_decoder"
    task: Literal["translate", "restore", "transcribe"] = "translate"
    """What it is for; there is no training for `transcribe` yet."""
    source: Input
    target: Annotated[Tokens | Shared, Field(discriminator="kind")]
    encoder: Stack
    decoder: CrossStack
    head: LMHead = LMHead()
    max_length_ratio: Annotated[float, Field(gt=0, le=1000)] = 2.0
    """How many target tokens a source token may become, before a text is cut off; training finds it in the corpus."""

    @property
    def target_tokens(self) -> Tokens:
        """The table that reads the target: its own, or the source's."""
        tokens = self.source if isinstance(self.target, Shared) else self.target
        assert isinstance(tokens, Tokens)  # noqa: S101 - `faults` refuses a shared table without tokens
        return tokens

    def find_faults(self) -> Iterator[Fault]:
        """What is wrong between fields that are right by themselves."""
        yield from find_stack_faults("encoder", self.encoder, self.width)
        yield from find_stack_faults("decoder", self.decoder, self.width)
        yield from find_attention_faults("decoder.cross", self.decoder.cross, self.width)
        yield from find_type_faults("source", self.source)
        yield from find_type_faults("target", self.target)
        if isinstance(self.target, Shared) and not isinstance(self.source, Tokens):
            yield Fault("target.kind", "is 'shared', but the source has no tokens.", "Use kind = 'tokens'.")


class DecoderOnly(Model):
    """Write on, each word seeing only those before it; an image or sound may stand before the words."""

    family: Literal["decoder_only"] = "decoder_only"
    task: Literal["continue", "classify", "caption", "embed"] = "continue"
    """What it is for; there is only training for `continue` yet."""
    prefix: Annotated[Patches | Mel, Field(discriminator="kind")] | None = None
    """What stands before the words, if anything."""
    tokens: Tokens
    decoder: Stack
    head: Annotated[LMHead | Classes | NoHead, Field(discriminator="kind")] = LMHead()

    def find_faults(self) -> Iterator[Fault]:
        """What is wrong between fields that are right by themselves."""
        yield from find_stack_faults("decoder", self.decoder, self.width)
        yield from find_type_faults("tokens", self.tokens)
        if self.task == "caption" and self.prefix is None:
            yield Fault("task", "is 'caption', but there is no prefix to speak of.", "Add prefix = {kind = 'patches'}.")
        if isinstance(self.head, Classes) and self.head.pool == "first":
            yield Fault("head.pool", "is 'first', but the first word sees no other.", "Use 'last' or 'mean'.")
        heads_by_task: TaskHeads = {"continue": LMHead, "caption": LMHead, "classify": Classes, "embed": NoHead}
        yield from find_task_faults(self.task, self.head, heads_by_task)


class EncoderOnly(Model):
    """Read the whole sequence, every position seeing every other, and say something about it."""

    family: Literal["encoder_only"] = "encoder_only"
    task: Literal["fill", "classify", "tag", "embed"] = "fill"
    """What it is for; there is no training for `embed` yet."""
    source: Input
    encoder: Stack
    head: Annotated[MLMHead | Classes | Tags | NoHead, Field(discriminator="kind")]

    def find_faults(self) -> Iterator[Fault]:
        """What is wrong between fields that are right by themselves."""
        yield from find_stack_faults("encoder", self.encoder, self.width)
        if isinstance(self.head, MLMHead) and not isinstance(self.source, Tokens):
            yield Fault("head.kind", "is 'masked_words', but the source has no words.", "Use tokens.")
        heads_by_task: TaskHeads = {"fill": MLMHead, "classify": Classes, "tag": Tags, "embed": NoHead}
        yield from find_task_faults(self.task, self.head, heads_by_task)


ModelConfig = Annotated[EncoderDecoder | DecoderOnly | EncoderOnly, Field(discriminator="family")]
AnyModel = EncoderDecoder | DecoderOnly | EncoderOnly


def find_stack_faults(path: str, stack: Stack, width: int) -> Iterator[Fault]:
    """What is wrong between a stack's parts."""
    yield from find_attention_faults(f"{path}.attention", stack.attention, width)
    position = stack.position
    if position.kind == "relative" and position.distance <= position.buckets // 2:
        yield Fault(
            f"{path}.position.distance",
            f"is {position.distance}, but half of {position.buckets} buckets already reach that far exactly.",
            f"Use more than {position.buckets // 2}.",
        )
    if position.kind == "sinusoidal" and width % 2:
        yield Fault(f"{path}.position", f"needs pairs of dimensions, but width is {width}.", "Use an even width.")
    if position.kind == "rotary" and (key_dim := stack.attention.dims(width)[0]) % 2:
        yield Fault(f"{path}.position", f"turns pairs, but key_dim is {key_dim}.", "Use an even key_dim.")


def find_attention_faults(path: str, attention: Attention, width: int) -> Iterator[Fault]:
    """What is wrong between an attention's sizes."""
    if attention.heads % attention.groups:
        yield Fault(
            f"{path}.key_value_heads",
            f"is {attention.groups}, which does not divide {attention.heads} heads.",
            f"Use one of {[n for n in range(1, attention.heads + 1) if attention.heads % n == 0]}.",
        )
    if attention.key_dim is None and width % attention.heads:
        yield Fault(
            f"{path}.heads",
            f"is {attention.heads}, which does not divide the width {width}.",
            "Change heads, or say key_dim.",
        )


def find_type_faults(path: str, source: Frozen) -> Iterator[Fault]:
    """Token types in a family that is never told them."""
    if isinstance(source, Tokens) and source.types:
        yield Fault(f"{path}.types", f"is {source.types}, but only encoder-only models are told types.", "Use 0.")


def find_task_faults(task: str, head: Frozen, heads_by_task: TaskHeads) -> Iterator[Fault]:
    """A task that the head cannot answer."""
    head_class = heads_by_task[task]
    if not isinstance(head, head_class):
        kind = head_class.model_fields["kind"].default
        yield Fault("task", f"is '{task}', but the head is of another kind.", f"Use head kind '{kind}'.")
