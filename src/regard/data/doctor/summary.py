"""Summarize a corpus check: a verdict and advice, shared by the terminal output and the report."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.data.doctor.check import CorpusReport
from regard.data.doctor.rules.rule import RULE_BITS, Rule

Grade = Literal["good", "fair", "bad"]
_MAX_DAMAGED = 0.1  # the share of damaged lines beyond which a corpus must be fixed first
# Lines that these rules flag are sound text; leaks and misaligned stretches are findings about the corpus.
_NOT_DAMAGED = ("duplicate", "leaked-pair", "leaked-source", "misaligned")

_MAX_SUSPECT = 0.05  # the share of lines beyond which one of these rules contradicts "a good corpus":
_SUSPECT = ("numbers", "links", "brackets", "tags", "html-entity", "normal-form")


@dataclass(frozen=True, slots=True)
class Summary:
    """A grade, a verdict in one sentence, advice with the most urgent first, and the numbers of lines."""

    grade: Grade
    verdict: str
    advice: tuple[str, ...]
    rows: int
    removed: int
    noticed: int
    """Lines that are flagged but not removed."""


def summarize(corpus_report: CorpusReport) -> Summary:
    """Summarize a corpus check."""
    rows = len(corpus_report.verdicts)
    is_removed = corpus_report.removal_mask()
    removed, noticed = int(is_removed.sum()), int(((corpus_report.verdicts != 0) & ~is_removed).sum())
    advice = tuple(_give_advice(corpus_report))
    share = removed / max(rows, 1)
    is_grave = any(finding.is_grave for finding in corpus_report.findings)
    if corpus_report.read_error is not None or is_grave or is_damaged(corpus_report):
        return Summary("bad", "Do not train on this yet.", advice, rows, removed, noticed)
    if share > 0.01 or corpus_report.findings:
        return Summary("fair", "Usable after cleaning.", advice, rows, removed, noticed)
    if any(len(corpus_report.find_rows(rule)) > _MAX_SUSPECT * rows for rule in _SUSPECT):
        return Summary("fair", "Usable. Review these points first.", advice, rows, removed, noticed)
    if removed:
        return Summary("good", "A good corpus with a few bad lines.", advice, rows, removed, noticed)
    return Summary("good", "A clean corpus.", advice, rows, removed, noticed)


def is_damaged(corpus_report: CorpusReport) -> bool:
    """Whether the share of damaged lines is so large that the corpus must be fixed first."""
    bits = sum(RULE_BITS[rule.name] for rule in corpus_report.rules if is_damage(corpus_report, rule))
    damaged_count = int(((corpus_report.verdicts & np.uint32(bits)) != 0).sum())
    return damaged_count > _MAX_DAMAGED * len(corpus_report.verdicts)


def is_damage(corpus_report: CorpusReport, rule: Rule) -> bool:
    """Whether lines that a rule flags are damaged."""
    return rule.severity == "remove" and rule.name not in _NOT_DAMAGED and not _is_expected(corpus_report, rule.name)


def _is_expected(corpus_report: CorpusReport, rule: str) -> bool:
    """Whether a rule finds what is normal in this corpus: running text has empty lines and repeats short ones."""
    return corpus_report.profile.is_running_text and rule in ("empty", "duplicate")


def _give_advice(corpus_report: CorpusReport) -> list[str]:
    advice = []
    if corpus_report.read_error is not None:
        location = f" ({corpus_report.read_error.location})" if corpus_report.read_error.location else ""
        advice.append(f"Reading stopped before the end: {corpus_report.read_error.message}{location}")
    advice += [str(finding) for finding in sorted(corpus_report.findings, key=lambda finding: not finding.is_grave)]
    for rule in corpus_report.rules:
        advice += describe_rule(corpus_report, rule)
    return advice


def describe_rule(corpus_report: CorpusReport, rule: Rule, lines: str = "all lines") -> list[str]:
    """Describe a rule that flags more than 1 % of the lines; findings about the corpus describe the others."""
    rows = corpus_report.find_rows(rule.name)
    share = len(rows) / max(len(corpus_report.verdicts), 1)
    if share <= 0.01 or rule.name.startswith(("leaked", "misaligned")) or _is_expected(corpus_report, rule.name):
        return []
    return [
        f"{rule.title}: {share:.1%} of {lines}, the first at {corpus_report.locations[int(rows[0])]}. "
        f"{rule.explanation}"
    ]
