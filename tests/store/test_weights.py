"""Weights in safetensors files: the bytes of the library, written one tensor after the other."""

from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from regard.store.weights import DTYPE_NAMES, load_tensors, save_tensors, sort_names

WEIGHTS = {
    "z.weight": torch.arange(6.0).reshape(2, 3),
    "ä": torch.tensor(1.5),
    "a.bias": torch.randn(5, 7, generator=torch.Generator().manual_seed(1)).T,
    "empty": torch.empty(0, 4),
}


def test_the_bytes_are_those_of_the_library(tmp_path: Path) -> None:
    save_tensors(WEIGHTS, tmp_path / "ours")
    contiguous = {name: tensor.contiguous() for name, tensor in WEIGHTS.items()}
    safetensors.torch.save_file(contiguous, tmp_path / "library", metadata={"format": "pt"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "library").read_bytes()


def test_every_dtype_is_read_again(tmp_path: Path) -> None:
    tensors = {str(dtype): torch.tensor([[0, 1], [1, 0], [1, 1]]).to(dtype) for dtype in DTYPE_NAMES}
    save_tensors(tensors, tmp_path / "all")
    for name, tensor in load_tensors(tmp_path / "all").items():
        assert tensor.dtype == tensors[name].dtype
        assert tensor.equal(tensors[name])


def test_tensors_are_fetched_one_after_the_other(tmp_path: Path) -> None:
    large = {name: tensor.expand(1_000, *tensor.shape) for name, tensor in WEIGHTS.items()}
    fetched: list[tuple[str, int]] = []

    def fetch(tensor: Tensor) -> Tensor:
        name = next(name for name, stored in large.items() if stored is tensor)
        fetched.append((name, (tmp_path / "doubled").stat().st_size))
        return 2 * tensor

    save_tensors(large, tmp_path / "doubled", fetch=fetch)
    assert [name for name, _ in fetched] == sort_names(large)
    assert fetched[-1][1] > 100_000, "the tensors before the last are in the file by now"
    assert load_tensors(tmp_path / "doubled")["ä"].eq(3).all()


def test_a_full_disk_is_named() -> None:
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        save_tensors(WEIGHTS, Path("/dev/full"))
