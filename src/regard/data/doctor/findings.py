"""Explain why a line was flagged, and sample flagged lines for the report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.doctor.check import Diagnosis
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


def explain_row(diagnosis: Diagnosis, row: int, example: Example) -> list[Finding]:
    """The findings of all rules that flag a row, in the order of the rules."""
    bits = int(diagnosis.verdicts[row])
    checks = diagnosis.profile.make_checks()
    row_findings = []
    for rule in diagnosis.rules:
        if bits & RULE_BITS[rule.name]:
            check = checks.get(rule.name)
            finding = check(example) if check else _explain_corpus_rule(diagnosis, rule.name, row, example)
            if finding is None:
                raise changed_error(example.where)
            row_findings.append(finding)
    return row_findings


def sample_flagged(
    diagnosis: Diagnosis, corpus: Iterable[Example], max_per_rule: int = 8
) -> dict[str, list[FlaggedExample]]:
    """Read the corpus again and sample up to `max_per_rule` flagged lines per rule, spread over the corpus."""
    rows_by_rule: dict[str, list[int]] = {}
    for rule in diagnosis.rules:
        rows = diagnosis.find_rows(rule.name)
        indices = np.unique(np.linspace(0, len(rows) - 1, min(max_per_rule, len(rows))).astype(int))
        rows_by_rule[rule.name] = rows[indices].tolist() if len(rows) else []
    if diagnosis.alignment is not None:  # the first lines of a misaligned stretch are the most informative
        first_rows = [
            range(stretch.first_row, min(stretch.first_row + 4, stretch.last_row + 1))
            for stretch in diagnosis.alignment.misaligned[:max_per_rule]
        ]
        rows_by_rule["misaligned"] = [row for rows in first_rows for row in rows][:max_per_rule]
    original_rows = {
        diagnosis.originals.get(name, {}).get(row)
        for name, sampled_rows in rows_by_rule.items()
        for row in sampled_rows
    }
    needed_rows = {row for sampled_rows in rows_by_rule.values() for row in sampled_rows} | {
        row for row in original_rows if isinstance(row, int)
    }
    examples = {row: example for row, example in reread(diagnosis, corpus) if row in needed_rows}
    flagged: dict[str, list[FlaggedExample]] = {}
    for name, sampled_rows in rows_by_rule.items():
        for row in sampled_rows:
            finding = next(
                row_finding for row_finding in explain_row(diagnosis, row, examples[row]) if row_finding.rule == name
            )
            original = diagnosis.originals.get(name, {}).get(row)
            flagged.setdefault(name, []).append(
                FlaggedExample(examples[row], finding, examples[original] if isinstance(original, int) else None)
            )
    return flagged


def reread(diagnosis: Diagnosis, corpus: Iterable[Example]) -> Iterator[tuple[int, Example]]:
    """Iterate over an examined corpus with row numbers; raise an error if it changed since."""
    row = -1
    try:
        for row, example in enumerate(corpus):
            if row >= len(diagnosis.locations) or diagnosis.locations[row] != example.where:
                raise changed_error(example.where)
            yield row, example
    except CorpusError:
        if diagnosis.read_error is None or row + 1 != len(diagnosis.locations):
            raise
    if row + 1 != len(diagnosis.locations):
        raise changed_error(diagnosis.locations[len(diagnosis.locations) - 1])


def changed_error(where: Location) -> CorpusError:
    """Return the error to raise when the corpus changed during the examination."""
    return CorpusError(
        "The corpus changed while it was examined.",
        where=str(where),
        fix="Run the check again when nothing writes to it.",
    )


def _explain_corpus_rule(diagnosis: Diagnosis, rule: str, row: int, example: Example) -> Finding:
    """The finding of a rule that depends on more than one line."""
    if rule in diagnosis.originals:
        original = diagnosis.originals[rule][row]
        return Finding(rule, f"matches {diagnosis.locations[original] if isinstance(original, int) else original}")
    if rule == "misaligned":
        return Finding(rule, _describe_stretch(diagnosis, row))
    if rule == "swapped-languages":
        return Finding(rule, "each side is in the language of the other")
    return _explain_wrong_language(diagnosis, example)


def _describe_stretch(diagnosis: Diagnosis, row: int) -> str:
    stretches = diagnosis.alignment.misaligned if diagnosis.alignment else ()
    stretch = next(stretch for stretch in stretches if stretch.first_row <= row <= stretch.last_row)
    first_location, last_location = diagnosis.locations[stretch.first_row], diagnosis.locations[stretch.last_row]
    description = f"in the misaligned stretch {first_location} to line {last_location.line}"
    return description if stretch.shift is None else f"{description}: {describe_shift(stretch.shift)}"


def _explain_wrong_language(diagnosis: Diagnosis, example: Example) -> Finding:
    judge = diagnosis.profile.judge
    assert judge is not None  # noqa: S101 - without a judge the rule flags nothing
    texts = (example.source, example.target or "") if diagnosis.profile.has_pairs else (example.source,)
    spans: list[tuple[tuple[int, int], ...]] = [(), ()]
    reasons = []
    verdict = language.judge_rows(judge, [[text] for text in texts])
    for side, text in enumerate(texts):
        if verdict.is_wrong[side][0]:
            spans[side] = ((0, len(text)),)
            remark = "; it is more like the other side" if judge.judge(side, [text]).is_other_side[0] else ""
            reasons.append(f"the {('source', 'target')[side]} differs from the language of its side{remark}")
    return Finding("wrong-language", " and ".join(reasons), *spans)
