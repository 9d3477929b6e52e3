"""Rules that compare the two sides of a pair."""

import pytest

from regard.data.doctor.rules import pair
from regard.data.example import Example, Location
from tests.data.doctor.rules.factories import check_accepted, check_reported


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("empty", "A line.", ""),
        ("empty", " \t", "Eine Zeile."),
        ("copy", "This was not translated.", "This was not translated."),
        ("copy", "This was not translated.", " this was NOT translated."),
        ("numbers", "In 1999", "1998"),
        ("numbers", "13 people", "viele Leute"),
        ("numbers", "3 people", "4 Leute"),
        ("numbers", "1,000 people", "10.000 Leute"),
        ("links", "See www.example.org.", "Siehe dort."),
        ("links", "See https://a.org/en", "Siehe https://a.org/de"),
        ("links", "Ask me@example.org", "Fragen Sie you@example.org"),
        ("brackets", "One (two)", "Eins (zwei"),
        ("brackets", "[One]", "(Eins)"),
    ],
)
def test_pair_rule_defect_is_reported(rule: str, source: str, target: str) -> None:
    check_reported(rule, source, target)


@pytest.mark.parametrize(
    ("rule", "source", "target"),
    [
        ("empty", "A", "B"),
        ("copy", "Angela Merkel", "Angela Merkel"),  # a name
        ("copy", "This was translated.", "Das wurde übersetzt."),
        ("numbers", "1,000.50 on 25 May 2005", "1.000,50 am 25. Mai 2005"),
        ("numbers", "2 000 or 2,000", "2.000 oder 2'000"),
        ("numbers", "two people", "2 Leute"),
        ("numbers", "May 05", "5. Mai"),
        ("numbers", "in ١٩٩٩", "1999"),
        ("links", "See www.example.org.", "Siehe www.example.org!"),
        ("brackets", "a) One", "(a) Eins"),
        ("brackets", "One (two)", "Eins（zwei）"),  # noqa: RUF001 - meant
    ],
)
def test_pair_rule_harmless_line_is_accepted(rule: str, source: str, target: str) -> None:
    check_accepted(rule, source, target)


def test_numbers_rule_marks_the_numbers_that_differ() -> None:
    finding = pair.check_numbers(Example(Location("a", 1), "In 1999 and 2,000", "2.000 und 1998"))
    assert finding is not None
    assert (finding.source_spans, finding.target_spans) == (((3, 7),), ((10, 14),))


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
