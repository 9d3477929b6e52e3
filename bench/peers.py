"""Virtual environments for peers that do not fit into the project's own.

python -m bench.peers data      # litdata, Hugging Face datasets and Grain, for bench.data

They are made under build/peers and found there by the benchmarks.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build/peers"
# One pip call a line, in this order. litdata asks for torchvision, which it needs for images only.
NEEDS = {
    "data": (
        ("torch==2.13.0",),
        ("datasets", "grain", "tokenizers", "pydantic", "tomli-w"),
        ("lightning-utilities", "boto3", "requests", "tifffile", "obstore"),
        ("--no-deps", "litdata"),
        ("--no-deps", "--editable", str(ROOT)),
    )
}


def make(name: str) -> None:
    """A fresh environment with the peers of one benchmark, and Regard."""
    folder = PLACE / name
    venv.create(folder, with_pip=True, clear=True)
    for packages in NEEDS[name]:
        print(f"pip install {' '.join(packages)}", flush=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *packages], check=True)  # noqa: S603


def enter(name: str) -> None:
    """Start this very command again with the peers' Python, if it is there and not running it already."""
    python = PLACE / name / "bin/python"
    if not python.exists():
        print(f"No peers: make them with `python -m bench.peers {name}`.")
    elif Path(sys.prefix).resolve() != (PLACE / name).resolve():
        sys.stdout.flush()
        os.execv(python, [str(python), *sys.orig_argv[1:]])  # noqa: S606 - the same program, no shell


if __name__ == "__main__":
    for wanted in sys.argv[1:] or NEEDS:
        make(wanted)
