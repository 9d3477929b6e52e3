"""Translated HTML: text that looks like markup stays text."""

import asyncio

import pytest

from regard.serve.html_text import translate_html


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
