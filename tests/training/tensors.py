"""Print the sha256 of every tensor of a small run per task, to compare two commits.

    python -m tests.training.tensors

The runs use float32, one thread and fixed device settings. Names are left out, so that a renamed weight keeps its
line. Equal output on the same machine means equal training, bit by bit.
"""

import hashlib
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from torch import Tensor

from regard.store.weights import load_tensors
from regard.training.precision import Precision
from regard.training.run import fit
from tests.training.runs import TASKS, make_small_run, write_corpus


def hash_run(task: str, folder: Path) -> list[str]:
    """Train 40 steps; return the sorted hashes of all tensors of checkpoints and models."""
    fit(make_small_run(task, write_corpus(folder / "corpus", 400), {"train.steps": 40}), folder / "run")
    tensors = (tensor for path in (folder / "run").rglob("*.safetensors") for tensor in load_tensors(path).values())
    return sorted(hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest() for tensor in tensors)


def main() -> None:
    """Print one line per tensor, and the hash of each task's lines."""
    for task in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            hashes = hash_run(task, Path(folder))
        digest = hashlib.sha256("\n".join(hashes).encode()).hexdigest()
        sys.stdout.write("".join(f"{task} {value}\n" for value in hashes))
        sys.stdout.write(f"{task}: {len(hashes)} tensors, {digest}\n")


if __name__ == "__main__":
    main()


LOW_PRECISIONS: list[Precision] = ["bfloat16", "float16"]
each_low_precision = pytest.mark.parametrize("precision", LOW_PRECISIONS)


def random_tensor(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))
