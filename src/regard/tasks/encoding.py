"""Texts as model input: special tokens, length checks, batches. This module does not import torch.

An encoder-decoder reads [language tag] + source + [eos]. An encoder reads [cls] + text + [sep], and another
text + [sep] for a pair. Training builds the same rows in
`regard.tasks.encoder_rows` and `regard.tasks.translation.rows`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from regard.base.arguments import check_type
from regard.base.errors import RegardError
from regard.base.formatting import pluralize, truncate
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

TargetLanguage = str | Sequence[str] | None


def check_list(values: Sequence[str], message: str, call: str) -> None:
    """Raise an error for a string where a list of strings is expected."""
    if isinstance(values, str):
        raise RegardError(f"A single {message} was given where a list is expected.", hint=f"{call}([{values[:20]!r}])")


def as_list(texts: str | Sequence[str]) -> Sequence[str]:
    """Wrap a single text in a list; the pipeline then returns one result instead of a list."""
    check_type("texts", texts, Sequence, "one text or a list of texts")
    return [texts] if isinstance(texts, str) else texts


def check_both_lists(texts: str | Sequence[str], partners: str | Sequence[str] | None) -> None:
    """Raise an error if one side is a single text and the other is a list."""
    if partners is not None and isinstance(texts, str) != isinstance(partners, str):
        hint = "Give two strings, or two lists of strings."
        raise RegardError("One side is a single text and the other is a list.", hint=hint)


def check_length(message: str, tokens: Sequence[int], limit: int | None, *, location: str) -> None:
    """Raise an error for a text with more tokens than learned positions."""
    if limit is not None and len(tokens) > limit:
        raise RegardError(
            f"{message} has {pluralize(len(tokens), 'token')}, but the model has {pluralize(limit, 'position')}.",
            location=truncate(location, 60),
            hint="Split it into sentences, or train with unlimited positions (sinusoidal, rotary).",
        )


def encode_sources(
    texts: Sequence[str],
    tokenizers: TokenizerPair,
    settings: EncoderDecoderConfig,
    target_language: TargetLanguage,
    description: str = "Text",
) -> list[list[int]]:
    """Encode each source as an encoder-decoder reads it: [language tag] + source + [eos].

    Args:
        texts: The sources.
        tokenizers: Tokenizers of both sides.
        settings: The model's settings, which define the maximum length and the languages.
        target_language: Language to translate into, one for all texts or one for each (multilingual models).
        description: Name of a source in error messages ("Text 3 has 99 tokens").
    """
    tokenizer = tokenizers.source
    tags = _encode_language_tags(len(texts), tokenizers, settings.languages, target_language)
    ids = tokenizer.encode_ids(list(texts))
    sources = [[*tag, *tokens, tokenizer.specials.eos] for tag, tokens in zip(tags, ids, strict=True)]
    for number, (text, source) in enumerate(zip(texts, sources, strict=True), 1):
        check_length(f"{description} {number}", source, settings.encoder.max_positions, location=text)
    return sources


def _encode_language_tags(
    count: int, tokenizers: TokenizerPair, languages: Sequence[str], target_language: TargetLanguage
) -> list[list[int]]:
    """Return the prefix of each source: a language tag if the tokenizer has tags, otherwise empty."""
    specials = tokenizers.source.specials
    if target_language is None and specials.languages:
        if len(languages) != 2:
            raise RegardError(
                f"The model has several target languages: {', '.join(specials.languages)}.",
                hint=f'Choose the target language: target_language="{next(iter(specials.languages))}" in Python, '
                f"--target-language {next(iter(specials.languages))} on the command line.",
            )
        target_language = languages[-1]
    if target_language is None:
        return [[]] * count
    target_languages = [target_language] * count if isinstance(target_language, str) else target_language
    if len(target_languages) != count:
        raise RegardError(
            f"{pluralize(len(target_languages), 'target language')} for {pluralize(count, 'text')}.",
            hint="Give one target language for all texts, or one for each.",
        )
    return [[specials.language_id(language)] for language in target_languages]


def add_bos(settings: DecoderOnlyConfig, tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """Return the input of a decoder-only model: [bos] + text, or only the text if it was trained without bos.

    An empty text always gets bos, because the input must not be empty.
    """
    return [tokenizer.specials.bos, *ids] if settings.starts_with_bos or not ids else ids


def add_special_tokens(tokenizer: Tokenizer, *texts: Sequence[int]) -> list[int]:
    """Build the row of an encoder: [cls] + text + [sep], and another text + [sep] for a pair."""
    specials = tokenizer.specials
    return [specials.cls, *(token for text in texts for token in (*text, specials.sep))]


def batch_by_length(lengths: Sequence[int], max_tokens: int, rows_per_text: int = 1) -> Iterator[list[int]]:
    """Group texts of similar length into batches, longest first.

    A batch has at most `max_tokens` tokens, including padding and `rows_per_text` copies of each text. A longer text
    gets its own batch.

    >>> list(batch_by_length([3, 9, 4, 4], max_tokens=8))
    [[1], [2, 3], [0]]
    >>> list(batch_by_length([3, 9, 4, 4], max_tokens=8, rows_per_text=2))
    [[1], [2], [3], [0]]

    Yields:
        Indices into `lengths`.
    """
    if rows_per_text < 1:
        raise RegardError(
            f"A search needs at least 1 row per text, got {rows_per_text}.",
            hint="Use a beam size or number of samples of 1 or more.",
        )
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    start = 0
    while start < len(order):
        rows = max(1, max_tokens // (rows_per_text * max(1, lengths[order[start]])))
        yield order[start : start + rows]
        start += rows


def chunks(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Split an iterable of texts into lists of `size`, which a pipeline sorts and processes one at a time.

    >>> list(chunks("abc", 2))
    [['a', 'b'], ['c']]
    """
    iterator = iter(texts)
    while chunk := list(islice(iterator, size)):
        yield chunk


def chunk_seed(seed: int | None, chunk_index: int) -> int | None:
    """Return the seed of a chunk, `seed` + `chunk_index`, so every chunk uses different random numbers."""
    return None if seed is None else seed + chunk_index


def resolve_max_length(max_new_tokens: int | None, default: int, limit: int | None) -> int:
    """Return the maximum number of tokens to generate: as requested, or the default, capped by `limit`.

    Args:
        max_new_tokens: The request.
        default: Used without a request.
        limit: Number of learned positions, if the decoder has any.

    Raises:
        RegardError: The request is below 1 or above the limit.

    >>> resolve_max_length(None, 70, 64), resolve_max_length(8, 70, 64)
    (64, 8)
    """
    if max_new_tokens is None:
        return default if limit is None else min(default, limit)
    if max_new_tokens < 1 or (limit is not None and max_new_tokens > limit):
        upper_bound = "" if limit is None else f" and at most {limit}, the number of learned positions"
        raise RegardError(f"max_new_tokens cannot be {max_new_tokens}.", hint=f"Use at least 1{upper_bound}.")
    return max_new_tokens
