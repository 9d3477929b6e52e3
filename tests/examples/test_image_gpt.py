"""`examples/image_gpt`: the counting baselines are right on data with a known answer, and a squared error blurs."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.image_gpt import blur, counts

from regard.config.codec import RUN_FILES
from regard.config.sources import ImagesConfig
from regard.training.recipes.configure import configure
from regard.training.run import fit


def write_idx(path: Path, images: np.ndarray) -> str:
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, *images.shape) + images.astype(np.uint8).tobytes())
    return str(path)


def test_a_squared_error_gives_a_grey_that_no_image_has(tmp_path: Path) -> None:
    """Below the same upper half, images are black or white: a sample is one of them, the best number is between."""
    images = np.random.default_rng(1).integers(110, 130, (80, 2, 2))
    images[::2, 1], images[1::2, 1] = 0, 255
    path = write_idx(tmp_path / "images-idx3-ubyte", images)
    sizes = {"d_model": 16, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.feedforward.d_ff": 16}
    changes: dict[str, Any] = {f"model.{name}": value for name, value in sizes.items()} | {
        "model.task": "image_generation"
    }
    changes |= {
        "train.steps": 60,
        "train.step_tokens": 64,
        "tokenizer.colors": 3,
        "train.schedule.lr": 0.02,
        "device.threads": 1,
    }
    run = configure(ImagesConfig(path=path), changes=changes, preset="image-gpt").run
    fit(RUN_FILES.change(run, {"data.batch_tokens": 64}), tmp_path / "run")
    sampled, blurred = blur.compare(tmp_path / "run", np.full((12, 2, 2), 120, np.uint8), steps=80)
    lower = sampled[:, 1]
    assert set(lower.flatten().tolist()) == {0, 255}
    assert (lower[:, 0] == lower[:, 1]).mean() > 0.8, "the second pixel follows the first"
    assert len({image.tobytes() for image in blurred}) == 1, "a number has no variety"
    assert 70 < blurred[0, 1, 0] < 185


def test_bits_of_counts() -> None:
    rng = np.random.default_rng(1)
    images = np.repeat(rng.integers(0, 2, (2000, 1, 1)) * 200, 16, axis=1).reshape(-1, 4, 4)
    codes = counts.quantize(images.astype(np.uint8), images.astype(np.uint8), 2)
    assert set(codes.flatten().tolist()) == {0, 1}
    histogram = counts.bits_per_pixel(codes, codes, 2, counts.find_places, 0.1)
    neighbors = counts.bits_per_pixel(codes, codes, 2, counts.find_neighbors, 0.1)
    assert histogram == pytest.approx(1, abs=0.01)
    assert neighbors == pytest.approx(1 / 16, abs=0.01), "only the first pixel is uncertain"
