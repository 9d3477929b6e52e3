"""Images in batches: normalized with the statistics of the training part, changed at random as a function of keys."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.config.inputs import PatchesConfig
from regard.config.run import AugmentationConfig
from regard.config.sources import ImagesConfig
from regard.data.batches.arrays import StoredSamples
from regard.data.batches.images import augment, check_shape, measure_channels, normalize
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.corpus import Corpus
from regard.data.example import CorpusError, Defects, Example, Image, Location
from regard.data.held_out import train_validation_split
from regard.data.shards.prepare import open_corpus, prepare, prepare_in_memory
from regard.data.shards.shard import Shards
from regard.data.shards.tokenize import deserialize_examples, serialize_examples, store_examples
from regard.tasks.image_classification import ImageClassificationRows
from tests.training.runs import write_images

PATCHES = PatchesConfig(patch=4, class_token=True)
AUGMENTATION = AugmentationConfig(shift=2, flip=True)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    write_images(tmp_path / "images-idx3-ubyte", 60)
    return Corpus([ImagesConfig(path=str(tmp_path / "images-idx3-ubyte"), labels=str(tmp_path / "labels-idx1-ubyte"))])


def make_loader(shards: Shards, augmentation: AugmentationConfig | None, **options: Any) -> Loader:
    task = ImageClassificationRows(PATCHES, check_shape(shards, PATCHES), augmentation, seed=3)
    return Loader(shards, task, OrderSettings(seed=1, max_tokens=40, max_length=5), **options)


def test_a_row_counts_patches(corpus: Corpus) -> None:
    loader = make_loader(prepare_in_memory(corpus, None, Defects()), None)
    batch = next(loader.iter_epoch(0))
    assert batch.source is not None
    assert tuple(batch.source.shape) == (8, 1, 8, 8), "40 vectors are 8 images of 4 patches and a class token"
    assert batch.input_count == 8 * 4
    assert sum(len(batch.samples) for batch in loader.iter_epoch(0)) == 60


def test_shards_on_disk_hold_the_pixels(corpus: Corpus, tmp_path: Path) -> None:
    prepare(corpus, None, tmp_path / "one", Defects(), shard_size=1000)
    prepare(corpus, None, tmp_path / "two", Defects(), shard_size=1000, workers=2)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert len(names) > 4
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    shards = open_corpus(tmp_path / "one", verify=True)
    assert (shards.image_shape, shards.streams, shards.labels) == ((1, 8, 8), ("image",), ("0", "1"))
    stored = np.concatenate([shards.load_tokens(number) for number in range(len(shards.shards))])
    pixels = b"".join(example.image.pixels for _, example in corpus.examples(Defects()) if example.image)
    assert stored.tobytes() == pixels
    assert shards.shards[0].tokens.itemsize == 1


def test_examples_survive_serialization(corpus: Corpus) -> None:
    examples = [example for _, example in corpus.examples(Defects())]
    assert deserialize_examples(serialize_examples(examples)) == examples


def test_statistics_are_those_of_the_pixels(corpus: Corpus) -> None:
    shards = prepare_in_memory(corpus, None, Defects())
    values = np.concatenate([shards.load_tokens(number) for number in range(len(shards.shards))]) / 255
    mean, deviation = measure_channels(shards)
    assert mean == [pytest.approx(values.mean(), abs=1e-6)]
    assert deviation == [pytest.approx(values.std(), abs=1e-6)]
    settings = PATCHES.model_copy(update={"mean": tuple(mean), "std": tuple(deviation)})
    normalized = normalize((values * 255).round().astype(np.uint8).reshape(-1, 1, 8, 8), settings)
    assert abs(float(normalized.mean())) < 1e-5
    assert float(normalized.std()) == pytest.approx(1, abs=1e-4)


def test_random_changes_are_functions_of_seed_draw_and_sample(corpus: Corpus) -> None:
    shards = prepare_in_memory(corpus, None, Defects())

    def collect(loaders: list[Loader], epoch: int) -> dict[int, bytes]:
        batches = [batch for loader in loaders for batch in loader.iter_epoch(epoch)]
        return {
            sample: image.numpy().tobytes()
            for batch in batches
            if batch.source is not None
            for sample, image in zip(batch.samples.tolist(), batch.source, strict=True)
            if sample >= 0
        }

    one = collect([make_loader(shards, AUGMENTATION)], 0)
    three = collect([make_loader(shards, AUGMENTATION, rank=rank, world_size=3) for rank in range(3)], 0)
    assert one == three
    assert one != collect([make_loader(shards, AUGMENTATION)], 1)
    plain = collect([make_loader(shards, None)], 0)
    changed = sum(one[sample] != plain[sample] for sample in plain)
    assert 40 < changed <= 60, "1 of 50 stays as it is"


def test_shifts_repeat_the_edge_and_flips_mirror() -> None:
    pixels = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)
    records = make_records(2)
    mirrored = augment(pixels, AugmentationConfig(flip=True), 1, records)
    assert {tuple(row) for row in mirrored[:, 0, 0]} <= {
        tuple(row[::step]) for row in pixels[:, 0, 0] for step in (1, -1)
    }
    shifted = augment(pixels, AugmentationConfig(shift=1), 1, records)
    padded = np.pad(pixels, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    for before, after in zip(padded, shifted, strict=True):
        windows = [before[:, row : row + 4, column : column + 5] for row in range(3) for column in range(3)]
        assert any((after == window).all() for window in windows)


def make_records(count: int) -> StoredSamples:
    zeros = np.zeros(count, np.int64)
    return StoredSamples(np.zeros(0, np.uint8), zeros[None], np.arange(count), zeros, zeros, zeros)


def test_equal_images_are_held_out_together(corpus: Corpus) -> None:
    train, held_out = train_validation_split(corpus, 0.3, seed=1)
    parts = [{example.image for _, example in part.examples(Defects())} for part in (train, held_out)]
    assert all(parts)
    assert not parts[0] & parts[1]
    assert len(parts[0] | parts[1]) == 60


def test_images_of_several_shapes_are_refused() -> None:
    examples = [Example(Location("f", n), "", label="x", image=Image(1, 1, n, bytes(n))) for n in (1, 2)]
    with pytest.raises(CorpusError, match="1 x 2 pixels") as caught:
        store_examples(examples, None)
    assert caught.value.location == "f:2"
    shards = [store_examples([example], None, origin=f"s{n}") for n, example in enumerate(examples)]
    with pytest.raises(RegardError, match="s0 has images of 1 x 1 pixels, 1 channel, but s1"):
        Shards(shards)
    with pytest.raises(RegardError, match="the model reads 1 x 1 pixels, 3 channels"):
        check_shape(Shards(shards[:1]), replace_channels(3))
    with pytest.raises(CorpusError, match="has image"):
        store_examples([replace(examples[0], image=None, source="text"), examples[1]], None)


def replace_channels(channels: int) -> PatchesConfig:
    return PATCHES.model_copy(update={"channels": channels, "size": (1, 1)})
