"""Content of `tokenizer.json`. Regard serializes it itself, so that equal tokenizers have byte-identical files."""

import json
from collections.abc import Sequence
from typing import Any

import tokenizers

from regard.config.tokenizers import SpecialsConfig
from regard.text import specials

Document = dict[str, Any]


def to_document(backend: tokenizers.Tokenizer) -> Document:
    """Return the parsed file that `tokenizers` would write."""
    return json.loads(backend.to_str())


def make_bpe_model(subwords: Sequence[str], merges: Sequence[Sequence[str]], unk: str | None = None) -> Document:
    """Make a BPE model. Without merges it splits text into single characters."""
    return {
        "type": "BPE",
        "dropout": None,  # Regard applies it itself, see `subword_regularization`
        "unk_token": unk,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {subword: token for token, subword in enumerate(subwords)},
        "merges": [list(merge) for merge in merges],
    }


def serialize(backend: tokenizers.Tokenizer, model: Document, special_tokens: SpecialsConfig) -> bytes:
    """Serialize a tokenizer.

    Args:
        backend: Provides normalizer, pre-tokenizer and decoder.
        model: The learned model.
        special_tokens: Special tokens; their ids follow those of the model.
    """
    subwords = [subword for subword, _ in model["vocab"]] if model["type"] == "Unigram" else list(model["vocab"])
    ids = {subword: token for token, subword in enumerate(subwords)}
    for text in specials.special_token_texts(special_tokens):
        ids.setdefault(text, len(ids))  # the model may contain the unknown token already
    document = to_document(backend)
    parts = {part: document[part] for part in ("normalizer", "pre_tokenizer", "decoder")}
    header = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        **specials.to_document_parts(special_tokens, ids),
        **parts,
    }
    return (json.dumps({**header, "model": model}, ensure_ascii=False, indent=1) + "\n").encode()
