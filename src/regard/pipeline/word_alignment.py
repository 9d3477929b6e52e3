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
from regard.models.cpu_decoder import eval_mode
from regard.nn.record import Record
from regard.pipeline.batches import batch_by_length
from regard.pipeline.encoding import TargetLanguage, padded
from regard.pipeline.results import Translation
from regard.pipeline.scorer import Scorer
from regard.pipeline.teacher_forcing import Row
from regard.pipeline.translator import Translator

AttentionRows = Literal["writes", "reads"]


def align_words(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    layer: int | None = None,
    rows: AttentionRows = "reads",
    *,
    target_language: str | Sequence[str] | None = None,
    batch_tokens: int = 4096,
) -> list[Links]:
    """The links of each pair, words counted from 0 as spaces separate them; `layer` counts from 0, the last if None."""
    layers = translator.settings.decoder.layers
    layer_index = layers - 1 if layer is None else layer
    if not 0 <= layer_index < layers:
        raise RegardError(f"The decoder has no layer {layer}.", fix=f"Use 0 to {layers - 1}.")
    if rows not in ("writes", "reads"):
        raise RegardError(f"There are no rows '{rows}'.", fix="Use 'writes' or 'reads'.")
    pairs = Scorer.from_pipeline(translator).make_rows(targets, sources, target_language=target_language)
    links: list[Links] = [frozenset()] * len(pairs)
    with eval_mode(translator.model), torch.inference_mode():
        for batch in batch_by_length([max(len(pair.source), len(pair.inputs)) for pair in pairs], batch_tokens):
            batch_pairs = [pairs[index] for index in batch]
            weights = _weights(translator, batch_pairs, f"decoder.{layer_index}.cross")  # (B, T, S)
            for index, pair, pair_weights in zip(batch, batch_pairs, weights, strict=True):
                target_weights = (
                    pair_weights[: len(pair.labels)] if rows == "writes" else pair_weights[1 : len(pair.inputs)]
                )
                links[index] = _links(translator, pair, target_weights)
    return links


def with_alignment(
    translator: Translator,
    sources: Sequence[str],
    translations: Sequence[Translation],
    *,
    target_language: TargetLanguage = None,
) -> list[Translation]:
    """Translations with their `alignment`: an empty one has no links."""
    indices = [index for index, translation in enumerate(translations) if translation.tokens]
    languages = [
        target_language if target_language is None or isinstance(target_language, str) else target_language[index]
        for index in indices
    ]
    links = (
        align_words(
            translator,
            [sources[index] for index in indices],
            [translations[index].text for index in indices],
            target_language=None if target_language is None else [str(translation) for translation in languages],
        )
        if indices
        else []
    )
    links_by_index = {index: tuple(sorted(pair_links)) for index, pair_links in zip(indices, links, strict=True)}
    return [
        replace(translation, alignment=links_by_index.get(index, ())) for index, translation in enumerate(translations)
    ]


def _weights(translator: Translator, pairs: list[Row], name: str) -> Tensor:
    """Attention averaged over heads, (B, T, S)."""
    device = next(translator.model.parameters()).device
    tokenizers, record = translator.tokenizers, Record()
    source, valid = padded([pair.source for pair in pairs], tokenizers.source.specials.pad, device)  # (B, S)
    inputs, _ = padded([pair.inputs for pair in pairs], tokenizers.target.specials.pad, device)  # (B, T)
    translator.model.hidden_states(source, inputs, valid, record=record)
    return record.weights(name).mean(dim=1).cpu()  # (B, H, T, S) -> (B, T, S)


def _links(translator: Translator, pair: Row, weights: Tensor) -> Links:
    """`weights` (T, S) has a row for each target token, perhaps one more for END."""
    source_words = translator.tokenizers.source.word_ids(pair.source)
    target_words = translator.tokenizers.target.word_ids(pair.labels[:-1])
    by_source_word = sum_by_word(weights[: len(target_words)].T, source_words)  # (source words, T)
    by_word = sum_by_word(by_source_word.T, target_words)  # (target words, source words)
    if not by_word.numel():
        return frozenset()
    return frozenset((source, target) for target, source in enumerate(by_word.argmax(dim=1).tolist()))


def sum_by_word(weights: Tensor, word_ids: Sequence[int | None]) -> Tensor:
    """Rows of pieces (n, m) summed to rows of words (words, m); pieces of no word are left out.

    >>> sum_by_word(torch.tensor([[1.0], [2.0], [4.0], [8.0]]), [None, 0, 0, 1])
    tensor([[6.],
            [8.]])
    """
    positions = [position for position, word_id in enumerate(word_ids) if word_id is not None]
    index = torch.tensor([word_ids[position] for position in positions], dtype=torch.long)  # (n)
    sums = weights.new_zeros((int(index.max()) + 1 if positions else 0, weights.size(1)))
    return sums.index_add_(0, index, weights[positions])
