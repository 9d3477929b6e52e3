"""What a text must begin with, must have and must not have, said in words and turned into tokens.

A word is cut otherwise at the beginning of a text than after a space, so a phrase has two spellings in tokens. What is
forbidden is forbidden in both; what is required must stand after a space, or begin the text where it has only one
spelling. Phrases are meant as they are written: "cat" forbids "cat" and words that begin with its pieces, not "Cat".
"""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.text.tokenizer import Tokenizer

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Wishes:
    """As a user says them.

    `begins` and `required` hold something for each text; `forbidden` holds for all.
    """

    begins: Sequence[str] | None = None
    """How each translation must begin; "" leaves it free."""
    required: Sequence[Sequence[str]] | None = None
    """The phrases that each translation must have."""
    forbidden: Sequence[str] = ()
    """Phrases that no translation may have."""

    def check(self, texts: int) -> None:
        """One for each text, and phrases that say something."""
        for name, each in (("beginnings", self.begins), ("lists of required phrases", self.required)):
            if isinstance(each, str) or (each is not None and len(each) != texts):
                count = "One text" if isinstance(each, str) else f"{len(each or ())}"
                raise RegardError(f"{count} as {name} for {texts} texts.", fix="Give a list, one for each text.")
        if isinstance(self.forbidden, str) or any(isinstance(some, str) for some in self.required or ()):
            raise RegardError("A text was given, where a list of phrases is expected.", fix='Write ["..."].')

    def copies(self, tokenizer: Tokenizer) -> int:
        """How many times as many beginnings a search keeps: one lot for each number of required tokens that is met."""
        lists = {tuple(some) for some in self.required or ()}
        return 1 + max((sum(map(len, required(tokenizer, some))) for some in lists), default=0)


def spellings(tokenizer: Tokenizer, phrase: str) -> list[Phrase]:
    """The tokens of a phrase after a space, and at the beginning of a text; once, if they are the same."""
    if not phrase.strip():
        raise RegardError("A phrase has no words.", fix="Leave empty phrases out.")
    before, both, alone = tokenizer.encode_ids([".", f". {phrase}", phrase])
    inside = both[len(before) :] if both[: len(before)] == before else alone
    return list(dict.fromkeys((tuple(inside), tuple(alone))))


def forbidden(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """Every spelling of every phrase."""
    return [spelling for phrase in phrases for spelling in spellings(tokenizer, phrase)]


def required(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """One spelling of each: after a space."""
    return [spellings(tokenizer, phrase)[0] for phrase in phrases]
