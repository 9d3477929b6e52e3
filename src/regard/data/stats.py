"""Corpus statistics, collected in one pass together with checksums. They determine the model and its settings."""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.config.sources import AnySourceConfig, AudioConfig, DocumentsConfig, ImagesConfig
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example, FileInfo
from regard.data.readers.text_files import list_files, read_decompressed

Content = Literal["pairs", "text", "labels", "tags", "images", "audio"]
KINDS = {  # kinds of corpora: the content, and what comes with images and audio clips
    "pairs": "pairs of texts",
    "text": "running text",
    "labels": "labeled text",
    "tags": "tagged words",
    "images": "images",
    "images+labels": "labeled images",
    "images+text": "images with captions (first line: file, tab, caption)",
    "audio": "audio",
    "audio+labels": "labeled audio clips",
    "audio+text": "audio clips with texts",
}
_UNITS = {"pairs": "pair", "labels": "labeled text", "tags": "tagged sentence", "text": "line"}
SHORT_SENTENCE = 25  # characters; shorter examples count for less
MAX_DISTINCT = 1_000_000  # distinct words that are counted per side; more would change no setting
BATCH_SIZE = 1 << 18  # characters, or bytes of media, that are counted at a time
SNIFF_BYTES = 8192  # bytes at the start of a file that are checked for NUL
BINARY_KINDS = ("parquet", "gettext", "tmx")  # formats whose files may have NUL bytes
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass
class SideStats:
    """Statistics of the source side or the target side."""

    characters: int = 0
    bytes: int = 0
    max_bytes: int = 0  # bytes of the longest example
    distinct_words: set[str] = field(default_factory=set)  # at most about MAX_DISTINCT
    _has_code_point: NDArray[np.bool_] = field(
        default_factory=lambda: np.zeros(sys.maxunicode + 1, np.bool_), repr=False, compare=False
    )

    @property
    def alphabet(self) -> set[str]:
        """The distinct characters."""
        return set(map(chr, np.flatnonzero(self._has_code_point).tolist()))

    def add(self, texts: Sequence[str]) -> None:
        """Count texts."""
        sizes = [len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts]
        self.bytes += sum(sizes)
        self.max_bytes = max(self.max_bytes, *sizes, 0)
        joined = "".join(texts)
        self.characters += len(joined)
        self._has_code_point[np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")] = True
        if len(self.distinct_words) < MAX_DISTINCT:
            self.distinct_words.update("\n".join(texts).split())


@dataclass
class CorpusStats:
    """Statistics of a corpus."""

    content: Content
    examples: int = 0
    source: SideStats = field(default_factory=SideStats)
    target: SideStats = field(default_factory=SideStats)
    labels: Counter[str] = field(default_factory=Counter)  # classes of examples, or tags of words
    languages: tuple[str, ...] = ()
    file_infos: dict[str, FileInfo] = field(default_factory=dict)  # size and sha256 of the files
    sample_rates: Counter[int] = field(default_factory=Counter)
    first_of_rate: dict[int, str] = field(default_factory=dict)  # where the first audio clip of each sample rate is
    samples: int = 0  # of all audio clips
    max_samples: int = 0  # of the longest audio clip
    image_shapes: Counter[tuple[int, int, int]] = field(default_factory=Counter)  # channels, height and width

    @property
    def mean_length(self) -> float:
        """Mean number of characters of a source text."""
        return self.source.characters / max(1, self.examples)

    @property
    def distinct_count(self) -> int:
        """Number of distinct words on both sides together."""
        return len(self.source.distinct_words | self.target.distinct_words)

    @property
    def kind(self) -> str:
        """The kind of corpus, a name in KINDS."""
        if self.content not in ("images", "audio"):
            return self.content
        return self.content + ("+text" if self.target.characters else "+labels" if self.labels else "")

    @property
    def size(self) -> int:
        """The corpus size for recipes: characters of running text, or examples; short examples count less."""
        if self.content == "text":
            return self.source.characters
        share = self.mean_length / SHORT_SENTENCE if self.source.characters else 1.0
        return round(self.examples * min(1.0, share))

    @property
    def unit(self) -> str:
        """The name of one example, in the singular."""
        return _UNITS.get(self.content, self.content.removesuffix("s"))

    @property
    def unlabeled(self) -> int:
        """Number of examples without a label."""
        return self.examples - sum(self.labels.values())

    def add(self, examples: Sequence[Example]) -> None:
        """Count examples."""
        self.examples += len(examples)
        self.source.add([example.source for example in examples])
        if targets := [example.target for example in examples if example.target is not None]:
            self.target.add(targets)
        self.languages = self.languages or next((example.languages for example in examples if example.languages), ())
        for example in examples if self.content not in ("pairs", "text") else ():
            self._add_labels_and_media(example)

    def _add_labels_and_media(self, example: Example) -> None:
        if example.image is not None:
            self.image_shapes[example.image.shape] += 1
        if example.audio is not None:
            self.sample_rates[example.audio.rate] += 1
            self.first_of_rate.setdefault(example.audio.rate, str(example.location))
            self.samples += len(example.audio)
            self.max_samples = max(self.max_samples, len(example.audio))
        if example.label is not None:
            self.labels[example.label] += 1
        self.labels.update(example.tags or ())


def collect_stats(
    sources: Sequence[AnySourceConfig], observe: Callable[[int, Example], None] | None = None
) -> CorpusStats:
    """Read every example once and collect statistics and checksums.

    Args:
        sources: The corpus.
        observe: Called with the index of the source and each example, for checks in the same pass.

    Raises:
        RegardError: If there is no text, a file is binary, or one side of the pairs is empty.
        CorpusError: If examples of different kinds are mixed.
    """
    Corpus(sources).check_regular_files()
    for source in sources:
        _check_not_binary(source)
    defects = Defects(hash_files=True)  # the defects are reported when the shards are written
    examples = Corpus(sources).examples(defects)
    first = next(examples, None)
    location = " and ".join(_list_paths(sources))
    if first is None:
        raise RegardError("The corpus is empty.", location=location, hint="Pass files with text.")
    stats = CorpusStats(_detect_content(first[1]))
    batch, size = list[Example](), 0
    for index, example in chain((first,), examples):
        if _detect_content(example) != stats.content:
            first_kind, kind = KINDS[stats.content], KINDS[_detect_content(example)]
            message = f"The corpus mixes {first_kind} and {kind}."
            raise CorpusError(message, location=str(example.location), hint="Train on one kind of example at a time.")
        if observe is not None:
            observe(index, example)
        batch.append(example)
        size += example.size
        if size > BATCH_SIZE:
            stats.add(batch)
            batch, size = [], 0
    stats.add(batch)
    _check_not_empty(stats, sources)
    stats.file_infos = defects.file_infos
    return stats


def _detect_content(example: Example) -> Content:
    if example.image is not None:
        return "images"
    if example.audio is not None:
        return "audio"
    if example.tags is not None:
        return "tags"
    if example.label is not None:
        return "labels"
    return "pairs" if example.target is not None else "text"


def _check_not_empty(stats: CorpusStats, sources: Sequence[AnySourceConfig]) -> None:
    sides = {"source": stats.source} | ({"target": stats.target} if stats.content == "pairs" else {})
    for name, side in sides.items() if stats.content not in ("images", "audio") else ():
        if not side.characters:
            paths = _list_paths(sources)
            message = f"Every line of the {name} side is empty."
            location = paths[-1] if name == "target" else paths[0]
            raise RegardError(message, location=location, hint="Pass a file with text on every line.")


def _check_not_binary(source: AnySourceConfig) -> None:
    """Reject images, spreadsheets and archives, which would otherwise be read as text."""
    if isinstance(source, ImagesConfig | AudioConfig):
        return
    for path in source.paths:
        for file in list_files(path, Defects()):
            head = next(read_decompressed(file), b"")[:SNIFF_BYTES]
            if b"\0" in head and not head.startswith(_UTF16_BOMS) and source.kind not in BINARY_KINDS:
                hint = "Pass UTF-8 text; export a document or spreadsheet as text first."
                raise CorpusError("This is not a text file: it contains NUL bytes.", location=file, hint=hint)


def _list_paths(sources: Sequence[AnySourceConfig]) -> list[str]:
    return [path for source in sources for path in source.paths]


def is_running_text(stats: CorpusStats, sources: Sequence[AnySourceConfig]) -> bool:
    """Return whether the corpus consists of documents instead of one short text per line."""
    return stats.content == "text" and all(isinstance(source, DocumentsConfig) for source in sources)
