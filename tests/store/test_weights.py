"""Weights in safetensors files: the bytes of the library, written one tensor after the other."""

import errno
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import DTYPE_NAMES, get_weights, load_tensors, save_tensors, sort_names
from tests.tasks.factories import make_tokenizers, make_translator_settings

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


def test_model_written_to_a_full_disk_names_file_and_size(tmp_path: Path) -> None:
    settings = make_translator_settings()
    weights = get_weights(build(settings, seed=1))
    size = sum(tensor.nbytes for tensor in weights.values())

    def fill_disk(_: Tensor) -> Tensor:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(RegardError, match=f"The disk is full: .* {size:,} bytes are needed") as caught:
        write_model(tmp_path / "model", settings, make_tokenizers(), weights, "A card.", fetch=fill_disk)
    assert "model.safetensors" in str(caught.value.location)
    assert not list(tmp_path.iterdir())
