"""The rule on tags and placeholders."""

import pytest

from tests.data.doctor.rules.factories import check_accepted, check_reported


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("tags", "Press <b>OK</b>.", "Drücken Sie OK."),
        ("tags", "Press OK.", 'Drücken Sie <x id="1"/>OK.'),
        ("tags", "Hello {0}, {name}!", "Hallo {0}, {}!"),
        ("tags", "%d of %s files", "%d Dateien"),
        ("tags", "%(count)s files", "%s Dateien"),
    ],
)
def test_markup_rule_defect_is_reported(rule: str, source: str, target: str) -> None:
    check_reported(rule, source, target)


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("tags", "Press <b>OK</b>.", "<B>OK</B> drücken."),
        ("tags", '<a title="Home">x</a>', '<a title="Startseite">x</a>'),
        ("tags", "{0} of {1}", "{1}: {0}"),
        ("tags", "5 < 6 and 7 > 6; 50 % of it", "50% davon"),
        ("tags", "I <3 you", "Ich liebe dich"),
    ],
)
def test_markup_rule_harmless_line_is_accepted(rule: str, source: str, target: str) -> None:
    check_accepted(rule, source, target)
