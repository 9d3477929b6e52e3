"""A closer look at one translation: what else could stand at a place, and all that a search considered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.alternatives import alternatives
from regard.decode.lengths import LengthPenalty
from regard.decode.trace import AttentionReader, Trace
from regard.models.state import DecodingState
from regard.nn.record import Record
from regard.pipeline.answers import Translation, answer
from regard.pipeline.chance import generator_of
from regard.pipeline.searches import Beam
from regard.pipeline.sources import Into
from regard.pipeline.together import Together
from regard.pipeline.translator import Translator


@dataclass(frozen=True)
class Choice:
    """A token that could stand at a place."""

    piece: str
    probability: float
    text: str
    """The whole text with it: what stands before, and what the model would write after it."""


def choices(
    translator: Translator,
    source: str,
    translation: Translation,
    places: Sequence[int] | None = None,
    count: int = 5,
    longest: int | None = None,
    into: Into = None,
) -> dict[int, list[Choice]]:
    """For each of the `places` of a translation's tokens (None: all), the `count` likeliest tokens there."""
    sources = translator.sources([source], into)
    if not sources[0]:
        raise RegardError("A text without words has no translation to look at.", fix="Give another.")
    limit = max(*translator.longest(sources, longest), len(translation.tokens))
    target = translator.vocabularies.target
    with translator.ready(), torch.inference_mode():
        task = translator.task(sources, [limit], generator_of(0, translator.device))
        found = alternatives(
            task.step,
            task.state,
            task.first,
            translation.tokens,
            eos=task.end,
            max_length=limit,
            count=count,
            positions=places,
            suppressed=task.never,
        )
    return {
        place: [
            Choice(
                target.token_bytes.bytes[one.token].decode("utf-8", "replace"),
                math.exp(one.logprob),
                target.decode([*translation.tokens[:place], one.token, *one.continuation]),
            )
            for one in some
        ]
        for place, some in found.items()
    }


@dataclass(frozen=True)
class Traced:
    """A translation, the tokens of its source as text, and all candidates of the search.

    `trace.looked(number)` is the cross-attention along a candidate's lineage: (tokens, layers, heads, source tokens).
    """

    translation: Translation
    source: tuple[str, ...]
    trace: Trace


def traced(
    translator: Translator,
    text: str,
    beam: int = 5,
    alpha: LengthPenalty = 1.0,
    best: int = 1,
    longest: int | None = None,
    into: Into = None,
) -> Traced:
    """Translate one text, and write down every candidate that was considered and what it looked at."""
    if isinstance(translator, Together):
        raise RegardError("Several models look at different things.", fix="Trace one of them.")
    sources = translator.sources([text], into)
    if not sources[0]:
        raise RegardError("A text without words has no translation to look at.", fix="Give another.")
    model, record = translator.model, Record()
    names = [layer.cross.name for layer in model.decoder.layers if layer.cross is not None]

    def step(tokens: Tensor, state: DecodingState) -> Tensor:
        return model.step(tokens, state, record)

    look: AttentionReader = lambda: torch.stack([record.weights(name)[:, :, -1] for name in names], dim=1).cpu().numpy()  # noqa: E731
    trace = Trace(read_attention=look)
    with translator.ready(), torch.inference_mode():
        task = translator.task(sources, translator.longest(sources, longest), generator_of(0, translator.device))
        (found,) = Beam(beam, alpha).find(replace(task, step=step, best=best, trace=trace))
    target, read = translator.vocabularies.target, translator.vocabularies.source.token_bytes
    pieces = tuple(read.bytes[token].decode("utf-8", "replace") for token in sources[0])
    return Traced(answer(Translation, found, target, best, by_risk=False), pieces, trace)
