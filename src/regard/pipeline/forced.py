"""What a model reads when the texts are given (teacher forcing): [begin] + text in, text + [end] out."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.pipeline.limits import learned_positions
from regard.text.vocabularies import Vocabularies

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
    texts: Sequence[str], vocabularies: Vocabularies, settings: settings_of.DecoderOnly, window: int | None
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
        whole = [specials.begin, *ids, specials.end]
        begin = done = 0  # tokens up to `done` have been counted
        while done < len(whole) - 1:
            reads, labels = whole[begin:-1][:size], whole[begin + 1 :][:size]
            rows.append(Row(number, [], reads, labels, seen=done - begin))
            begin, done = begin + size // 2, begin + len(labels)
    return rows


def pairs_of(
    texts: Sequence[str],
    sources: Sequence[str],
    vocabularies: Vocabularies,
    settings: settings_of.EncoderDecoder,
    into: str | Sequence[str] | None,
) -> list[Row]:
    """Texts and their sources for an encoder-decoder, in their order."""
    target = vocabularies.target
    rows = []
    read = _sources(sources, vocabularies, settings.languages, into)
    for number, (source, ids) in enumerate(zip(read, target.encode_ids(list(texts)), strict=True)):
        row = Row(number, source, [target.specials.begin, *ids], [*ids, target.specials.end])
        _check_length(f"The source of pair {number + 1}", row.source, learned_positions(settings.encoder))
        _check_length(f"The text of pair {number + 1}", row.reads, learned_positions(settings.decoder))
        rows.append(row)
    return rows


def padded(rows: list[list[int]], pad: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Rows as a tensor (B, T), and which of it is real (None: all of it, which models do faster)."""
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    table = torch.tensor([row + [pad] * (longest - len(row)) for row in rows], device=device)  # (B, T)
    if min(lengths) == longest:
        return table, None
    return table, torch.arange(longest, device=device) < torch.tensor(lengths, device=device)[:, None]


def _sources(
    sources: Sequence[str], vocabularies: Vocabularies, languages: Sequence[str], into: str | Sequence[str] | None
) -> list[list[int]]:
    """[tag] + source + [end], as in training; the tag where the vocabulary has tags of languages."""
    specials = vocabularies.source.specials
    if into is None and specials.languages:
        if len(languages) != 2:
            raise RegardError(
                f"The model knows several languages: {', '.join(specials.languages)}.",
                fix=f'Say which is written: into="{next(iter(specials.languages))}" (--into on the command line).',
            )
        into = languages[-1]
    wanted = [into] * len(sources) if into is None or isinstance(into, str) else list(into)
    if len(wanted) != len(sources):
        raise RegardError(
            f"{len(wanted)} languages for {len(sources)} texts.", fix="Give one for each, or one for all."
        )
    tags = [[] if language is None else [specials.language(language)] for language in wanted]
    ids = vocabularies.source.encode_ids(list(sources))
    return [[*tag, *tokens, specials.end] for tag, tokens in zip(tags, ids, strict=True)]


def _check_length(what: str, tokens: list[int], limit: int | None) -> None:
    if limit is not None and len(tokens) > limit:
        raise RegardError(
            f"{what} has {len(tokens)} tokens, and the model has learned {limit} positions.",
            fix="Cut it into sentences, or train with positions that know no end (sinusoidal, rotary).",
        )
