"""Model inputs and labels for teacher forcing: the model reads [bos] + text and predicts text + [eos]."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.tasks.encoding import TargetLanguage, add_bos, check_length, encode_sources
from regard.text.tokenizer_pair import TokenizerPair

WINDOW = 1024  # tokens per window, unless the model has a context length or has learned fewer positions


@dataclass(frozen=True)
class Row:
    """One row of model input and its labels: a pair, or a window of a text."""

    text_index: int
    """Index of the text."""
    source: list[int]
    """Encoder input; empty for a decoder-only model."""
    inputs: list[int]
    labels: list[int]
    overlap: int = 0
    """Number of leading labels already scored in the previous window."""

    @property
    def new_labels(self) -> list[int]:
        """The labels that this row scores."""
        return self.labels[self.overlap :]


def encode_windows(
    texts: Sequence[str], tokenizers: TokenizerPair, settings: DecoderOnlyConfig, window: int | None
) -> list[Row]:
    """Encode texts for a decoder-only model, in order; long texts in windows that overlap by half.

    Each token is scored once, in the window with the longest context.

    Args:
        texts: The texts.
        tokenizers: The model's tokenizers.
        settings: The model's settings.
        window: Number of tokens per window. Default: the model's context length, else 1024; at most the number of
            learned positions.
    """
    limit, default = settings.decoder.max_positions, settings.context_length or WINDOW
    size = window or min(default, limit or default)
    if size < 2 or (limit is not None and size > limit):
        upper_bound = "" if limit is None else f" and at most {limit}, the number of learned positions"
        raise RegardError(
            f"A window cannot have {pluralize(size, 'token')}.", hint=f"Use at least 2 tokens{upper_bound}."
        )
    specials = tokenizers.source.specials
    rows = []
    for number, ids in enumerate(tokenizers.source.encode_ids(list(texts))):
        tokens = [*add_bos(settings, tokenizers.source, ids), specials.eos]
        start = scored_end = 0  # tokens before `scored_end` have been scored
        while scored_end < len(tokens) - 1:
            labels = tokens[start + 1 : start + 1 + size]
            inputs = tokens[start : start + len(labels)]
            rows.append(Row(number, [], inputs, labels, overlap=scored_end - start))
            start, scored_end = start + size // 2, start + len(labels)
    return rows


def encode_pairs(
    texts: Sequence[str],
    sources: Sequence[str],
    tokenizers: TokenizerPair,
    settings: EncoderDecoderConfig,
    target_language: TargetLanguage,
) -> list[Row]:
    """Encode texts and their sources for an encoder-decoder, in order."""
    target = tokenizers.target
    rows = []
    encoded_sources = encode_sources(sources, tokenizers, settings, target_language, description="The source of pair")
    for number, (source, ids) in enumerate(zip(encoded_sources, target.encode_ids(list(texts)), strict=True)):
        row = Row(number, source, [target.specials.bos, *ids], [*ids, target.specials.eos])
        check_length(
            f"The text of pair {number + 1}", row.inputs, settings.decoder.max_positions, location=texts[number]
        )
        rows.append(row)
    return rows
