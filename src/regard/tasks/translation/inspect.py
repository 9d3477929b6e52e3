"""Inspect one translation: alternatives for each token, and a trace of the beam search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.decode.alternatives import alternatives
from regard.decode.trace import Trace
from regard.nn.attention import CrossAttention
from regard.nn.record import Record
from regard.tasks.encoding import TargetLanguage
from regard.tasks.results import Translation, make_result
from regard.tasks.search import Beam, make_generator
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator

DEFAULT_BEAM = Beam()


@dataclass(frozen=True)
class TokenAlternative:
    """An alternative token at a position of a translation."""

    token_text: str
    probability: float
    text: str
    """The full text with this token: the preceding tokens, the token, and the greedy continuation."""


def token_alternatives(
    translator: Translator,
    source: str,
    translation: Translation,
    positions: Sequence[int] | None = None,
    count: int = 5,
    max_new_tokens: int | None = None,
    target_language: TargetLanguage = None,
) -> dict[int, list[TokenAlternative]]:
    """Return the most probable tokens at positions of a translation.

    Args:
        translator: The translator.
        source: The source of the translation.
        translation: A translation of `source`.
        positions: Indices into the translation's tokens; all of them if None.
        count: Number of alternatives per position.
        max_new_tokens: Maximum number of target tokens, as for `Translator.translate`.
        target_language: Language of the translation (multilingual models).

    Returns:
        The alternatives at each position, most probable first.
    """
    translator = translator.in_torch
    sources = _encode_source(translator, source, target_language)
    max_target_length = max(*translator.resolve_max_lengths(sources, max_new_tokens), len(translation.tokens))
    target = translator.tokenizers.target
    with translator.prepared(), torch.inference_mode():
        inputs = translator.make_search_input(sources, [max_target_length], make_generator(0, translator.device))
        results = alternatives(
            inputs.step,
            inputs.state,
            inputs.prompt,
            translation.tokens,
            eos=inputs.eos,
            max_new_tokens=max_target_length,
            count=count,
            positions=positions,
            suppress_tokens=inputs.suppress_tokens,
        )
    return {
        position: [
            TokenAlternative(
                target.token_bytes.bytes[candidate.token].decode("utf-8", "replace"),
                math.exp(candidate.logprob),
                target.decode([*translation.tokens[:position], candidate.token, *candidate.continuation]),
            )
            for candidate in candidates
        ]
        for position, candidates in results.items()
    }


@dataclass(frozen=True)
class TracedTranslation:
    """A translation, its source tokens, and all candidates of the search.

    `trace.attention(number)` is the cross-attention along a candidate's lineage: (tokens, layers, heads, source
    tokens).
    """

    translation: Translation
    source_tokens: tuple[str, ...]
    trace: Trace


def translate_traced(
    translator: Translator,
    text: str,
    search: Beam = DEFAULT_BEAM,
    *,
    n_best: int = 1,
    max_new_tokens: int | None = None,
    target_language: TargetLanguage = None,
) -> TracedTranslation:
    """Translate one text and record every candidate of the beam search with its cross-attention.

    Args:
        translator: A translator of one model, not an ensemble.
        text: The source.
        search: The beam search.
        n_best: Number of hypotheses, as for `Translator.translate`.
        max_new_tokens: Maximum number of target tokens, as for `Translator.translate`.
        target_language: Language to translate into (multilingual models).
    """
    if isinstance(translator, EnsembleTranslator):
        raise RegardError("Ensembles cannot be traced: every member has its own attention.", hint="Trace one member.")
    translator = translator.in_torch
    sources = _encode_source(translator, text, target_language)
    record = Record()
    names = [module.name for module in translator.model.decoder.modules() if isinstance(module, CrossAttention)]

    def read_attention() -> NDArray[np.float32]:  # (rows, layers, heads, source tokens)
        return torch.stack([record.weights(name)[:, :, -1] for name in names], dim=1).cpu().numpy()

    trace = Trace(read_attention=read_attention if names else None)
    max_lengths = translator.resolve_max_lengths(sources, max_new_tokens)
    with translator.prepared(), torch.inference_mode():
        inputs = translator.make_search_input(sources, max_lengths, make_generator(0, translator.device), record)
        (hypotheses,) = search.find(replace(inputs, n_best=n_best, trace=trace))
    target, source_token_bytes = translator.tokenizers.target, translator.tokenizers.source.token_bytes
    source_tokens = tuple(source_token_bytes.bytes[token].decode("utf-8", "replace") for token in sources[0])
    return TracedTranslation(make_result(Translation, hypotheses, target, n_best), source_tokens, trace)


def _encode_source(translator: Translator, text: str, target_language: TargetLanguage) -> list[list[int]]:
    """Encode one source; raise an error if it is empty."""
    sources = translator.encode_sources([text], target_language)
    if not sources[0]:
        raise RegardError("The text is empty, so there is no translation to inspect.", hint="Give a text with words.")
    return sources
