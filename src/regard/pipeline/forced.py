"""What a model reads when the texts are given (teacher forcing): [begin] + text in, text + [end] out."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.pipeline.limits import learned_positions
from regard.pipeline.sources import Into, check_length, sources_of
from regard.text.vocabularies import TokenizerPair

WINDOW = 1024  # tokens of a text that are read at once, unless the model has learned fewer positions


@dataclass(frozen=True)
class Row:
    """What is read at once, and which tokens must come out; the first `seen` of them are another row's."""

    text: int
    """Which of the texts it is."""
    source: list[int]
    reads: list[int]
    labels: list[int]
    seen: int = 0

    @property
    def new(self) -> list[int]:
        """The tokens that count here."""
        return self.labels[self.seen :]


def windows_of(
    texts: Sequence[str], vocabularies: TokenizerPair, settings: settings_of.DecoderOnly, window: int | None
) -> list[Row]:
    """Texts for a decoder-only model, in their order; long ones in windows that overlap by half.

    Each token counts once, in the window in which it sees the most.
    """
    limit = learned_positions(settings.decoder)
    size = window or min(WINDOW, limit or WINDOW)
    if size < 2 or (limit is not None and size > limit):
        most = "" if limit is None else f", and at most {limit}: so many positions has the model learned"
        raise RegardError(f"A window cannot have {size} tokens.", fix=f"Use 2 or more{most}.")
    specials = vocabularies.source.specials
    rows = []
    for number, ids in enumerate(vocabularies.source.encode_ids(list(texts))):
        whole = [specials.bos, *ids, specials.eos]
        begin = done = 0  # tokens up to `done` have been counted
        while done < len(whole) - 1:
            labels = whole[begin + 1 : begin + 1 + size]
            reads = whole[begin : begin + len(labels)]
            rows.append(Row(number, [], reads, labels, seen=done - begin))
            begin, done = begin + size // 2, begin + len(labels)
    return rows


def pairs_of(
    texts: Sequence[str],
    sources: Sequence[str],
    vocabularies: TokenizerPair,
    settings: settings_of.EncoderDecoder,
    into: Into,
) -> list[Row]:
    """Texts and their sources for an encoder-decoder, in their order."""
    target = vocabularies.target
    rows = []
    read = sources_of(sources, vocabularies, settings, into, called="The source of pair")
    for number, (source, ids) in enumerate(zip(read, target.encode_ids(list(texts)), strict=True)):
        row = Row(number, source, [target.specials.bos, *ids], [*ids, target.specials.eos])
        check_length(
            f"The text of pair {number + 1}", row.reads, learned_positions(settings.decoder), where=texts[number]
        )
        rows.append(row)
    return rows
