"""Summarize a diagnosis: a verdict and advice, shared by the terminal output and the report."""

from dataclasses import dataclass
from typing import Literal

from regard.base.formatting import pluralize
from regard.data.doctor.examine import Diagnosis
from regard.data.doctor.findings import describe_shift

Grade = Literal["good", "fair", "bad"]


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


def summarize(diagnosis: Diagnosis) -> Summary:
    """Summarize a diagnosis."""
    rows = len(diagnosis.verdicts)
    is_removed = diagnosis.removal_mask()
    removed, noticed = int(is_removed.sum()), int(((diagnosis.verdicts != 0) & ~is_removed).sum())
    advice = tuple(_give_advice(diagnosis))
    share = removed / max(rows, 1)
    is_misaligned = diagnosis.alignment is not None and diagnosis.alignment.misaligned
    has_leaks = any(leak.pairs or leak.sources for leak in diagnosis.leaks)
    if diagnosis.read_error is not None or is_misaligned or share > 0.1:
        return Summary("bad", "Do not train on this yet.", advice, rows, removed, noticed)
    if share > 0.01 or has_leaks:
        return Summary("fair", "Usable after cleaning.", advice, rows, removed, noticed)
    if removed:
        return Summary("good", "A good corpus with a few bad lines.", advice, rows, removed, noticed)
    return Summary("good", "A clean corpus.", advice, rows, removed, noticed)


def _give_advice(diagnosis: Diagnosis) -> list[str]:
    advice = []
    if diagnosis.read_error is not None:
        location = f" ({diagnosis.read_error.where})" if diagnosis.read_error.where else ""
        advice.append(f"Reading stopped before the end: {diagnosis.read_error.what}{location}")
    for stretch in diagnosis.alignment.misaligned if diagnosis.alignment else ():
        line_range = f"{diagnosis.locations[stretch.first_row]} to line {diagnosis.locations[stretch.last_row].line:,}"
        reason = f"; {describe_shift(stretch.shift)}" if stretch.shift is not None else "; no shift of a few lines fits"
        advice.append(f"Misaligned from {line_range}{reason}. Compare both files there and repair them.")
    advice += [
        f"Leakage: {leak.corpus} has {pluralize(leak.pairs, 'pair')} and {pluralize(leak.sources, 'source')} "
        f"of the {pluralize(leak.lines, 'line')} of {leak.held_out}; scores on them would be too high."
        for leak in diagnosis.leaks
        if leak.pairs or leak.sources
    ]
    counts = {rule.name: len(diagnosis.find_rows(rule.name)) for rule in diagnosis.rules}
    for rule in diagnosis.rules:
        if counts[rule.name] > 0.01 * len(diagnosis.verdicts) and not rule.name.startswith(("leaked", "misaligned")):
            share = f"{counts[rule.name] / len(diagnosis.verdicts):.1%} of all lines"
            advice.append(f"{rule.title}: {share}. {rule.explanation}")
    return advice
