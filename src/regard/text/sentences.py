r"""A long text as sentences, each with the white space behind it, so that it can be put back as it was.

A sentence ends at a line break, or at . ! ? … (and their kin in other scripts), closing quotes and brackets included,
if white space follows and the next word does not begin in lower case. A full stop after a single letter, a number alone
or a common short form ("Dr.", "z. B.") ends nothing. That is a rule of thumb and no more: where it errs, a sentence is
too long or too short, and nothing is lost.

>>> sentences("He said: “Wait!” Then he left.\n\nDr. Who came at 5 p.m. today.")
[('He said: “Wait!”', ' '), ('Then he left.', '\n\n'), ('Dr. Who came at 5 p.m. today.', '')]
"""

import re

# ruff: noqa: RUF001 - marks of many scripts are meant

_ENDS = ".!?…。！？｡؟।"
_CLOSING = "\"'”’»›)]}」』）"
_SHORT = frozenset(
    {
        *("al", "art", "bzw", "ca", "cf", "co", "dr", "e.g", "etc", "evtl", "fig", "ggf", "hr", "i.e", "inc", "jr"),
        *("ltd", "mme", "mr", "mrs", "ms", "mt", "nr", "no", "p", "pp", "prof", "sr", "st", "u.a", "usw", "vgl"),
        *("vol", "vs"),
    }
)
_BREAK = re.compile(r"(?<!\s)\s*\n\s*")
_END = re.compile(rf"(?P<stop>[{re.escape(_ENDS)}]+)[{re.escape(_CLOSING)}]*(?P<space>\s+)")
# No space stands between sentences there; what is closed after an end may go on (「行こう。」と言った。).
_FULL_WIDTH = re.compile(rf"(?<=[。！？｡])(?=\S)(?![{re.escape(_ENDS + _CLOSING)}])")


def sentences(text: str) -> list[tuple[str, str]]:
    """Sentences, each with the white space behind it; joined, they are the text again. The first may be empty."""
    found: list[tuple[str, str]] = []
    begin = 0
    for gap in [*_BREAK.finditer(text), None]:
        end = len(text) if gap is None else gap.start()
        found += _in_paragraph(text[begin:end])
        if gap is not None:
            sentence, space = found.pop() if found else ("", "")  # a text may begin with white space
            found.append((sentence, space + gap.group()))
            begin = gap.end()
    return found


def _in_paragraph(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    begin = 0
    for end in _END.finditer(text):
        if _ends_here(text[begin : end.start("stop")], end["stop"], text[end.end() : end.end() + 1]):
            found += _full_width(text[begin : end.start("space")], end["space"])
            begin = end.end()
    return found + (_full_width(text[begin:], "") if begin < len(text) else [])


def _full_width(sentence: str, space: str) -> list[tuple[str, str]]:
    *before, last = _FULL_WIDTH.split(sentence)
    return [*((one, "") for one in before), (last, space)]


def _ends_here(before: str, stop: str, after: str) -> bool:
    if after.islower():
        return False
    if stop != ".":
        return True
    word = before.rsplit(maxsplit=1)[-1].lstrip("\"'“‘„«(").lower() if before.strip() else ""
    is_single = len(word) == 1 and word.isalpha()
    is_number = word.isdigit() and len(before.split()) == 1  # "1. The first point"
    return not (is_single or is_number or word in _SHORT)
