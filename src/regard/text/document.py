"""The inside of `tokenizer.json`: put together by us, so that the same vocabulary is the same bytes."""

import json
from collections.abc import Sequence
from typing import Any

import tokenizers

from regard.config.run import Specials
from regard.text import specials

Document = dict[str, Any]


def of(bare: tokenizers.Tokenizer) -> Document:
    """What `tokenizers` would write."""
    return json.loads(bare.to_str())


def bpe(pieces: Sequence[str], merges: Sequence[Sequence[str]], unknown: str | None = None) -> Document:
    """A model of pieces and merges. Without merges it cuts into single characters."""
    return {
        "type": "BPE",
        "dropout": None,  # ours is drawn by sample, see `sample`
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {piece: token for token, piece in enumerate(pieces)},
        "merges": [list(merge) for merge in merges],
    }


def write(bare: tokenizers.Tokenizer, model: Document, wanted: Specials) -> bytes:
    """The bytes of the file: the parts of `bare` around this model, special tokens after its pieces."""
    pieces = [piece for piece, _ in model["vocab"]] if model["type"] == "Unigram" else list(model["vocab"])
    ids = {piece: token for token, piece in enumerate(pieces)}
    for text in specials.texts(wanted):
        ids.setdefault(text, len(ids))  # the unknown token may be among the pieces already
    shell = of(bare)
    parts = {part: shell[part] for part in ("normalizer", "pre_tokenizer", "decoder")}
    whole = {"version": "1.0", "truncation": None, "padding": None, **specials.write(wanted, ids), **parts}
    return (json.dumps({**whole, "model": model}, ensure_ascii=False, indent=1) + "\n").encode()
