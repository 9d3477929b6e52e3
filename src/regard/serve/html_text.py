"""Translate HTML: text between tags is replaced, everything else stays byte for byte."""

import re
from collections.abc import Awaitable, Callable
from html import escape, unescape

_VERBATIM = "script|style|code|pre|textarea|svg|math"
_PARTS = re.compile(
    rf"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(?P<name>{_VERBATIM})\b[^>]*>.*?</(?P=name)\s*>|<[^>]*>",
    re.DOTALL | re.IGNORECASE,
)


def split_html(html: str) -> list[tuple[str, bool]]:
    """Split HTML into parts: (text, True) for text to translate, (markup, False) for all else; joined, they are `html`.

    >>> split_html("<p>One <b>two</b></p><script>x < y</script>")
    [('<p>', False), ('One ', True), ('<b>', False), ('two', True), ('</b>', False), ('</p>', False), \
('<script>x < y</script>', False)]
    """
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in _PARTS.finditer(html):
        if match.start() > end:
            parts.append((html[end : match.start()], True))
        parts.append((match.group(), False))
        end = match.end()
    if end < len(html):
        parts.append((html[end:], True))
    return [(part, is_text and not part.isspace()) for part, is_text in parts]


def read_text(part: str) -> tuple[str, str, str]:
    """Return the white space before a text part, its text without entities, and the white space after it.

    >>> read_text(" a &amp; b ")
    (' ', 'a & b', ' ')
    """
    stripped = part.strip()
    before = part[: len(part) - len(part.lstrip())]
    return before, unescape(stripped), part[len(before) + len(stripped) :]


def write_text(text: str) -> str:
    """Return a text as HTML."""
    return escape(text, quote=False)


async def translate_html(html: str, translate: Callable[[list[str]], Awaitable[list[str]]]) -> str:
    """Return HTML with its texts translated and its markup unchanged."""
    parts = split_html(html)
    texts = [read_text(part) for part, is_text in parts if is_text]
    translations = iter(await translate([text for _, text, _ in texts]) if texts else [])
    spaces = iter((before, after) for before, _, after in texts)
    output = []
    for part, is_text in parts:
        if is_text:
            before, after = next(spaces)
            output.append(before + write_text(next(translations)) + after)
        else:
            output.append(part)
    return "".join(output)
