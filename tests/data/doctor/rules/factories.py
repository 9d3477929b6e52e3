"""The checks of all rules, and helpers that several tests of rules use."""

from regard.data.doctor.profile import Check, CorpusProfile
from regard.data.doctor.rules import length
from regard.data.example import Example, Location
from tests.data.doctor.synthetic_pairs import Pair

CHECKS = CorpusProfile(
    length.LengthStatistics((500, 500), ratio=1.1, ratio_factor=2.0), None, has_pairs=True
).make_checks()
LONG_SENTENCE = "Ein Satz von etwa sechzig Zeichen, der nichts Böses will. "


def check_reported(rule: str, source: str, target: str) -> None:
    finding = CHECKS[rule](Example(Location("a", 1), source, target))
    assert finding is not None
    assert finding.rule == rule
    assert finding.reason
    for text, spans in ((source, finding.source_spans), (target, finding.target_spans)):
        assert all(0 <= start < end <= len(text) for start, end in spans)


def check_accepted(rule: str, source: str, target: str) -> None:
    assert CHECKS[rule](Example(Location("a", 1), source, target)) is None


def find_flagged(check: Check, pairs: list[Pair]) -> list[int]:
    return [row for row, texts in enumerate(pairs) if check(Example(Location("a", row + 1), *texts)) is not None]


def split_pairs(pairs: list[Pair]) -> list[list[str]]:
    return [list(side) for side in zip(*pairs, strict=True)]
