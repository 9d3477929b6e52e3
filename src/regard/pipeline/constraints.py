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
class Constraints:
    """As a user says them.

    `begins` and `required` hold something for each text; `forbidden` holds for all.
    """

    prefixes: Sequence[str] | None = None
    """How each translation must begin; "" leaves it free."""
    required: Sequence[Sequence[str]] | None = None
    """The phrases that each translation must have."""
    forbidden: Sequence[str] = ()
    """Phrases that no translation may have."""

    def check(self, text_count: int) -> None:
        """One for each text, and phrases that say something."""
        for name, values in (("beginnings", self.prefixes), ("lists of required phrases", self.required)):
            if isinstance(values, str) or (values is not None and len(values) != text_count):
                count = "One text" if isinstance(values, str) else f"{len(values or ())}"
                raise RegardError(f"{count} as {name} for {text_count} texts.", fix="Give a list, one for each text.")
        if isinstance(self.forbidden, str) or any(isinstance(phrases, str) for phrases in self.required or ()):
            raise RegardError("A text was given, where a list of phrases is expected.", fix='Write ["..."].')

    def beam_multiplier(self, tokenizer: Tokenizer) -> int:
        """How many times as many beginnings a search keeps: one lot for each number of required tokens that is met."""
        phrase_lists = {tuple(phrases) for phrases in self.required or ()}
        return 1 + max((sum(map(len, required_ids(tokenizer, phrases))) for phrases in phrase_lists), default=0)


def token_variants(tokenizer: Tokenizer, phrase: str) -> list[Phrase]:
    """The tokens of a phrase after a space, and at the beginning of a text; once, if they are the same."""
    if not phrase.strip():
        raise RegardError("A phrase has no words.", fix="Leave empty phrases out.")
    context, with_context, at_start = tokenizer.encode_ids([".", f". {phrase}", phrase])
    after_space = with_context[len(context) :] if with_context[: len(context)] == context else at_start
    return list(dict.fromkeys((tuple(after_space), tuple(at_start))))


def forbidden_ids(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """Every spelling of every phrase."""
    return [variant for phrase in phrases for variant in token_variants(tokenizer, phrase)]


def required_ids(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """One spelling of each: after a space."""
    return [token_variants(tokenizer, phrase)[0] for phrase in phrases]
