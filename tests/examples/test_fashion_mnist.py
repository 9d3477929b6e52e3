"""`examples/fashion_mnist` in small: images of noise, and what one kind of positions can tell apart."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from examples.fashion_mnist import positions


def write_images(folder: Path, count: int) -> Path:
    """Write images whose bright half, left or right, is their label."""
    folder.mkdir()
    labels = np.arange(count) % 2
    images = np.zeros((count, 28, 28), np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[:, 14 * label : 14 * label + 14] = 255
    path = folder / "images-idx3-ubyte"
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + images.tobytes())
    (folder / "labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count) + labels.astype(np.uint8).tobytes())
    return path


def test_every_kind_of_positions_trains_and_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_images(tmp_path / "images", 64))
    monkeypatch.setattr(sys, "argv", ["positions.py", path, path, "--steps", "2", "--seeds", "1"])
    positions.main()
    rows = [line.split(" | ")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert rows == ["| learned", "| sinusoidal_2d", "| none"]


def test_a_model_without_positions_cannot_tell_left_from_right() -> None:
    left, right = torch.zeros(2, 1, 1, 28, 28)
    left[..., :12], right[..., 16:] = 1, 1  # three columns of patches
    for kind in positions.KINDS:
        model = positions.make_model(kind, seed=1).eval()
        with torch.inference_mode():
            is_same = torch.allclose(model(left), model(right), atol=1e-5)
        assert is_same == (kind == "none"), kind
