"""Sources of a corpus: the files of a run and their formats (`[[data.train]]`)."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.parts import PixelSize, Positive, SettingsModel, Size

Languages = Annotated[tuple[str, ...], Field(strict=False, max_length=2)]


class SourceConfig(SettingsModel):
    """Settings common to all sources of a corpus. Paths are local or URLs; .gz, .xz and .zst files are decompressed."""

    name: str = ""
    """Name of the source in messages; its path if empty."""
    weight: Positive = 1.0
    """How often each example is sampled per epoch: 2 is twice, 0.5 every second epoch."""
    languages: Languages = ()
    """The languages of source and target."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file, folder or URL that this source reads."""
        return (vars(self)["path"],)


class LinesConfig(SourceConfig):
    """One sentence per line; with a target file, line n of both files is a pair."""

    kind: Literal["lines"] = "lines"
    source: str
    target: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The source file and, if there is one, the target file."""
        return (self.source,) if self.target is None else (self.source, self.target)


class TableConfig(SourceConfig):
    """Columns of a table, by number (from 1) or by the name in the first line."""

    kind: Literal["table"] = "table"
    path: str
    delimiter: Literal["tab", "comma", "semicolon", "spaces"] = "tab"
    """Column separator; `spaces` means two or more spaces."""
    header: bool = False
    source: int | str = 1
    target: int | str | None = None
    label: int | str | None = None


class FieldsConfig(SourceConfig):
    """Records with named fields."""

    path: str
    source: str = "source"
    target: str | None = None
    label: str | None = None


class JsonlConfig(FieldsConfig):
    """One JSON object per line."""

    kind: Literal["jsonl"] = "jsonl"


class ParquetConfig(FieldsConfig):
    """Columns of a Parquet file."""

    kind: Literal["parquet"] = "parquet"


class TmxConfig(SourceConfig):
    """A translation memory; `languages` selects the source and the target language."""

    kind: Literal["tmx"] = "tmx"
    path: str


class GettextConfig(SourceConfig):
    """Messages and translations of a .po or .mo file."""

    kind: Literal["gettext"] = "gettext"
    path: str


class ConllConfig(SourceConfig):
    """One word per line with its columns, sentences separated by empty lines (CoNLL, CoNLL-U)."""

    kind: Literal["conll"] = "conll"
    path: str
    word: Size = 1
    """The column of the word, from 1; 2 in CoNLL-U."""
    tag: Size = 2
    """The column of the tag; 4 for universal parts of speech in CoNLL-U."""


class DocumentsConfig(SourceConfig):
    """Running text: every file is a document, or every part between lines equal to `separator`."""

    kind: Literal["documents"] = "documents"
    path: str
    """A file, or a folder whose files are read in alphabetical order."""
    separator: str | None = None


class ImagesConfig(SourceConfig):
    """Images with labels or captions: one folder of image files per label, an idx file (MNIST), Parquet, or a table.

    Image files without folders have no labels.
    """

    kind: Literal["images"] = "images"
    path: str
    """A folder of image files, an idx file of images, or a Parquet file (or a folder of them) with the columns `image`
    and, for labels, `label`; or a table with the path of a file, relative to the table, and a tab and its label, or its
    caption, on each line."""
    second: Literal["label", "text"] = "label"
    """Whether the second column of a table is the image's label or its caption."""
    header: bool = False
    """Whether the first line of a table names its columns."""
    labels: str | None = None
    """idx: the file of labels; none means images without labels."""
    size: PixelSize | None = None
    """Height and width: images are scaled until they cover this size, and cropped at the center. Without it, all images
    must have the same size."""
    channels: Literal[1, 3] | None = None
    """1 converts images to gray, 3 to red, green and blue. Without it, all images must have the same number of
    channels."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The images and, if they are in a separate file, the labels."""
        return (self.path,) if self.labels is None else (self.path, self.labels)


class AudioConfig(SourceConfig):
    """Audio clips with labels or transcripts: one folder of files per label, or a table.

    Files are .wav or .flac, with one channel of 16 bits, and all have one sample rate. Files without folders have no
    labels.
    """

    kind: Literal["audio"] = "audio"
    path: str
    """A folder of audio files; or a table with the path of a file, relative to the table, and a tab and its label, or
    its text, on each line."""
    second: Literal["label", "text"] = "label"
    """Whether the second column of a table is the clip's label or its transcript."""
    header: bool = False
    """Whether the first line of a table names its columns."""


AnySourceConfig = Annotated[
    LinesConfig
    | TableConfig
    | JsonlConfig
    | ParquetConfig
    | TmxConfig
    | GettextConfig
    | ConllConfig
    | DocumentsConfig
    | ImagesConfig
    | AudioConfig,
    Field(discriminator="kind"),
]
Sources = Annotated[tuple[AnySourceConfig, ...], Field(strict=False)]
