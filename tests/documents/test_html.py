"""Translated HTML: what looks like markup stays text, and what is markup stays markup."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.documents.html import MAX_TAGS, HtmlFormat
from regard.documents.project import project
from regard.documents.segment import Span
from tests.documents.marks import show, upper


def read(html: str) -> list[str]:
    document = HtmlFormat().read(html.encode())
    assert document.write(document.segments) == html.encode()
    return [show(segment) for segment in document.segments]


@pytest.mark.parametrize(
    ("html", "segments"),
    [
        ("<p>One <b>two <i>three</i></b> four.</p><p>Five", ["One {two {three}} four.", "Five"]),
        ("<p><b>All bold</b></p>", ["All bold"]),
        ("<p> a\n <b> c </b> d</p>", ["a {c }d"]),
        ("Use <code>a &lt; <i>b</i></code> or <kbd>F1</kbd>", ["Use [a < b] or [F1]"]),
        ("one<br>two<br/> <br>three <img src=a> four<br>", ["one^ two", "three ^ four"]),
        ("one<!-- note -->two<script>x < y</script><svg><text>t</text></svg>three", ["one^two^^three"]),
        ("<style>p > a {}</style><pre>a <b>b</b></pre><textarea>x</textarea><p>1 + 2</p>", []),
        ("<ul><li>One<li>Two <em>x</em></ul>", ["One", "Two {x}"]),
        ("<table><tr><td>a<td><p>b</table>", ["a", "b"]),
        ("<b>x <i>y</b> z</i> w", ["{x ^y} z^ w"]),
        ("a </b> c <u>d", ["a ^ c ^d"]),
        ("<a href=x><div>one</div></a> two", ["one", "two"]),
        ("<my-tag>one</my-tag> two", ["one", "two"]),
        ('<img alt="x > y" src="a.png">one', ["one", "x > y"]),
        ("<p title='a>b' lang=en>one</p>", ["one", "a>b"]),
        (
            'see <a title="The page" href=x>it</a> <input placeholder="Name" value="x">',
            ["see {it}", "The page", "Name"],
        ),
        ("<i data-x=\" title='no' \">x</i> y", ["{x} y"]),
        ("5 < 6, so <b>two</b>", ["5 < 6, so {two}"]),
        ("<p title=it's>don't</p>", ["don't"]),
        ('<a href="never ends>one</a>', ["one"]),
        ("Hello <span translate=no>World</span>!", ["Hello [World]!"]),
        ("<div class='x notranslate'><div>a</div><p>b</div><p>c", ["c"]),
        ("<p translate='no'>a <b>b</b><p>c", ["c"]),
        ("<!DOCTYPE html><title>A &amp; B</title>\n<h1>C</h1>", ["A & B", "C"]),
    ],
)
def test_html_segments_are_texts_between_blocks(html: str, segments: list[str]) -> None:
    assert read(html) == segments


def test_html_location_is_the_line() -> None:
    document = HtmlFormat().read(b"<p>\n one</p>\n\n<p>two <b title='three'>x</b></p>")
    assert [segment.location for segment in document.segments] == ["line 2", "line 4", "attribute title"]


@pytest.mark.parametrize(
    ("html", "written"),
    [
        ("<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>", "<p>&lt;SCRIPT&gt;ALERT(1)&lt;/SCRIPT&gt;</p>"),
        ("Fish &amp; <b>&amp;lt;</b> caf&eacute;&nbsp;x", "FISH &amp; <b>&amp;LT;</b> CAFÉ&#160;X"),
        ("<B CLASS=x>a</B >\n <I>b</i> <code>c</code>", "<B CLASS=x>A</B > <I>B</i> <code>c</code>"),
        ("a <img alt='it&#39;s' title=\"a &quot;b&quot;\">", "A <img alt='IT&#x27;S' title=\"A &quot;B&quot;\">"),
        ("<p>a <a title='b'>c</a></p>", "<p>A <a title='B'>C</a></p>"),
    ],
)
def test_html_changed_segment_is_escaped_and_keeps_its_tags(html: str, written: str) -> None:
    document = HtmlFormat().read(html.encode())
    assert document.write([upper(segment) for segment in document.segments]).decode() == written


def test_html_tags_follow_their_words() -> None:
    document = HtmlFormat().read(b"<p>the <a href='x'>red <b>old</b></a> house<br></p>")
    (segment,) = document.segments
    translation = project(segment, "la casa vieja roja", frozenset({(0, 0), (1, 3), (2, 2), (3, 1)})).segment
    assert document.write([translation]) == b"<p>la casa <a href='x'><b>vieja</b> roja</a><br></p>"


UNITS = [
    *("<", ">", "<!--", "-->", "<pre", "</PRE >", "<script>", "</script", "a", " ", "<b>", "</b>", "<i x='", "</i>"),
    *("'", "<p>", "<br>", "&lt;", "<code>", "</code>", "<u translate=no>", "</u>", "<img alt='b'>", "/>", "\n"),
]


@given(st.lists(st.sampled_from(UNITS)))
def test_html_broken_markup_loses_no_bytes(units: list[str]) -> None:
    html = "".join(units)
    document = HtmlFormat().read(html.encode())
    assert document.write(document.segments) == html.encode()
    written = document.write([upper(segment) for segment in document.segments]).decode()
    tag = re.compile(r"<[^<>\s]*")  # every tag is still there, and in its place
    assert [t.lower() for t in tag.findall(written)] == [t.lower() for t in tag.findall(html)] or "&lt;" in written
    again = HtmlFormat().read(written.encode())
    assert [show(segment) for segment in again.segments] == [show(upper(segment)) for segment in document.segments]


def test_html_nested_tags_are_kept_at_any_depth() -> None:
    html = f"x {'<b>' * 10_000}y{'</b>' * 10_000} z"
    document = HtmlFormat().read(html.encode())
    assert document.segments[0].spans[-1] == Span(2, 3, 9_999, "pair", 9_999)
    assert document.write([replace(document.segments[0], text="x v z")]).decode() == html.replace("y", "v")


def test_html_with_too_many_tags_is_refused() -> None:
    with pytest.raises(RegardError, match="250,000 tags"):
        HtmlFormat().read(b"<" * (MAX_TAGS + 1))
