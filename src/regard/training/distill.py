"""Sequence-level knowledge distillation (Kim and Rush 2016): teachers translate the training sources once.

The student maximizes log p(y | x) for the teachers' beam search outputs y, in addition to or instead of the reference
translations (`distillation.mode`). The translations are stored as an ordinary corpus: one JSON Lines file per corpus
source and teacher in `distilled/`, with a manifest. Once it is complete, the teachers are no longer needed.

Sources are translated in chunks. A finished chunk is a file named by the sha256 of the teachers (weights, architecture,
tokenizers), the engine, the search settings and its sources. A killed run therefore loses at most one chunk, stale
translations are never reused, and a later run may reuse chunks (`distillation.cache`). Chunks are independent, so
`distilled/` does not depend on how often the run was killed.
"""

import hashlib
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pydantic import TypeAdapter

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import create_folder, read_json, read_regular_file, verify, write_atomic
from regard.base.formatting import format_duration, pluralize
from regard.config.run import DistillationConfig
from regard.config.sources import JsonlConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.store.run_folder import RunFolder
from regard.tasks.results import Translation
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.training.events import Listener, Message, Stage
from regard.training.teachers import Teacher, choose_engine, find_teachers, group_teachers, load_translator

FORMAT = 1
RECORD_FILE = "distillation.json"
CHUNK_SENTENCES = 1024  # a kill loses at most this many translations
CHUNK_CHARACTERS = 1_000_000  # characters of sources per chunk
BATCH_TOKENS = 8192  # source tokens per batch of the search, beams included
MAX_CHUNK_BYTES = limits.DOCUMENT
STAGE_SECONDS = 10.0  # between two reports of progress, and until a requested stop
STAGE = "translating the training sources"
_FILE_NAME = re.compile(r"\d{3,}-\d{2,}\.jsonl")


@dataclass(frozen=True)
class TeacherRecord:
    """A teacher's folder, as given by the user, and the sha256 of its weights."""

    folder: str
    sha256: str


@dataclass(frozen=True)
class TranslationFile:
    """A file of translations: the index of the corpus source, and the teacher."""

    name: str
    source: int
    teacher: str


@dataclass(frozen=True)
class DistillationRecord:
    """Record of how the translations were made, stored in `distillation.json`."""

    format: int
    teachers: tuple[TeacherRecord, ...]
    combine: str
    beam_size: int
    sentences: int
    """Number of translated training sentences."""
    translations: int
    """Number of translations used for training."""
    left_out: dict[str, int]
    """Number of unused translations, by reason."""
    files: tuple[TranslationFile, ...]
    engine: str = "torch"
    """The engine that ran the teachers; engines differ in their stopping rules."""


@dataclass(frozen=True)
class Distilled:
    """The teachers' translations in a run folder."""

    folder: Path
    record: DistillationRecord

    def sources(self, originals: Corpus) -> list[JsonlConfig]:
        """Return the translations as sources of a corpus; each has the weight and languages of its original."""
        sources = []
        for file in self.record.files:
            original = originals.sources[file.source]
            origin = f" of source {file.source + 1}" if len(originals.sources) > 1 else ""
            sources.append(
                JsonlConfig(
                    path=str(self.folder / file.name),
                    name=f"translations{origin} by {file.teacher}",
                    target="target",
                    weight=original.weight,
                    languages=original.languages,
                )
            )
        return sources

    def describe(self) -> dict[str, int | str]:
        """Describe the distillation for the model card."""
        record = self.record
        lines: dict[str, int | str] = {
            "distilled translations": record.translations,
            "translated training sentences": record.sentences,
            "search of the teachers": f"beam size {record.beam_size}, engine {record.engine}",
        }
        if record.left_out:
            lines["translations left out"] = format_reasons(record.left_out)
        joined = ", in an ensemble" if record.combine == "ensemble" and len(record.teachers) > 1 else ""
        for number, teacher in enumerate(record.teachers, 1):
            lines[f"teacher {number}"] = f"{teacher.folder} (weights: sha256 {teacher.sha256}){joined}"
        return lines


def format_reasons(left_out: Mapping[str, int]) -> str:
    """Format the number of unused translations.

    >>> format_reasons({"empty": 3, "cut off at the maximum length": 1200})
    '1,200 cut off at the maximum length, 3 empty'
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in sorted(left_out.items()))


def distill(
    corpus: Corpus,
    settings: DistillationConfig,
    folder: RunFolder,
    emit: Listener,
    *,
    device: str = "cpu",
    max_length: int = 1024,
) -> Distilled:
    """Translate the corpus sources with the teachers, or open existing translations.

    Args:
        corpus: The training split, without held-out examples.
        settings: Teachers and search.
        folder: The run folder.
        emit: Called with progress events and the number of unused translations.
        device: Device of the teachers.
        max_length: Longer sources (in tokens) are not translated.

    Raises:
        RegardError: If a teacher is missing or translates different languages, or no translation is usable.
        DamagedError: If finished translations have changed.
    """
    if folder.distilled.is_dir():
        return open_distilled(folder, corpus)
    teachers = find_teachers(settings.teachers, corpus.sources)
    cache = folder.distilled_chunks if settings.cache is None else Path(settings.cache)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "Choose another folder: --set distillation.cache=FOLDER."
        raise RegardError(f"The cache cannot be created: {error.strerror}.", location=str(cache), hint=hint) from error
    groups = [_SourceGroup(members, settings, device, max_length) for members in group_teachers(teachers, settings)]
    finished = _translate_all(corpus, groups, cache, emit)
    translations = sum(chunk.translations for chunk in finished)
    if not translations:
        hint = "Inspect a few with `regard translate`; the teachers probably need more training."
        raise RegardError("All teacher translations are empty or truncated.", location=settings.teachers[0], hint=hint)
    with create_folder(folder.distilled) as path:
        record = DistillationRecord(
            format=FORMAT,
            teachers=tuple(TeacherRecord(teacher.folder, teacher.weights_sha256) for teacher in teachers),
            combine=settings.combine,
            beam_size=settings.beam_size,
            sentences=sum(chunk.sentences for chunk in finished) // len(groups),
            translations=translations,
            left_out=dict(sorted(_sum_left_out(finished).items())),
            files=tuple(_join_chunks(finished, groups, path)),
            engine=", ".join(sorted({group.engine for group in groups})),
        )
        write_atomic(path / RECORD_FILE, (json.dumps(asdict(record), indent=1) + "\n").encode())
    shutil.rmtree(folder.distilled_chunks, ignore_errors=True)
    return open_distilled(folder, corpus)


def open_distilled(folder: RunFolder, corpus: Corpus) -> Distilled:
    """Open finished translations and check them against their manifest.

    Raises:
        DamagedError: If a file has changed, or the record does not describe the files.
    """
    verify(folder.distilled)
    path = folder.distilled / RECORD_FILE
    hint = f"Remove {folder.distilled} and resume to translate again."
    try:
        record = TypeAdapter(DistillationRecord).validate_python(read_json(path, hint))
        if not all(file.source in range(len(corpus.sources)) for file in record.files):
            raise ValueError("a file does not belong to any corpus source")
        if not all(_FILE_NAME.fullmatch(file.name) for file in record.files):
            raise ValueError("a file has an unexpected name")
    except (FileNotFoundError, ValueError) as error:
        message = "The record of the translations is damaged."
        raise DamagedError(message, location=str(path), hint=hint) from error
    return Distilled(folder.distilled, record)


@dataclass(frozen=True)
class _Header:
    """First line of a chunk file: counts, and the sha256 of all further lines."""

    sentences: int
    left_out: dict[str, int]
    sha256: str


@dataclass(frozen=True)
class _Chunk:
    """A finished chunk: its file, position and counts."""

    path: Path
    source: int  # index of the source in the corpus
    group: int
    sentences: int
    left_out: Counter[str]

    @property
    def translations(self) -> int:
        return self.sentences - self.left_out.total()


@dataclass
class _SourceGroup:
    """One teacher or an ensemble, which produces one translation per source."""

    teachers: Sequence[Teacher]
    settings: DistillationConfig
    device: str
    max_length: int
    _translator: Translator | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.engine = choose_engine(self.teachers, self.device)
        search = [self.settings.beam_size, self.max_length, self.engine]
        self._key = json.dumps([FORMAT, [teacher.identity for teacher in self.teachers], search])

    @property
    def name(self) -> str:
        return "an ensemble" if len(self.teachers) > 1 else Path(self.teachers[0].folder).name

    @property
    def translator(self) -> Translator:
        if self._translator is None:  # loaded only when a chunk is missing
            self._translator = load_translator(self.teachers, self.device)
        return self._translator

    def compute_digest(self, texts: Sequence[str], languages: Sequence[str]) -> str:
        """Return the sha256 of everything that affects the translations of these texts."""
        content = json.dumps([self._key, list(languages), list(texts)])
        return hashlib.sha256(content.encode()).hexdigest()

    def translate(self, texts: Sequence[str], languages: Sequence[str], progress: "_Progress") -> tuple[_Header, bytes]:
        """Translate a chunk; return its counts and file content: a line of counts, then one line per translation."""
        lengths = [len(tokens) + 2 for tokens in self.translator.tokenizers.source.encode_ids(list(texts))]  # tag, eos
        positions = [teacher.settings.encoder.max_positions for teacher in self.teachers]
        limit = min([self.max_length, *(length for length in positions if length is not None)])
        short_texts = [text for text, length in zip(texts, lengths, strict=True) if length <= limit]
        has_tags = bool(self.translator.tokenizers.source.specials.languages)
        translations = self.translator.translate(
            short_texts,
            Beam(self.settings.beam_size),
            target_language=languages[-1] if has_tags and languages else None,
            batch_tokens=BATCH_TOKENS,
            with_scores=False,
            report=progress.add_translated,
        )
        left_out = Counter({"of sources that are too long": len(texts) - len(short_texts)})
        lines = []
        for text, translation in zip(short_texts, translations, strict=True):
            if reason := _find_fault(translation):
                left_out[reason] += 1
            else:
                lines.append(json.dumps({"source": text, "target": translation.text}, ensure_ascii=False) + "\n")
        body = "".join(lines).encode()
        header = _Header(len(texts), dict(+left_out), hashlib.sha256(body).hexdigest())
        return header, json.dumps(asdict(header)).encode() + b"\n" + body


def _find_fault(translation: Translation) -> str | None:
    """Return why a translation is not used for training, or None."""
    if not translation.text.strip():
        return "empty"
    return None if translation.ended else "cut off at the maximum length"


def _translate_all(corpus: Corpus, groups: Sequence[_SourceGroup], cache: Path, emit: Listener) -> list[_Chunk]:
    """Translate all chunks that are not in the cache."""
    total = len(groups) * sum(1 for _ in corpus.examples(Defects()))
    progress, finished = _Progress(total, emit), list[_Chunk]()
    for index, texts in _iter_texts(corpus):
        languages = corpus.sources[index].languages
        for number, group in enumerate(groups):
            path = cache / f"{group.compute_digest(texts, languages)}.jsonl"
            if (header := _read_header(path)) is not None:
                progress.add_reused(len(texts))
            else:
                header, content = group.translate(texts, languages, progress)
                write_atomic(path, content)
            finished.append(_Chunk(path, index, number, header.sentences, Counter(header.left_out)))
    progress.finish(_sum_left_out(finished))
    return finished


def _sum_left_out(finished: Sequence[_Chunk]) -> Counter[str]:
    return sum((chunk.left_out for chunk in finished), Counter[str]())


def _iter_texts(corpus: Corpus) -> Iterator[tuple[int, list[str]]]:
    """Yield the corpus sources in chunks, each with its source index."""
    for index, group in groupby(corpus.examples(Defects()), key=itemgetter(0)):
        texts, characters = list[str](), 0
        for _, example in group:
            characters += len(example.source)
            if texts and (len(texts) == CHUNK_SENTENCES or characters > CHUNK_CHARACTERS):
                yield index, texts
                texts, characters = [], len(example.source)
            texts.append(example.source)
        yield index, texts


def _read_header(path: Path) -> _Header | None:
    """Return the counts of a finished chunk; None if it does not exist or is damaged."""
    try:
        line, _, body = read_regular_file(path, MAX_CHUNK_BYTES).partition(b"\n")
        header = TypeAdapter(_Header).validate_json(line)
    except (FileNotFoundError, DamagedError, ValueError):
        return None
    return header if hashlib.sha256(body).hexdigest() == header.sha256 else None


def _join_chunks(finished: Sequence[_Chunk], groups: Sequence[_SourceGroup], folder: Path) -> Iterator[TranslationFile]:
    """Write one file per source and teacher group; yield a description of each non-empty file."""
    names = [group.name for group in groups]
    places = sorted({(chunk.source, chunk.group) for chunk in finished if chunk.translations})
    for source, group in places:
        name = f"{source:03}-{group:02}.jsonl"
        with (folder / name).open("wb") as file:
            for chunk in finished:
                if (chunk.source, chunk.group) == (source, group):
                    file.write(chunk.path.read_bytes().partition(b"\n")[2])
        teacher = names[group] if names.count(names[group]) == 1 else f"{names[group]} ({group + 1})"
        yield TranslationFile(name, source, teacher)


class _Progress:
    """Counts translations and reports them every few seconds."""

    def __init__(self, total: int, emit: Listener) -> None:
        self._total, self._emit = total, emit
        self._reused, self._translated = 0, 0
        self._start = self._last_report = time.monotonic()
        emit(Stage(STAGE, f"{total:,} to make"))

    def add_reused(self, count: int) -> None:
        """Count reused translations."""
        self._reused += count

    def add_translated(self, count: int) -> None:
        """Count new translations."""
        self._translated += count
        now = time.monotonic()
        if now - self._last_report >= STAGE_SECONDS:
            self._last_report = now
            done = self._reused + self._translated
            time_left = format_duration((self._total - done) / self._speed)
            progress = f"{done:,} of {self._total:,}, {self._speed:,.0f} sentences/s, {time_left} left"
            self._emit(Stage(STAGE, progress))

    @property
    def _speed(self) -> float:
        return self._translated / max(1e-9, time.monotonic() - self._start)

    def finish(self, left_out: Counter[str]) -> None:
        """Report the totals and the unused translations."""
        reused = f"; {self._reused:,} were finished before" if self._reused else ""
        duration = format_duration(time.monotonic() - self._start)
        self._emit(
            Message(
                f"The teachers made {pluralize(self._translated, 'translation')} in {duration}, "
                f"{self._speed:,.0f} sentences/s{reused}."
            )
        )
        if left_out:
            message = f"Not used, of {pluralize(self._total, 'translation')}: {format_reasons(left_out)}."
            self._emit(Message(message, "warning"))
