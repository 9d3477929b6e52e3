"""Find the model of a path. This module needs no torch, so that the commands refuse a wrong path at once."""

from pathlib import Path

from regard.base.errors import RegardError
from regard.base.files import MANIFEST

MODEL, RUN, BEST = "model.toml", "run.toml", "best"


def find_model(path: Path) -> Path:
    """Return the model folder of a path: the folder itself, or `best/` in the folder of a run."""
    if not path.is_dir():
        message = "This is a file; a model is a folder." if path.exists() else "There is no such folder."
        raise RegardError(message, location=str(path), hint="Train a model: `regard train --help`.")
    if (path / MODEL).is_file() or (path / MANIFEST).is_file():
        return path
    if not (path / RUN).is_file():
        raise RegardError(
            "This is neither a model nor a run.", location=str(path), hint=f"A model folder has a {MODEL}."
        )
    if not (path / BEST).is_dir():
        hint = f"Continue with `regard train --resume {path}`: the first validation writes the model."
        raise RegardError("This run has no model yet.", location=str(path), hint=hint)
    return path / BEST
