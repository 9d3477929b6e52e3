"""Constraints on generated text: prefixes, required phrases and forbidden phrases.

A tokenizer may encode a phrase in two ways: at the beginning of a text, and after a space. Both variants of a forbidden
phrase are forbidden. A required phrase must occur as encoded after a space, or at the beginning of the text if both
variants are equal. Phrases are case-sensitive: forbidding "cat" forbids "cat" and words that begin with its tokens, but
not "Cat".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.tasks.search import Phrase, SearchInput
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Constraints:
    """Prefixes, required phrases and forbidden phrases of translations."""

    prefixes: Sequence[str] | None = None
    """The prefix of each translation, one per text; "" for no constraint."""
    required: Sequence[Sequence[str]] | None = None
    """Phrases that each translation must contain, one list per text."""
    forbidden: Sequence[str] = ()
    """Phrases that no translation may contain."""

    def check(self, text_count: int) -> None:
        """Check that there is one prefix and one list of required phrases per text."""
        for name, values in (("prefix", self.prefixes), ("list of required phrases", self.required)):
            if isinstance(values, str) or (values is not None and len(values) != text_count):
                count = 1 if isinstance(values, str) else len(values or ())
                counted = pluralize(count, name, "prefixes" if name == "prefix" else "lists of required phrases")
                raise RegardError(f"{counted} for {pluralize(text_count, 'text')}.", hint="Give a list, one per text.")
        if isinstance(self.forbidden, str) or any(isinstance(phrases, str) for phrases in self.required or ()):
            raise RegardError("A string was given where a list of phrases is expected.", hint='Write ["..."].')

    def beam_multiplier(self, tokenizer: Tokenizer) -> int:
        """Return the number of beams: one for each possible number of generated required tokens."""
        phrase_lists = {tuple(phrases) for phrases in self.required or ()}
        return 1 + max((sum(map(len, required_ids(tokenizer, phrases))) for phrases in phrase_lists), default=0)

    def apply(self, inputs: SearchInput, tokenizer: Tokenizer, indices: Sequence[int]) -> SearchInput:
        """Return the search input of the texts at `indices` under these constraints."""
        if self.required is not None:
            inputs = replace(inputs, required=[required_ids(tokenizer, self.required[index]) for index in indices])
        if self.prefixes is None and not self.forbidden:
            return inputs
        prefixes = [""] * len(indices) if self.prefixes is None else [self.prefixes[index] for index in indices]
        prefix_ids = [tuple(ids) for ids in tokenizer.encode_ids(prefixes)]
        for prefix, ids, max_new_tokens in zip(prefixes, prefix_ids, inputs.max_lengths, strict=True):
            if len(ids) > max_new_tokens:
                message = f"The prefix has {len(ids)} tokens, but the text may have {max_new_tokens}."
                raise RegardError(
                    message, location=prefix[:60], hint="Use a larger max_new_tokens, or a shorter prefix."
                )
        from regard.decode.constraints import ConstrainedStep  # needs PyTorch, like the search

        step = ConstrainedStep(
            inputs.step,
            absorbing_token=inputs.absorbing_token,
            forbidden=forbidden_ids(tokenizer, self.forbidden),
            forced_prefixes=prefix_ids,
        )
        return replace(inputs, step=step, state=step.start(inputs.state, len(indices)))


def token_variants(tokenizer: Tokenizer, phrase: str) -> list[Phrase]:
    """Return the tokens of a phrase after a space and at the beginning of a text; one entry if they are equal."""
    if not phrase.strip():
        raise RegardError("A phrase is empty.", hint="Leave empty phrases out.")
    context, with_context, at_start = tokenizer.encode_ids([".", f". {phrase}", phrase])
    after_space = with_context[len(context) :] if with_context[: len(context)] == context else at_start
    return list(dict.fromkeys((tuple(after_space), tuple(at_start))))


def forbidden_ids(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """Return the tokens of every variant of every phrase."""
    return [variant for phrase in phrases for variant in token_variants(tokenizer, phrase)]


def required_ids(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """Return the tokens of each phrase as encoded after a space."""
    return [token_variants(tokenizer, phrase)[0] for phrase in phrases]
