"""Check a corpus while `regard train` reads it, without another pass over the text.

Lengths, locations and fingerprints of every example are kept (misalignment, leakage); the rules about single lines and
the statistics behind them use an even sample. Each source is checked separately, because sources may differ in
language.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.base.formatting import pluralize
from regard.config.sources import AnySourceConfig, DocumentsConfig
from regard.data.doctor.check import CorpusReport, check_corpus
from regard.data.doctor.corpus_findings import (
    CorpusFinding,
    compare_held_out,
    find_misalignment,
    find_unrelated,
    is_severe_leak,
)
from regard.data.doctor.detectors.declared_languages import find_swapped_languages
from regard.data.doctor.detectors.sentence_alignment import align
from regard.data.doctor.fingerprints import find_held_out, fold
from regard.data.doctor.locations import Locations
from regard.data.doctor.profile import EvenSample, split_sides
from regard.data.doctor.summary import describe_rule, is_damage, is_damaged
from regard.data.example import Example, Location

_SAMPLE = 4096  # examples that the rules about single lines see, of all sources together
_MIN_SAMPLE = 1024  # the same for each source
_MIN_ROWS = 20  # with fewer examples a share is unreliable
_VALIDATION_SAMPLE = 512
_HEAD = 20_000  # characters at the start of a document that are sampled
_MIN_SHARED_LINE = 40  # characters of a line of running text whose repetition in the validation data is a leak
_TRAINING_NOTICES = ("tags", "html-entity", "normal-form")  # rules of severity `notice` that training reports


@dataclass(frozen=True, slots=True)
class TrainingCheckResult:
    """Whether to train on a corpus: findings that stop training, and findings that only need attention."""

    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    scope: str = field(default="", compare=False)
    """Which lines were checked, if not all of them."""


class TrainingCheck:
    """Collects statistics of the examples for the corpus check.

    >>> from regard.config.sources import LinesConfig
    >>> check = TrainingCheck([LinesConfig(source="a.en", target="a.de")])
    >>> for line in range(1, 101):
    ...     check.add(0, Example(Location("a.en", line), f"This is sentence {line}.", f"This is sentence {line}."))
    >>> check.conclude().refusals[0].partition(",")[0]
    'Untranslated copy: 100.0% of the checked lines'
    """

    def __init__(self, sources: Sequence[AnySourceConfig], validation: Sequence[AnySourceConfig] = ()) -> None:
        sample_size = max(_MIN_SAMPLE, _SAMPLE // max(len(sources), 1))
        self._sources = [_SourceCheck(source, sample_size, has_validation=bool(validation)) for source in sources]
        self._validation = [_SourceCheck(source, _VALIDATION_SAMPLE, has_validation=True) for source in validation]

    def add(self, index: int, example: Example) -> None:
        """Add an example of the training source `index`."""
        self._sources[index].add(example)

    def add_validation(self, index: int, example: Example) -> None:
        """Add an example of the validation source `index`."""
        self._validation[index].add(example)

    def conclude(self) -> TrainingCheckResult:
        """Return the refusals and warnings for the examples that were added."""
        refusals: list[str] = []
        warnings: list[str] = []
        diagnoses = [corpus_report for check in self._sources if (corpus_report := check.diagnose()) is not None]
        for corpus_report in diagnoses:
            must_repair = is_damaged(corpus_report) and len(corpus_report.verdicts) >= _MIN_ROWS
            for rule in corpus_report.rules:
                lines = refusals if must_repair and is_damage(corpus_report, rule) else warnings
                if (rule.severity == "remove" and rule.name != "duplicate") or rule.name in _TRAINING_NOTICES:
                    lines += describe_rule(corpus_report, rule, "the checked lines")
        findings = [finding for corpus_report in diagnoses for finding in corpus_report.findings]
        for check in (*self._sources, *self._validation):
            findings += find_swapped_languages(check.source, check.sides)
        findings += self._find_leaks()
        if len(diagnoses) == 1:
            findings += [finding for check in self._validation for finding in check.compare(diagnoses[0])]
        for finding in findings:
            (refusals if finding.is_grave else warnings).append(str(finding))
        sampled, total = (sum(column) for column in zip(*(check.counts for check in self._sources), strict=True))
        scope = f"Corpus check: the rules about single lines saw a sample of {sampled:,} of {total:,} lines."
        return TrainingCheckResult(tuple(refusals), tuple(warnings), scope if sampled < total else "")

    def _find_leaks(self) -> Iterator[CorpusFinding]:
        """Yield a finding for each validation source that has sources of the training data."""
        hashes = np.concatenate([check.hashes for check in self._sources])
        for check in self._validation:
            rows, _ = find_held_out(hashes, check.hashes)
            is_leaked = np.isin(check.hashes, hashes[rows])
            if leaked := int(is_leaked.sum()):
                lines, first = len(check.hashes), check.hashed_locations[int(np.flatnonzero(is_leaked)[0])]
                yield CorpusFinding(
                    f"Leakage: {leaked:,} of the {pluralize(lines, check.unit)} "
                    f"{'is' if leaked == 1 else 'are'} also in the training data, the first at {first}; validation "
                    "scores would be too high.",
                    "Remove them from the training data, or use other validation data.",
                    is_severe_leak(leaked, lines, check.mean_length),
                )


class _SourceCheck:
    """Collects numbers of all examples of one source, and a sample of them."""

    def __init__(self, source: AnySourceConfig, sample_size: int, *, has_validation: bool) -> None:
        self.source = source
        self._has_documents = isinstance(source, DocumentsConfig)
        self._has_validation = has_validation
        self._sample = EvenSample(sample_size)
        self._lengths = (array("I"), array("I"))
        self._locations = Locations()
        self._hashes = array("q")
        self.hashed_locations = Locations()
        self._characters = 0

    def add(self, example: Example) -> None:
        """Add the next example; images and audio clips are only compared for equality."""
        if isinstance(content := example.content, bytes):
            if self._has_validation:
                self._add_hash(hash(content), len(content), example.location)
            return
        if self._has_documents:
            self._add_document(example)
            return
        self._sample.add(example)
        if example.target is not None:
            self._lengths[0].append(len(example.source))
            self._lengths[1].append(len(example.target))
            self._locations.add(example.location)
        if self._has_validation:
            self._add_text(example.source, example.location)

    def _add_document(self, document: Example) -> None:
        """Add the lines of a document: all for leakage, those at its start for the other checks."""
        text = document.source if self._has_validation else document.source[:_HEAD]
        position = 0
        for number, line in enumerate(text.split("\n")):
            location = Location(document.location.file, document.location.line + number)
            if position < _HEAD and line.strip():
                self._sample.add(Example(location, line))
            if self._has_validation and len(line) >= _MIN_SHARED_LINE:
                self._add_text(line, location)
            position += len(line) + 1

    def _add_text(self, text: str, location: Location) -> None:
        self._add_hash(hash(fold(text)), len(text), location)

    def _add_hash(self, value: int, size: int, location: Location) -> None:
        self._hashes.append(value)
        self.hashed_locations.add(location)
        self._characters += size

    @property
    def unit(self) -> str:
        """What a hash stands for, in the singular."""
        names = {"images": "validation image", "audio": "validation audio clip"}
        return names.get(self.source.kind, "validation text")

    @property
    def hashes(self) -> NDArray[np.int64]:
        """Hashes of the sources, or of the longer lines of documents."""
        return np.frombuffer(self._hashes, np.int64) if self._hashes else np.empty(0, np.int64)

    @property
    def mean_length(self) -> float:
        """Mean number of characters of the hashed texts."""
        return self._characters / max(len(self._hashes), 1)

    @property
    def counts(self) -> tuple[int, int]:
        """How many lines were sampled, of how many."""
        return len(self._sample.examples), self._sample.count

    @property
    def sides(self) -> list[list[str]]:
        """The sampled sources, and targets if there are pairs."""
        return split_sides(self._sample.examples, has_pairs=bool(self._lengths[0]))

    def diagnose(self) -> CorpusReport | None:
        """Examine the sample, and the lengths of all pairs."""
        if not self._sample.examples:
            return None
        corpus_report = check_corpus(self._sample.examples, near_duplicates=False, misalignment=False)
        if self._lengths[0]:
            alignment = align(*(np.frombuffer(lengths, np.uint32) for lengths in self._lengths))
            corpus_report.findings += find_misalignment(alignment, self._locations)
            profile = corpus_report.profile
            corpus_report.findings += find_unrelated(profile.relation, alignment, profile.first_location)
        return corpus_report

    def compare(self, corpus_report: CorpusReport) -> Iterator[CorpusFinding]:
        """Yield differences of this validation source from the training data: swapped sides, another normal form."""
        profile, name = corpus_report.profile, f"validation data ({', '.join(self.source.paths)})"
        return compare_held_out(profile.language_classifier, profile.forms, self.sides, name)
