"""Valid files to mutate: the smallest of each kind."""

import json
import struct
from collections.abc import Mapping
from typing import Any

import safetensors.torch
import torch

from regard.config.tokenizers import ByteLevelConfig, UnigramConfig
from regard.exchange.gguf.format import BLOCK_TYPES
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.text import sentencepiece
from regard.text.learn import learn
from tests.exchange.cases import CASES
from tests.exchange.models import POSITIONS, parse_settings

ARRAY, STRING, UINT32, INT32, FLOAT32, BOOL = 9, 8, 4, 5, 6, 7
FORMS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}
Value = tuple[int, Any]


def write_gguf(metadata: dict[str, Value], tensors: Mapping[str, tuple[tuple[int, ...], int, bytes]]) -> bytes:
    """Write a GGUF file.

    Args:
        metadata: The type and value of each key; a list is (ARRAY, (type, values)).
        tensors: Shape (the last dimension is the fastest), type and bytes of each tensor.
    """
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, (kind, value) in metadata.items():
        parts += [_text(key), struct.pack("<I", kind), _value(kind, value)]
    offset, data = 0, []
    for name, (shape, kind, content) in tensors.items():
        parts += [_text(name), struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)]
        padded = content + bytes(-len(content) % 32)
        data.append(padded)
        offset += len(padded)
    header = b"".join(parts)
    return header + bytes(-len(header) % 32) + b"".join(data)


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _value(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return _text(value)
    if kind != ARRAY:
        return struct.pack(FORMS[kind], value)
    inner, values = value
    return struct.pack("<IQ", inner, len(values)) + b"".join(_value(inner, entry) for entry in values)


def make_gguf_metadata(tokens: list[str], merges: list[str]) -> dict[str, Value]:
    """Make the metadata of a Llama with one layer, two heads and width 32."""
    return {
        "general.architecture": (STRING, "llama"),
        "general.name": (STRING, "Tiny"),
        "llama.block_count": (UINT32, 1),
        "llama.context_length": (UINT32, 64),
        "llama.embedding_length": (UINT32, 32),
        "llama.feed_forward_length": (UINT32, 64),
        "llama.attention.head_count": (UINT32, 2),
        "llama.attention.head_count_kv": (UINT32, 1),
        "llama.attention.layer_norm_rms_epsilon": (FLOAT32, 1e-5),
        "llama.rope.freq_base": (FLOAT32, 10000.0),
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "smollm"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
        "tokenizer.ggml.token_type": (ARRAY, (INT32, [3, *[1] * (len(tokens) - 1)])),
        "tokenizer.ggml.merges": (ARRAY, (STRING, merges)),
        "tokenizer.ggml.bos_token_id": (UINT32, 0),
        "tokenizer.ggml.eos_token_id": (UINT32, 0),
        "tokenizer.ggml.add_bos_token": (BOOL, False),
    }


WHISPER = {
    "architectures": ["WhisperForConditionalGeneration"],
    "model_type": "whisper",
    "vocab_size": 40,
    "d_model": 16,
    "num_mel_bins": 8,
    "max_source_positions": 10,
    "max_target_positions": 12,
    "forced_decoder_ids": [[1, 5]],
    "suppress_tokens": [1, 2],
    **{f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads", "ffn_dim")},
}


def make_seeds() -> dict[str, list[bytes]]:
    """Return valid files by target."""
    configs = []
    for name in ("marian-relu", "t5-plain-tied=True", "gpt2-tied", "llama-tied", "bert-classes-gelu", "esm-tags"):
        architecture = ARCHITECTURES[CASES[name].architecture]
        header = {"architectures": [architecture.name], "model_type": architecture.model_type}
        config = header | architecture.write_config(parse_settings(CASES[name].settings), POSITIONS)
        configs.append(json.dumps(config).encode())
    configs.append(json.dumps(WHISPER).encode())
    byte_level = learn(["a"], ByteLevelConfig()).content
    unigram = learn(["a dog and a cat, a cat and a dog"], UnigramConfig(vocabulary=40)).content
    word_piece = json.dumps(
        {
            "truncation": {"max_length": 8},
            "added_tokens": [{"id": 0, "content": "[PAD]", "special": True}],
            "normalizer": {"type": "BertNormalizer", "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "[MASK]": 4, "a": 5, "do": 6, "##g": 7},
            },
        }
    ).encode()
    data = {number: bytes(range(block.size)) for number, block in BLOCK_TYPES.items()}
    tensors = {f"t{number}": ((1, BLOCK_TYPES[number].elements), number, content) for number, content in data.items()}
    gguf = write_gguf(make_gguf_metadata(["<s>", "a", "b", "ab"], ["a b"]), tensors)
    weights = safetensors.torch.save({"a": torch.ones(2, 3), "b": torch.ones(1, dtype=torch.bfloat16)})
    small_byte_level = json.dumps(json.loads(byte_level) | {"model": _shrink(json.loads(byte_level)["model"])}).encode()
    return {
        "config": configs,
        "tokenizer": [small_byte_level, unigram, word_piece],
        "gguf": [gguf],
        "safetensors": [weights],
        "sentencepiece": [sentencepiece.write_model(json.loads(unigram))],
    }


def _shrink(model: dict[str, Any]) -> dict[str, Any]:
    return model | {"vocab": {text: number for text, number in model["vocab"].items() if number < 20}}
