"""The HTML report: self-contained, safe for any corpus text, and complete."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from regard.data.doctor import check_corpus
from regard.data.doctor.findings import sample_flagged
from regard.data.doctor.report import escape_visibly, render_page
from regard.data.example import Defects, Example, Location
from tests.data.doctor.factories import GOOD_EXAMPLES

NASTY = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)> \x00\u202e & \"quotes' 13"


def render_report(corpus: list[Example], name: str = "a.en · a.de") -> str:
    defects = Defects()
    defects.add("<odd>", Location("<b>", 1))
    corpus_report = check_corpus(corpus, {"test": corpus[3:5]})
    return render_page(name, corpus_report, sample_flagged(corpus_report, corpus), defects)


class TagCollector(HTMLParser):
    """Collects the tags and attributes of a page and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "br"):
            self.open_tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag


@pytest.fixture(scope="module")
def nasty() -> str:
    corpus = list(GOOD_EXAMPLES)
    corpus[7] = replace(corpus[7], source=NASTY, target=NASTY.replace("13", "14"))
    corpus[9] = replace(corpus[9], source="  ", location=Location(f"{NASTY}.en", 10))
    corpus[11] = replace(
        corpus[11], source="lone \ud800 surrogate", target="x" * 3000 + " f\u00c3\u00bcr " + "y" * 3000
    )
    return render_report(corpus, name=NASTY)


def test_nothing_in_the_corpus_becomes_markup(nasty: str) -> None:
    tags = TagCollector()
    tags.feed(nasty)
    assert tags.open_tags == []
    assert not tags.tags & {"script", "img", "link", "iframe", "object", "embed", "base", "form"}
    assert not {name for name in tags.attributes if name.startswith("on")} | (tags.attributes & {"src", "href"})
    assert "<script" not in nasty
    assert "&lt;/script&gt;" in nasty


def test_the_page_loads_nothing(nasty: str) -> None:
    assert "default-src 'none'" in nasty
    assert not re.search(r"url\(|@import|https?://", nasty)


def test_invisible_characters_are_shown_as_code_points(nasty: str) -> None:
    for code in ("U+0000", "U+202E", "U+D800"):
        assert f'<span class="code">{code}</span>' in nasty
    assert not set(nasty) & {"\x00", "\u202e", "\ud800"}
    nasty.encode()
    assert "(only spaces)" in nasty


def test_the_offending_part_is_marked_and_long_texts_are_cut_around_it(nasty: str) -> None:
    assert "<mark>Ã¼</mark>" in nasty
    assert "x" * 500 not in nasty
    assert "<mark>13</mark>" in nasty
    assert "<mark>14</mark>" in nasty


def test_the_report_lists_the_findings(nasty: str) -> None:
    assert "a.en:8 ·" in nasty
    assert "Nothing found:" in nasty
    assert "&lt;odd&gt;: 1, first at &lt;b&gt;:1" in nasty
    assert nasty.count("<svg") == 4
    assert "test in the corpus" in nasty


def test_the_report_of_a_clean_corpus() -> None:
    corpus_report = check_corpus(GOOD_EXAMPLES, near_duplicates=False)
    html = render_page("a", corpus_report, sample_flagged(corpus_report, GOOD_EXAMPLES), Defects())
    assert "A clean corpus." in html
    assert "What to do first" not in html
    assert "Irregularities in the files" not in html


def test_escape_visibly() -> None:
    assert escape_visibly("a < b & c") == "a &lt; b &amp; c"
    assert escape_visibly("a\tb\n\u00a0") == "a\tb\n\u00a0"
    assert escape_visibly("\x7f") == '<span class="code">U+007F</span>'
