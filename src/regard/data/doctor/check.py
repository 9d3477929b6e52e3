"""Check a corpus: find the lines that each rule flags.

`check_corpus` reads the corpus twice: once to learn its statistics, once to apply the rules. The report and the cleaned
corpus need one more pass each. Between passes, memory holds numbers instead of text: 4 bytes of rule bits per line, its
lengths, fingerprints and MinHash signature.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.progress import begin
from regard.data.doctor.corpus_findings import CorpusFinding, find_leakage, find_misalignment, find_unrelated
from regard.data.doctor.detectors import language
from regard.data.doctor.detectors.language import LanguageClassifier
from regard.data.doctor.detectors.leakage import HeldOutFingerprints, Leak, count_leaks, find_leaks
from regard.data.doctor.detectors.near_duplicates import MinHashes
from regard.data.doctor.detectors.sentence_alignment import MIN_LINES, Alignment, align
from regard.data.doctor.fingerprints import Fingerprints, find_repeats
from regard.data.doctor.locations import Locations
from regard.data.doctor.profile import CorpusProfile, learn_profile, split_sides
from regard.data.doctor.rules.rule import RULE_BITS, RULES, Rule
from regard.data.doctor.statistics import Statistics, describe
from regard.data.example import CorpusError, Example, Location

_BATCH_ROWS = 2048


@dataclass(slots=True)
class CorpusReport:
    """The result of a corpus check. `verdicts` has one bit per rule (`RULE_BITS`) that flags the row."""

    rules: tuple[Rule, ...]
    statistics: Statistics
    profile: CorpusProfile
    locations: Locations
    verdicts: NDArray[np.uint32]
    originals: dict[str, dict[int, int | Location]] = field(default_factory=dict)
    """For rules about two lines, the other line: an earlier row of this corpus or a location in held-out data."""
    leaks: tuple[Leak, ...] = ()
    alignment: Alignment | None = None
    findings: list[CorpusFinding] = field(default_factory=list)
    """Defects of the corpus as a whole."""
    remarks: list[str] = field(default_factory=list)
    """Checks that were not possible, with the reason."""
    read_error: CorpusError | None = None
    """The error that stopped reading before the end of the corpus, if any."""

    def find_rows(self, rule: str) -> NDArray[np.int64]:
        """The rows that a rule flags."""
        return np.flatnonzero(self.verdicts & np.uint32(RULE_BITS[rule]))

    def removal_mask(self) -> NDArray[np.bool_]:
        """A mask of the rows that a cleaned corpus does not contain."""
        bits = sum(RULE_BITS[rule.name] for rule in self.rules if rule.severity == "remove")
        return (self.verdicts & np.uint32(bits)) != 0


def check_corpus(
    corpus: Iterable[Example],
    held_out: Mapping[str, Iterable[Example]] | None = None,
    *,
    rules: tuple[Rule, ...] = RULES,
    near_duplicates: bool = True,
    misalignment: bool = True,
    language_classifier: LanguageClassifier | None = None,
) -> CorpusReport:
    """Examine a corpus.

    Args:
        corpus: Examples that can be iterated more than once.
        held_out: Validation and test data by name; lines that they share with the corpus are leaks.
        rules: The rules with their severities (see `select_rules`).
        near_duplicates: Whether to search for near duplicates; this needs 80 bytes of memory per line.
        misalignment: Whether to search for misaligned stretches; not useful for a sample of a corpus.
        language_classifier: Decides the language of a text. Default: profiles learned from the corpus.

    Raises:
        RegardError: The corpus is an iterator, which can be read only once.
        CorpusError: The corpus is empty or cannot be read at all. Later errors are in `CorpusReport.read_error`.
    """
    if iter(corpus) is corpus:
        raise RegardError("The corpus is an iterator, but the check must read it more than once.", hint="Pass a list.")
    held_out_fingerprints = {name: HeldOutFingerprints.read(examples) for name, examples in (held_out or {}).items()}
    profile, remarks = learn_profile(corpus, language_classifier)
    collector = _Collector(profile, near_duplicates=near_duplicates, has_held_out=bool(held_out_fingerprints))
    read_error = None
    advance = begin("checking lines")
    try:
        for batch in _iter_batches(corpus):
            collector.add(batch)
            advance(len(batch))
    except CorpusError as error:
        read_error = error  # the lines before it may show the cause, e.g. where files of different lengths drift apart
    corpus_report = collector.make_diagnosis(rules, remarks, misalignment=misalignment)
    corpus_report.read_error = read_error
    _add_leaks(corpus_report, collector.folded_fingerprints, held_out_fingerprints)
    if corpus_report.alignment is not None:
        corpus_report.findings += find_misalignment(corpus_report.alignment, corpus_report.locations)
        corpus_report.findings += find_unrelated(profile.relation, corpus_report.alignment, profile.first_location)
    corpus_report.findings += [*profile.findings, *find_leakage(corpus_report.leaks)]
    return corpus_report


class _Collector:
    """Collects verdicts, lengths and hashes of the lines in the second pass."""

    def __init__(self, profile: CorpusProfile, *, near_duplicates: bool, has_held_out: bool) -> None:
        self.profile = profile
        self.checks = [(RULE_BITS[name], check) for name, check in profile.make_checks().items()]
        self.verdicts = array("I")
        self.lengths = [array("I") for _ in range(2 if profile.has_pairs else 1)]
        self.frequencies = [0] * len(self.lengths)
        self.locations = Locations()
        self.fingerprints = Fingerprints(should_fold=False)
        self.folded_fingerprints = Fingerprints(should_fold=True) if has_held_out else None
        self.min_hashes = MinHashes() if near_duplicates else None

    def add(self, batch: list[Example]) -> None:
        for example in batch:
            bits = 0
            for bit, check in self.checks:
                if check(example) is not None:
                    bits |= bit
            self.verdicts.append(bits)
            self.locations.add(example.location)
            self.fingerprints.add(example)
            if self.folded_fingerprints is not None:
                self.folded_fingerprints.add(example)
        sides = split_sides(batch, has_pairs=self.profile.has_pairs)
        for number, texts in enumerate(sides):
            self.lengths[number].extend(map(len, texts))
            self.frequencies[number] += sum(len(text.split()) for text in texts)
        if self.min_hashes is not None:
            self.min_hashes.add(["\n".join(texts) for texts in zip(*sides, strict=True)])
        self._check_languages(sides)

    def _check_languages(self, sides: list[list[str]]) -> None:
        language_classifier = self.profile.language_classifier
        if language_classifier is None:
            return
        verdict = language.classify_rows(language_classifier, sides)
        wrong = np.logical_or.reduce(verdict.is_wrong)
        first_row = len(self.verdicts) - len(sides[0])
        for is_flagged, rule in ((verdict.is_swapped, "swapped-languages"), (wrong, "wrong-language")):
            for offset in np.flatnonzero(is_flagged):
                self.verdicts[first_row + int(offset)] |= RULE_BITS[rule]

    def make_diagnosis(self, rules: tuple[Rule, ...], remarks: list[str], *, misalignment: bool) -> CorpusReport:
        columns = [np.frombuffer(side, np.uint32) if side else np.empty(0, np.uint32) for side in self.lengths]
        verdicts = np.array(self.verdicts, np.uint32)
        corpus_report = CorpusReport(
            rules, describe(columns, self.frequencies), self.profile, self.locations, verdicts, remarks=remarks
        )
        _mark_rows(corpus_report, "duplicate", *find_repeats(self.fingerprints.pair))
        _mark_rows(corpus_report, "repeated-source", *find_repeats(self.fingerprints.source), unless=("duplicate",))
        if self.profile.has_pairs:
            _mark_rows(corpus_report, "repeated-target", *find_repeats(self.fingerprints.target), unless=("duplicate",))
        if self.profile.has_pairs and misalignment:
            corpus_report.alignment = align(*columns)
            for stretch in corpus_report.alignment.misaligned:
                corpus_report.verdicts[stretch.first_row : stretch.last_row + 1] |= np.uint32(RULE_BITS["misaligned"])
            if not corpus_report.alignment.is_informative:
                has_too_few = len(corpus_report.verdicts) < MIN_LINES
                reason = "there are too few lines" if has_too_few else "the lengths of the two sides do not correlate"
                remarks.append(f"Misaligned stretches were not checked: {reason}.")
        if self.min_hashes is not None:
            _mark_rows(corpus_report, "near-duplicate", *self.min_hashes.find_near_duplicates(), unless=("duplicate",))
        return corpus_report


def _add_leaks(
    corpus_report: CorpusReport, fingerprints: Fingerprints | None, held_out: dict[str, HeldOutFingerprints]
) -> None:
    if fingerprints is None:
        return
    leak_counts = []
    for name, held_out_corpus in held_out.items():
        leak_counts.append(count_leaks("the corpus", fingerprints, name, held_out_corpus.fingerprints))
        for rule, rows, held_out_rows in find_leaks(
            fingerprints, held_out_corpus, has_pairs=corpus_report.profile.has_pairs
        ):
            for row, held_out_row in zip(rows.tolist(), held_out_rows.tolist(), strict=True):
                corpus_report.originals.setdefault(rule, {}).setdefault(row, held_out_corpus.locations[held_out_row])
            corpus_report.verdicts[rows] |= np.uint32(RULE_BITS[rule])
    names = list(held_out)
    for index, first_name in enumerate(names):
        leak_counts += [
            count_leaks(first_name, held_out[first_name].fingerprints, second_name, held_out[second_name].fingerprints)
            for second_name in names[index + 1 :]
        ]
    corpus_report.leaks = tuple(leak_counts)


def _mark_rows(
    corpus_report: CorpusReport,
    rule: str,
    rows: NDArray[np.int64],
    first_rows: NDArray[np.int64],
    unless: tuple[str, ...] = (),
) -> None:
    """Flag rows by a rule about two lines, except where one of the rules in `unless` flags them already."""
    already_marked = np.uint32(sum(RULE_BITS[name] for name in (*unless, "empty")))
    is_new = (corpus_report.verdicts[rows] & already_marked) == 0
    rows, first_rows = rows[is_new], first_rows[is_new]
    corpus_report.verdicts[rows] |= np.uint32(RULE_BITS[rule])
    corpus_report.originals[rule] = dict(zip(rows.tolist(), first_rows.tolist(), strict=True))


def _iter_batches(corpus: Iterable[Example]) -> Iterator[list[Example]]:
    """Group examples into lists; the examples before an error are yielded before it is raised."""
    batch: list[Example] = []
    try:
        for example in corpus:
            batch.append(example)
            if len(batch) == _BATCH_ROWS:
                yield batch
                batch = []
    except CorpusError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
