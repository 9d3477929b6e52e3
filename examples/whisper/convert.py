"""Convert a checkpoint of openai-whisper to a folder of Hugging Face's layout, which `regard import` reads.

    python examples/whisper/convert.py tiny.en.pt tiny.en-hf
    regard import tiny.en-hf --out tiny.en

The checkpoint is a pickle: `torch.load(weights_only=True)` reads tensors and numbers from it, and runs no code. The
package openai-whisper must be installed: its tokenizer and its list of symbols that are not spoken go into the folder.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

END, START, NO_TIMESTAMPS = "<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"
SUBLAYERS = {
    "attn.query": "self_attn.q_proj",
    "attn.key": "self_attn.k_proj",
    "attn.value": "self_attn.v_proj",
    "attn.out": "self_attn.out_proj",
    "attn_ln": "self_attn_layer_norm",
    "cross_attn.query": "encoder_attn.q_proj",
    "cross_attn.key": "encoder_attn.k_proj",
    "cross_attn.value": "encoder_attn.v_proj",
    "cross_attn.out": "encoder_attn.out_proj",
    "cross_attn_ln": "encoder_attn_layer_norm",
    "mlp.0": "fc1",
    "mlp.2": "fc2",
    "mlp_ln": "final_layer_norm",
}
"""Their name of a module in a block: that of transformers."""
OTHERS = {
    "decoder.token_embedding.weight": "model.decoder.embed_tokens.weight",
    "decoder.positional_embedding": "model.decoder.embed_positions.weight",
    "encoder.positional_embedding": "model.encoder.embed_positions.weight",
    "encoder.ln_post": "model.encoder.layer_norm",
    "decoder.ln": "model.decoder.layer_norm",
}


def main(checkpoint: str, out: str) -> None:
    """Write the folder."""
    from whisper.tokenizer import get_tokenizer

    content = torch.load(checkpoint, weights_only=True, map_location="cpu")
    dims: dict[str, int] = content["dims"]
    if dims["n_vocab"] >= 51865:
        sys.exit("This script converts the English models (tiny.en, base.en, ...); this one knows several languages.")
    tokenizer = get_tokenizer(multilingual=False)
    folder = Path(out)
    folder.mkdir(parents=True)
    tensors = {rename(name): tensor.contiguous() for name, tensor in content["model_state_dict"].items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", make_config(dims, tokenizer))
    write_json(folder / "generation_config.json", make_generation_config(tokenizer))
    ranks = tokenizer.encoding._mergeable_ranks
    make_tokenizer(ranks, tokenizer.special_tokens).save(str(folder / "tokenizer.json"))
    roles = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), END)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "WhisperTokenizer", **roles})
    print(f"{out}: {sum(tensor.numel() for tensor in tensors.values()):,} parameters, {dims['n_vocab']:,} tokens")


def rename(name: str) -> str:
    """Return the name of a tensor in transformers.

    >>> rename("decoder.blocks.3.cross_attn.out.bias")
    'model.decoder.layers.3.encoder_attn.out_proj.bias'
    """
    if name in OTHERS:
        return OTHERS[name]
    module, _, field = name.rpartition(".")
    if module in OTHERS:
        return f"{OTHERS[module]}.{field}"
    parts = module.split(".")  # "encoder.conv1", or "decoder.blocks.3.cross_attn.out"
    if parts[1] != "blocks":
        return f"model.{name}"
    return f"model.{parts[0]}.layers.{parts[2]}.{SUBLAYERS['.'.join(parts[3:])]}.{field}"


def make_config(dims: dict[str, int], tokenizer: Any) -> dict[str, Any]:
    """Return config.json."""
    sides: dict[str, int] = {}
    for side, theirs in (("encoder", "audio"), ("decoder", "text")):
        sides |= {
            f"{side}_layers": dims[f"n_{theirs}_layer"],
            f"{side}_attention_heads": dims[f"n_{theirs}_head"],
            f"{side}_ffn_dim": 4 * dims[f"n_{theirs}_state"],
        }
    return {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "vocab_size": dims["n_vocab"],
        "d_model": dims["n_audio_state"],
        "num_mel_bins": dims["n_mels"],
        "max_source_positions": dims["n_audio_ctx"],
        "max_target_positions": dims["n_text_ctx"],
        "activation_function": "gelu",
        "scale_embedding": False,
        **sides,
        **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), tokenizer.eot),
        "decoder_start_token_id": tokenizer.sot,
        "dtype": "float16",
    }


def make_generation_config(tokenizer: Any) -> dict[str, Any]:
    """Return generation_config.json: the defaults of openai-whisper without timestamps."""
    commands = (tokenizer.transcribe, tokenizer.translate, tokenizer.sot, tokenizer.sot_prev, tokenizer.sot_lm)
    return {
        "decoder_start_token_id": tokenizer.sot,
        "eos_token_id": tokenizer.eot,
        "pad_token_id": tokenizer.eot,
        "is_multilingual": False,
        "forced_decoder_ids": [[1, tokenizer.no_timestamps]],
        "suppress_tokens": sorted({*tokenizer.non_speech_tokens, *commands, tokenizer.no_speech}),
        "begin_suppress_tokens": [*tokenizer.encode(" "), tokenizer.eot],
    }


def make_tokenizer(ranks: dict[bytes, int], specials: dict[str, int]) -> Tokenizer:
    """Return GPT-2's byte-level BPE with the special tokens of Whisper."""
    symbols = spell_bytes()

    def spell(token: bytes) -> str:
        return "".join(symbols[byte] for byte in token)

    vocabulary = {spell(token): rank for token, rank in ranks.items()}
    tokens = sorted((token for token in ranks if len(token) > 1), key=ranks.__getitem__)
    merges = [(spell(first), spell(second)) for first, second in (split(token, ranks) for token in tokens)]
    result = Tokenizer(models.BPE(vocabulary, merges))
    result.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    result.decoder = decoders.ByteLevel()
    by_id = sorted(specials, key=specials.__getitem__)
    result.add_special_tokens([AddedToken(text, special=True) for text in by_id])
    if any(result.token_to_id(text) != specials[text] for text in by_id):
        sys.exit("The special tokens did not get the ids of the checkpoint.")
    template = f"{START} {NO_TIMESTAMPS} $A {END}"
    pairs = [(name, specials[name]) for name in (START, NO_TIMESTAMPS, END)]
    result.post_processor = processors.TemplateProcessing(single=template, special_tokens=pairs)
    return result


def split(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """Return the two parts that the last merge of a token joins: merge as BPE does, with smaller ranks only."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        candidates = [(ranks.get(parts[i] + parts[i + 1], len(ranks)), i) for i in range(len(parts) - 1)]
        rank, place = min(candidates)
        if rank >= ranks[token]:
            sys.exit(f"{token!r} is not made of two tokens of smaller rank.")
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts[0], parts[1]


def spell_bytes() -> dict[int, str]:
    """Return the visible character of each byte in GPT-2's alphabet: itself, or one beyond the 256th."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(hidden)}


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file."""
    path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
