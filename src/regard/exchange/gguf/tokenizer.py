"""The tokenizer of a GGUF file as a `tokenizer.json`. Byte-level BPE only, with the pre-tokenizers listed here."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from regard.base.errors import RegardError
from regard.exchange.gguf.format import require
from regard.exchange.huggingface.tokenizer_reader import ForeignTokenizer, rewrite
from regard.text.tokenizer_check import LLAMA3_PATTERN, QWEN2_PATTERN

Step = dict[str, Any]
CONTROL, USER_DEFINED = 3, 4  # token types
ROLE_KEYS = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "pad": "padding_token_id",
    "sep": "seperator_token_id",  # spelled so in the format
    "mask": "mask_token_id",
    "cls": "cls_token_id",
}


def _byte_level(*, use_regex: bool) -> Step:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _split(pattern: str) -> Step:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


PRE_TOKENIZERS: dict[str, list[Step]] = {
    "gpt-2": [_byte_level(use_regex=True)],
    "smollm": [{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)],
    "llama-bpe": [_split(LLAMA3_PATTERN), _byte_level(use_regex=False)],
    "qwen2": [_split(QWEN2_PATTERN), _byte_level(use_regex=False)],
}


def read_tokenizer(metadata: dict[str, Any], size: int, *, location: str) -> ForeignTokenizer:
    """Make the tokenizer of a file.

    Args:
        metadata: The metadata of the file.
        size: Number of tokens of the model.
        location: The file, for errors.
    """
    kind = require(metadata, "tokenizer.ggml.model", str, location=location, default="none")
    hint = "Get the model as a Hugging Face folder with tokenizer.json."
    if kind != "gpt2":
        raise RegardError(
            f"The tokenizer is of the kind {kind[:40]!r}; Regard reads 'gpt2'.", location=location, hint=hint
        )
    pre_tokenizer = metadata.get("tokenizer.ggml.pre", "gpt-2")
    if pre_tokenizer not in PRE_TOKENIZERS:
        known_kinds = ", ".join(PRE_TOKENIZERS)
        message = f"The pre-tokenizer {str(pre_tokenizer)[:40]!r} is not supported (Regard has {known_kinds})."
        raise RegardError(message, location=location, hint=hint)
    tokens = require(metadata, "tokenizer.ggml.tokens", list, location=location)
    merges = require(metadata, "tokenizer.ggml.merges", list, location=location)
    types = metadata.get("tokenizer.ggml.token_type")
    if isinstance(types, np.ndarray) and len(types) != len(tokens):
        raise RegardError("The numbers of token types and tokens differ.", location=location, hint=hint)
    special_ids: Iterable[int] = (
        np.flatnonzero(np.isin(types, (CONTROL, USER_DEFINED))) if isinstance(types, np.ndarray) else []
    )
    added = [
        {"id": int(number), "content": tokens[number], "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False, "special": True}
        for number in special_ids
    ]
    roles = {
        role: number for role, key in ROLE_KEYS.items() if type(number := metadata.get(f"tokenizer.ggml.{key}")) is int
    }
    # Files of Llama 3 without this key begin with bos, too: llama.cpp's default for their pre-tokenizer.
    has_bos = metadata.get("tokenizer.ggml.add_bos_token", pre_tokenizer == "llama-bpe") is True
    document = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if pre_tokenizer == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS[pre_tokenizer]},
        "post_processor": _make_template(roles.get("bos")) if has_bos else None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre_tokenizer == "llama-bpe",
            "vocab": {text: number for number, text in enumerate(tokens)},
            "merges": merges,
        },
    }
    return rewrite(document, roles, size, location=location)


def _make_template(bos: int | None) -> Step | None:
    if bos is None:
        return None
    single = [{"SpecialToken": {"id": "bos", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": single, "special_tokens": {"bos": {"id": "bos", "ids": [bos]}}}
