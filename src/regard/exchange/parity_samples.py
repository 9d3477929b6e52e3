"""Parity test inputs: validation texts that the run kept, or else random ids."""

import math
import random
from dataclasses import dataclass

from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.store.examples import ValidationExample, read_examples
from regard.store.model_folder import StoredModel
from regard.store.model_path import RUN
from regard.store.run_folder import RunFolder
from regard.tasks.encoding import add_special_tokens, encode_sources
from regard.tasks.translation.translator import EXTRA_TOKENS
from regard.text.tokenizer import Tokenizer

MAX_TOKENS = 256  # of a source or prompt, and of a target: longer texts only cost time
PROMPT_TOKENS, CONTINUATION_TOKENS = 16, 48


@dataclass(frozen=True)
class Sample:
    """One input of both engines."""

    source: tuple[int, ...]
    """What the encoder reads, or the prompt of a decoder-only model: with bos, eos and language tag."""
    target: tuple[int, ...]
    """Tokens to score, eos included where the text ends; empty for an encoder-only model."""
    max_new_tokens: int
    """Maximum number of generated tokens."""
    reference: str | None = None


def make_samples(stored: StoredModel, count: int, max_positions: int | None = None) -> tuple[list[Sample], str]:
    """Return samples for a model, and what they are: "validation texts" or "random ids".

    Args:
        stored: The model; the validation texts are in the folder of its run.
        count: Number of samples.
        max_positions: Positions that the other engine can run; None: no upper limit.
    """
    limit = _find_limit(stored.settings, max_positions)
    run = stored.path.parent
    samples: list[Sample] = []
    if (run / RUN).is_file():
        for example in read_examples(RunFolder(run).examples, 4 * count):
            if len(samples) < count and (sample := _encode(stored, example, limit)) is not None:
                samples.append(sample)
    if samples:
        return samples, "validation texts"
    generator = random.Random(1)  # noqa: S311 - no secret
    return [_make_random(stored, limit, generator) for _ in range(count)], "random ids"


def _find_limit(settings: AnyModelConfig, max_positions: int | None) -> int:
    stacks = [getattr(settings, name) for name in ("encoder", "decoder") if hasattr(settings, name)]
    limits = [max_positions, *(stack.max_positions for stack in stacks)]
    return min([MAX_TOKENS, *(limit for limit in limits if limit is not None)])


def _encode(stored: StoredModel, example: ValidationExample, limit: int) -> Sample | None:
    """Encode an example; None if it is too long or lacks a field that the model's task needs."""
    settings, tokenizers = stored.settings, stored.tokenizers
    if isinstance(settings, EncoderDecoderConfig):
        if example.target is None or settings.task != "translation" or not example.source.strip():
            return None
        has_tags = bool(tokenizers.source.specials.languages)
        ids = tokenizers.source.encode_ids([example.source])[0]
        if len(ids) + 2 > limit:
            return None
        (source,) = encode_sources([example.source], tokenizers, settings, example.languages[-1] if has_tags else None)
        target = [*tokenizers.target.encode_ids([example.target])[0], tokenizers.target.specials.eos]
        max_new_tokens = min(limit, math.ceil(settings.max_length_ratio * len(source)) + EXTRA_TOKENS)
        return None if len(target) > limit else Sample(tuple(source), tuple(target), max_new_tokens, example.target)
    ids = tokenizers.source.encode_ids([example.source[: 8 * MAX_TOKENS]])[0]
    if isinstance(settings, DecoderOnlyConfig):
        ids = [tokenizers.source.specials.bos, *ids]
        room = min(CONTINUATION_TOKENS, limit - PROMPT_TOKENS)
        if len(ids) <= PROMPT_TOKENS or room < 1:
            return None
        return Sample(tuple(ids[:PROMPT_TOKENS]), tuple(ids[PROMPT_TOKENS : PROMPT_TOKENS + room]), room)
    row = add_special_tokens(tokenizers.source, ids)
    return Sample(tuple(row), (), 0) if ids and len(row) <= limit else None


def _make_random(stored: StoredModel, limit: int, generator: random.Random) -> Sample:
    settings, tokenizers = stored.settings, stored.tokenizers
    length = generator.randint(1, min(24, max(1, limit - 2)))
    source = _draw(tokenizers.source, length, generator)
    target = _draw(tokenizers.target, generator.randint(1, min(24, max(1, limit - 1))), generator)
    if isinstance(settings, EncoderDecoderConfig):
        end = tokenizers.target.specials.eos
        max_new_tokens = min(limit, math.ceil(settings.max_length_ratio * (length + 1)) + EXTRA_TOKENS)
        return Sample((*source, tokenizers.source.specials.eos), (*target, end), max_new_tokens)
    if isinstance(settings, DecoderOnlyConfig):
        source = [tokenizers.source.specials.bos, *source][: max(1, limit // 2)]
        room = max(1, min(CONTINUATION_TOKENS, limit - len(source)))
        return Sample(tuple(source), tuple(target[:room]), room)
    return Sample(tuple(add_special_tokens(tokenizers.source, source)), (), 0)


def _draw(tokenizer: Tokenizer, count: int, generator: random.Random) -> list[int]:
    """Draw random text token ids."""
    control = tokenizer.specials.control
    choices = [token for token in range(tokenizer.size) if token not in control]
    return generator.choices(choices, k=count)
