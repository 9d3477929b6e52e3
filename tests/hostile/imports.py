"""Folders of Hugging Face and GGUF files for `regard import`."""

import json
import math
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.fuzz.seeds import make_gguf_metadata, write_gguf
from tests.hostile.attack import attack
from tests.hostile.doors import Canary, Place

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"


@attack("import", "has no model.safetensors, only pytorch_model.bin")
def only_a_pickle(place: Place) -> None:
    """Weights as pytorch_model.bin alone."""
    (place.folder / WEIGHTS).unlink()
    (place.folder / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(place.canary)))


@attack("import", "is not supported")
def code_of_their_own(place: Place) -> None:
    """A config with `auto_map` and the code of an architecture of its own."""
    (place.folder / "modeling.py").write_text(f"import os\nos.mkdir({str(place.canary)!r})\nModel = object\n")
    place.edit(
        CONFIG, lambda config: config | {"auto_map": {"AutoModel": "modeling.Model"}, "architectures": ["Model"]}
    )


@attack("import", "'model_type' is not 'gpt2'")
def false_model_type(place: Place) -> None:
    """A config whose model_type is that of another architecture."""
    place.edit(CONFIG, lambda config: config | {"model_type": "llama"})


@attack("import", "must name safetensors files of this folder")
def index_of_another_folder(place: Place) -> None:
    """An index that names weights outside the folder."""
    (place.folder / WEIGHTS).rename(place.outside / WEIGHTS)
    (place.folder / INDEX).write_text(json.dumps({"weight_map": {"a": f"../outside/{WEIGHTS}"}}))


def _write_index(place: Place, shard: object) -> None:
    (place.folder / WEIGHTS).unlink()
    (place.folder / INDEX).write_text(json.dumps({"weight_map": {"a": shard}}))


@attack("import", "must name safetensors files of this folder")
def shard_without_a_name(place: Place) -> None:
    """An index that names a shard "", which is the folder itself."""
    _write_index(place, "")


@attack("import", "must name safetensors files of this folder")
def shard_of_two_dots(place: Place) -> None:
    """An index that names a shard "..", which is the parent folder."""
    _write_index(place, "..")


@attack("import", "must name safetensors files of this folder")
def shard_with_a_nul(place: Place) -> None:
    """An index that names a shard with a NUL character."""
    _write_index(place, "a\0.safetensors")


@attack("import", "must name safetensors files of this folder")
def shard_with_a_long_name(place: Place) -> None:
    """An index that names a shard of 100,000 letters."""
    _write_index(place, "a" * 100_000 + ".safetensors")


@attack("import", "not a regular file")
def shard_that_is_a_folder(place: Place) -> None:
    """An index that names a folder."""
    _write_index(place, "a.safetensors")
    (place.folder / "a.safetensors").mkdir()


@attack("import", "The file is missing")
def shard_that_is_missing(place: Place) -> None:
    """An index that names a file that does not exist."""
    _write_index(place, "a.safetensors")


@attack("import", "The file is damaged")
def config_in_another_encoding(place: Place) -> None:
    """A config in UTF-16."""
    (place.folder / CONFIG).write_text((place.folder / CONFIG).read_text(), encoding="utf-16")


EMBEDDING = "transformer.wte.weight"
UNFIT = "weights do not match the config"


def _edit_weights(place: Place, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    tensors = load_file(place.folder / WEIGHTS)
    save_file(
        {name: tensor.contiguous() for name, tensor in (tensors | change(tensors)).items()}, place.folder / WEIGHTS
    )


@attack("import", f"{UNFIT}.*not a floating-point one")
def integer_weights(place: Place) -> None:
    """Weights of 64-bit integers."""
    _edit_weights(place, lambda tensors: {name: tensor.long() for name, tensor in tensors.items()})


@attack("import", f"{UNFIT}.*NaN or infinite")
def weight_that_is_no_number(place: Place) -> None:
    """One NaN in a matrix."""
    _edit_weights(place, lambda tensors: {EMBEDDING: tensors[EMBEDDING].index_fill(0, torch.tensor([3]), math.nan)})


@attack("import", f"{UNFIT}.*NaN or infinite")
def weight_beyond_float32(place: Place) -> None:
    """A float64 weight that is infinite in float32."""
    _edit_weights(place, lambda tensors: {EMBEDDING: tensors[EMBEDDING].double() * 1e300})


@attack("import", f"{UNFIT}.*has shape")
def vector_for_a_matrix(place: Place) -> None:
    """Every tensor is a vector."""
    _edit_weights(place, lambda tensors: {name: tensor.flatten() for name, tensor in tensors.items()})


@attack("import", f"{UNFIT}.*has shape")
def number_for_a_matrix(place: Place) -> None:
    """Every tensor is a single number without dimensions."""
    _edit_weights(place, lambda tensors: {name: torch.tensor(1.0) for name in tensors})


@attack("import", "and 2,980 more")
def many_unknown_tensors(place: Place) -> None:
    """Three thousand tensors that no architecture has."""
    _edit_weights(place, lambda _: {f"unknown.{number}": torch.zeros(1) for number in range(3_000)})


def _write_sparse(place: Place, elements: int) -> None:
    """Replace the embedding by one of float16 zeros that occupy no disk."""
    header = {EMBEDDING: {"dtype": "F16", "shape": [elements], "data_offsets": [0, 2 * elements]}}
    text = json.dumps(header).encode()
    with (place.folder / WEIGHTS).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + 2 * elements)


@attack("import", "bytes of memory")
def a_sparse_terabyte_of_weights(place: Place) -> None:
    """A sparse safetensors file of a terabyte."""
    _write_sparse(place, 1 << 39)


@attack("import", f"{UNFIT}.*has shape")
def sparse_weights_of_a_small_model(place: Place) -> None:
    """A sparse safetensors file of 512 MB for a small model."""
    _write_sparse(place, 1 << 28)


@attack("import", "cannot be read: .*Cannot allocate memory")
def weights_beyond_the_address_space(place: Place) -> None:
    """A sparse safetensors file that is larger than the process may map."""
    _write_sparse(place, 1 << 30)


@attack("import", "layers")
def a_billion_layers(place: Place) -> None:
    """A config with a billion layers."""
    place.edit(CONFIG, lambda config: config | {"n_layer": 10**9})


@attack("import", "The model needs")
def a_wide_model(place: Place) -> None:
    """A config whose matrices are larger than any memory."""
    place.edit(CONFIG, lambda config: config | {"n_embd": 1 << 36, "n_inner": 1 << 36})


@attack("import", "The model needs")
def a_billion_tokens(place: Place) -> None:
    """A config with a vocabulary of a billion tokens."""
    place.edit(CONFIG, lambda config: config | {"vocab_size": 10**9})


@attack("import", "must be an integer")
def a_size_that_is_a_text(place: Place) -> None:
    """A config with a text instead of a size."""
    place.edit(CONFIG, lambda config: config | {"n_embd": "9" * 10_000})


@attack("import", "The file is damaged")
def nested_config(place: Place) -> None:
    """A config of 100,000 nested lists."""
    (place.folder / CONFIG).write_text("[" * 100_000)


@attack("import", "normalizer 'Precompiled' is not supported")
def precompiled_normalizer(place: Place) -> None:
    """A tokenizer with a character map that declares two gigabytes."""
    normalizer = {"type": "Precompiled", "precompiled_charsmap": "////fw=="}
    place.edit("tokenizer.json", lambda document: document | {"normalizer": normalizer})


TEMPLATE = "chat_template.jinja"
STOPPED = "chat template was stopped"
LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


@attack("import", f"{STOPPED}: it needs more than 0.5 seconds")
def template_of_nested_loops(place: Place) -> None:
    """A chat template that loops for hours."""
    (place.folder / TEMPLATE).write_text(LOOPS)


@attack("import", f"{STOPPED}: it needs more than 0.5 seconds")
def template_of_nested_loops_in_a_config(place: Place) -> None:
    """A chat template in tokenizer_config.json that loops for hours."""
    place.edit("tokenizer_config.json", lambda config: config | {"chat_template": LOOPS})


@attack("import", f"{STOPPED}: it needs more than 256 MB")
def template_of_a_long_text(place: Place) -> None:
    """A chat template that builds a text of 10 GB."""
    (place.folder / TEMPLATE).write_text("{{ 'a' * 10**10 }}")


@attack("import", f"{STOPPED}: its output has more than")
def template_of_much_output(place: Place) -> None:
    """A chat template that writes ten million characters."""
    (place.folder / TEMPLATE).write_text("{% for i in range(1000) %}{{ 'a' * 10000 }}{% endfor %}")


@attack("import", "chat template failed")
def template_without_an_end(place: Place) -> None:
    """A chat template whose loop has no end."""
    (place.folder / TEMPLATE).write_text("{% for message in messages %}")


@attack("import", "chat template cannot be read|bytes; the limit is")
def template_of_a_megabyte(place: Place) -> None:
    """A chat template of a megabyte in tokenizer_config.json."""
    place.edit("tokenizer_config.json", lambda config: config | {"chat_template": "a" * 1_000_000})


def _write(place: Place, content: bytes) -> Path:
    path = place.folder / "model.gguf"
    path.write_bytes(content)
    return path


@attack("import", "declares")
def gguf_of_many_tensors(place: Place) -> Path:
    """A GGUF file that declares 2^62 tensors."""
    return _write(place, b"GGUF" + struct.pack("<IQQ", 3, 1 << 62, 1))


@attack("import", "more than .* texts")
def gguf_of_a_long_list(place: Place) -> Path:
    """A GGUF file with a list of 2^60 texts."""
    return _write(place, b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 8, 1 << 60))


@attack("import", "more than .* texts")
def gguf_of_empty_texts(place: Place) -> Path:
    """A GGUF file with 800,000 empty texts in two lists."""
    texts = struct.pack("<IIQ", 9, 8, 400_000) + bytes(8 * 400_000)
    entries = b"".join(struct.pack("<Qc", 1, name) + texts for name in (b"a", b"b"))
    return _write(place, b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + entries)


@attack("import", "truncated")
def gguf_beyond_the_file(place: Place) -> Path:
    """A GGUF file whose tensor lies beyond its end."""
    place_of_tensor = struct.pack("<QcIQQIQ", 1, b"a", 2, 1 << 20, 1 << 20, 0, 1 << 50)
    return _write(place, b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + place_of_tensor)


def _write_llama(
    place: Place,
    tensors: dict[str, tuple[tuple[int, ...], int, bytes]],
    extra: dict[str, tuple[int, object]] | None = None,
) -> Path:
    tokens = ["<s>", *(chr(ord("!") + number) for number in range(36))]
    embedding = {"token_embd.weight": ((37, 32), 0, bytes(37 * 32 * 4))}
    return _write(place, write_gguf(make_gguf_metadata(tokens, []) | (extra or {}), embedding | tensors))


@attack("import", "numbers; the model has")
def gguf_of_a_small_model_with_large_tensors(place: Place) -> Path:
    """A sparse GGUF file of 512 MB of Q4_0 for a small model."""
    rows = 1 << 15  # 2^30 numbers, 4 GB in float32
    path = _write_llama(place, {"output.weight": ((rows, 1 << 15), 2, b"")})
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (rows << 10) * 18)
    return path


@attack("import", "scaled")
def gguf_of_many_rotary_factors(place: Place) -> Path:
    """A sparse GGUF file with 2^28 rotary factors."""
    path = _write_llama(place, {"rope_freqs.weight": ((1 << 28,), 0, b"")})
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (1 << 30))
    return path
