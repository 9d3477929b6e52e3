"""A run's knobs: the data it reads, the vocabulary it learns, the model, and how it is trained.

[model]
preset = "tiny"

[tokenizer]
kind = "byte_bpe"
vocabulary = 8000

[[data.train]]
kind = "lines"
source = "train.en"
target = "train.de"
languages = ["en", "de"]
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from regard.base.errors import Fault
from regard.config.model import Consistent, ModelConfig
from regard.config.parts import Frozen, Learned, Positive, Rate, Size
from regard.config.training import Device, Training, Validation

Languages = Annotated[tuple[str, ...], Field(strict=False, max_length=2)]
Texts = Annotated[tuple[str, ...], Field(strict=False)]


class Source(Frozen):
    """What all sources of a corpus have: paths are local or URLs; .gz, .xz and .zst are unpacked on the way."""

    name: str = ""
    """What messages call it; its path if empty."""
    weight: Positive = 1.0
    """How often each of its examples is drawn in an epoch: 2 is twice, 0.5 every other time."""
    languages: Languages = ()
    """The languages of source and target."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file, folder or URL that this source reads."""
        return (vars(self)["path"],)


class Lines(Source):
    """One sentence a line; with a target, line n of both files is a pair."""

    kind: Literal["lines"] = "lines"
    source: str
    target: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The source file and, if there is one, the target file."""
        return (self.source,) if self.target is None else (self.source, self.target)


class Table(Source):
    """Tab- or comma-separated columns, by number (from 1) or by the name in the first line."""

    kind: Literal["table"] = "table"
    path: str
    delimiter: Literal["tab", "comma"] = "tab"
    header: bool = False
    source: int | str = 1
    target: int | str | None = None
    label: int | str | None = None


class Fields(Source):
    """Records with named fields."""

    path: str
    source: str = "source"
    target: str | None = None
    label: str | None = None


class Jsonl(Fields):
    """One JSON object a line."""

    kind: Literal["jsonl"] = "jsonl"


class Parquet(Fields):
    """Columns of a Parquet file."""

    kind: Literal["parquet"] = "parquet"


class Tmx(Source):
    """A translation memory; `languages` says which two of it are read, in which direction."""

    kind: Literal["tmx"] = "tmx"
    path: str


class Gettext(Source):
    """Messages and translations of a .po or .mo file."""

    kind: Literal["gettext"] = "gettext"
    path: str


class Conll(Source):
    """One word a line with its columns, sentences separated by empty lines (CoNLL, CoNLL-U)."""

    kind: Literal["conll"] = "conll"
    path: str
    word: Size = 1
    """The column of the word, from 1; 2 in CoNLL-U."""
    tag: Size = 2
    """The column of the tag; 4 for universal parts of speech in CoNLL-U."""


class Documents(Source):
    """Running text: every file is a document, or every stretch between lines that are `separator`."""

    kind: Literal["documents"] = "documents"
    path: str
    """A file, or a folder whose files are read in the order of their names."""
    separator: str | None = None


AnySource = Annotated[Lines | Table | Jsonl | Parquet | Tmx | Gettext | Conll | Documents, Field(discriminator="kind")]
Sources = Annotated[tuple[AnySource, ...], Field(strict=False)]


class Data(Frozen):
    """The corpora of a run, and how batches are cut from them."""

    train: Sources
    validation: Sources = ()
    test: Sources = ()
    """Never read by training; `regard prepare` cuts it into tokens too."""
    batch_tokens: Size = 4096
    """The budget of a batch: rows times the longer side."""
    max_length: Size = 1024
    """Samples with more tokens than this are set aside, counted and named; running text is cut into rows of it, and
    labelled texts are read to there."""
    held_out: Rate = 0.0
    """The share of `train` that is kept for validation where there is no validation corpus: whole examples, chosen by
    what their source says, so that the same sentence is never on both sides; of running text the end, or of many short
    documents whole ones."""
    prepared: str | None = None
    """A folder that `regard prepare` wrote: its shards and vocabularies are used as they are."""
    seed: int = 1
    """Of the order of batches, of noise on text, and of what is held out."""


class Specials(Frozen):
    """Special tokens by role: the text that stands for each in the vocabulary file."""

    pad: str = "<pad>"
    bos: str = "<s>"
    eos: str = "</s>"
    unk: str = "<unk>"
    mask: str = "<mask>"
    cls: str = "<cls>"
    sep: str = "<sep>"
    languages: Texts = ()
    """Languages with a tag of their own, e.g. "de" for <2de>."""
    extra: Texts = ()
    """Further tokens of the user's."""


class Normalise(Frozen):
    """What is done to text before it is cut; kept in the vocabulary file, and nothing by default."""

    form: Literal["none", "nfc", "nfkc"] = "none"
    lowercase: bool = False
    strip_accents: bool = False


class TokenizerSettings(Frozen):
    """What all kinds of vocabulary have."""

    specials: Specials = Specials()
    normalise: Normalise = Normalise()
    joint: bool = True
    """One vocabulary for source and target, or one for each."""


class ByteBpe(TokenizerSettings):
    """Byte-pair encoding over bytes: every string can be written and comes back as it was."""

    kind: Literal["byte_bpe"] = "byte_bpe"
    vocabulary: Size = 8000
    dropout: Rate = 0.0
    """In training, the share of merges that is skipped at random (Provilkov et al. 2020)."""


class Bpe(TokenizerSettings):
    """Byte-pair encoding over the characters of words that end in a mark, as the lectures describe it."""

    kind: Literal["bpe"] = "bpe"
    vocabulary: Size = 8000
    dropout: Rate = 0.0
    """In training, the share of merges that is skipped at random."""


class Unigram(TokenizerSettings):
    """The likeliest cut by a unigram model of pieces (Kudo 2018)."""

    kind: Literal["unigram"] = "unigram"
    vocabulary: Size = 8000
    sampling: Rate = 0.0
    """In training, the share of sentences that is cut by chance instead of by likelihood."""


class WordLevel(TokenizerSettings):
    """Whole words between spaces; others are unknown."""

    kind: Literal["word"] = "word"
    vocabulary: Size = 30000


class CharacterLevel(TokenizerSettings):
    """Single characters; those never seen are unknown."""

    kind: Literal["character"] = "character"


class ByteLevel(TokenizerSettings):
    """The 256 bytes: no learning, nothing unknown."""

    kind: Literal["byte"] = "byte"


AnyTokenizer = Annotated[ByteBpe | Bpe | Unigram | WordLevel | CharacterLevel | ByteLevel, Field(discriminator="kind")]

METRIC_TASKS = {"bleu": ("translate",), "chrf": ("translate",), "bits_per_byte": ("translate", "continue")}


class Run(Consistent):
    """Everything that decides what a training run does; `run.toml` holds it with nothing left open."""

    format: Literal[1] = 1
    """The version of this file's layout."""
    seed: int = 1
    """Of the first weights and of dropout; the order of the data has its own, `data.seed`."""
    data: Data
    tokenizer: AnyTokenizer = ByteBpe()
    model: ModelConfig
    train: Training
    validation: Validation = Validation()
    device: Device = Device()

    @property
    def accumulate(self) -> int:
        """Batches of an update."""
        return max(1, round(self.train.update_tokens / self.data.batch_tokens))

    def find_faults(self) -> Iterator[Fault]:
        """What is wrong between fields that are right by themselves."""
        update_tokens, batch_tokens, accumulate = (
            self.train.update_tokens,
            self.data.batch_tokens,
            self.train.accumulate,
        )
        if accumulate is not None and accumulate != self.accumulate:
            what = f"is {accumulate}, but {update_tokens} tokens per update / {batch_tokens} per batch = {self.accumulate}."
            yield Fault("train.accumulate", what, "Leave it out: it follows from the other two.")
        if update_tokens < batch_tokens:
            what = f"is {update_tokens}, less than one batch (data.batch_tokens = {batch_tokens})."
            yield Fault("train.update_tokens", what, "Make data.batch_tokens smaller, or this larger.")
        if self.data.validation and self.data.held_out:
            yield Fault("data.held_out", "is given beside a validation corpus.", "Leave one of the two out.")
        if self.data.prepared and self.data.held_out:
            yield Fault("data.held_out", "is given beside data.prepared, which is split already.", "Leave it out.")
        if self.model.family == "encoder_decoder" and self.model.target.kind == "shared" and not self.tokenizer.joint:
            what = "is false, but the model has one table for the words of both sides."
            yield Fault("tokenizer.joint", what, 'Set model.target = {kind = "tokens", ...}, or leave this out.')
        for name in ("encoder", "decoder"):
            position = getattr(getattr(self.model, name, None), "position", None)
            if isinstance(position, Learned) and position.length < self.data.max_length:
                what = f"is {self.data.max_length}, but the {name} learns {position.length} positions."
                fix = f"Make it {position.length} at most: longer texts are set aside, or read to there."
                yield Fault("data.max_length", what, fix)
        yield from self._find_validation_faults()
        if self.model.family == "decoder_only" and self.data.max_length > self.data.batch_tokens:
            what = f"is {self.data.max_length}, but a batch has room for {self.data.batch_tokens} tokens."
            yield Fault("data.max_length", what, "Make it data.batch_tokens at most.")

    def _find_validation_faults(self) -> Iterator[Fault]:
        task, metric = self.model.task, self.validation.metric
        if task not in METRIC_TASKS.get(metric, (task,)):
            what = f"is '{metric}', which the task '{task}' is not scored by."
            yield Fault("validation.metric", what, "Use loss, perplexity or accuracy.")
        elif metric in ("bleu", "chrf") and not self.validation.sentences:
            yield Fault("validation.sentences", f"is 0, but validation.metric is '{metric}'.", "Translate some.")
        if self.validation.patience and not (self.data.validation or self.data.held_out or self.data.prepared):
            what = "is given, but nothing is kept for validation."
            yield Fault("validation.patience", what, "Give data.validation or data.held_out.")
