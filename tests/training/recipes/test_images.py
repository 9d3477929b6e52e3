"""Recipes for images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from regard.base.errors import ConfigError, RegardError
from regard.config.sources import ImagesConfig
from regard.training.autotune import seconds_per_step, synthetic_batch
from regard.training.recipes.configure import configure
from tests.training.runs import write_images


def test_settings_are_chosen_from_the_images(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    rng = np.random.default_rng(1)
    for number in range(60):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Pillow.fromarray(rng.integers(0, 255, (100 + number, 120, 3), np.uint8)).save(path)
    auto_run = configure(ImagesConfig(path=str(folder)))
    run = auto_run.run
    assert run.data.train[0] == ImagesConfig(path=str(folder), size=(64, 64), channels=3)
    assert run.model.source.kind == "patches"  # type: ignore[union-attr]
    assert run.model.source.patch == 8  # type: ignore[union-attr]
    assert run.data.max_length == auto_run.typical_length == 65
    assert any(reason.startswith("Images: 64 x 64 pixels, colored; they have 60 shapes") for reason in auto_run.reasons)
    assert seconds_per_step(run, 65, should_tune=False) > 0, "a synthetic batch has images"
    assert synthetic_batch(run, 3, 65).source.shape == (3, 3, 64, 64)  # type: ignore[union-attr]
    with pytest.raises(RegardError, match="Preset 'tiny' reads no images"):
        configure(ImagesConfig(path=str(folder)), preset="tiny")
    (folder / "a" / "0.png").rename(folder / "0.png")
    with pytest.raises(RegardError, match="1 of 60 images has no label"):
        configure(ImagesConfig(path=str(folder)))


def test_images_without_labels_train_a_masked_autoencoder(tmp_path: Path) -> None:
    write_images(tmp_path / "images-idx3-ubyte", 60)
    auto_run = configure(ImagesConfig(path=str(tmp_path / "images-idx3-ubyte")))
    assert auto_run.run.model.task == "masked_lm"
    assert auto_run.run.model.head.kind == "pixels"
    assert auto_run.run.masking.probability == 0.75
    assert auto_run.typical_length == 2, "the class token and 1 of 4 patches"
    assert seconds_per_step(auto_run.run, auto_run.typical_length, should_tune=False) > 0
    assert [reason for reason in auto_run.reasons if reason.startswith("Masking: 75 % of the patches")]


@pytest.mark.parametrize(("size", "patch"), [(8, 4), (14, 2), (12, 4), (6, 3), (10, 5)])
def test_patches_divide_a_requested_size(tmp_path: Path, size: int, patch: int) -> None:
    write_images(tmp_path / "images-idx3-ubyte", 60)
    source = ImagesConfig(path=str(tmp_path / "images-idx3-ubyte"), labels=str(tmp_path / "labels-idx1-ubyte"))
    run = configure(source.model_copy(update={"size": (size, size)})).run
    assert run.model.source.patch == patch  # type: ignore[union-attr]
    assert run.model.encoder.position.length == (size // patch) ** 2 + 1  # type: ignore[union-attr]


def test_a_size_that_no_patch_divides_is_refused(tmp_path: Path) -> None:
    write_images(tmp_path / "images-idx3-ubyte", 60)
    source = ImagesConfig(path=str(tmp_path / "images-idx3-ubyte"), labels=str(tmp_path / "labels-idx1-ubyte"))
    with pytest.raises(ConfigError, match="13 x 13, which does not divide into patches of 4 x 4"):
        configure(source.model_copy(update={"size": (13, 13)}))
