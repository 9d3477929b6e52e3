"""Environments of the other tools that the benchmarks compare Regard with.

    python -m bench.peers data        # litdata, Hugging Face datasets and Grain, for bench.data
    python -m bench.peers joeynmt     # JoeyNMT, for bench.train
    python -m bench.peers marian      # Marian, for bench.train and bench.decode (600 MB)
    python -m bench.peers bertviz     # BertViz, for web/bench/bertviz.mjs
    python -m bench.peers serve       # LitServe and Ray Serve, for bench.serve

Peers that conflict with the project's own environment get a separate one under build/peers, where the benchmarks find
it. This package contains no code of the peers: `joeynmt`, `hf_trainer`, `marian` and `nanogpt` start the training loop
of the installed tool and run it in turns (`turns`) with Regard's (`contest`); `marian_decoder` translates on request.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / "build/peers"
# One pip call per line, in this order.
REQUIREMENTS = {
    "data": (
        ("torch==2.13.0",),
        ("datasets", "grain", "tokenizers", "pydantic", "tomli-w"),
        ("lightning-utilities", "boto3", "requests", "tifffile", "obstore"),
        ("--no-deps", "litdata"),  # it requires torchvision, which it needs for images only
        ("--no-deps", "--editable", str(ROOT)),
    ),
    "joeynmt": (
        ("torch==2.13.0",),
        ("numpy<2", "protobuf<3.21", "tensorboard<2.15", "setuptools<81", "importlib_metadata", "packaging"),
        ("datasets", "matplotlib", "pyyaml", "sacrebleu", "sentencepiece", "six", "subword-nmt", "numpy<2"),
        ("--no-deps", "joeynmt==2.3.0"),  # it also requires linters and trackers
    ),
    "marian": (("pymarian==1.12.*",),),
    "bertviz": (
        ("torch==2.13.0",),
        ("bertviz==1.4.1", "ipython", "tokenizers", "pydantic", "tomli-w"),
        ("--no-deps", "--editable", str(ROOT)),
    ),
    "serve": (
        ("torch==2.13.0",),
        ("litserve==0.2.19", "ray[serve]==2.60.0"),
        ("--editable", f"{ROOT}[serve,ctranslate2]"),
    ),
}


def make_environment(name: str) -> None:
    """Create a new environment with the peers of one benchmark."""
    folder = ENVIRONMENTS / name
    venv.create(folder, with_pip=True, clear=True)
    for packages in REQUIREMENTS[name]:
        print(f"pip install {' '.join(packages)}", flush=True)
        subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", *packages], check=True)  # noqa: S603


def find_python(name: str) -> Path | None:
    """Return the Python of a peer: that of a variable (JOEYNMT_PYTHON=...), or of its environment, or None."""
    configured = os.environ.get(f"{name.upper()}_PYTHON")
    interpreter = Path(configured) if configured else ENVIRONMENTS / name / "bin/python"
    return interpreter if interpreter.exists() else None


def find_marian() -> Path | None:
    """Return Marian's program: that of the variable PYMARIAN, or of its environment, or None."""
    configured = os.environ.get("PYMARIAN")
    program = Path(configured) if configured else ENVIRONMENTS / "marian/bin/pymarian"
    return program if program.exists() else None


def write_words(pairs: Path, folder: Path, parts: dict[str, int | None]) -> None:
    """Write pairs of token ids as words (t5 t17), for peers that read text: they train on the same tokens.

    Args:
        pairs: A file with the ids of a pair on each line, as JSON.
        folder: Folder of the files, e.g. train.en and train.de.
        parts: Number of pairs of each part, by its name; None for all.
    """
    lines = [json.loads(line) for line in pairs.read_text().splitlines()]
    for side, language in enumerate(("en", "de")):
        texts = [" ".join(f"t{token}" for token in pair[side]) for pair in lines]
        for name, count in parts.items():
            (folder / f"{name}.{language}").write_text("".join(f"{text}\n" for text in texts[:count]))


def restart_in_environment(name: str) -> None:
    """Re-execute this command with the Python of the peers, if it exists and is not running already."""
    interpreter = ENVIRONMENTS / name / "bin/python"
    if not interpreter.exists():
        print(f"The peers are not installed; install them with `python -m bench.peers {name}`.")
    elif Path(sys.prefix).resolve() != (ENVIRONMENTS / name).resolve():
        sys.stdout.flush()
        os.execv(interpreter, [str(interpreter), *sys.orig_argv[1:]])  # noqa: S606 - the same program, no shell
