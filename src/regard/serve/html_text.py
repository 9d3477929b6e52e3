"""Translate HTML: text between tags is replaced, everything else is preserved byte for byte."""

import re
from collections.abc import Awaitable, Callable
from html import escape, unescape

TranslateTexts = Callable[[list[str]], Awaitable[list[str]]]
_VERBATIM = re.compile(r"<(script|style|code|pre|textarea|svg|math)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<[a-zA-Z/!?]")
_CLOSING = {
    name: re.compile(rf"</{name}\s*>", re.IGNORECASE)
    for name in ("script", "style", "code", "pre", "textarea", "svg", "math")
}


class _Finder:
    """Finds the ends of markup; caches results, so the total search time is linear."""

    def __init__(self, html: str) -> None:
        self.html = html
        self._spans: dict[str, tuple[int, int]] = {}  # start and end of the next match; -1 if there is none

    def find(self, text: str, position: int) -> int:
        """Return the end of the next `text` (or closing tag, for a name) at or after a position, or -1."""
        start, end = self._spans.get(text, (0, 0))
        if end >= 0 and start < position:
            if text in _CLOSING:
                match = _CLOSING[text].search(self.html, position)
                start, end = match.span() if match else (-1, -1)
            else:
                start = self.html.find(text, position)
                end = start + len(text) if start >= 0 else -1
            self._spans[text] = start, end
        return end


def split_html(html: str) -> list[tuple[str, bool]]:
    """Split HTML into parts: (text, True) for text to translate, (markup, False) otherwise; joined, they equal `html`.

    >>> split_html("5 < 6 <img alt='a > b'>")
    [('5 < 6 ', True), ("<img alt='a > b'>", False)]
    >>> split_html("<p>One <b>two</b></p><script>x < y</script>")
    [('<p>', False), ('One ', True), ('<b>', False), ('two', True), ('</b>', False), ('</p>', False), \
('<script>x < y</script>', False)]
    """
    finder, parts = _Finder(html), list[tuple[str, bool]]()
    text_start = position = 0
    while (start := html.find("<", position)) >= 0:
        if not _MARKUP.match(html, start):
            position = start + 1  # part of the text: 5 < 6
            continue
        end = _find_markup_end(finder, start)
        if end < 0:
            break  # no further tag, so the rest is text
        if start > text_start:
            parts.append((html[text_start:start], True))
        parts.append((html[start:end], False))
        text_start = position = end
    if text_start < len(html):
        parts.append((html[text_start:], True))
    return [(part, is_text and not part.isspace()) for part, is_text in parts]


def _find_markup_end(finder: _Finder, start: int) -> int:
    """Return the end of a comment, a preserved element or a tag, or -1."""
    html, end = finder.html, -1
    if html.startswith("<!--", start):
        end = finder.find("-->", start + 4)
    elif html.startswith("<![CDATA[", start):
        end = finder.find("]]>", start + 9)
    elif (match := _VERBATIM.match(html, start)) is not None and (tag_end := _find_tag_end(finder, match.end())) >= 0:
        end = finder.find(match.group(1).lower(), tag_end)
    return end if end >= 0 else _find_tag_end(finder, start + 1)


def _find_tag_end(finder: _Finder, position: int) -> int:
    """Return the end of the tag at a position, after a > outside quoted values, or -1."""
    while (end := finder.find(">", position)) >= 0:
        quotes = [finder.find(quote, position) for quote in "\"'"]
        after_quote = min((after for after in quotes if 0 <= after < end), default=-1)
        if after_quote < 0:
            return end
        quote, before = finder.html[after_quote - 1], finder.html[max(position, after_quote - 9) : after_quote - 1]
        closing = finder.find(quote, after_quote) if before.rstrip().endswith("=") else after_quote
        if closing < 0:
            return end  # the value is not closed, but the tag is
        position = closing
    return -1


def read_text(part: str) -> tuple[str, str, str]:
    """Return the whitespace before a text part, its unescaped text, and the whitespace after it.

    >>> read_text(" a &amp; b ")
    (' ', 'a & b', ' ')
    """
    stripped = part.strip()
    before = part[: len(part) - len(part.lstrip())]
    return before, unescape(stripped), part[len(before) + len(stripped) :]


def write_text(text: str) -> str:
    """Escape a text for HTML."""
    return escape(text, quote=False)


async def translate_html(html: str, translate: TranslateTexts) -> str:
    """Return HTML with its texts translated and its markup unchanged."""
    return (await translate_html_list([html], translate))[0]


async def translate_html_list(documents: list[str], translate: TranslateTexts) -> list[str]:
    """Return HTML documents with their texts translated in one call and their markup unchanged."""
    split_documents = [split_html(html) for html in documents]
    texts = [read_text(part) for parts in split_documents for part, is_text in parts if is_text]
    translations = iter(await translate([text for _, text, _ in texts]) if texts else [])
    spaces = iter((before, after) for before, _, after in texts)
    outputs = []
    for parts in split_documents:
        output = []
        for part, is_text in parts:
            if is_text:
                before, after = next(spaces)
                output.append(before + write_text(next(translations)) + after)
            else:
                output.append(part)
        outputs.append("".join(output))
    return outputs
