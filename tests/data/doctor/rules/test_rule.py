"""The list of rules: names, severities, and the time that the checks take."""

import time

import pytest

from regard.base.errors import RegardError
from regard.data.doctor.rules.rule import RULE_BITS, RULES, select_rules
from regard.data.example import Example, Location
from tests.data.doctor.rules.factories import CHECKS


@pytest.mark.parametrize(
    "text",
    [
        "9" * 1_000_000,
        "1.234" * 100_000,
        "a" * 500_000 + "@",
        "a@" * 100_000,
        "(" * 300_000,
        "&" * 300_000,
        "Ã¼" * 200_000,
    ],
    ids=["digits", "groups", "word", "signs", "brackets", "ampersands", "garbled"],
)
def test_very_long_lines_are_checked_in_linear_time(text: str) -> None:
    start = time.process_time()
    for check in CHECKS.values():
        finding = check(Example(Location("a", 1), text, "Eine 1."))
        assert finding is None or len(finding.reason) < 400
    assert time.process_time() - start < 5


def test_rules_have_titles_and_explanations() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) <= 32
    assert all(rule.title and rule.explanation.endswith(".") for rule in RULES)
    assert set(CHECKS) <= set(RULE_BITS)


def test_severities_can_be_changed() -> None:
    changed = {rule.name: rule.severity for rule in select_rules(remove=("numbers",), keep=("copy",))}
    assert (changed["numbers"], changed["copy"], changed["empty"]) == ("remove", "notice", "remove")
    with pytest.raises(RegardError, match="no rule 'nothing'"):
        select_rules(remove=("nothing",))
    with pytest.raises(RegardError, match="both removed and kept"):
        select_rules(remove=("copy",), keep=("copy",))
