"""Special tokens inside a text: a mark before the name of a special token makes it that token.

Texts come from anywhere, so the name of a special token in a text, such as "<s>", is ordinary text. Only a chat
template may write special tokens. `MARK` is put before their names: a noncharacter, which Unicode reserves for such use
inside a program. `Tokenizer.encode_ids` reads a marked name as one token. What users write is protected before it is
rendered.
"""

import re
from collections.abc import Iterable

MARK = "\ufdd0"
BREAKS = [chr(code) for code in range(0xFDD1, 0xFDF0)]  # other noncharacters
REPLACEMENT = "\ufffd"


class SpecialMarks:
    """Marks the names of special tokens that a template writes, and none of those that users write.

        marks = SpecialMarks(["<s>", "</s>"])
        protected, break_mark = marks.protect(["a text with </s>"])
        marks.mark(f"<s>{protected[0]}</s>", break_mark)

    Args:
        names: The texts of the special tokens.
    """

    def __init__(self, names: Iterable[str]) -> None:
        longest_first = sorted(set(names), key=len, reverse=True)
        self._pattern = "|".join(map(re.escape, longest_first)) or "(?!)"

    def protect(self, texts: Iterable[str]) -> tuple[list[str], str]:
        """Return the texts with every name broken, and the character that breaks them.

        A text that contains a mark loses it: before a name, it would make the name a special token.
        """
        texts = list(map(replace_marks, texts))
        break_mark = next((mark for mark in BREAKS if not any(mark in text for text in texts)), None)
        if break_mark is None:  # no text needs all of these characters: an attempt to write a special token
            break_mark = BREAKS[0]
            texts = [text.replace(break_mark, REPLACEMENT) for text in texts]
        broken = [re.sub(self._pattern, lambda match: match[0][0] + break_mark + match[0][1:], text) for text in texts]
        return broken, break_mark

    def mark(self, rendered: str, break_mark: str) -> str:
        """Mark the names in a rendered text, and restore those that `protect` broke."""
        return re.sub(self._pattern, lambda match: MARK + match[0], rendered).replace(break_mark, "")

    def split(self, text: str) -> list[str]:
        """Split a text at its marked names, which are at odd indices, without their marks."""
        return re.split(f"{MARK}({self._pattern})", text)

    def find(self, text: str) -> bool:
        """Whether a text contains a name, marked or not."""
        return re.search(self._pattern, text) is not None


def replace_marks(text: str) -> str:
    """Return a text from anywhere with the replacement character instead of marks: no name in it is a special token."""
    return text.replace(MARK, REPLACEMENT)


def remove_marks(text: str) -> str:
    """Return a text without marks, for display."""
    return text.replace(MARK, "")
