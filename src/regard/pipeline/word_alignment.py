"""Which source word each target word looks at: cross-attention read as an alignment.

Both sentences are given. The weights of one decoder layer are averaged over its heads and summed over the pieces of
words on both sides; a target word is linked to the source word that has the most.
Marks that are no words (END, tags of languages) are left out. Every target word gets exactly one link.

A decoder's row i reads target token i and writes token i + 1. `rows` says whose weights count for a token: those of the
row that "writes" it, or of the row that "reads" it, which knows already which token it is (Chen et al. 2020).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.measure.alignment import Links
from regard.nn.record import Record
from regard.pipeline.answers import Translation
from regard.pipeline.batches import by_length
from regard.pipeline.forced import Row
from regard.pipeline.quiet import quiet
from regard.pipeline.scorer import Scorer
from regard.pipeline.sources import Into, padded
from regard.pipeline.translator import Translator

Rows = Literal["writes", "reads"]


def align_words(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    layer: int | None = None,
    rows: Rows = "reads",
    *,
    into: str | Sequence[str] | None = None,
    batch_tokens: int = 4096,
) -> list[Links]:
    """The links of each pair, words counted from 0 as spaces separate them; `layer` counts from 0, the last if None."""
    layers = translator.settings.decoder.layers
    number = layers - 1 if layer is None else layer
    if not 0 <= number < layers:
        raise RegardError(f"The decoder has no layer {layer}.", fix=f"Use 0 to {layers - 1}.")
    if rows not in ("writes", "reads"):
        raise RegardError(f"There are no rows '{rows}'.", fix="Use 'writes' or 'reads'.")
    pairs = Scorer.of(translator).rows(targets, sources, into=into)
    links: list[Links] = [frozenset()] * len(pairs)
    with quiet(translator.model), torch.inference_mode():
        for batch in by_length([max(len(pair.source), len(pair.reads)) for pair in pairs], batch_tokens):
            some = [pairs[place] for place in batch]
            weights = _weights(translator, some, f"decoder.{number}.cross")  # (B, T, S)
            for place, pair, table in zip(batch, some, weights, strict=True):
                read = table[: len(pair.labels)] if rows == "writes" else table[1 : len(pair.reads)]
                links[place] = _links(translator, pair, read)
    return links


def aligned(
    translator: Translator, sources: Sequence[str], found: Sequence[Translation], *, into: Into = None
) -> list[Translation]:
    """Translations with their `alignment`: an empty one has no links."""
    places = [place for place, one in enumerate(found) if one.tokens]
    each = [into if into is None or isinstance(into, str) else into[place] for place in places]
    links = (
        align_words(
            translator,
            [sources[place] for place in places],
            [found[place].text for place in places],
            into=None if into is None else [str(one) for one in each],
        )
        if places
        else []
    )
    new = {place: tuple(sorted(some)) for place, some in zip(places, links, strict=True)}
    return [replace(one, alignment=new.get(place, ())) for place, one in enumerate(found)]


def _weights(translator: Translator, pairs: list[Row], name: str) -> Tensor:
    """Attention averaged over heads, (B, T, S)."""
    device = next(translator.model.parameters()).device
    vocabularies, record = translator.vocabularies, Record()
    source, real = padded([pair.source for pair in pairs], vocabularies.source.specials.pad, device)  # (B, S)
    reads, _ = padded([pair.reads for pair in pairs], vocabularies.target.specials.pad, device)  # (B, T)
    translator.model.hidden_states(source, reads, real, record=record)
    return record.weights(name).mean(dim=1).cpu()  # (B, H, T, S) -> (B, T, S)


def _links(translator: Translator, pair: Row, weights: Tensor) -> Links:
    """`weights` (T, S) has a row for each target token, perhaps one more for END."""
    above = translator.vocabularies.source.word_ids(pair.source)
    below = translator.vocabularies.target.word_ids(pair.labels[:-1])
    across = gathered(weights[: len(below)].T, above)  # (source words, T)
    both = gathered(across.T, below)  # (target words, source words)
    if not both.numel():
        return frozenset()
    return frozenset((source, target) for target, source in enumerate(both.argmax(dim=1).tolist()))


def gathered(table: Tensor, words: Sequence[int | None]) -> Tensor:
    """Rows of pieces (n, m) summed to rows of words (words, m); pieces of no word are left out.

    >>> gathered(torch.tensor([[1.0], [2.0], [4.0], [8.0]]), [None, 0, 0, 1])
    tensor([[6.],
            [8.]])
    """
    places = [place for place, word in enumerate(words) if word is not None]
    index = torch.tensor([words[place] for place in places], dtype=torch.long)  # (n)
    joined = table.new_zeros((int(index.max()) + 1 if places else 0, table.size(1)))
    return joined.index_add_(0, index, table[places])
