"""The base class of pipelines, and texts as model input: special tokens, length checks, batches, padding.

An encoder-decoder reads [language tag] + source + [eos]. An encoder reads [cls] + text + [sep], and another
text + [sep] for a pair. Training builds the same rows in `regard.data.batches.tasks`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.decode.protocol import nan_error
from regard.lora import AdapterSet
from regard.models.build import AnyModel
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

TargetLanguage = str | Sequence[str] | None


class Pipeline:
    """Base class of the pipelines: a model that reads and writes text, or labels images."""

    model: AnyModel
    tokenizers: TokenizerPair  # unless the model reads images
    settings: AnyModelConfig
    kind: ClassVar[str]
    """What the pipeline needs, e.g. "translation model"."""
    command: ClassVar[str] = "predict"
    """The command that runs the model."""

    @property
    def in_torch(self) -> Self:
        """The pipeline whose model PyTorch runs; another engine has one beside it, to look into."""
        return self

    @property
    def device(self) -> torch.device:
        """Device of the model's parameters."""
        return next(self.model.parameters()).device

    @cached_property
    def adapters(self) -> AdapterSet:
        """The LoRA adapters beside the model; `with pipeline.adapters.active(name):` uses one of them."""
        return AdapterSet(self.model)

    @property
    def num_parameters(self) -> int:
        """Number of the model's parameters; shared ones count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def __repr__(self) -> str:
        parts = [
            self.settings.family,
            f"{self.num_parameters:,} parameters",
            self._describe_input(),
            *(["-".join(self.settings.languages)] if self.settings.languages else []),
            *self._describe(),
            f"device {self.device}",
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _describe_input(self) -> str:
        """Say what the model reads."""
        source, target = self.tokenizers.source.size, self.tokenizers.target.size
        return f"{source:,} tokens" if self.tokenizers.is_joint else f"{source:,} and {target:,} tokens"

    def _describe(self) -> list[str]:
        """List what else the repr shows."""
        return []


class BatchLogits(NamedTuple):
    """The head's logits for one batch of texts."""

    indices: list[int]
    """Positions of these texts in the list of all texts."""
    logits: Tensor
    """(B, T, V), (B, labels) or (B, T, labels)."""


def check_list(values: Sequence[str], message: str, call: str) -> None:
    """Refuse a string where a list of strings is expected: iteration would take its characters as texts."""
    if isinstance(values, str):
        raise RegardError(f"A single {message} was given where a list is expected.", hint=f"{call}([{values[:20]!r}])")


def as_list(texts: str | Sequence[str]) -> Sequence[str]:
    """Return one text as a list of one; a pipeline then returns one result instead of a list."""
    return [texts] if isinstance(texts, str) else texts


def check_both_lists(texts: str | Sequence[str], partners: str | Sequence[str] | None) -> None:
    """Refuse one text beside a list of the texts that belong to it."""
    if partners is not None and isinstance(texts, str) != isinstance(partners, str):
        hint = "Give two strings, or two lists of strings."
        raise RegardError("One side is a single text and the other is a list.", hint=hint)


def check_length(message: str, tokens: Sequence[int], limit: int | None, *, location: str) -> None:
    """Refuse a text with more tokens than the model has learned positions."""
    if limit is not None and len(tokens) > limit:
        raise RegardError(
            f"{message} has {pluralize(len(tokens), 'token')}, but the model has {pluralize(limit, 'position')}.",
            location=location if len(location) <= 60 else f"{location[:57]}...",
            hint="Split it into sentences, or train with positions that have no upper limit (sinusoidal, rotary).",
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
        settings: The model's settings; they limit the length and name the languages.
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
    """Return the prefix of each source: one tag if the tokenizer has language tags, else nothing."""
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
    """Return what a decoder-only model reads: [bos] + text, or the text alone if it was trained without bos.

    An empty text always begins with bos: the model must read something.
    """
    return [tokenizer.specials.bos, *ids] if settings.starts_with_bos or not ids else ids


def add_special_tokens(tokenizer: Tokenizer, *texts: Sequence[int]) -> list[int]:
    """Build the row of an encoder: [cls] + text + [sep], and another text + [sep] for a pair."""
    specials = tokenizer.specials
    return [specials.cls, *(token for text in texts for token in (*text, specials.sep))]


def pad(rows: list[list[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Pad rows to a tensor (B, T).

    Returns:
        The tokens, and a mask (B, T) that is True where a token is valid; None if no row is padded (models are
        faster without a mask).
    """
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    tokens = torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows], device=device)  # (B, T)
    if min(lengths) == longest:
        return tokens, None
    return tokens, torch.arange(longest, device=device) < torch.tensor(lengths, device=device)[:, None]


def make_types(settings: EncoderOnlyConfig, tokens: Tensor, second_starts: Sequence[int] | None) -> Tensor | None:
    """Return the token types of rows (B, T): 1 from the second text of a pair on; None if all are 0."""
    if not settings.has_pair_types or second_starts is None:
        return None
    starts = torch.tensor(second_starts, device=tokens.device)
    return (torch.arange(tokens.size(1), device=tokens.device) >= starts[:, None]).long()


def batch_by_length(lengths: Sequence[int], max_tokens: int, rows_per_text: int = 1) -> Iterator[list[int]]:
    """Group texts of similar length into batches, longest first.

    A batch holds at most `max_tokens` tokens, padding and `rows_per_text` copies of each text included. A text that
    is longer than that is a batch of its own.

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
    """Split any number of texts into lists of `size`: a pipeline holds and sorts one list at a time.

    >>> list(chunks("abc", 2))
    [['a', 'b'], ['c']]
    """
    iterator = iter(texts)
    while chunk := list(islice(iterator, size)):
        yield chunk


def chunk_seed(seed: int | None, chunk_index: int) -> int | None:
    """Return the seed of a chunk: `seed` + `chunk_index`, so that every chunk uses other random numbers."""
    return None if seed is None else seed + chunk_index


def encoder_logits(
    model: EncoderOnly,
    settings: EncoderOnlyConfig,
    tokenizer: Tokenizer,
    rows: Sequence[list[int]],
    batch_tokens: int,
    second_starts: Sequence[int] | None = None,
) -> Iterator[BatchLogits]:
    """Run an encoder and its head over all rows, one batch at a time, in evaluation mode.

    Args:
        model: The encoder.
        settings: Its settings.
        tokenizer: Its tokenizer.
        rows: Token ids with special tokens.
        batch_tokens: Maximum number of tokens in a batch, padding included.
        second_starts: For pairs: where the second text of each row begins.
    """
    for number, row in enumerate(rows, 1):
        check_length(f"Text {number}", row, settings.encoder.max_positions, location=tokenizer.decode(row))
    device = next(model.parameters()).device
    with eval_mode(model), torch.inference_mode():
        for indices in batch_by_length([len(row) for row in rows], batch_tokens):
            source, valid = pad([rows[index] for index in indices], tokenizer.specials.pad, device)  # (B, T)
            types = make_types(settings, source, second_starts and [second_starts[index] for index in indices])
            logits = model(source, valid, types=types).float()
            check_logits(logits)
            yield BatchLogits(indices, logits)


def check_logits(logits: Tensor) -> None:
    """Check that logits (..., classes) have a softmax.

    Raises:
        RegardError: A row has NaN or infinity, or nothing but minus infinity.
    """
    if not logits.amax(dim=-1).isfinite().all():
        raise nan_error()


def resolve_max_length(max_new_tokens: int | None, default: int, limit: int | None) -> int:
    """Return the maximum number of tokens to generate: as requested, or the default, which `limit` may shorten.

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
