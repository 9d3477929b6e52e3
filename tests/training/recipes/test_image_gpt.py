"""Recipes for generators of images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

import regard
from regard.base.errors import RegardError
from regard.config.sources import ImagesConfig
from regard.training.autotune import seconds_per_step
from regard.training.recipes.configure import configure
from regard.training.run import fit


def test_coloured_images_without_labels(tmp_path: Path) -> None:
    folder = tmp_path / "flags"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(60):
        flag = np.zeros((40, 60, 3), np.uint8)
        flag[:, :, number % 3] = rng.integers(200, 256, (40, 60))
        Pillow.fromarray(flag).save(folder / f"{number}.png")
    sizes = {"d_model": 16, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.feedforward.d_ff": 16}
    changes = {f"model.{name}": value for name, value in sizes.items()} | {"model.task": "causal_lm", "train.steps": 2}
    auto_run = configure(ImagesConfig(path=str(folder), size=(2, 3)), changes=changes)
    assert auto_run.run.raster is not None
    assert (auto_run.run.raster.size, auto_run.run.raster.channels) == ((2, 3), 3)
    assert seconds_per_step(auto_run.run, auto_run.typical_length, should_tune=False) > 0
    whole = configure(ImagesConfig(path=str(folder)), preset="image-gpt")
    assert whole.run.raster is not None
    assert whole.run.raster.size == (21, 32), "scaled down: a token for each pixel is expensive"
    fit(auto_run.run, tmp_path / "run")
    generator = regard.load_image_generator(tmp_path / "run")
    assert generator.labels == ()
    (image,) = generator.generate(seed=1)
    assert image.shape == (2, 3, 3)
    assert generator.complete([image], rows=1, seed=1)[0][0].tolist() == image[0].tolist()
    assert len(generator.bits_per_pixel([image, image])) == 2
    with pytest.raises(RegardError, match="had no labels"):
        generator.find_labels([image])
    with pytest.raises(RegardError, match="generates no images"):
        configure(ImagesConfig(path=str(folder)), preset="vit", changes={"model.task": "causal_lm"})
