"""Special tokens inside a text: a mark before a name makes it a special token.

Input is untrusted, so the name of a special token in a text, such as "<s>", is ordinary text. Only a chat template may
write special tokens, by placing `MARK` before their names: a Unicode noncharacter, reserved for internal use.
`Tokenizer.encode_ids` encodes a marked name as one token. User input is protected before rendering.
"""

import re
from collections.abc import Iterable

MARK = "\ufdd0"
BREAKS = [chr(code) for code in range(0xFDD1, 0xFDF0)]  # other noncharacters
REPLACEMENT = "\ufffd"


class SpecialMarks:
    """Marks special token names written by a template, but not those written by users.

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
        """Return the texts with a break character inside every name, and the break character.

        Marks in the texts are removed: a mark before a name would make it a special token.
        """
        texts = list(map(replace_marks, texts))
        break_mark = next((mark for mark in BREAKS if not any(mark in text for text in texts)), None)
        if break_mark is None:  # no text needs all of these characters: an attempt to write a special token
            break_mark = BREAKS[0]
            texts = [text.replace(break_mark, REPLACEMENT) for text in texts]
        broken = [re.sub(self._pattern, lambda match: match[0][0] + break_mark + match[0][1:], text) for text in texts]
        return broken, break_mark

    def mark(self, rendered: str, break_mark: str) -> str:
        """Mark the names in a rendered text, and restore the names that `protect` changed."""
        return re.sub(self._pattern, lambda match: MARK + match[0], rendered).replace(break_mark, "")

    def split(self, text: str) -> list[str]:
        """Split a text at its marked names, which are at odd indices, without their marks."""
        return re.split(f"{MARK}({self._pattern})", text)

    def find(self, text: str) -> bool:
        """Whether a text contains a name, marked or not."""
        return re.search(self._pattern, text) is not None


def replace_marks(text: str) -> str:
    """Return an untrusted text with marks replaced by U+FFFD, so no name in it becomes a special token."""
    return text.replace(MARK, REPLACEMENT)


def remove_marks(text: str) -> str:
    """Return a text without marks, for display."""
    return text.replace(MARK, "")
