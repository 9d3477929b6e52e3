"""From verdicts back to words: why each flagged line was flagged, and examples to show."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.doctor import language
from regard.data.doctor.examine import Diagnosis
from regard.data.doctor.rules import BIT, Finding
from regard.data.example import CorpusError, Example, Location


@dataclass(frozen=True, slots=True)
class Sample:
    """A flagged line to show, and the earlier line that it repeats, if that is what is wrong."""

    example: Example
    finding: Finding
    other: Example | None = None


def findings(diagnosis: Diagnosis, row: int, example: Example) -> list[Finding]:
    """All that is wrong with one row, in the order of the rules."""
    bits = int(diagnosis.verdicts[row])
    checks = diagnosis.learned.checks()
    found = []
    for rule in diagnosis.rules:
        if bits & BIT[rule.name]:
            check = checks.get(rule.name)
            finding = check(example) if check else _about(diagnosis, rule.name, row, example)
            if finding is None:
                raise changed(example.where)
            found.append(finding)
    return found


def samples(diagnosis: Diagnosis, corpus: Iterable[Example], most: int = 8) -> dict[str, list[Sample]]:
    """Read the corpus again: up to `most` lines of every rule, spread over the whole corpus."""
    wanted: dict[str, list[int]] = {}
    for rule in diagnosis.rules:
        rows = diagnosis.rows(rule.name)
        places = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int))
        wanted[rule.name] = rows[places].tolist() if len(rows) else []
    if diagnosis.alignment is not None:  # of a slip, its first lines say most
        starts = [range(slip.first, min(slip.first + 4, slip.last + 1)) for slip in diagnosis.alignment.slips[:most]]
        wanted["misaligned"] = [row for rows in starts for row in rows][:most]
    others = {diagnosis.partners.get(name, {}).get(row) for name, chosen in wanted.items() for row in chosen}
    needed = {row for chosen in wanted.values() for row in chosen} | {row for row in others if isinstance(row, int)}
    kept = {row: example for row, example in same(diagnosis, corpus) if row in needed}
    shown: dict[str, list[Sample]] = {}
    for name, chosen in wanted.items():
        for row in chosen:
            finding = next(found for found in findings(diagnosis, row, kept[row]) if found.rule == name)
            other = diagnosis.partners.get(name, {}).get(row)
            shown.setdefault(name, []).append(
                Sample(kept[row], finding, kept[other] if isinstance(other, int) else None)
            )
    return shown


def same(diagnosis: Diagnosis, corpus: Iterable[Example]) -> Iterator[tuple[int, Example]]:
    """The rows of a corpus that was examined before; refuse one that changed since."""
    row = -1
    try:
        for row, example in enumerate(corpus):
            if row >= len(diagnosis.places) or diagnosis.places[row] != example.where:
                raise changed(example.where)
            yield row, example
    except CorpusError:
        if diagnosis.broken is None or row + 1 != len(diagnosis.places):
            raise
    if row + 1 != len(diagnosis.places):
        raise changed(diagnosis.places[len(diagnosis.places) - 1])


def changed(where: Location) -> CorpusError:
    """The error about a corpus that is not what it was a moment ago."""
    return CorpusError("The corpus changed while it was examined.", where=str(where), fix="Check it again.")


def _about(diagnosis: Diagnosis, rule: str, row: int, example: Example) -> Finding:
    """What the rules say that do not look at a line alone."""
    if rule in diagnosis.partners:
        other = diagnosis.partners[rule][row]
        return Finding(rule, f"like {diagnosis.places[other] if isinstance(other, int) else other}")
    if rule == "misaligned":
        return Finding(rule, _slip(diagnosis, row))
    if rule == "swapped-languages":
        return Finding(rule, "each side reads like the other column")
    return _wrong_language(diagnosis, example)


def _slip(diagnosis: Diagnosis, row: int) -> str:
    slips = diagnosis.alignment.slips if diagnosis.alignment else ()
    slip = next(slip for slip in slips if slip.first <= row <= slip.last)
    first, last = diagnosis.places[slip.first], diagnosis.places[slip.last]
    words = f"in the misaligned stretch {first} to line {last.line}"
    return words if slip.shift is None else f"{words}: {shifted(slip.shift)}"


def shifted(shift: int) -> str:
    """A shift in words.

    >>> shifted(-1)
    'the targets come 1 line too early: a target line was lost or a source line added'
    """
    early, one = shift < 0, abs(shift) == 1
    when = f"the targets come {abs(shift)} {'line' if one else 'lines'} too {'early' if early else 'late'}"
    lost, added = ("target", "source") if early else ("source", "target")
    if one:
        return f"{when}: a {lost} line was lost or a {added} line added"
    return f"{when}: {lost} lines were lost or {added} lines added"


def _wrong_language(diagnosis: Diagnosis, example: Example) -> Finding:
    judge = diagnosis.learned.judge
    assert judge is not None  # noqa: S101 - the rule speaks only with one
    texts = (example.source, example.target or "") if diagnosis.learned.pairs else (example.source,)
    spans: list[tuple[tuple[int, int], ...]] = [(), ()]
    words = []
    verdict = language.verdict(judge, [[text] for text in texts])
    for side, text in enumerate(texts):
        if verdict.wrong[side][0]:
            spans[side] = ((0, len(text)),)
            more = "; it reads like the other side" if judge.judge(side, [text]).other[0] else ""
            words.append(f"the {('source', 'target')[side]} does not read like the rest of its column{more}")
    return Finding("wrong-language", " and ".join(words), *spans)
