"""Export folders: their default paths and metadata. Does not import torch.

By default, an export of `my-model` is the folder `my-model-ctranslate2` next to it. Its `export.json` stores the
engine, the type, the limits and the hash of the exported weights; `parity.json` stores the comparison with the model.
Exports that commands create automatically (`regard.exchange.engine_cache`) are in the hidden folder
`.my-model-ctranslate2`.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec as find_module
from pathlib import Path
from typing import Any, Final, Literal, get_args

from regard.base.errors import DamagedError, RegardError
from regard.base.files import MANIFEST, AnyPath, read_json
from regard.store.model_path import find_model, is_weights_file

EXPORT_FILE, PARITY_FILE = "export.json", "parity.json"
CTRANSLATE2: Final = "ctranslate2"
Engine = Literal["auto", "torch", "ctranslate2", "ctranslate2-int8"]


@dataclass(frozen=True)
class ExportInfo:
    """Metadata of an export."""

    engine: str
    dtype: str
    """Type of the stored weights."""
    weights: str
    """sha256 of the exported weights file, used to detect stale exports."""
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
    """Read the parity report of an export; empty if there is none."""
    path = folder / PARITY_FILE
    document = read_json(path) if path.is_file() else {}
    return document if isinstance(document, dict) else {}


def hash_of_weights(model: Path) -> str:
    """Return the sha256 of the weights from the model's manifest; of several files, the sha256 of their digests."""
    files = read_json(model / MANIFEST)["files"]
    digests = [str(files[name]["sha256"]) for name in sorted(files) if is_weights_file(name)]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def default_folder(model: AnyPath, target: str) -> Path:
    """Return the folder of an export next to the model.

    >>> str(default_folder("runs/my-model/", "ctranslate2"))
    'runs/my-model-ctranslate2'
    """
    path = Path(model).absolute() if str(model) in (".", "") else Path(model)
    return path.with_name(f"{path.name}-{target}")


def cache_folder(folder: Path, engine: Engine) -> Path:
    """Return the folder of the export that a command creates for an engine.

    >>> str(cache_folder(Path("/runs/my-model"), "auto"))
    '/runs/.my-model-ctranslate2/float32'
    """
    model = folder.absolute()
    return model.with_name(f".{model.name}-{CTRANSLATE2}") / (engine.partition("-")[2] or "float32")


def find_export(folder: Path, engine: Engine) -> Path | None:
    """Return the export of a model's weights for an engine; `auto` requires a passed parity check.

    Raises:
        RegardError: There is no such engine, or PyTorch cannot run an export.
    """
    if engine not in get_args(Engine):
        raise RegardError(f"There is no engine '{engine}'.", hint=f"Use one of: {', '.join(get_args(Engine))}.")
    if is_export(folder):
        if engine == "torch":
            hint = "Load it with engine='ctranslate2' (on the command line: --engine ctranslate2)."
            raise RegardError("This is an export, not a PyTorch model.", location=str(folder), hint=hint)
        return folder
    if engine == "torch" or (engine == "auto" and find_module(CTRANSLATE2) is None):
        return None
    model = find_model(folder)
    places = [default_folder(path.absolute(), CTRANSLATE2) for path in (folder, model, model.absolute().parent)]
    for place in filter(is_export, dict.fromkeys([*places, cache_folder(model, engine)])):
        info = read_export_info(place)
        is_proven = engine != "auto" or read_parity(place).get("passed") is True
        is_of_type = engine in ("auto", CTRANSLATE2, f"{CTRANSLATE2}-{info.dtype}")
        if info.weights == hash_of_weights(model) and is_proven and is_of_type:
            return place
    return None
