"""Translated HTML: text that looks like markup stays text."""

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.serve.html_text import split_html, translate_html
from tests.serve.factories import BOUND


@pytest.mark.parametrize(
    "html",
    [
        "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
        "Fish &amp; chips",
        "<b>&amp;lt;</b> shows as &amp;lt;",
    ],
)
def test_html_text_with_entities_is_escaped_again(html: str) -> None:
    seen: list[str] = []

    async def echo(texts: list[str]) -> list[str]:
        seen.extend(texts)
        return texts

    assert asyncio.run(translate_html(html, echo)) == html
    assert not any("&amp;" in text for text in seen)  # the model reads text, not HTML


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<script>",
        "<![CDATA[",
        "<pre ",
        "</script ",
        "< script",
        "<svg><pre>",
        '<a b="',
        "<a b='c\" ",
        "<a b='>'",
    ],
)
def test_html_is_split_in_linear_time(unit: str) -> None:
    html = unit * (200_000 // len(unit))
    begin = time.process_time()
    assert "".join(part for part, _ in split_html(html)) == html
    assert time.process_time() - begin < BOUND


@given(st.lists(st.sampled_from(["<", ">", "<!--", "-->", "<pre", "</PRE >", "<script>", "</script", "a", " ", "<b>"])))
def test_html_is_split_as_the_pattern_says(units: list[str]) -> None:
    import re

    names = "script|style|code|pre|textarea|svg|math"
    pattern = rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?P<name>{names})\b[^>]*>.*?</(?P=name)\s*>|<[a-zA-Z/!?][^>]*>"
    html, markup = "".join(units), list[str]()
    markup = [match.group() for match in re.finditer(pattern, html, re.DOTALL | re.IGNORECASE)]
    assert [part for part, is_text in split_html(html) if not is_text and part.strip()] == markup


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ('<img alt="x > y" src="a.png">one', ["one"]),
        ("<p title='a>b' lang=en>one</p>", ["one"]),
        ("5 < 6, so <b>two</b>", ["5 < 6, so ", "two"]),
        ("<p title=it's>don't</p>", ["don't"]),
        ('<a href="never ends>one</a>', ["one"]),
        ("<code class='>'>x</code> one", [" one"]),
    ],
)
def test_quoted_values_and_signs_are_no_tags(html: str, texts: list[str]) -> None:
    assert [part for part, is_text in split_html(html) if is_text] == texts
