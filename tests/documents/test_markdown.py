"""Translated Markdown: the markup of a page is as before, whatever the translation contains."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.documents.markdown import MAX_BLOCK, MAX_SIZE, MarkdownFormat
from regard.documents.project import project
from regard.documents.segment import Segment, Span
from tests.documents.marks import show, upper


def read(text: str) -> list[str]:
    document = MarkdownFormat().read(text.encode())
    assert document.write(document.segments) == text.encode()
    return [show(segment) for segment in document.segments]


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("# One\n\nTwo\nthree\n===\n## Four ##", ["One", "Two three", "Four"]),
        ("a **b *c* d** ~~e~~ __f__ _g_", ["a {b {c} d} {e} {f} {g}"]),
        ("**All bold**", ["All bold"]),
        ("a `x*y` ``a`b`` c", ["a [x*y] [a`b] c"]),
        ("[One](u 'title') two ![three](x.png) ![](y.png) <http://a.b>", ["{One} two {three} ^ [http://a.b]"]),
        ("[![Build](b.svg)](u)", ["Build"]),
        ("See [one][r], [two][] and [three].\n\n[r]: /a\n[two]: /b\n[three]: /c", ["See {one}, {two} and {three}."]),
        ("one  \ntwo\\\nthree<br>four", ["one^ two^ three^ four"]),
        ("a\\*b &amp; c&nbsp;d 5 < 6", ["a*b & c\xa0d 5 < 6"]),
        ("a <b>x</b> <!-- n --> <u>y", ["a {x} ^ ^y"]),
        ("---\ntitle: One\n---\nTwo", ["Two"]),
        ("+++\ntitle = 'One'\n+++\nTwo", ["Two"]),
        ("```\ncode\n```\n\n    code\n\n~~~ x\ncode\n~~~", []),
        ("- one\n  - two\n\n    three\n1. four\n> > five\n> six", ["one", "two", "three", "four", "five six"]),
        ("- [ ] one\n- [x] *two* three\n\n> [!NOTE]\n> four", ["one", "{two} three", "four"]),
        ("| a | **b** c |\n|---|---|\n| d \\| e | `x\\|y` z |\n| | f |", ["a", "{b} c", "d | e", "[x|y] z", "f"]),
        ("> a | b\n> -|-\n> c | d | e", ["a", "b", "c", "d"]),
        ("a[^1] b[^x].\n\n[^1]: One two\n[^x]: Three four", ["a^ b^.", "One two", "Three four"]),
        (":::tip\nText\n:::\n\n$$\nx = y\n$$\n\n{% raw %}", ["Text"]),
        ("<details>\n<summary>One <b>two</b></summary>\n\nthree\n\n</details>", ["One {two}", "three"]),
        ("[r]: /url 'A title'\n<!-- a comment -->\n\n***\n\n12 %", []),
        ("- a\r\n  b\r\n\tc\r\rd", ["a b c", "d"]),
    ],
)
def test_markdown_segments_are_the_contents_of_blocks(text: str, segments: list[str]) -> None:
    assert read(text) == segments


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("> a **b**\n> c  \n> d", "> A **B** C  \n> D"),
        ("- a\n  b `c`\n", "- A B `c`\n"),
        ("# a #\n", "# A #\n"),
        ("|a|`b`|\n|-|-|\n|c \\| d|", "|A|`b`|\n|-|-|\n|C \\| D|"),
        ("[a] and [b][] !\n\n[a]: /x\n[b]: /y", "[A][a] and [B][b] !\n\n[a]: /x\n[b]: /y".replace("and", "AND")),
        ("**a**[^1]\n\n[^1]: b c\n[^2]: d", "**A**[^1]\n\n[^1]: B C\n[^2]: D"),
        ("a\\*b &lt;i> \\[x\\]", "A\\*B \\<I> \\[X\\]"),
    ],
)
def test_markdown_changed_block_keeps_its_markup(text: str, written: str) -> None:
    document = MarkdownFormat().read(text.encode())
    assert document.write([upper(segment) for segment in document.segments]).decode() == written


@pytest.mark.parametrize(
    ("translation", "written"),
    [
        ("1. x", "1\\. x"),
        ("# x", "\\# x"),
        ("- x", "\\- x"),
        ("> x", "\\> x"),
        ("a * b, 2*3 and __init__ in a_b", "a * b, 2\\*3 and \\_\\_init\\_\\_ in a_b"),
        ("`x` [y] <b> &lt; 5 < 6 & 7", "\\`x\\` \\[y\\] \\<b> \\&lt; 5 < 6 & 7"),
        ("a\n\nb", "a b"),
        ("===", "\\==="),
        ("C:\\x \\*", "C:\\x \\\\\\*"),
    ],
)
def test_markdown_markup_in_a_translation_is_escaped(translation: str, written: str) -> None:
    document = MarkdownFormat().read(b"- one\n- two")
    output = document.write([Segment(translation), document.segments[1]]).decode()
    assert output == f"- {written}\n- two"
    again = MarkdownFormat().read(output.encode())
    assert again.segments[0].text == " ".join(translation.split()) or not any(map(str.isalpha, translation))


def test_markdown_emphasis_that_cannot_be_written_becomes_html() -> None:
    document = MarkdownFormat().read(b"one **two** three")
    pair = Span(1, 3, 0, "pair")  # **.. between letters: x**.y**z is not bold
    assert document.write([Segment("x.yz", (pair,))]).decode() == "x<strong>.y</strong>z"
    assert document.write([Segment("x yz", (Span(2, 3, 0, "pair"),))]).decode() == "x **y**z"


def test_markdown_exclamation_mark_before_a_link_makes_no_image() -> None:
    document = MarkdownFormat().read(b"one [two](u)")
    assert document.write([Segment("one!two", (Span(4, 7, 0, "pair"),))]) == b"one\\![two](u)"


def test_markdown_links_follow_their_words() -> None:
    document = MarkdownFormat().read(b"the [red *old*](x.md) house\n")
    translation = project(
        document.segments[0], "la casa vieja roja", frozenset({(0, 0), (1, 3), (2, 2), (3, 1)})
    ).segment
    assert document.write([translation]) == b"la casa [*vieja* roja](x.md)\n"


def test_markdown_block_that_does_not_match_is_text_with_its_markup() -> None:
    long = "**x** " * (MAX_BLOCK // 6 + 1)
    document = MarkdownFormat().read(f"# a\n\n{long}\n".encode())
    assert [segment.location for segment in document.segments] == ["line 1", "line 3 (markup as text)"]
    assert document.segments[1].text == long.strip()
    assert document.write([document.segments[0], Segment("**y**")]) == b"# a\n\n**y** \n"


def test_markdown_that_is_too_large_is_refused() -> None:
    with pytest.raises(RegardError, match="more than 4,194,304 bytes"):
        MarkdownFormat().read(b"x" * (MAX_SIZE + 1))


UNITS = [
    *("*", "**", "_", "`", "``", "[", "]", "(", ")", "[a](b)", "![x](y)", "\n", "\n\n", "> ", "- ", "1. ", "# ", "a"),
    *(
        "b c",
        " ",
        "    ",
        "|",
        "\\",
        "<b>",
        "</b>",
        "<br>",
        "<!-- -->",
        "&amp;",
        "~~",
        "[^1]",
        "[^1]: ",
        "  \n",
        "\\\n",
    ),
    *("\t", "| a | b |\n|---|---|\n", "é", "\r\n", "---", "===", "```", "!", "x.", "<http://a.b>", "<p>", "\0", "\x0b"),
]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(UNITS), max_size=40))
def test_markdown_of_any_form_keeps_its_bytes_and_can_be_written(units: list[str]) -> None:
    text = "".join(units)
    document = MarkdownFormat().read(text.encode())
    assert document.write(document.segments) == text.encode()
    MarkdownFormat().read(document.write([upper(segment) for segment in document.segments]))


PLAIN = [
    "*a*",
    "**b c**",
    "`d`",
    "[e](f)",
    "g",
    "h i",
    "1.",
    "- ",
    "#",
    "x.y",
    "~~z~~",
    "&amp;",
    "\\*",
    "  \n",
    "\n",
    "_",
    "!",
]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=12), st.sampled_from(["", "> ", "- ", "# ", "1. "]))
def test_markdown_written_segments_read_the_same(words: list[str], prefix: str) -> None:
    text = prefix + " ".join(words)
    document = MarkdownFormat().read(text.encode())
    segments = [upper(segment) for segment in document.segments]
    again = MarkdownFormat().read(document.write(segments)).segments
    assert [show(segment).split() for segment in again] == [show(segment).split() for segment in segments]
