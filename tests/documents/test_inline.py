from collections.abc import Sequence
from typing import Literal

from regard.documents.inline import Atom, Paragraph, Style
from regard.documents.segment import Segment, Span
from regard.documents.xml import Xml, write_text

BOLD = Style(b"b", b"<b>", b"</b>")


def make(*parts: str | tuple[str, Style] | tuple[Literal["open", "close", "point", "protected"], str]) -> Paragraph:
    """A paragraph whose atoms are texts, texts with a style, and markup."""
    data, ranges = "<p>", []
    for part in parts:
        text = part if isinstance(part, str) else part[0] if isinstance(part[1], Style) else part[1]
        written = write_text(text).decode() if isinstance(part, str) or isinstance(part[1], Style) else text
        ranges.append((len(data), len(data) + len(written)))
        data += written
    atoms = list[Atom]()
    for part, (start, end) in zip(parts, ranges, strict=True):
        if isinstance(part, str):
            atoms.append(Atom("text", start, end, part))
        elif isinstance(part[1], Style):
            atoms.append(Atom("text", start, end, part[0], part[1]))
        else:
            text = part[1].strip("<>/") if part[0] == "protected" else ""
            name = part[1].strip("</>")
            opens, closes = (name[1:] if name.startswith(sign) else "" for sign in "se")
            atoms.append(Atom(part[0], start, end, text, opens=opens, closes=closes))
    return Paragraph(Xml((data + "</p>").encode(), "", {}), 3, len(data), atoms, "", write)


def write(style: Style, text: str) -> bytes:
    return style.open + write_text(text) + style.close


def describe(paragraph: Paragraph) -> tuple[str, Sequence[tuple[int, int, str, int]]]:
    segment = paragraph.segment
    return segment.text, [(span.start, span.end, span.kind, span.depth) for span in segment.spans]


def test_paragraph_joins_texts_of_the_same_style_and_lifts_out_others() -> None:
    paragraph = make("One t", "wo ", ("th", BOLD), ("ree", BOLD), (" ", BOLD), "four.")
    assert describe(paragraph) == ("One two three four.", [(8, 14, "pair", 0)])
    assert paragraph.render(paragraph.segment) == b"One two <b>three </b>four."


def test_paragraph_most_frequent_style_needs_no_span() -> None:
    paragraph = make("A ", ("long bold text", BOLD))
    assert describe(paragraph) == ("A long bold text", [(0, 2, "pair", 0)])
    assert paragraph.render(Segment("Fett")) == b"<b>Fett</b>"


def test_paragraph_keeps_what_is_before_and_after_its_words() -> None:
    paragraph = make(("point", "<x/>"), ("open", "<a>"), " Link ", ("point", "<y/>"), ("close", "</a>"), " ")
    assert describe(paragraph) == ("Link", [])
    assert paragraph.render(Segment("Verweis")) == b"<x/><a> Verweis <y/></a> "


def test_paragraph_pair_around_one_style_has_it() -> None:
    paragraph = make("See ", ("open", "<a>"), ("the link", BOLD), ("close", "</a>"), " now and then")
    assert describe(paragraph) == ("See the link now and then", [(4, 12, "pair", 0)])
    moved = Segment("Link. Jetzt", (Span(0, 4, 0, "pair"),))
    assert paragraph.render(moved) == b"<a><b>Link</b></a>. Jetzt"


def test_paragraph_style_in_a_pair_is_nested() -> None:
    paragraph = make("x ", ("open", "<a>"), "plain ", ("bold", BOLD), ("close", "</a>"), " long tail")
    assert describe(paragraph) == ("x plain bold long tail", [(2, 12, "pair", 0), (8, 12, "pair", 1)])
    assert paragraph.render(paragraph.segment) == b"x <a>plain <b>bold</b></a> long tail"


def test_paragraph_point_inside_a_style_stays_inside() -> None:
    paragraph = make("A plain text ", ("b1 ", BOLD), ("point", "<x/>"), ("b2", BOLD), ("point", "<y/>"), " end")
    assert describe(paragraph) == (
        "A plain text b1 b2 end",
        [(13, 18, "pair", 0), (16, 16, "point", 1), (18, 18, "point", 0)],
    )
    assert paragraph.render(paragraph.segment) == b"A plain text <b>b1 </b><x/><b>b2</b><y/> end"


def test_paragraph_range_never_ends_before_its_start() -> None:
    paragraph = make("One ", ("point", "<s1/>"), "two", ("point", "<e1/>"), " three")
    swapped = Segment("Eins zwei drei", (Span(5, 5, 1, "point"), Span(9, 9, 0, "point")))
    assert paragraph.render(swapped) == b"Eins <s1/>zwei<e1/> drei"


def test_paragraph_protected_text_is_copied() -> None:
    paragraph = make("Use ", ("protected", "<x/>"), " now")
    assert describe(paragraph) == ("Use x now", [(4, 5, "protected", 0)])
    assert paragraph.render(Segment("Nimm x", (Span(5, 6, 0, "protected"),))) == b"Nimm <x/>"


def test_paragraph_without_letters_has_no_words() -> None:
    assert not make("12 % ", ("point", "<x/>")).has_words
    assert make("é").has_words


def test_paragraph_edit_writes_only_changes() -> None:
    paragraph = make("a &amp; b".replace("&amp;", "&"))
    paragraph.edit(paragraph.segment)
    assert paragraph.xml.write() == b"<p>a &amp; b</p>"
    paragraph.edit(Segment("c < d"))
    assert paragraph.xml.write() == b"<p>c &lt; d</p>"
