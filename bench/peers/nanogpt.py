"""nanoGPT's own `train.py` on tinyshakespeare, from the folder that NANOGPT names; its model and loop as they are.

On a CPU its script computes in float32 whatever it is told. "bfloat16" puts torch's autocast around its model's forward
pass from outside: what a user would gain by editing that one line.
"""

import gzip
import importlib
import json
import os
import pickle
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.peers.turns import Turns

NEVER = 10**9


def main(settings: dict[str, Any]) -> None:
    folder = Path(os.environ["NANOGPT"]).resolve()
    Turns(per_step=settings["rows"] * settings["context"])
    with tempfile.TemporaryDirectory() as work_folder:
        prepare_folder(Path(settings["text"]), folder, Path(work_folder))
        os.chdir(work_folder)
        sys.path.insert(0, str(folder))
        if settings["precision"] == "bfloat16":
            gpt_class = importlib.import_module("model").GPT
            gpt_class.forward = torch.autocast("cpu", dtype=torch.bfloat16)(gpt_class.forward)
        sys.argv = ["train.py", "config/train_shakespeare_char.py", *make_arguments(settings, steps=NEVER)]
        sys.argv += [f"--eval_interval={NEVER}", "--eval_iters=1", f"--log_interval={NEVER}"]
        runpy.run_path(str(folder / "train.py"), run_name="__main__")


def make_arguments(settings: dict[str, Any], steps: int) -> list[str]:
    """Return nanoGPT's options for a model size."""
    options = {
        "device": "cpu",
        "dtype": "float32",
        "compile": False,
        "out_dir": "out",
        "block_size": settings["context"],
        "batch_size": settings["rows"],
        "n_layer": settings["layers"],
        "n_head": settings["heads"],
        "n_embd": settings["d_model"],
        "dropout": 0.0,
        "max_iters": steps,
        "lr_decay_iters": steps,
    }
    return [f"--{name}={value}" for name, value in options.items()]


def prepare_folder(text: Path, folder: Path, work_folder: Path) -> None:
    """Make a working folder: nanoGPT's scripts, and the text in its format, the last tenth for validation."""
    for name in ("train.py", "model.py", "configurator.py", "config"):
        (work_folder / name).symlink_to(folder / name)
    characters = gzip.decompress(text.read_bytes()).decode()
    character_ids = {character: number for number, character in enumerate(sorted(set(characters)))}
    ids = np.array([character_ids[character] for character in characters], dtype=np.uint16)
    data = work_folder / "data/shakespeare_char"
    data.mkdir(parents=True)
    cut = int(len(ids) * 0.9)
    ids[:cut].tofile(data / "train.bin")
    ids[cut:].tofile(data / "val.bin")
    (data / "meta.pkl").write_bytes(
        pickle.dumps({"vocab_size": len(character_ids)})
    )  # the format that its script reads


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
