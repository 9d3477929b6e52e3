"""Translate documents: collect their sentences, translate them, put the translations back.

`DocumentTranslation` does not know how sentences are translated: the caller asks for the sentences of a round and
returns their translations. `translate_document` does so with a function; the server does so with a queue.

A sentence goes to the model as plain text. If the translation lacks one of its protected texts (code, placeholders,
URLs) or a number, it is translated again under the constraint that it contains them. A model that never saw such a text
may answer with nonsense: a second translation with more warnings is not used. What is still missing is inserted by word
alignment, and the report says so.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regard.base.errors import RegardError
from regard.documents.format import FileDocument
from regard.documents.project import make_pattern, project
from regard.documents.protect import find_lost_numbers, protect, replace_protected, unprotect
from regard.documents.segment import Segment, iter_pieces
from regard.documents.split import SentencePart, join_parts, split_segment
from regard.measure.alignment import Links

MAX_SPANS = 300  # in one sentence; more is code or an attack, and placing them would take minutes
MAX_LENGTH = 50_000  # characters of a sentence
MAX_SEGMENT_SPANS, MAX_DEPTH = 3_000, 50  # every sentence repeats the pairs around it
MAX_SEGMENT_LENGTH = 1_000_000  # characters


@dataclass(frozen=True)
class Sentence:
    """A sentence to translate."""

    text: str
    required: tuple[str, ...] = ()
    """Phrases that the translation must contain."""
    should_align: bool = False
    """Whether the links between the words are needed."""


@dataclass(frozen=True)
class TranslatedSentence:
    """The translation of a sentence."""

    text: str
    links: Links = frozenset()
    """Pairs (source word, target word), counted from 0; spaces separate words."""
    warnings: tuple[str, ...] = ()
    """Reasons to check the translation."""


Translate = Callable[[list[Sentence]], Sequence[TranslatedSentence]]


@dataclass
class DocumentReport:
    """What to check in a translated document."""

    segments: int = 0
    sentences: int = 0
    attention: list[dict[str, Any]] = field(default_factory=list)
    """The segments to check: their number, location, source, translation and the reasons."""

    def add(self, number: int, segment: Segment, translation: Segment, reasons: list[str]) -> None:
        """Add a segment to check."""
        texts = {"source": segment.text, "translation": translation.text}
        self.attention.append({"segment": number, "location": segment.location, **texts, "reasons": reasons})

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {"segments": self.segments, "sentences": self.sentences, "attention": self.attention}


@dataclass(eq=False)
class _Task:
    """A sentence with what is known about its translation."""

    part: SentencePart
    result: TranslatedSentence | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def is_translated(self) -> bool:
        """Whether the sentence has words to translate."""
        pieces = iter_pieces(self.part.segment)
        has_words = any(piece.kind == "text" and any(map(str.isalpha, piece.text)) for piece in pieces)
        return has_words and not self.is_large

    @property
    def is_large(self) -> bool:
        """Whether the sentence is copied because it exceeds a limit."""
        spans = self.part.segment.spans
        is_deep = any(span.depth > MAX_DEPTH for span in spans)
        return is_deep or len(spans) > MAX_SPANS or len(self.part.segment.text) > MAX_LENGTH

    def request(self) -> Sentence:
        """Return the sentence; after a failure, with the phrases that its translation must contain."""
        return Sentence(self.part.segment.text, tuple(dict.fromkeys(self.problems)), bool(self.part.segment.spans))

    def receive(self, result: TranslatedSentence) -> None:
        """Keep the better translation, with the white space around the source instead of its own."""
        source, text = self.part.segment.text, result.text.strip()
        if text:
            start, end = len(source) - len(source.lstrip()), len(source.rstrip())
            result = replace(result, text=source[:start] + text + source[end:])
        problems = find_lost_numbers(source, result.text)
        texts = [source[span.start : span.end] for span in self.part.segment.spans if span.kind == "protected"]
        for text, count in Counter(texts).items():
            found = len(re.findall(make_pattern(text), result.text))
            problems += [text] * max(0, count - found)
        is_worse = self.result is not None and len(result.warnings) > len(self.result.warnings)
        if self.result is None or (len(problems) < len(self.problems) and not is_worse):
            self.result, self.problems = result, problems


class DocumentTranslation:
    """The translation of a document, in two rounds: all sentences, then those whose translation lacks something.

    while sentences := translation.start_round():
        translation.receive(translate(sentences))
    content, report = translation.finish()
    """

    def __init__(self, document: FileDocument) -> None:
        self._document, self._round, self._waiting = document, 0, list[list[_Task]]()
        self.segments = list(document.segments)
        self._tasks = [[_Task(part) for part in _split(segment)] for segment in self.segments]
        self._active = [task for tasks in self._tasks for task in tasks if task.is_translated]
        self.report = DocumentReport(len(self.segments), len(self._active))

    def start_round(self) -> list[Sentence]:
        """Return the sentences to translate, each once; empty after the last round."""
        self._round += 1
        tasks = self._active if self._round == 1 else [task for task in self._active if task.problems]
        by_sentence = dict[Sentence, list[_Task]]()
        for task in tasks if self._round <= 2 else ():
            by_sentence.setdefault(task.request(), []).append(task)
        self._waiting = list(by_sentence.values())
        return list(by_sentence)

    def receive(self, results: Sequence[TranslatedSentence]) -> None:
        """Store the translations of the sentences of a round, in order."""
        for result, tasks in zip(results, self._waiting, strict=True):
            for task in tasks:
                task.receive(result)

    def finish(self) -> tuple[bytes, DocumentReport]:
        """Return the file with its translations, and the report."""
        translations = list[Segment]()
        for number, (segment, tasks) in enumerate(zip(self.segments, self._tasks, strict=True), 1):
            finished = [_finish(task) for task in tasks]
            parts, results = [task.part for task in tasks], [result for result, _ in finished]
            translations.append(unprotect(join_parts(parts, results, segment.location)))
            if reasons := list(dict.fromkeys(reason for _, reasons in finished for reason in reasons)):
                self.report.add(number, segment, translations[-1], reasons)
        return self._document.write(translations), self.report


def translate_document(document: FileDocument, translate: Translate) -> tuple[bytes, DocumentReport]:
    """Translate a document with a function that translates sentences; returns the file and the report."""
    translation = DocumentTranslation(document)
    while sentences := translation.start_round():
        translation.receive(translate(sentences))
    return translation.finish()


def _split(segment: Segment) -> list[SentencePart]:
    """Return the sentences of a segment; a segment with too many tags is one.

    Raises:
        RegardError: The segment is too long.
    """
    if len(segment.text) > MAX_SEGMENT_LENGTH:
        raise RegardError(
            f"A paragraph has {len(segment.text):,} characters, more than {MAX_SEGMENT_LENGTH:,}.",
            location=segment.location,
            hint="Split the paragraph.",
        )
    if len(segment.spans) > MAX_SEGMENT_SPANS or any(span.depth > MAX_DEPTH for span in segment.spans):
        return [SentencePart(segment)]
    return split_segment(protect(segment))


def _finish(task: _Task) -> tuple[Segment, list[str]]:
    """Return the translation of a sentence with its spans and protected texts, and the reasons to check it."""
    source, result = task.part.segment, task.result
    if result is None:
        reason = f"not translated: more than {MAX_SPANS} tags or {MAX_LENGTH:,} characters in one sentence"
        return source, [reason] if task.is_large else []
    if not result.text.strip():
        return source, ["not translated: the model returned nothing"]
    projection = project(
        task.part.segment, result.text, result.links, from_start=task.part.from_start, to_end=task.part.to_end
    )
    texts = {span.id: source.text[span.start : span.end] for span in source.spans if span.kind == "protected"}
    reasons = [*result.warnings]
    reasons += [f"inserted by position: {texts[span_id]}" for span_id in projection.missing]
    if lost := find_lost_numbers(source.text, result.text):
        reasons.append(f"without the number {', '.join(lost)}")
    finished = replace_protected(projection.segment, texts)
    marks = [mark for mark in "%{}" if finished.text.count(mark) != source.text.count(mark)]
    if texts and marks:
        reasons.append(f"another number of {' and '.join(marks)} than the source")
    return finished, reasons
