"""Find the model folder of a path. Does not import torch, so commands reject a wrong path immediately."""

import re
from pathlib import Path

from regard.base.errors import RegardError
from regard.base.files import MANIFEST
from regard.base.formatting import quote_path

MODEL, WEIGHTS, RUN, BEST = "model.toml", "model.safetensors", "run.toml", "best"
_WEIGHTS_FILE = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors", re.ASCII)


def is_weights_file(name: str) -> bool:
    """Return whether a file of a model folder has this name if it holds weights: all of them, or a part."""
    return _WEIGHTS_FILE.fullmatch(name) is not None


def find_model(path: Path) -> Path:
    """Return the model folder of a path: the folder itself, or `best/` in a run folder."""
    if not path.is_dir():
        message = "This is a file, but a model is a folder." if path.exists() else "There is no such folder."
        is_gguf = path.is_file() and path.suffix == ".gguf"
        hint = (
            f"Import it: `regard import {path} --out my-model`." if is_gguf else "Train a model: `regard train --help`."
        )
        raise RegardError(message, location=str(path), hint=hint)
    if (path / MODEL).is_file() or (path / MANIFEST).is_file():
        return path
    if (path / "config.json").is_file():
        hint = f"Import it first: `regard import {path} --out my-model`, then load my-model."
        raise RegardError("This is a Hugging Face model, not a Regard model folder.", location=str(path), hint=hint)
    if not (path / RUN).is_file():
        raise RegardError(
            "This folder is neither a model nor a run.", location=str(path), hint=f"A model folder contains a {MODEL}."
        )
    if not (path / BEST).is_dir():
        hint = f"Continue with `regard train --resume {quote_path(path)}`: the first validation writes the model."
        raise RegardError("This run has no model yet.", location=str(path), hint=hint)
    return path / BEST
