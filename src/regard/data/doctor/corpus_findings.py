"""Findings about a corpus as a whole: misalignment, unrelated sides, mixed directions, numbers, leakage."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from regard.base.formatting import pluralize
from regard.data.doctor.detectors.direction import find_reversed
from regard.data.doctor.detectors.language import LanguageClassifier
from regard.data.doctor.detectors.leakage import Leak
from regard.data.doctor.detectors.relatedness import Relation
from regard.data.doctor.detectors.sentence_alignment import Alignment
from regard.data.doctor.locations import Locations
from regard.data.doctor.rules.normal_form import NormalForms, learn_forms
from regard.data.doctor.rules.pair import check_numbers
from regard.data.example import Example, Location

_MAX_MISALIGNED = 0.01  # the share of misaligned lines beyond which the corpus must be repaired
_MAX_LEAKED = 0.2  # the share of leaked held-out sources beyond which a score does not measure quality on unseen text
_MAX_LEAKED_SHORT = 0.9  # the same for sources that are so short that different texts are often equal
_MIN_LEAKED = 10  # held-out sources
_SHORT = 20  # characters
_MIN_COMPARED = 50  # held-out pairs needed to detect swapped sides
_MAX_OTHER_SIDE = 0.8  # the share of held-out texts that fit the other side of the corpus
_MIN_PAIRS = 20  # with fewer, a share says little
_MAX_REVERSED = 0.1  # the share of reversed pairs
_MAX_STRETCHES = 5  # misaligned stretches that are listed


@dataclass(frozen=True, slots=True)
class CorpusFinding:
    """A defect of the corpus with its location and a hint. A severe one must be fixed before training."""

    message: str
    hint: str
    is_grave: bool

    def __str__(self) -> str:
        return f"{self.message} {self.hint}"


def find_misalignment(alignment: Alignment, locations: Locations) -> Iterator[CorpusFinding]:
    """Yield misaligned stretches; they are severe if they cover more than 1 % of the lines."""
    misaligned_rows = sum(stretch.row_count for stretch in alignment.misaligned)
    is_grave = misaligned_rows > _MAX_MISALIGNED * len(locations)
    largest = sorted(alignment.misaligned, key=lambda stretch: -stretch.row_count)[:_MAX_STRETCHES]
    for stretch in sorted(largest, key=lambda stretch: stretch.first_row):
        lines = f"{locations[stretch.first_row]} to line {locations[stretch.last_row].line:,}"
        reason = describe_shift(stretch.shift) if stretch.shift is not None else "no shift of a few lines fits"
        hint = "Compare both files there and fix them."
        yield CorpusFinding(f"Misaligned from {lines}; {reason}.", hint, is_grave)
    if shorter_count := len(alignment.misaligned) - len(largest):
        hint = "`regard check --report` lists the lines."
        yield CorpusFinding(
            f"{pluralize(shorter_count, 'shorter stretch', 'shorter stretches')} misaligned, too.", hint, False
        )


def find_unrelated(relation: Relation, alignment: Alignment, location: Location | None) -> Iterator[CorpusFinding]:
    """Yield a finding if the two sides do not belong together, unless a shift of lines explains it."""
    is_shifted = any(stretch.shift is not None for stretch in alignment.misaligned)
    if relation in (Relation.UNRELATED, Relation.DOUBTFUL) and not is_shifted:
        verb = "are" if relation is Relation.UNRELATED else "seem"
        start = f" (from {location})" if location else ""
        yield CorpusFinding(
            f"The two sides {verb} unrelated{start}: lengths and words of a source and its target agree no more "
            "than in random lines.",
            "One file may have been shuffled or sorted: use the files in their original order.",
            relation is Relation.UNRELATED,
        )


def find_pair_faults(pairs: Sequence[Example]) -> Iterator[CorpusFinding]:
    """Yield defects that affect most pairs of a sample: a side of numbers, differing numbers, mixed directions."""
    if len(pairs) < _MIN_PAIRS:
        return
    sides = [[pair.source for pair in pairs], [pair.target or "" for pair in pairs]]
    shares = [sum(map(_is_prose, texts)) / len(texts) for texts in sides]
    for name, texts, other_share in zip(("source", "target"), sides, reversed(shares), strict=True):
        numbers = [text for text in texts if _is_number(text)]
        if len(numbers) > len(texts) / 2 and other_share > 0.5:
            message = f"Most {name}s are numbers ('{numbers[0][:_SHORT]}'), and the other side is text: ids or scores?"
            hint = "Choose the columns of a table with --columns, or give the right file."
            # Few distinct targets may be counts or ratings; a source may be a number to write out.
            yield CorpusFinding(message, hint, name == "target" and len(set(numbers)) > len(numbers) / 2)
    differences = [finding for pair in pairs if min(shares) > 0.5 and (finding := check_numbers(pair)) is not None]
    if len(differences) > len(pairs) / 2:
        message = f"Numbers differ in {len(differences) / len(pairs):.0%} of the pairs: do the sides belong together?"
        # A summary leaves numbers out, but neither a summary nor a translation adds them.
        is_added = sum(bool(finding.target_spans) for finding in differences) > len(pairs) / 2
        yield CorpusFinding(message, "Check that every target belongs to its source.", is_added)
    reversed_pairs = find_reversed(*sides)
    if reversed_pairs is not None and reversed_pairs[1] > _MAX_REVERSED:
        rows, share = set(reversed_pairs[0].tolist()), reversed_pairs[1]
        first_rows = min(rows), next(row for row in range(len(pairs)) if row not in rows)
        places = " and ".join(str(pairs[row].location) for row in sorted(first_rows))
        message = f"The direction is mixed: about {share:.0%} of the pairs are reversed; compare {places}."
        yield CorpusFinding(
            message, "Swap the sides of the reversed pairs, so that all sources are in the same language.", True
        )


def _is_number(text: str) -> bool:
    """Whether a text is one word, mostly of digits."""
    return len(text.split()) == 1 and 2 * sum(map(str.isdigit, text)) > len(text.strip())


def _is_prose(text: str) -> bool:
    return sum(map(str.isalpha, text)) > sum(map(str.isdigit, text))


def find_leakage(leaks: Iterable[Leak]) -> Iterator[CorpusFinding]:
    """Yield a finding for each held-out corpus whose texts are also in the corpus."""
    for leak in leaks:
        if leak.pairs or leak.sources:
            yield CorpusFinding(
                f"Leakage: {leak.corpus} has {pluralize(leak.pairs, 'pair')} and {pluralize(leak.sources, 'source')} "
                f"of the {pluralize(leak.lines, 'line')} of {leak.held_out}; scores on them would be too high.",
                "Remove them from one of the two.",
                is_severe_leak(leak.sources, leak.lines),
            )


def is_severe_leak(leaked: int, lines: int, mean_length: float = _SHORT) -> bool:
    """Whether the leaked share of held-out sources makes scores meaningless; short ones are often equal by chance."""
    return leaked >= _MIN_LEAKED and leaked > lines * (_MAX_LEAKED_SHORT if mean_length < _SHORT else _MAX_LEAKED)


def compare_held_out(
    language_classifier: LanguageClassifier | None, forms: NormalForms, sides: Sequence[Sequence[str]], name: str
) -> Iterator[CorpusFinding]:
    """Yield differences of held-out data from the corpus: swapped sides, another Unicode normal form.

    Args:
        language_classifier: Classifies languages by the profiles of the corpus.
        forms: The normal forms of the corpus.
        sides: A sample of the held-out data.
        name: The name of the held-out data.
    """
    if language_classifier is not None and len(sides) == 2 and len(sides[0]) >= _MIN_COMPARED:
        shares = [
            float(language_classifier.classify(side, texts).is_other_side.mean()) for side, texts in enumerate(sides)
        ]
        if min(shares) > _MAX_OTHER_SIDE:
            yield CorpusFinding(f"The sides of the {name} are swapped.", "Swap its source and target.", True)
    for form, corpus_form in zip(learn_forms(sides).forms, forms.forms, strict=False):
        if form is not None and corpus_form is not None and form != corpus_form:
            message = f"Unicode normal forms differ: {form} in the {name}, {corpus_form} in the corpus."
            yield CorpusFinding(
                message, "Convert both to NFC, or train with --set tokenizer.normalize.form=nfc.", False
            )
            return


def describe_shift(shift: int) -> str:
    """Describe a shift of the target lines.

    >>> describe_shift(-1)
    'the targets come 1 line too early: a target line was lost or a source line added'
    """
    is_early, is_single_line = shift < 0, abs(shift) == 1
    when = (
        f"the targets come {abs(shift)} {'line' if is_single_line else 'lines'} too {'early' if is_early else 'late'}"
    )
    lost, added = ("target", "source") if is_early else ("source", "target")
    if is_single_line:
        return f"{when}: a {lost} line was lost or a {added} line added"
    return f"{when}: {lost} lines were lost or {added} lines added"
