"""The profile of a corpus: statistics of a sample, with which the rules compare each line."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from regard.base.progress import begin
from regard.data.doctor.corpus_findings import CorpusFinding, find_pair_faults
from regard.data.doctor.detectors import language
from regard.data.doctor.detectors.language import LanguageClassifier
from regard.data.doctor.detectors.relatedness import Relation, judge_relation
from regard.data.doctor.rules import character, length, pair
from regard.data.doctor.rules.normal_form import NormalForms, learn_forms
from regard.data.doctor.rules.rule import Finding
from regard.data.doctor.rules.truncation import TruncationStatistics, learn_truncation
from regard.data.example import CorpusError, Example, Location

Check = Callable[[Example], Finding | None]
_PROGRESS_ROWS = 2048
_MAX_SAMPLE = 32_768


@dataclass(frozen=True, slots=True)
class CorpusProfile:
    """Statistics of this corpus that the rules compare each line with."""

    lengths: length.LengthStatistics
    language_classifier: LanguageClassifier | None
    has_pairs: bool
    truncation: TruncationStatistics = field(default_factory=TruncationStatistics)
    forms: NormalForms = field(default_factory=NormalForms)
    relation: Relation = Relation.UNKNOWN
    is_recasing: bool = False
    is_running_text: bool = False
    """Whether the lines have no targets, labels or tags. Its empty lines separate paragraphs; its lines may repeat."""
    first_location: Location | None = None
    findings: tuple[CorpusFinding, ...] = ()
    """Defects of most pairs."""

    def make_checks(self) -> dict[str, Check]:
        """The checks of the rules that need one line only, by rule name."""
        return {
            "empty": pair.check_empty,
            "copy": pair.check_exact_copy if self.is_recasing else pair.check_copy,
            "mojibake": character.check_mojibake,
            "replacement-character": character.check_replacement,
            "control-character": character.check_control,
            "too-long": self.lengths.check_too_long,
            "ratio": self.lengths.check_ratio,
            "truncated": self.truncation.check,
            "numbers": pair.check_numbers,
            "links": pair.check_links,
            "brackets": pair.check_brackets,
            "tags": pair.check_tags,
            "html-entity": character.check_entity,
            "invisible-character": character.check_invisible,
            "normal-form": self.forms.check,
            "long-word": self.lengths.check_long_run,
        }


class EvenSample:
    """An even sample of a stream: every 2^n-th example, at most `max_size`."""

    def __init__(self, max_size: int) -> None:
        self.examples: list[Example] = []
        self._max_size, self._step, self.count = max_size, 1, 0

    def add(self, example: Example) -> None:
        """Add the next example of the stream."""
        if self.count % self._step == 0:
            self.examples.append(example)
            if len(self.examples) > self._max_size:
                self.examples, self._step = self.examples[::2], self._step * 2
        self.count += 1


def learn_profile(
    corpus: Iterable[Example], language_classifier: LanguageClassifier | None
) -> tuple[CorpusProfile, list[str]]:
    """Learn from an even sample of the corpus. Also return which checks are not possible, with the reasons."""
    sample = EvenSample(_MAX_SAMPLE)
    has_pairs, is_running_text, row = False, True, -1
    advance = begin("reading lines")
    try:
        for row, example in enumerate(corpus):
            has_pairs = has_pairs or example.target is not None
            is_running_text = is_running_text and not (example.label or example.tags)
            sample.add(example)
            if row and row % _PROGRESS_ROWS == 0:
                advance(_PROGRESS_ROWS)
    except CorpusError:
        if row < 0:
            raise
        # Otherwise the second pass raises it again and reports it with the lines before it.
    if row < 0:
        raise CorpusError("The corpus has no lines.", hint="Give a file with text.")
    sides = split_sides(sample.examples, has_pairs=has_pairs)
    remarks = []
    if language_classifier is None:
        language_classifier = language.learn_profiles([[text for text in texts if text.strip()] for texts in sides])
        if language_classifier is None:
            remarks.append("Languages were not checked: there are too few lines to learn from.")
    profile = CorpusProfile(
        length.learn_lengths(sides),
        language_classifier,
        has_pairs,
        learn_truncation(sides),
        learn_forms(sides),
        judge_relation(*sides) if has_pairs else Relation.UNKNOWN,
        has_pairs and pair.is_recasing(*sides),
        is_running_text and not has_pairs,
        sample.examples[0].location,
        tuple(find_pair_faults(sample.examples)) if has_pairs else (),
    )
    return profile, remarks


def split_sides(batch: list[Example], *, has_pairs: bool) -> list[list[str]]:
    """The sources, and the targets if the corpus has pairs."""
    sources = [example.source for example in batch]
    return [sources, [example.target or "" for example in batch]] if has_pairs else [sources]
