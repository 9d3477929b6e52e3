"""`pipeline.json`: everything that a program needs in addition to the graphs and the tokenizer."""

import json
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.config.model import (
    AnyModelConfig,
    ClassificationHeadConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    TaggingHeadConfig,
)
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.model_folder import StoredModel
from regard.tasks.translation.translator import EXTRA_TOKENS
from regard.text.tokenizer_pair import JOINT_FILE, SOURCE_FILE, TARGET_FILE

DESCRIPTION = "pipeline.json"
FORMAT = 1


def describe(stored: StoredModel, graphs: list[str], dtype: str) -> dict[str, Any]:
    """Describe a model: task, files, special tokens, limits, and the shape of its cache."""
    settings, specials = stored.settings, stored.tokenizers.target.specials
    is_joint = stored.tokenizers.is_joint
    return {
        "format": FORMAT,
        "family": settings.family,
        "task": settings.task,
        "d_model": settings.d_model,
        "languages": list(settings.languages),
        "dtype": dtype,
        "graphs": graphs,
        "tokenizers": [JOINT_FILE, JOINT_FILE] if is_joint else [SOURCE_FILE, TARGET_FILE],
        "specials": {role: getattr(specials, role) for role in ("pad", "bos", "eos", "unk", "mask", "cls", "sep")},
        "source_eos": stored.tokenizers.source.specials.eos,
        "language_tags": dict(stored.tokenizers.source.specials.languages),
        "suppressed": specials.not_text,
        **_describe_limits(settings),
        "cache": _describe_cache(stored),
        "labels": list(settings.head.labels)
        if isinstance(settings.head, ClassificationHeadConfig | TaggingHeadConfig)
        else [],
        "parameters": sum(parameter.numel() for parameter in stored.model.parameters()),
    }


def write_description(folder: Path, description: dict[str, Any]) -> None:
    """Write `pipeline.json`."""
    text = json.dumps(description, ensure_ascii=False, indent=1)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def _describe_limits(settings: AnyModelConfig) -> dict[str, Any]:
    match settings:
        case EncoderDecoderConfig():
            return {
                "max_length_ratio": settings.max_length_ratio,
                "extra_tokens": EXTRA_TOKENS,
                "max_source_positions": settings.encoder.max_positions,
                "max_positions": settings.decoder.max_positions,
            }
        case EncoderOnlyConfig():
            return {"max_source_positions": settings.encoder.max_positions}
        case DecoderOnlyConfig():
            return {"max_positions": settings.decoder.max_positions, "starts_with_bos": settings.starts_with_bos}
    raise RegardError(f"There is no description of the family '{settings.family}'.")


def _describe_cache(stored: StoredModel) -> list[dict[str, int]]:
    """Return the number of key-value heads and the sizes of keys and values, per layer."""
    if not isinstance(stored.model, EncoderDecoder | DecoderOnly):
        return []
    attentions = [layer.attention for layer in stored.model.decoder.layers]
    return [
        {"heads": part.key.out_features // part.key_dim, "key": part.key_dim, "value": part.value_dim}
        for part in attentions
    ]
