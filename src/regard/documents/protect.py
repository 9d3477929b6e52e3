"""Find texts that a translation must contain unchanged: placeholders, URLs, e-mail addresses and numbers."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

from regard.documents.segment import Segment, SegmentBuilder, iter_pieces

_PROTECTED = re.compile(
    r"""
      \$?\{\{[^{}\n]{1,80}\}\}  # {{ x }}
    | [$#%]?\{[ ]?[\w.\[\]$@-]{1,80}(?:[:!,](?:[^{}\n]|\{[^{}\n]{0,200}\}){0,400})?[ ]?\} | \{\}  # {x}, {0:>5}
    | %\([\w.]{1,80}\)[-+#0]{0,5}\d{0,9}(?:\.\d{1,9})?[diouxXeEfFgGcrsa]  # %(x)s
    | (?<![\d%])%(?:\d{1,3}\$)?[-+#0]{0,5}\d{0,9}(?:\.\d{1,9})?(?:hh|ll|[hlLqjzt])?[diouxXeEfFgGcrs@](?![^\W_])
    | (?<![\d%])%L?\d{1,2}(?!\w) | %%  # %1 of Qt
    | </?[A-Za-z][\w:-]{0,40}(?:\s{1,9}[\w:-]{1,40}=(?:"[^"<>]{0,500}"|'[^'<>]{0,500}')){0,20}\s{0,9}/?>  # <x id="1"/>
    | (?:(?:https?|ftp|file)://|mailto:|(?<![\w.@/])www\.)[^\s<>"'`]{0,2000}[^\s<>"'`.,;:!?)\]}]
    | (?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"\d+(?:[.,:/'\u00a0\u202f-]\d+)*")


def protect(segment: Segment) -> Segment:
    """Return a segment in which placeholders, URLs and addresses are protected spans with negative ids.

    >>> [(span.start, span.end, span.id) for span in protect(Segment("Open {name} at https://a.b/c.")).spans]
    [(5, 11, -1), (15, 28, -2)]
    """
    if not _PROTECTED.search(segment.text):
        return segment
    builder, count = SegmentBuilder(), 0
    for piece in iter_pieces(segment):
        if piece.kind != "text":
            builder.add(piece)
            continue
        position = 0
        for match in _PROTECTED.finditer(piece.text):
            count += 1
            builder.text(piece.text[position : match.start()])
            builder.protect(match.group(), -count)
            position = match.end()
        builder.text(piece.text[position:])
    return builder.build(segment.location)


def unprotect(segment: Segment) -> Segment:
    """Remove the spans that `protect` added."""
    return Segment(segment.text, tuple(span for span in segment.spans if span.id >= 0), segment.location)


def replace_protected(segment: Segment, texts: Mapping[int, str]) -> Segment:
    """Replace the protected texts with these ids."""
    builder = SegmentBuilder()
    for piece in iter_pieces(segment):
        builder.add(piece._replace(text=texts.get(piece.id, piece.text)) if piece.kind == "protected" else piece)
    return builder.build(segment.location)


def find_lost_numbers(source: str, target: str) -> list[str]:
    """Return the numbers of a source that its translation lacks; separators may differ.

    >>> find_lost_numbers("From 1,000 to 2,500.50 in 1999", "Von 1.000 bis 2.500,50")
    ['1999']
    """
    texts = _NUMBER.findall(source)
    if not texts:
        return []
    numbers = Counter(map(_join_digits, _NUMBER.findall(target)))
    groups = Counter(_join_digits(group) for group in re.findall(r"\d+", target))
    lost = list[str]()
    for text in texts:
        is_found = _take(numbers, [_join_digits(text)])
        if not _take(groups, [_join_digits(group) for group in re.findall(r"\d+", text)]) and not is_found:
            lost.append(text)  # 2-3 may have become 2 to 3, and 10 000 may have become 10.000
    return lost


def _take(available: Counter[str], numbers: list[str]) -> bool:
    """Take numbers; returns whether all were there."""
    available.subtract(numbers)
    return all(available[number] >= 0 for number in numbers)


def _join_digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(character)) for character in text if character.isdecimal())
