import pytest

from regard.documents.protect import find_lost_numbers, protect, unprotect
from regard.documents.segment import Segment, Span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Delete %s and %1$s of %d%%?", ["%s", "%1$s", "%d", "%%"]),
        ("%(name)s has %-5.2f, %@ %lu", ["%(name)s", "%-5.2f", "%@", "%lu"]),
        ("{name}, {0:>5}, {}, ${x}, #{y}, {{ z }}", ["{name}", "{0:>5}", "{}", "${x}", "#{y}", "{{ z }}"]),
        ("{n, plural, one {# item} other {# items}} left", ["{n, plural, one {# item} other {# items}}"]),
        ('Press <x id="1"/> or <b>OK</b>', ['<x id="1"/>', "<b>", "</b>"]),
        ("See https://a.b/c?d=(e), www.x.org!", ["https://a.b/c?d=(e", "www.x.org"]),
        ("Mail jo.doe+x@mail.example.org.", ["jo.doe+x@mail.example.org"]),
        ("%1 of %n files", ["%1"]),
        ("100% sure, 5 %, a < b and c > d, {see below}", []),
    ],
)
def test_protect_finds_placeholders_urls_and_addresses(text: str, expected: list[str]) -> None:
    segment = protect(Segment(text))
    assert [segment.text[span.start : span.end] for span in segment.spans] == expected
    assert unprotect(segment) == Segment(text)


def test_protect_keeps_the_spans_of_the_format() -> None:
    segment = protect(Segment("a %s b", (Span(0, 4, 0, "pair"), Span(5, 6, 1, "protected"))))
    assert segment.spans == (Span(0, 4, 0, "pair"), Span(2, 4, -1, "protected", 1), Span(5, 6, 1, "protected"))


@pytest.mark.parametrize(
    ("source", "target", "lost"),
    [
        ("1,234.5 and 12:30", "1.234,5 und 12.30", []),
        ("10 000 people", "10.000 Menschen", []),
        ("pages 2-3", "Seiten 2 bis 3", []),
        ("3 and 3", "3", ["3"]),
        ("in 1999", "im Jahr 1989", ["1999"]),
        ("٣ cats", "3 Katzen", []),
    ],
)
def test_lost_numbers_are_found_whatever_the_separators(source: str, target: str, lost: list[str]) -> None:
    assert find_lost_numbers(source, target) == lost
