"""Folders of Hugging Face and GGUF files for `regard import`."""

import json
import pickle
import struct
from pathlib import Path

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


@attack("import", "must name files of this folder")
def index_of_another_folder(place: Place) -> None:
    """An index that names weights outside the folder."""
    (place.folder / WEIGHTS).rename(place.outside / WEIGHTS)
    (place.folder / INDEX).write_text(json.dumps({"weight_map": {"a": f"../outside/{WEIGHTS}"}}))


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


def _write(place: Place, content: bytes) -> Path:
    path = place.folder / "model.gguf"
    path.write_bytes(content)
    return path


@attack("import", "declares")
def gguf_of_many_tensors(place: Place) -> Path:
    """A GGUF file that declares 2^62 tensors."""
    return _write(place, b"GGUF" + struct.pack("<IQQ", 3, 1 << 62, 1))


@attack("import", "the limit is")
def gguf_of_a_long_list(place: Place) -> Path:
    """A GGUF file with a list of 2^60 texts."""
    return _write(place, b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"a", 9, 8, 1 << 60))


@attack("import", "more than")
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
