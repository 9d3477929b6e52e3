"""Settings of tokenizers: kinds, special tokens, normalization. `regard.config.run` exports them too."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.parts import Frozen, Rate, Size

Texts = Annotated[tuple[str, ...], Field(strict=False)]


class Specials(Frozen):
    """Text of each special token in the tokenizer file."""

    pad: str = "<pad>"
    bos: str = "<s>"
    eos: str = "</s>"
    unk: str = "<unk>"
    mask: str = "<mask>"
    cls: str = "<cls>"
    sep: str = "<sep>"
    languages: Texts = ()
    """Languages that get a tag token, e.g. "de" for <2de>."""
    extra: Texts = ()
    """Additional tokens of your own."""


class Normalise(Frozen):
    """Normalization of text before tokenization, stored in the tokenizer file; none by default."""

    form: Literal["none", "nfc", "nfkc"] = "none"
    lowercase: bool = False
    strip_accents: bool = False


class TokenizerSettings(Frozen):
    """Settings common to all tokenizers."""

    specials: Specials = Specials()
    normalise: Normalise = Normalise()
    joint: bool = True
    """One tokenizer for source and target (true), or one for each side (false)."""


class ByteBpe(TokenizerSettings):
    """Byte-level byte-pair encoding: every string is encoded and decoded without loss."""

    kind: Literal["byte_bpe"] = "byte_bpe"
    vocabulary: Size = 8000
    dropout: Rate = 0.0
    """BPE-dropout: the probability of skipping a merge in training (Provilkov et al. 2020)."""


class Bpe(TokenizerSettings):
    """Byte-pair encoding over characters with an end-of-word mark, as in the lectures."""

    kind: Literal["bpe"] = "bpe"
    vocabulary: Size = 8000
    dropout: Rate = 0.0
    """BPE-dropout: the probability of skipping a merge in training."""


class Unigram(TokenizerSettings):
    """The most probable segmentation by a unigram language model (Kudo 2018)."""

    kind: Literal["unigram"] = "unigram"
    vocabulary: Size = 8000
    sampling: Rate = 0.0
    """Subword regularization: the share of sentences whose segmentation is sampled in training."""
    byte_fallback: bool = False
    """Write unknown characters as their UTF-8 bytes (256 tokens of the vocabulary), so that no text is unknown."""


class WordLevel(TokenizerSettings):
    """Whole words between spaces; words outside the vocabulary are unknown."""

    kind: Literal["word"] = "word"
    vocabulary: Size = 30000


class CharacterLevel(TokenizerSettings):
    """Single characters; characters outside the vocabulary are unknown."""

    kind: Literal["character"] = "character"


class ByteLevel(TokenizerSettings):
    """The 256 bytes: nothing to learn, nothing unknown."""

    kind: Literal["byte"] = "byte"


class ParentTokenizer(TokenizerSettings):
    """The tokenizer of the parent (`tuning.parent`)."""

    kind: Literal["parent"] = "parent"


class NoTokenizer(TokenizerSettings):
    """No tokenizer: the model labels images or sounds."""

    kind: Literal["none"] = "none"


class Codebook(TokenizerSettings):
    """A color for each pixel: the colors are the centers of k-means over the pixels of the training images."""

    kind: Literal["codebook"] = "codebook"
    colors: Annotated[int, Field(ge=2, le=4096)] = 16
    """Number of colors, or of grays."""


AnyTokenizer = Annotated[ByteBpe | Bpe | Unigram | WordLevel | CharacterLevel | ByteLevel, Field(discriminator="kind")]
RunTokenizer = Annotated[
    ByteBpe | Bpe | Unigram | WordLevel | CharacterLevel | ByteLevel | Codebook | ParentTokenizer | NoTokenizer,
    Field(discriminator="kind"),
]
