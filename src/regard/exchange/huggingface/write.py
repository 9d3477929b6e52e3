"""Write a model as a Hugging Face folder, which `Auto*` classes of `transformers` load without remote code.

config.json              architecture and sizes
generation_config.json   special tokens and the default search of Regard (models that generate)
model.safetensors        weights, tables of positions included (above 5 GB: several files and an index)
tokenizer.json           tokenizer with a template; a second one in target/ if the sides have their own
tokenizer_config.json    special tokens by role
README.md                model card with front matter for the hub
parity.json              the comparison with PyTorch (`regard.exchange.parity`)
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.huggingface.architecture import DEFAULT_POSITIONS
from regard.exchange.huggingface.architectures import AnyArchitecture, choose_architecture
from regard.exchange.huggingface.card import make_card
from regard.exchange.huggingface.tokenizer_writer import (
    TOKENIZER_CONFIG,
    TOKENIZER_FILE,
    make_tokenizer_config,
    make_tokenizer_json,
)
from regard.exchange.huggingface.verify import verify_export
from regard.exchange.mapping import to_hf
from regard.exchange.provenance import Provenance, read_provenance
from regard.store.model_folder import CARD, StoredModel, read_model
from regard.store.weight_files import find_weights, save_weights
from regard.tasks.causal_lm.generator import DEFAULT_FILTERS
from regard.tasks.translation.translator import DEFAULT_SEARCH
from regard.text.chat_template import CHAT_TEMPLATE_FILE, find_chat_template
from regard.text.tokenizer import Tokenizer

CONFIG, GENERATION_CONFIG = "config.json", "generation_config.json"
TARGET_FOLDER = "target"  # the target's tokenizer, if it has its own
MAX_NEW_TOKENS = {"translation": 256, "causal_lm": 200}  # at most; transformers' `generate` stops after 20 by default
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
OUR_SETTINGS = "regard"  # a key of config.json


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write the Hugging Face folder of a model, and compare it with the model if `transformers` is installed.

    Raises:
        RegardError: No architecture can represent the model (the error says why), or a float32 export differs from it.
    """
    stored = read_model(model)
    origin = read_provenance(stored.path)
    name = options.architecture or (origin.architecture if origin is not None else None)
    architecture = choose_architecture(stored.settings, name, location=str(model))
    max_positions = resolve_max_positions(stored.settings, options.max_positions, origin)
    dtype = options.dtype or "float32"
    tensors = convert_weights(stored, architecture, max_positions)
    tensors = {name: tensor.to(DTYPES[dtype]) for name, tensor in tensors.items()}
    save_weights(tensors, folder)
    write_settings(folder, stored, architecture, dtype, max_positions)
    notes = tuple(_list_notes(stored, architecture, max_positions))
    card = (stored.path / CARD).read_text(encoding="utf-8")
    text = make_card(stored.settings, architecture, stored.tokenizers, card, options.license, notes)
    (folder / CARD).write_text(text, encoding="utf-8")
    size = sum(path.stat().st_size for path in find_weights(folder)) / 1e6
    figures = verify_export(folder, stored, architecture, dtype, max_positions)
    return ExportReport(f"{architecture.name} in {dtype}, {size:.1f} MB of weights", (*notes, *figures))


def write_settings(
    folder: Path, stored: StoredModel, architecture: AnyArchitecture, dtype: str, max_positions: int, **additions: Any
) -> None:
    """Write config, generation config and tokenizers.

    Args:
        folder: Where to write the files.
        stored: The model.
        architecture: The architecture that represents it.
        dtype: Number type of the weights.
        max_positions: Number of positions.
        additions: More keys of config.json.
    """
    _write_json(folder / CONFIG, make_config(stored, architecture, max_positions, dtype) | additions)
    if isinstance(stored.settings, EncoderDecoderConfig | DecoderOnlyConfig):
        _write_json(folder / GENERATION_CONFIG, make_generation_config(stored, architecture, max_positions))
    if (template := find_chat_template(stored.path)) is not None:
        (folder / CHAT_TEMPLATE_FILE).write_text(template, encoding="utf-8")
    _write_tokenizer(folder, stored.tokenizers.source, stored.settings, max_positions)
    if isinstance(stored.settings, EncoderDecoderConfig) and not stored.tokenizers.is_joint:
        (folder / TARGET_FOLDER).mkdir()
        _write_tokenizer(folder / TARGET_FOLDER, stored.tokenizers.target, stored.settings, max_positions)


def resolve_max_positions(settings: AnyModelConfig, chosen: int | None, origin: Provenance | None) -> int:
    """Return the number of positions of an export: the user's, the learned, or the imported number, or the default."""
    stack: Any = getattr(settings, "encoder", None) or getattr(settings, "decoder", None)
    if stack.max_positions is not None:
        return int(stack.max_positions)
    return chosen or (origin.max_positions if origin is not None else DEFAULT_POSITIONS)


def convert_weights(stored: StoredModel, architecture: AnyArchitecture, max_positions: int) -> dict[str, Tensor]:
    """Return the exported tensors, each tied tensor once, like `save_pretrained`."""
    weights = {name: tensor.detach() for name, tensor in stored.model.state_dict().items()}
    weight_map = architecture.make_weight_map(stored.settings, max_positions)
    tensors, kept = to_hf(weight_map, architecture.prepare_weights(weights)), architecture.stored_copies
    return {
        name: tensor.clone() if name in kept else tensor
        for name, tensor in tensors.items()
        if name not in weight_map.hf_copies - kept
    }


def make_config(stored: StoredModel, architecture: AnyArchitecture, max_positions: int, dtype: str) -> dict[str, Any]:
    """Return config.json."""
    config = architecture.write_config(stored.settings, max_positions)
    ids = _list_special_ids(stored.settings, stored.tokenizers.target)
    specials = stored.tokenizers.source.specials
    ids |= {f"{role}_token_id": getattr(specials, role) for role in architecture.special_ids}
    return {
        "architectures": [architecture.name],
        "model_type": architecture.model_type,
        "torch_dtype": dtype,  # before transformers 5
        "dtype": dtype,
        **config,
        **ids,
        OUR_SETTINGS: _list_our_settings(stored.settings),
    }


def _list_our_settings(settings: AnyModelConfig) -> dict[str, Any]:
    """Return the Regard settings that have no Hugging Face key; `transformers` ignores them."""
    ours: dict[str, Any] = {"languages": list(settings.languages)}
    if isinstance(settings, EncoderDecoderConfig):
        ours["max_length_ratio"] = settings.max_length_ratio
    return ours


def make_generation_config(stored: StoredModel, architecture: AnyArchitecture, max_positions: int) -> dict[str, Any]:
    """Return generation_config.json: the default search of Regard, and the tokens that it never generates."""
    settings, specials = stored.settings, stored.tokenizers.target.specials
    max_new_tokens = min(MAX_NEW_TOKENS.get(settings.task, 256), max_positions - 1)
    search: dict[str, Any] = {
        "num_beams": DEFAULT_SEARCH.beam_size,
        "early_stopping": "never",  # stops when no open hypothesis can win anymore, like Regard
        "length_penalty": 1.0,
        "do_sample": False,
    }
    if isinstance(settings, DecoderOnlyConfig):
        search = {
            "do_sample": True,
            "temperature": DEFAULT_FILTERS.temperature,
            "top_p": DEFAULT_FILTERS.top_p,
            "top_k": 0,  # the transformers default is 50
        }
    return {
        **_list_special_ids(settings, stored.tokenizers.target),
        "suppress_tokens": specials.not_text,
        "max_new_tokens": max(1, max_new_tokens),
        **search,
        **({"use_cache": False} if architecture.breaks_cache(settings) else {}),
    }


def _list_special_ids(settings: AnyModelConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    specials = tokenizer.specials
    ids: dict[str, Any] = {
        "pad_token_id": specials.pad,
        "bos_token_id": specials.bos,
        "eos_token_id": specials.eos,
    }
    if isinstance(settings, EncoderDecoderConfig):
        ids |= {"decoder_start_token_id": specials.bos, "forced_eos_token_id": None}
    return ids


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, settings: AnyModelConfig, max_positions: int) -> None:
    (folder / TOKENIZER_FILE).write_bytes(make_tokenizer_json(tokenizer, settings))
    has_chat_template = (folder / CHAT_TEMPLATE_FILE).is_file()
    document = make_tokenizer_config(tokenizer, settings, max_positions, has_chat_template=has_chat_template)
    _write_json(folder / TOKENIZER_CONFIG, document)


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _list_notes(stored: StoredModel, architecture: AnyArchitecture, max_positions: int) -> list[str]:
    """List the differences from the model in Regard."""
    settings, specials = stored.settings, stored.tokenizers.source.specials
    notes = []
    stack: Any = getattr(settings, "encoder", None) or getattr(settings, "decoder", None)
    if stack.position.kind == "sinusoidal":
        notes.append(f"The table of positions has {max_positions} rows; longer texts are errors (--max-positions).")
    if isinstance(settings, EncoderDecoderConfig) and specials.languages:
        tags = ", ".join(f"<2{language}>" for language in specials.languages)
        notes.append(f"A source must start with the target language tag: {tags}.")
    if isinstance(settings, EncoderDecoderConfig) and not stored.tokenizers.is_joint:
        notes.append(f"The target has its own tokenizer, in the folder {TARGET_FOLDER}/.")
    return [*notes, *architecture.list_notes(settings)]
