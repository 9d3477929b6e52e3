"""Pickles under every name: loading one executes its code."""

import json
import pickle
from pathlib import Path

import numpy as np
import torch

from tests.hostile.attack import attack
from tests.hostile.doors import Canary, Place


@attack("load", "This is a pickle")
def pickled_weights(place: Place) -> None:
    """A pickle named model.safetensors."""
    (place.folder / "model.safetensors").write_bytes(pickle.dumps(Canary(place.canary)))
    place.write_manifest()


@attack("load", "This is a pickle")
def torch_saved_weights(place: Place) -> None:
    """A torch.save file named model.safetensors."""
    torch.save({"weights": Canary(place.canary)}, place.folder / "model.safetensors")
    place.write_manifest()


@attack("load", "neither a model nor a run")
def torch_checkpoint(place: Place) -> Path:
    """A folder with only model.pt."""
    folder = place.folder / "theirs"
    folder.mkdir()
    torch.save(Canary(place.canary), folder / "model.pt")
    return folder


@attack("load", "This is a Hugging Face model")
def hugging_face_folder(place: Place) -> Path:
    """A Hugging Face folder: pytorch_model.bin, and a config.json with `auto_map` to the code beside it."""
    folder = place.folder / "theirs"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Canary(place.canary)))
    (folder / "modeling.py").write_text(f"import os\nos.mkdir({str(place.canary)!r})\nModel = object\n")
    config = {"auto_map": {"AutoModel": "modeling.Model"}, "trust_remote_code": True, "model_type": "marian"}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@attack("load", "is not in the manifest")
def code_beside_the_weights(place: Place) -> None:
    """A valid model with modules beside it that Python might import."""
    for name in ("sitecustomize.py", "model.py", "__init__.py", "torch.py"):
        (place.folder / name).write_text(f"import os\nos.mkdir({str(place.canary)!r})\n")


@attack("vocabulary", "not a valid tokenizer file")
def pickled_vocabulary(place: Place) -> None:
    """A pickle named tokenizer.json."""
    (place.folder / "tokenizer.json").write_bytes(pickle.dumps(Canary(place.canary)))


@attack("resume", "No intact checkpoint is left.*This is a pickle")
def pickled_optimizer(place: Place) -> None:
    """A sealed checkpoint whose optimizer is a pickle."""
    (place.step / "optimizer.safetensors").write_bytes(pickle.dumps(Canary(place.canary)))
    Place(place.step, place.outside, place.canary).write_manifest()


@attack("resume", "No intact checkpoint is left")
def pickled_state(place: Place) -> None:
    """A sealed checkpoint whose state is a pickle."""
    (place.step / "state.json").write_bytes(pickle.dumps(Canary(place.canary)))
    Place(place.step, place.outside, place.canary).write_manifest()


@attack("prepared", "bytes, not")
def pickled_tokens(place: Place) -> None:
    """Tokens as a NumPy array that holds an object."""
    tokens = next(place.folder.glob("*.bin"))
    with tokens.open("wb") as file:
        np.save(file, np.array([Canary(place.canary)], dtype=object), allow_pickle=True)
