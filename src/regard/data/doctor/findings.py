"""Explain why a line was flagged, and sample flagged lines for the report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.doctor.check import CorpusReport
from regard.data.doctor.corpus_findings import describe_shift
from regard.data.doctor.detectors import language
from regard.data.doctor.rules.rule import RULE_BITS, Finding
from regard.data.example import CorpusError, Example, Location


@dataclass(frozen=True, slots=True)
class FlaggedExample:
    """A flagged line, and the earlier line that it repeats, if it is a duplicate."""

    example: Example
    finding: Finding
    original: Example | None = None


def explain_row(corpus_report: CorpusReport, row: int, example: Example) -> list[Finding]:
    """The findings of all rules that flag a row, in the order of the rules."""
    bits = int(corpus_report.verdicts[row])
    checks = corpus_report.profile.make_checks()
    row_findings = []
    for rule in corpus_report.rules:
        if bits & RULE_BITS[rule.name]:
            check = checks.get(rule.name)
            finding = check(example) if check else _explain_corpus_rule(corpus_report, rule.name, row, example)
            if finding is None:
                raise changed_error(example.location)
            row_findings.append(finding)
    return row_findings


def sample_flagged(
    corpus_report: CorpusReport, corpus: Iterable[Example], max_per_rule: int = 8
) -> dict[str, list[FlaggedExample]]:
    """Read the corpus again and sample up to `max_per_rule` flagged lines per rule, spread over the corpus."""
    rows_by_rule: dict[str, list[int]] = {}
    for rule in corpus_report.rules:
        rows = corpus_report.find_rows(rule.name)
        indices = np.unique(np.linspace(0, len(rows) - 1, min(max_per_rule, len(rows))).astype(int))
        rows_by_rule[rule.name] = rows[indices].tolist() if len(rows) else []
    if corpus_report.alignment is not None:  # the first lines of a misaligned stretch are the most informative
        first_rows = [
            range(stretch.first_row, min(stretch.first_row + 4, stretch.last_row + 1))
            for stretch in corpus_report.alignment.misaligned[:max_per_rule]
        ]
        rows_by_rule["misaligned"] = [row for rows in first_rows for row in rows][:max_per_rule]
    original_rows = {
        corpus_report.originals.get(name, {}).get(row)
        for name, sampled_rows in rows_by_rule.items()
        for row in sampled_rows
    }
    needed_rows = {row for sampled_rows in rows_by_rule.values() for row in sampled_rows} | {
        row for row in original_rows if isinstance(row, int)
    }
    examples = {row: example for row, example in reread(corpus_report, corpus) if row in needed_rows}
    flagged: dict[str, list[FlaggedExample]] = {}
    for name, sampled_rows in rows_by_rule.items():
        for row in sampled_rows:
            finding = next(
                row_finding
                for row_finding in explain_row(corpus_report, row, examples[row])
                if row_finding.rule == name
            )
            original = corpus_report.originals.get(name, {}).get(row)
            flagged.setdefault(name, []).append(
                FlaggedExample(examples[row], finding, examples[original] if isinstance(original, int) else None)
            )
    return flagged


def reread(corpus_report: CorpusReport, corpus: Iterable[Example]) -> Iterator[tuple[int, Example]]:
    """Iterate over an examined corpus with row numbers; raise an error if it changed since."""
    row = -1
    try:
        for row, example in enumerate(corpus):
            if row >= len(corpus_report.locations) or corpus_report.locations[row] != example.location:
                raise changed_error(example.location)
            yield row, example
    except CorpusError:
        if corpus_report.read_error is None or row + 1 != len(corpus_report.locations):
            raise
    if row + 1 != len(corpus_report.locations):
        raise changed_error(corpus_report.locations[len(corpus_report.locations) - 1])


def changed_error(location: Location) -> CorpusError:
    """Return the error to raise when the corpus changed during the check."""
    return CorpusError(
        "The corpus changed during the check.",
        location=str(location),
        hint="Run the check again when no other program writes to the files.",
    )


def _explain_corpus_rule(corpus_report: CorpusReport, rule: str, row: int, example: Example) -> Finding:
    """The finding of a rule that depends on more than one line."""
    if rule in corpus_report.originals:
        original = corpus_report.originals[rule][row]
        return Finding(rule, f"matches {corpus_report.locations[original] if isinstance(original, int) else original}")
    if rule == "misaligned":
        return Finding(rule, _describe_stretch(corpus_report, row))
    if rule == "swapped-languages":
        return Finding(rule, "each side is in the language of the other")
    return _explain_wrong_language(corpus_report, example)


def _describe_stretch(corpus_report: CorpusReport, row: int) -> str:
    stretches = corpus_report.alignment.misaligned if corpus_report.alignment else ()
    stretch = next(stretch for stretch in stretches if stretch.first_row <= row <= stretch.last_row)
    first_location, last_location = (
        corpus_report.locations[stretch.first_row],
        corpus_report.locations[stretch.last_row],
    )
    description = f"in the misaligned stretch {first_location} to line {last_location.line}"
    return description if stretch.shift is None else f"{description}: {describe_shift(stretch.shift)}"


def _explain_wrong_language(corpus_report: CorpusReport, example: Example) -> Finding:
    language_classifier = corpus_report.profile.language_classifier
    assert language_classifier is not None  # noqa: S101 - without a classifier the rule flags nothing
    texts = (example.source, example.target or "") if corpus_report.profile.has_pairs else (example.source,)
    spans: list[tuple[tuple[int, int], ...]] = [(), ()]
    reasons = []
    verdict = language.classify_rows(language_classifier, [[text] for text in texts])
    for side, text in enumerate(texts):
        if verdict.is_wrong[side][0]:
            spans[side] = ((0, len(text)),)
            remark = (
                "; it is more like the other side"
                if language_classifier.classify(side, [text]).is_other_side[0]
                else ""
            )
            reasons.append(f"the {('source', 'target')[side]} differs from the language of its side{remark}")
    return Finding("wrong-language", " and ".join(reasons), *spans)
