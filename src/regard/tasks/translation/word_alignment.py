"""Word alignment from cross-attention.

The attention weights of one decoder layer, for a given target, are averaged over its heads and summed over the tokens
of each word on both sides. A target word is aligned with the source word that has the largest weight. Special tokens
(eos, language tags) are ignored. Every target word gets exactly one link.

The decoder's row i reads target token i and predicts token i + 1. `rows` selects the row whose weights align a token:
the row that predicts it ("output"), or the row that reads it ("input") and so already knows the token, which Chen et
al. (2020) found better in a middle layer of a deep decoder. In the last layer, the default, a row attends to what it
predicts.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.parts import FixedVectorConfig
from regard.measure.alignment import Links
from regard.models.cpu_decoder import eval_mode
from regard.models.inputs import pad
from regard.nn.record import Record
from regard.tasks.encoding import TargetLanguage, batch_by_length
from regard.tasks.results import Translation
from regard.tasks.teacher_forcing import Row

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translator

AttentionRows = Literal["output", "input"]


def align_words(
    translator: "Translator",
    sources: Sequence[str],
    targets: Sequence[str],
    layer: int | None = None,
    rows: AttentionRows = "output",
    *,
    target_language: str | Sequence[str] | None = None,
    batch_tokens: int = 4096,
) -> list[Links]:
    """Align the words of each pair. Spaces separate words.

    Args:
        translator: The model whose cross-attention is read.
        sources: The sources.
        targets: The translation of each source.
        layer: Decoder layer, counted from 0; the last if None.
        rows: Whether a target token's weights come from the decoder row that reads it ("input") or predicts it
            ("output").
        target_language: Language of the targets, one for all or one for each (multilingual models).
        batch_tokens: Maximum number of tokens in a batch, padding included.

    Returns:
        The links (source word, target word) of each pair, counted from 0.

    Raises:
        RegardError: The model has no such layer, or no attention.
    """
    layers, memory = translator.settings.decoder.layers, translator.settings.decoder.cross
    if isinstance(memory, FixedVectorConfig):
        message = "The decoder reads the source as one fixed vector, so there is no attention for word alignment."
        raise RegardError(
            message, location="decoder.cross", hint="Train with decoder.cross.kind = 'bahdanau' or 'luong'."
        )
    layer_index = layers - 1 if layer is None else layer
    if not 0 <= layer_index < layers:
        raise RegardError(f"The decoder has no layer {layer}.", hint=f"Use 0 to {layers - 1}.")
    if rows not in ("input", "output"):
        raise RegardError(f"rows must be 'input' or 'output', got '{rows}'.", hint="Use one of them.")
    pairs = translator.make_scorer(1.0).make_rows(targets, sources, target_language=target_language)
    links: list[Links] = [frozenset()] * len(pairs)
    with eval_mode(translator.model, bypasses=("forward",)), torch.inference_mode():
        for batch in batch_by_length([max(len(pair.source), len(pair.inputs)) for pair in pairs], batch_tokens):
            batch_pairs = [pairs[index] for index in batch]
            weights = _attention_weights(translator, batch_pairs, f"decoder.{layer_index}.cross")  # (B, T, S)
            for index, pair, pair_weights in zip(batch, batch_pairs, weights, strict=True):
                target_weights = (
                    pair_weights[: len(pair.labels)] if rows == "output" else pair_weights[1 : len(pair.inputs)]
                )
                links[index] = _links(translator, pair, target_weights)
    return links


def with_alignment(
    translator: "Translator",
    sources: Sequence[str],
    translations: Sequence[Translation],
    *,
    target_language: TargetLanguage = None,
) -> list[Translation]:
    """Add the word alignment to each translation; an empty translation has no links."""
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
            target_language=None if target_language is None else [str(language) for language in languages],
        )
        if indices
        else []
    )
    links_by_index = {index: tuple(sorted(pair_links)) for index, pair_links in zip(indices, links, strict=True)}
    return [
        replace(translation, alignment=links_by_index.get(index, ())) for index, translation in enumerate(translations)
    ]


def _attention_weights(translator: "Translator", pairs: list[Row], name: str) -> Tensor:
    """Return attention weights averaged over heads, (B, T, S)."""
    device = next(translator.model.parameters()).device
    tokenizers, record = translator.tokenizers, Record()
    source, valid = pad([pair.source for pair in pairs], tokenizers.source.specials.pad, device)  # (B, S)
    inputs, _ = pad([pair.inputs for pair in pairs], tokenizers.target.specials.pad, device)  # (B, T)
    translator.model.hidden_states(source, inputs, valid, record=record)
    return record.weights(name).mean(dim=1).cpu()  # (B, H, T, S) -> (B, T, S)


def _links(translator: "Translator", pair: Row, weights: Tensor) -> Links:
    """Align one pair. `weights` (T, S) has one row per target token, and optionally one for eos."""
    source_ids = translator.tokenizers.source.word_ids(pair.source)
    target_ids = translator.tokenizers.target.word_ids(pair.labels[:-1])
    by_source = sum_subwords(weights[: len(target_ids)].T, source_ids)  # (source words, T)
    by_pair = sum_subwords(by_source.T, target_ids)  # (target words, source words)
    if not by_pair.numel():
        return frozenset()
    return frozenset((source, target) for target, source in enumerate(by_pair.argmax(dim=1).tolist()))


def sum_subwords(weights: Tensor, word_ids: Sequence[int | None]) -> Tensor:
    """Sum token rows (n, m) to word rows (words, m); tokens outside words are ignored.

    >>> sum_subwords(torch.tensor([[1.0], [2.0], [4.0], [8.0]]), [None, 0, 0, 1])
    tensor([[6.],
            [8.]])
    """
    positions = [position for position, word_id in enumerate(word_ids) if word_id is not None]
    index = torch.tensor([word_ids[position] for position in positions], dtype=torch.long)  # (n)
    sums = weights.new_zeros((int(index.max()) + 1 if positions else 0, weights.size(1)))
    return sums.index_add_(0, index, weights[positions])
