"""A fitted temperature, kept in a model's folder: one number in `calibration.json`.

The folder of a model is sealed, so the number is not put into it: a new folder is written, the same model with the
number, sealed again.
"""

import json
import shutil
from pathlib import Path

from regard.base.errors import DamagedError, RegardError
from regard.base.files import MANIFEST, create_folder, read_json, verify
from regard.store.model_folder import find_model

CALIBRATION_FILE = "calibration.json"


def write_temperature(model: Path, path: Path, temperature: float, tokens: int) -> None:
    """Copy a model's folder to `path` with the temperature that was fitted on so many tokens."""
    model = find_model(model)
    verify(model)
    if path.exists():
        raise RegardError("The folder exists already.", where=str(path), fix="Choose another name or remove it.")
    with create_folder(path) as folder:
        for file in sorted(model.iterdir()):
            if file.name != MANIFEST:
                shutil.copy2(file, folder / file.name)
        content = {"format": 1, "temperature": temperature, "tokens": tokens}
        (folder / CALIBRATION_FILE).write_text(json.dumps(content) + "\n", encoding="utf-8")


def read_temperature(folder: Path) -> float:
    """The temperature of a model's folder, which was verified; 1 if none was fitted."""
    path = folder / CALIBRATION_FILE
    if not path.exists():
        return 1.0
    try:
        temperature = read_json(path)["temperature"]
    except (DamagedError, KeyError, TypeError) as error:
        raise DamagedError("This is no fitted temperature.", where=str(path), fix="Fit it again.") from error
    if not isinstance(temperature, float) or not 0 < temperature < float("inf"):
        raise DamagedError(f"There is no temperature of {temperature!r}.", where=str(path), fix="Fit it again.")
    return temperature
