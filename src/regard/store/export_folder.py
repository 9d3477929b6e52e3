"""The folder of an export: where it is found, and what it says about itself. This module needs no torch.

An export of `my-model` is the folder `my-model-ctranslate2` beside it, if the user gave no other name. `export.json` in
it names the engine, the type, the limits and the weights that it was made from; `parity.json` is its proof.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.base.errors import DamagedError
from regard.base.files import MANIFEST, AnyPath, read_json

EXPORT_FILE, PARITY_FILE = "export.json", "parity.json"


@dataclass(frozen=True)
class ExportInfo:
    """What an export says about itself."""

    engine: str
    dtype: str
    """Type of the stored weights."""
    weights: str
    """sha256 of the weights file that it was made from; an export of other weights is not used in its place."""
    max_positions: dict[str, int | None] = field(default_factory=dict)
    """Number of positions that each stack can run; None: no upper limit."""

    def write(self, folder: Path) -> None:
        """Write `export.json`."""
        content = json.dumps({"format": 1, **asdict(self)}, indent=1, sort_keys=True) + "\n"
        (folder / EXPORT_FILE).write_text(content, encoding="utf-8")


def is_export(folder: Path) -> bool:
    """Whether a folder is an export of Regard."""
    return (folder / EXPORT_FILE).is_file()


def read_export_info(folder: Path) -> ExportInfo:
    """Read `export.json`.

    Raises:
        DamagedError: The file is damaged.
    """
    document = read_json(folder / EXPORT_FILE)
    damaged = DamagedError("The file is damaged.", location=str(folder / EXPORT_FILE), hint="Export the model again.")
    try:
        info = ExportInfo(**{name: document[name] for name in ExportInfo.__dataclass_fields__})
        positions = list(info.max_positions.values())
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged from error
    has_texts = all(isinstance(text, str) for text in (info.engine, info.dtype, info.weights))
    if not has_texts or not all(limit is None or (type(limit) is int and limit > 0) for limit in positions):
        raise damaged
    return info


def read_parity(folder: Path) -> dict[str, Any]:
    """Read the proof of an export; empty if there is none."""
    path = folder / PARITY_FILE
    document = read_json(path) if path.is_file() else {}
    return document if isinstance(document, dict) else {}


def hash_of_weights(model: Path, weights: str) -> str:
    """Return the sha256 of a weights file as the model's manifest has it."""
    return str(read_json(model / MANIFEST)["files"][weights]["sha256"])


def default_folder(model: AnyPath, target: str) -> Path:
    """Return the folder of an export beside the model.

    >>> str(default_folder("runs/my-model/", "ctranslate2"))
    'runs/my-model-ctranslate2'
    """
    path = Path(model).absolute() if str(model) in (".", "") else Path(model)
    return path.with_name(f"{path.name}-{target}")


def find_exports(folder: Path, model: Path, target: str) -> list[Path]:
    """Return the exports of a model that are in their default places.

    Args:
        folder: The folder that the user named: of a model, or of a run.
        model: The model folder.
        target: The engine.
    """
    places = [default_folder(path.absolute(), target) for path in (folder, model, model.absolute().parent)]
    return [place for place in dict.fromkeys(places) if is_export(place)]
