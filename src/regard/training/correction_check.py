"""Find corrections that a model should not learn: damaged, in a wrong language, advertising, or of another text.

The corpus check judges each correction next to the model's own data, from which it learns the languages and the usual
lengths. The model itself tells whether a translation belongs to its source: then it is more probable given this source
than given others. Texts that most translations contain, but few sources, are advertising.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from regard.data.doctor.check import check_corpus
from regard.data.doctor.findings import explain_row
from regard.data.doctor.rules.rule import select_rules
from regard.data.example import Example, Location
from regard.tasks.scorer import Scorer

Pair = tuple[str, str]
MAX_REFERENCES = 4_000  # pairs of the model's own data
OTHER_SOURCES = 6  # with which each source is compared
PHRASE = 4  # words
MAX_REPEATED = 0.2  # the share of translations with the same phrase, beyond the share of sources with one


def find_unusable(new: Sequence[Pair], known: Sequence[Pair], scorer: Scorer) -> dict[int, str]:
    """Return the rows of the corrections that fail a check, each with the reason.

    Args:
        new: Sources with their corrected translations.
        known: Pairs that are known to be good.
        scorer: Scores translations with the old model.
    """
    known = known[:MAX_REFERENCES]
    return _find_unrelated(new, known, scorer) | _find_repeated(new) | dict(_find_damaged(new, known))


def _find_damaged(new: Sequence[Pair], known: Sequence[Pair]) -> Iterator[tuple[int, str]]:
    """Yield the rows that the corpus check would remove."""
    rules = select_rules(remove=("links",), keep=("duplicate",))
    examples = [Example(Location("corrections", row), *pair) for row, pair in enumerate([*known, *new])]
    report = check_corpus(examples, rules=rules, near_duplicates=False, misalignment=False)
    removed = {rule.name: rule.title for rule in rules if rule.severity == "remove"}
    for row in np.flatnonzero(report.removal_mask()[len(known) :]).tolist():
        findings = explain_row(report, len(known) + row, examples[len(known) + row])
        yield row, next(f"{removed[item.rule]} ({item.reason})" for item in findings if item.rule in removed)


def _find_unrelated(new: Sequence[Pair], known: Sequence[Pair], scorer: Scorer) -> dict[int, str]:
    """Return the rows whose translation is at least as probable given other sources: every second unrelated one.

    A translator of 4 BLEU flagged 3 and 7 of 100 correct pairs of another domain, a translator of 30 BLEU none.
    """
    targets, sources = [target for _, target in new], [source for source, _ in [*new, *known]]
    own, *others = (
        np.array([text.total_logprob for text in scorer.score(targets, _rotate(sources, shift)[: len(new)])])
        for shift in range(OTHER_SOURCES + 1)
    )
    is_unrelated = own <= np.mean(others, axis=0)
    return dict.fromkeys(np.flatnonzero(is_unrelated).tolist(), "Unrelated (as probable for another text)")


def _find_repeated(new: Sequence[Pair]) -> dict[int, str]:
    """Return the rows whose translations share a phrase that has no counterpart in their sources."""
    sides = [[_list_phrases(text) for text in side] for side in zip(*new, strict=True)]
    sources, targets = (Counter(phrase for phrases in side for phrase in phrases) for side in sides)
    limit = max(sources.values(), default=0) + max(1, MAX_REPEATED * len(new))
    repeated = {phrase for phrase, count in targets.items() if count > limit}
    return {
        row: f"Repeated text ({' '.join(min(phrases & repeated))})"
        for row, phrases in enumerate(sides[1])
        if phrases & repeated
    }


def _rotate(items: Sequence[str], shift: int) -> list[str]:
    return [*items[shift:], *items[:shift]]


def _list_phrases(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[start : start + PHRASE]) for start in range(len(words) - PHRASE + 1)}
