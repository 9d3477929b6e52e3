r"""Rule-based sentence splitting that keeps all white space.

A sentence ends at a line break or a tab, or at . ! ? … (and their equivalents in other scripts), including closing
quotes and brackets, if white space follows and the next word does not start with a lower-case letter. A full stop after
a single letter, a number alone or a common abbreviation ("Dr.", "z. B.") does not end a sentence. The rules are
approximate: a mistake makes a sentence too long or too short, but never loses text.

>>> split_sentences("He said: “Wait!” Then he left.\n\nDr. Who came at 5 p.m. today.")
[('He said: “Wait!”', ' '), ('Then he left.', '\n\n'), ('Dr. Who came at 5 p.m. today.', '')]
"""

import re

# ruff: noqa: RUF001 - punctuation of many scripts is intended

END_MARKS = ".!?…。！？｡؟।"
CLOSING_MARKS = "\"'”’»›)]}」』）"
ABBREVIATIONS = frozenset(
    {
        *("al", "art", "bzw", "ca", "cf", "co", "dr", "e.g", "etc", "evtl", "fig", "ggf", "hr", "i.e", "inc", "jr"),
        *("ltd", "mme", "mr", "mrs", "ms", "mt", "nr", "no", "p", "pp", "prof", "sr", "st", "u.a", "usw", "vgl"),
        *("vol", "vs"),
    }
)
_LINE_BREAK = re.compile(r"(?<!\s)\s*[\n\t]\s*")
_SENTENCE_END = re.compile(  # starts at the first mark and never goes back: linear time
    rf"(?<![{re.escape(END_MARKS)}])(?P<stop>[{re.escape(END_MARKS)}]++)[{re.escape(CLOSING_MARKS)}]*+(?P<space>\s++)"
)
_NOT_SPACE = re.compile(r"\S")
_MAX_CHARACTERS = 100  # longer words are neither abbreviations nor numbers of a list
# These scripts put no space between sentences. A sentence may continue after a closing quote (「行こう。」と言った。).
_FULL_WIDTH = re.compile(rf"(?<=[。！？｡])(?=\S)(?![{re.escape(END_MARKS + CLOSING_MARKS)}])")


def split_sentences(text: str) -> list[tuple[str, str]]:
    """Split a text into sentences.

    Returns:
        Pairs of a sentence and the white space after it. Concatenating them gives the original text. The first sentence
        is empty if the text starts with a line break.
    """
    pairs: list[tuple[str, str]] = []
    start = 0
    for line_break in [*_LINE_BREAK.finditer(text), None]:
        end = len(text) if line_break is None else line_break.start()
        pairs += _split_paragraph(text[start:end])
        if line_break is not None:
            sentence, space = pairs.pop() if pairs else ("", "")  # the text starts with a line break
            pairs.append((sentence, space + line_break.group()))
            start = line_break.end()
    return pairs


def _split_paragraph(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    start, first = 0, _find_text(text, 0)
    for boundary in _SENTENCE_END.finditer(text):
        stop_start = boundary.start("stop")
        before = text[max(first, stop_start - _MAX_CHARACTERS) : stop_start]  # not all: that would be quadratic
        words = before.rsplit(None, 1)
        word = words[-1] if words else ""
        is_first = len(words) == 1 and first >= stop_start - _MAX_CHARACTERS
        if _is_sentence_end(word, boundary["stop"], text[boundary.end() : boundary.end() + 1], is_first=is_first):
            pairs += _split_full_width(text[start : boundary.start("space")], boundary["space"])
            start = boundary.end()
            first = _find_text(text, start)
    return pairs + (_split_full_width(text[start:], "") if start < len(text) else [])


def _find_text(text: str, start: int) -> int:
    match = _NOT_SPACE.search(text, start)
    return len(text) if match is None else match.start()


def _split_full_width(sentence: str, space: str) -> list[tuple[str, str]]:
    *before, last = _FULL_WIDTH.split(sentence)
    return [*((part, "") for part in before), (last, space)]


def _is_sentence_end(word: str, stop: str, after: str, *, is_first: bool) -> bool:
    """Return whether a sentence ends after a word; `is_first`: it is the first word of the sentence."""
    if after.islower():
        return False
    if stop != ".":
        return True
    word = word.lstrip("\"'“‘„«(").lower()
    is_single = len(word) == 1 and word.isalpha()
    is_number = word.isdigit() and is_first  # "1. The first point"
    return not (is_single or is_number or word in ABBREVIATIONS)
