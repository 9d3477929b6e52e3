"""Constraints on generated text: prefixes, glossaries, required phrases and forbidden phrases.

Required phrases and the terms of a glossary appear as whole words (`regard.text.glossary`); a term may have several
forms. A tokenizer may encode a phrase in two ways: at the beginning of a text, and after a space. Both variants are
searched for, and both variants of a forbidden phrase are forbidden. Forbidden phrases are matched by tokens: forbidding
"cat" forbids "cat" and words that begin with its tokens, but not "Cat".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.decode.requirements import WordEdges, count_slots
from regard.tasks.search import Phrase, SearchInput
from regard.text.glossary import Glossary, Term, capitalize
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Constraints:
    """Prefixes, required and forbidden phrases of translations."""

    prefixes: Sequence[str] | None = None
    """The prefix of each translation, one per text; "" for no constraint."""
    required: Sequence[Sequence[str | Term]] | None = None
    """Phrases or terms that each translation must contain, one list per text."""
    forbidden: Sequence[str] = ()
    """Phrases that no translation may contain."""
    glossary: Glossary | None = None
    """Terms that the translation of every text in which they occur must contain."""

    def check(self, text_count: int) -> None:
        """Check that there is one prefix and one list of required phrases per text."""
        for name, values in (("prefix", self.prefixes), ("list of required phrases", self.required)):
            if isinstance(values, str) or (values is not None and len(values) != text_count):
                count = 1 if isinstance(values, str) else len(values or ())
                counted = pluralize(count, name, "prefixes" if name == "prefix" else "lists of required phrases")
                raise RegardError(f"{counted} for {pluralize(text_count, 'text')}.", hint="Give a list, one per text.")
        if isinstance(self.forbidden, str) or any(isinstance(phrases, str) for phrases in self.required or ()):
            raise RegardError("A string was given where a list of phrases is expected.", hint='Write ["..."].')

    def find_terms(self, texts: Sequence[str]) -> "Constraints | None":
        """Return the constraints with the glossary's terms as required ones; None if there are no constraints left."""
        self.check(len(texts))
        required = self.required
        if self.glossary is not None:
            required = [
                [*(() if required is None else required[index]), *self.glossary.find_terms(text)]
                for index, text in enumerate(texts)
            ]
        constraints = replace(self, glossary=None, required=required if any(required or ()) else None)
        return None if constraints == Constraints() else constraints

    def select(self, indices: Sequence[int]) -> "Constraints":
        """Return the constraints of the texts at `indices`."""
        return replace(
            self,
            prefixes=None if self.prefixes is None else [self.prefixes[index] for index in indices],
            required=None if self.required is None else [self.required[index] for index in indices],
        )

    def count_slots(self, tokenizer: Tokenizer, beam_size: int) -> int:
        """Return the mean number of beams of a text: required phrases may need more than `beam_size`."""
        slots = [count_slots(terms, beam_size) for terms in _encode_terms(tokenizer, self.required or ())]
        return math.ceil(sum(slots) / len(slots)) if slots else beam_size

    def apply(self, inputs: SearchInput, tokenizer: Tokenizer, indices: Sequence[int]) -> SearchInput:
        """Return the search input of the texts at `indices` under these constraints."""
        if self.required is not None:
            required = _encode_terms(tokenizer, [self.required[index] for index in indices])
            inputs = replace(
                inputs,
                required=required,
                edges=WordEdges(tokenizer.token_bytes.begins_inside, tokenizer.token_bytes.ends_inside),
            )
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


def encode_variants(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[list[Phrase]]:
    """Return the tokens of each phrase after a space and at the beginning of a text; one entry if they are equal."""
    if not all(phrase.strip() for phrase in phrases):
        raise RegardError("A phrase is empty.", hint="Leave empty phrases out.")
    context, *encoded = tokenizer.encode_ids([".", *(f". {phrase}" for phrase in phrases), *phrases])
    variants = []
    for with_context, at_start in zip(encoded[: len(phrases)], encoded[len(phrases) :], strict=True):
        after_space = with_context[len(context) :] if with_context[: len(context)] == context else at_start
        variants.append(list(dict.fromkeys((tuple(after_space), tuple(at_start)))))
    return variants


def forbidden_ids(tokenizer: Tokenizer, phrases: Sequence[str]) -> list[Phrase]:
    """Return the tokens of every variant of every phrase."""
    return [variant for variants in encode_variants(tokenizer, phrases) for variant in variants]


def _encode_terms(tokenizer: Tokenizer, texts: Sequence[Sequence[str | Term]]) -> list[list[list[Phrase]]]:
    """Return the tokens of the forms of each term of each text.

    A form is encoded after a space and, if that differs, at the beginning of a text, also with a capital. A term is
    left out if the model cannot write any of its forms.
    """
    forms = list(dict.fromkeys(form for terms in texts for term in terms for form in to_term(term).forms))
    capitalized = [capitalize(form) for form in forms]
    phrases = {
        form: list(dict.fromkeys((*variants, *(capital_variants[1:] if len(variants) > 1 else ()))))
        for form, variants, capital_variants in zip(
            forms, encode_variants(tokenizer, forms), encode_variants(tokenizer, capitalized), strict=True
        )
    }
    unwritable = {tokenizer.specials.unk, *tokenizer.specials.not_text}
    encoded = [
        [
            [phrase for form in to_term(term).forms for phrase in phrases[form] if unwritable.isdisjoint(phrase)]
            for term in terms
        ]
        for terms in texts
    ]
    return [[list(dict.fromkeys(group)) for group in groups if group] for groups in encoded]


def to_term(term: str | Term) -> Term:
    """Return a phrase as a term with one form."""
    return Term(term, (term,)) if isinstance(term, str) else term
