"""A diagnosis in words: the verdict, what to do first. The terminal and the report say the same."""

from dataclasses import dataclass
from typing import Literal

from regard.data.doctor.examine import Diagnosis
from regard.data.doctor.explain import shifted

Mood = Literal["good", "fair", "bad"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The short answer: how the corpus is, in one sentence, and what to do, most urgent first."""

    mood: Mood
    verdict: str
    advice: tuple[str, ...]
    rows: int
    removed: int
    noticed: int
    """Lines with a notice and nothing worse."""


def summary(diagnosis: Diagnosis) -> Summary:
    """Sum up a diagnosis."""
    rows = len(diagnosis.verdicts)
    gone = diagnosis.removed()
    removed, noticed = int(gone.sum()), int(((diagnosis.verdicts != 0) & ~gone).sum())
    advice = tuple(_advice(diagnosis))
    share = removed / max(rows, 1)
    slipped = diagnosis.alignment is not None and diagnosis.alignment.slips
    leaked = any(leak.pairs or leak.sources for leak in diagnosis.leaks)
    if diagnosis.broken is not None or slipped or share > 0.1:
        return Summary("bad", "Do not train on this yet.", advice, rows, removed, noticed)
    if share > 0.01 or leaked:
        return Summary("fair", "Usable after cleaning.", advice, rows, removed, noticed)
    if removed:
        return Summary("good", "A good corpus with a few bad lines.", advice, rows, removed, noticed)
    return Summary("good", "A clean corpus.", advice, rows, removed, noticed)


def plural(count: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> plural(1, "line"), plural(1200, "line")
    ('1 line', '1,200 lines')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _advice(diagnosis: Diagnosis) -> list[str]:
    advice = []
    if diagnosis.broken is not None:
        place = f" ({diagnosis.broken.where})" if diagnosis.broken.where else ""
        advice.append(f"Reading stopped before the end: {diagnosis.broken.what}{place}")
    for slip in diagnosis.alignment.slips if diagnosis.alignment else ():
        where = f"{diagnosis.places[slip.first]} to line {diagnosis.places[slip.last].line:,}"
        why = f"; {shifted(slip.shift)}" if slip.shift is not None else "; no shift of a few lines mends it"
        advice.append(f"Misaligned from {where}{why}. Compare both files there and mend them.")
    advice += [
        f"Of the {plural(leak.lines, 'line')} of {leak.held_out}, {leak.corpus} has {plural(leak.pairs, 'pair')} and "
        f"{plural(leak.sources, 'source')}: scores on them would be too good."
        for leak in diagnosis.leaks
        if leak.pairs or leak.sources
    ]
    counts = {rule.name: len(diagnosis.rows(rule.name)) for rule in diagnosis.rules}
    for rule in diagnosis.rules:
        if counts[rule.name] > 0.01 * len(diagnosis.verdicts) and not rule.name.startswith(("leaked", "misaligned")):
            share = f"{counts[rule.name] / len(diagnosis.verdicts):.1%} of all lines"
            advice.append(f"{rule.title}: {share}. {rule.why}")
    return advice
