"""A closer look at one translation: what else could stand at a place, and all that a search considered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.alternatives import alternatives
from regard.decode.length_penalty import LengthPenalty
from regard.decode.trace import AttentionReader, Trace
from regard.models.state import DecodingState
from regard.nn.record import Record
from regard.pipeline.chance import make_generator
from regard.pipeline.encoding import TargetLanguage
from regard.pipeline.ensemble import EnsembleTranslator
from regard.pipeline.results import Translation, make_result
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator


@dataclass(frozen=True)
class TokenAlternative:
    """A token that could stand at a place."""

    token_text: str
    probability: float
    text: str
    """The whole text with it: what stands before, and what the model would write after it."""


def token_alternatives(
    translator: Translator,
    source: str,
    translation: Translation,
    positions: Sequence[int] | None = None,
    count: int = 5,
    max_length: int | None = None,
    target_language: TargetLanguage = None,
) -> dict[int, list[TokenAlternative]]:
    """For each of the `places` of a translation's tokens (None: all), the `count` likeliest tokens there."""
    sources = translator.encode_sources([source], target_language)
    if not sources[0]:
        raise RegardError("A text without words has no translation to look at.", fix="Give another.")
    max_target_length = max(*translator.resolve_max_lengths(sources, max_length), len(translation.tokens))
    target = translator.tokenizers.target
    with translator.prepared(), torch.inference_mode():
        inputs = translator.make_search_input(sources, [max_target_length], make_generator(0, translator.device))
        results = alternatives(
            inputs.step,
            inputs.state,
            inputs.prompt,
            translation.tokens,
            eos=inputs.eos,
            max_length=max_target_length,
            count=count,
            positions=positions,
            suppressed=inputs.suppressed,
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
    """A translation, the tokens of its source as text, and all candidates of the search.

    `trace.looked(number)` is the cross-attention along a candidate's lineage: (tokens, layers, heads, source tokens).
    """

    translation: Translation
    source_tokens: tuple[str, ...]
    trace: Trace


def translate_traced(
    translator: Translator,
    text: str,
    beam_size: int = 5,
    length_penalty: LengthPenalty = 1.0,
    n_best: int = 1,
    max_length: int | None = None,
    target_language: TargetLanguage = None,
) -> TracedTranslation:
    """Translate one text, and write down every candidate that was considered and what it looked at."""
    if isinstance(translator, EnsembleTranslator):
        raise RegardError("Several models look at different things.", fix="Trace one of them.")
    sources = translator.encode_sources([text], target_language)
    if not sources[0]:
        raise RegardError("A text without words has no translation to look at.", fix="Give another.")
    model, record = translator.model, Record()
    names = [layer.cross.name for layer in model.decoder.layers if layer.cross is not None]

    def step(tokens: Tensor, state: DecodingState) -> Tensor:
        return model.step(tokens, state, record)

    read_attention: AttentionReader = lambda: (
        torch.stack([record.weights(name)[:, :, -1] for name in names], dim=1).cpu().numpy()
    )  # noqa: E731
    trace = Trace(read_attention=read_attention)
    with translator.prepared(), torch.inference_mode():
        inputs = translator.make_search_input(
            sources, translator.resolve_max_lengths(sources, max_length), make_generator(0, translator.device)
        )
        (hypotheses,) = Beam(beam_size, length_penalty).find(replace(inputs, step=step, n_best=n_best, trace=trace))
    target, source_token_bytes = translator.tokenizers.target, translator.tokenizers.source.token_bytes
    source_tokens = tuple(source_token_bytes.bytes[token].decode("utf-8", "replace") for token in sources[0])
    return TracedTranslation(
        make_result(Translation, hypotheses, target, n_best, should_rerank=False), source_tokens, trace
    )
