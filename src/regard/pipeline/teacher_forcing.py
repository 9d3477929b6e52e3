"""What a model reads when the texts are given (teacher forcing): [begin] + text in, text + [end] out."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.pipeline.encoding import TargetLanguage, check_length, encode_sources
from regard.pipeline.limits import max_positions
from regard.text.tokenizer_pair import TokenizerPair

WINDOW = 1024  # tokens of a text that are read at once, unless the model has learned fewer positions


@dataclass(frozen=True)
class Row:
    """What is read at once, and which tokens must come out; the first `seen` of them are another row's."""

    text_index: int
    """Which of the texts it is."""
    source: list[int]
    inputs: list[int]
    labels: list[int]
    overlap: int = 0

    @property
    def new_labels(self) -> list[int]:
        """The tokens that count here."""
        return self.labels[self.overlap :]


def encode_windows(
    texts: Sequence[str], tokenizers: TokenizerPair, settings: settings_of.DecoderOnly, window: int | None
) -> list[Row]:
    """Texts for a decoder-only model, in their order; long ones in windows that overlap by half.

    Each token counts once, in the window in which it sees the most.
    """
    limit = max_positions(settings.decoder)
    size = window or min(WINDOW, limit or WINDOW)
    if size < 2 or (limit is not None and size > limit):
        upper_bound = "" if limit is None else f", and at most {limit}: so many positions has the model learned"
        raise RegardError(f"A window cannot have {size} tokens.", fix=f"Use 2 or more{upper_bound}.")
    specials = tokenizers.source.specials
    rows = []
    for number, ids in enumerate(tokenizers.source.encode_ids(list(texts))):
        tokens = [specials.bos, *ids, specials.eos]
        start = scored_end = 0  # tokens up to `done` have been counted
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
    settings: settings_of.EncoderDecoder,
    target_language: TargetLanguage,
) -> list[Row]:
    """Texts and their sources for an encoder-decoder, in their order."""
    target = tokenizers.target
    rows = []
    encoded_sources = encode_sources(sources, tokenizers, settings, target_language, description="The source of pair")
    for number, (source, ids) in enumerate(zip(encoded_sources, target.encode_ids(list(texts)), strict=True)):
        row = Row(number, source, [target.specials.bos, *ids], [*ids, target.specials.eos])
        check_length(f"The text of pair {number + 1}", row.inputs, max_positions(settings.decoder), where=texts[number])
        rows.append(row)
    return rows
