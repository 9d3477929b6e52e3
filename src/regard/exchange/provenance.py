"""Origin of an imported model (`origin.json` in its folder), so that an export reproduces the original files."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from regard.base import limits
from regard.base.errors import DamagedError
from regard.base.files import read_json

ORIGIN_FILE = "origin.json"


@dataclass(frozen=True)
class Provenance:
    """Facts about the imported files that Regard's settings do not hold."""

    kind: str
    """"huggingface" or "gguf"."""
    architecture: str
    """The Hugging Face architecture."""
    dtype: str
    """Number type of the weights in the file."""
    max_positions: int
    """Number of positions that the file declares."""

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return (json.dumps({"format": 1, **asdict(self)}) + "\n").encode()


def read_provenance(model: Path) -> Provenance | None:
    """Read the origin of a verified model folder; None if it was not imported."""
    path = model / ORIGIN_FILE
    if not path.exists():
        return None
    document = read_json(path)
    try:
        origin = Provenance(**{name: document[name] for name in Provenance.__dataclass_fields__})
    except (KeyError, TypeError) as error:
        raise DamagedError("The file is damaged.", location=str(path), hint="Import the model again.") from error
    is_text = all(isinstance(value, str) for value in (origin.kind, origin.architecture, origin.dtype))
    if not is_text or type(origin.max_positions) is not int or not 0 < origin.max_positions < limits.SIZE:
        raise DamagedError("The file is damaged.", location=str(path), hint="Import the model again.")
    return origin
