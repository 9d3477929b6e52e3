"""Recipes for images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import regard
from regard.base.errors import ConfigError, RegardError
from regard.config.sources import ImagesConfig
from regard.data.example import CorpusError
from regard.tasks.task import find_task
from regard.training.autotune import seconds_per_step
from regard.training.recipes.configure import configure
from regard.training.run import fit
from tests.training.runs import write_captions, write_images


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
    assert find_task(run.model.task).synthetic_batch(run, 3, 65).source.shape == (3, 3, 64, 64)  # type: ignore[union-attr]
    with pytest.raises(RegardError, match="Preset 'tiny' does not read images"):
        configure(ImagesConfig(path=str(folder)), preset="tiny")
    (folder / "a" / "0.png").rename(folder / "0.png")
    with pytest.raises(RegardError, match="1 of 60 images has no label"):
        configure(ImagesConfig(path=str(folder)))


def test_images_without_labels_train_a_masked_autoencoder(tmp_path: Path) -> None:
    write_images(tmp_path / "images-idx3-ubyte", 60)
    auto_run = configure(ImagesConfig(path=str(tmp_path / "images-idx3-ubyte")))
    assert auto_run.run.model.task == "masked_patches"
    assert auto_run.run.model.head.kind == "pixels"
    assert auto_run.run.options.probability == 0.75
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


def test_settings_are_chosen_from_captions(tmp_path: Path) -> None:
    write_captions(tmp_path, 60)
    source = ImagesConfig(path=str(tmp_path / "captions.tsv"), second="text")
    run = configure(source).run
    assert (run.model.task, run.tokenizer.kind) == ("captioning", "byte_bpe")
    assert run.data.augmentation is not None
    assert not run.data.augmentation.flip
    assert seconds_per_step(run, 4, should_tune=False) > 0
    assert find_task(run.model.task).synthetic_batch(run, 3, 4).source.shape == (3, 1, 8, 8)  # type: ignore[union-attr]
    with pytest.raises(RegardError, match="Preset 'vit' does not write captions"):
        configure(source, preset="vit")


def test_a_row_of_a_table_is_named(tmp_path: Path) -> None:
    write_captions(tmp_path, 60)
    table = tmp_path / "captions.tsv"
    source = ImagesConfig(path=str(table), second="text")
    table.write_text("pictures/1.pgm\ta sky\npictures/nowhere.pgm\ta field\n")
    with pytest.raises(CorpusError, match=r"captions\.tsv:2 names it"):
        configure(source)
    table.write_text("pictures/1.pgm\n")
    with pytest.raises(CorpusError, match="The row has 1 column, not 2"):
        configure(source)


def test_coloured_images_without_labels(tmp_path: Path) -> None:
    folder = tmp_path / "flags"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for number in range(60):
        flag = np.zeros((40, 60, 3), np.uint8)
        flag[:, :, number % 3] = rng.integers(200, 256, (40, 60))
        Pillow.fromarray(flag).save(folder / f"{number}.png")
    sizes = {"d_model": 16, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.feedforward.d_ff": 16}
    changes: dict[str, Any] = {f"model.{name}": value for name, value in sizes.items()}
    changes |= {"model.task": "image_generation", "train.steps": 2}
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
    with pytest.raises(RegardError, match="does not generate images"):
        configure(ImagesConfig(path=str(folder)), preset="vit", changes={"model.task": "image_generation"})
