"""Settings of tokenizers: kinds, special tokens, normalization. `regard.config.run` exports them too."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.parts import Rate, SettingsModel, Size

Texts = Annotated[tuple[str, ...], Field(strict=False)]


class SpecialsConfig(SettingsModel):
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
    """Additional special tokens."""


class NormalizeConfig(SettingsModel):
    """Normalization of text before tokenization, stored in the tokenizer file; none by default."""

    form: Literal["none", "nfc", "nfkc"] = "none"
    lowercase: bool = False
    strip_accents: bool = False


class TokenizerConfig(SettingsModel):
    """Settings common to all tokenizers."""

    specials: SpecialsConfig = SpecialsConfig()
    normalize: NormalizeConfig = NormalizeConfig()
    joint: bool = True
    """One tokenizer for source and target (true), or one for each side (false)."""


class ByteBpeConfig(TokenizerConfig):
    """Byte-level byte-pair encoding: every string is encoded and decoded without loss."""

    kind: Literal["byte_bpe"] = "byte_bpe"
    vocabulary: Size = 8000
    sample_characters: Size = 10_000_000
    """Number of characters per side to learn the vocabulary from; a larger corpus is sampled evenly. No character is
    lost, because every byte is a token."""
    dropout: Rate = 0.0
    """BPE-dropout: the probability of skipping a merge in training (Provilkov et al. 2020)."""


class BpeConfig(TokenizerConfig):
    """Byte-pair encoding over characters with an end-of-word mark (Sennrich et al. 2016)."""

    kind: Literal["bpe"] = "bpe"
    vocabulary: Size = 8000
    dropout: Rate = 0.0
    """BPE-dropout: the probability of skipping a merge in training."""


class UnigramConfig(TokenizerConfig):
    """The most probable segmentation by a unigram language model (Kudo 2018)."""

    kind: Literal["unigram"] = "unigram"
    vocabulary: Size = 8000
    sampling: Rate = 0.0
    """Subword regularization: the share of sentences whose segmentation is sampled in training."""
    byte_fallback: bool = False
    """Byte fallback: encode unknown characters as UTF-8 bytes (256 tokens), so that every text can be encoded."""


class WordLevelConfig(TokenizerConfig):
    """Whole words between spaces; words outside the vocabulary are unknown."""

    kind: Literal["word"] = "word"
    vocabulary: Size = 30000


class CharacterLevelConfig(TokenizerConfig):
    """Single characters; characters outside the vocabulary are unknown."""

    kind: Literal["character"] = "character"


class ByteLevelConfig(TokenizerConfig):
    """The 256 bytes: no vocabulary to learn, and no unknown tokens."""

    kind: Literal["byte"] = "byte"


class ParentTokenizerConfig(TokenizerConfig):
    """The tokenizer of the parent (`finetune.parent`)."""

    kind: Literal["parent"] = "parent"


class NoTokenizerConfig(TokenizerConfig):
    """No tokenizer: the model labels images or audio clips."""

    kind: Literal["none"] = "none"


class CodebookConfig(TokenizerConfig):
    """One color token per pixel; the colors are k-means centers of the training images' pixels."""

    kind: Literal["codebook"] = "codebook"
    colors: Annotated[int, Field(ge=2, le=4096)] = 16
    """Number of colors or gray levels."""


AnyTokenizerConfig = Annotated[
    ByteBpeConfig | BpeConfig | UnigramConfig | WordLevelConfig | CharacterLevelConfig | ByteLevelConfig,
    Field(discriminator="kind"),
]
RunTokenizerConfig = Annotated[
    ByteBpeConfig
    | BpeConfig
    | UnigramConfig
    | WordLevelConfig
    | CharacterLevelConfig
    | ByteLevelConfig
    | CodebookConfig
    | ParentTokenizerConfig
    | NoTokenizerConfig,
    Field(discriminator="kind"),
]
