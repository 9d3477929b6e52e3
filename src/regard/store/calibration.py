"""What is fitted on held-out data: a softmax temperature (`calibration.json`), a quality estimate (`quality.json`).

A model folder is sealed, so the model is copied to a new folder instead of adding the file.
"""

import json
import shutil
from pathlib import Path

from regard.base.errors import DamagedError, RegardError
from regard.base.files import MANIFEST, create_folder, read_json, verify
from regard.store.model_path import find_model

CALIBRATION_FILE = "calibration.json"
QUALITY_FILE = "quality.json"


def write_temperature(model: Path, path: Path, temperature: float, tokens: int) -> None:
    """Copy a model folder to `path` with a fitted temperature.

    Args:
        model: The model folder, or a run folder (its best model).
        path: The new folder.
        temperature: The fitted temperature.
        tokens: Number of tokens used to fit the temperature.
    """
    content = {"format": 1, "temperature": temperature, "tokens": tokens}
    copy_with(model, path, CALIBRATION_FILE, json.dumps(content) + "\n")


def copy_with(model: Path, path: Path, name: str, content: str) -> None:
    """Copy a model folder, or the best model of a run, to the new folder `path` with an additional file."""
    model = find_model(model)
    verify(model)
    if path.exists():
        raise RegardError("The folder already exists.", location=str(path), hint="Choose another name or remove it.")
    with create_folder(path) as folder:
        for file in sorted(model.iterdir()):
            if file.name != MANIFEST:
                shutil.copy2(file, folder / file.name)
        (folder / name).write_text(content, encoding="utf-8")


def copy_calibration(model: Path, folder: Path) -> None:
    """Copy what was fitted for a model to its export, an open folder."""
    for name in (CALIBRATION_FILE, QUALITY_FILE):
        if (model / name).exists():
            shutil.copy2(model / name, folder / name)


def read_temperature(folder: Path) -> float:
    """Read the temperature of a verified model folder; 1 if none was fitted."""
    path = folder / CALIBRATION_FILE
    if not path.exists():
        return 1.0
    try:
        temperature = read_json(path)["temperature"]
    except (DamagedError, KeyError, TypeError) as error:
        raise DamagedError("The file has no valid temperature.", location=str(path), hint="Fit it again.") from error
    if not isinstance(temperature, float) or not 0 < temperature < float("inf"):
        raise DamagedError(
            f"A temperature must be above 0, got {temperature!r}.", location=str(path), hint="Fit it again."
        )
    return temperature
