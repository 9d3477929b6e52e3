"""Where the benchmarks find their corpora: REGARD_DATA, build/corpora, or ../shared/data, whichever exists first."""

import os
import sys
from pathlib import Path

from bench.peers import ROOT

CORPORA = ("multi30k", "tinyshakespeare", "europarl_deen")


def find_data() -> Path:
    """Return the folder of the corpora."""
    folders = [ROOT / "build/corpora", ROOT / "../shared/data"]
    if configured := os.environ.get("REGARD_DATA"):
        return Path(configured)
    return next((folder for folder in folders if folder.is_dir()), folders[0])


DATA = find_data()


def require(*names: str) -> None:
    """Exit with the command that downloads the missing corpora."""
    if missing := [name for name in names if not (DATA / name).is_dir()]:
        sys.exit(f"Missing corpora in {DATA}. Run python scripts/fetch_corpora.py {' '.join(missing)}")
