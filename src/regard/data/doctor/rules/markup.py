"""Rule about markup: tags and placeholders that only one side of a pair has."""

import re
from collections import Counter

from regard.data.doctor.rules.pair import find_spans, format_difference
from regard.data.doctor.rules.rule import Finding, shorten
from regard.data.example import Example

# Tags <b>, </b>, <br/>, <x id="1"/>; placeholders {0}, {name}, {{name}}, ${name}, %s, %d, %1$s, %(name)s, %.2f.
_MARKUP = re.compile(
    r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,200})?/?>"
    r"|\$?\{{1,2}\s?[A-Za-z0-9_.]{0,40}\s?\}{1,2}"
    r"|%(?:\d{1,2}\$|\(\w{1,40}\))?(?:\.\d{1,2})?[sdif](?!\w)"
)


def check_tags(example: Example) -> Finding | None:
    """Find tags and placeholders without a counterpart on the other side.

    >>> from regard.data.example import Location
    >>> check_tags(Example(Location("a", 1), "Press <b>OK</b>, {0}!", "Drücken Sie OK, {0}!")).reason
    'only in the source: <b>, </b>'
    """
    target = example.target
    if target is None or not (_may_have_markup(example.source) or _may_have_markup(target)):
        return None
    source_counts = Counter(map(_fold_tag, _MARKUP.findall(example.source)))
    target_counts = Counter(map(_fold_tag, _MARKUP.findall(target)))
    source_only, target_only = source_counts - target_counts, target_counts - source_counts
    if not source_only and not target_only:
        return None
    return Finding(
        "tags",
        format_difference(shorten(source_only), shorten(target_only)),
        find_spans(_MARKUP, example.source, lambda text: _fold_tag(text) in source_only),
        find_spans(_MARKUP, target, lambda text: _fold_tag(text) in target_only),
    )


def _may_have_markup(text: str) -> bool:
    return "<" in text or "{" in text or "%" in text


def _fold_tag(tag: str) -> str:
    """A tag in lower case without its attributes, whose text may be translated; placeholders as they are.

    >>> _fold_tag('<A title="Home" />'), _fold_tag("<br/>"), _fold_tag("%1$s")
    ('<a>', '<br>', '%1$s')
    """
    if not tag.startswith("<"):
        return tag
    name = tag.strip("<>").rstrip("/").split(maxsplit=1)[0]
    return f"<{name.lower()}>"
