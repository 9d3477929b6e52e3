"""Pipelines of images whose model reads images of any size."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.tasks.load import load_image_captioner, load_image_classifier
from regard.tasks.search import Beam
from tests.tasks.media_models import write_captioning_model, write_image_model

ANY_SIZE: dict[str, Any] = {"source.size": None, "encoder.position": {"kind": "sinusoidal_2d", "columns": 3}}
SIZES = [(8, 12), (8, 12), (8, 8), (12, 12), (12, 12), (8, 12)]


@pytest.fixture(scope="module")
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.integers(0, 256, size, np.uint8) for size in SIZES]


def test_images_of_several_sizes_are_labelled_as_one_by_one(tmp_path: Path, images: list[np.ndarray]) -> None:
    classifier, reported = load_image_classifier(write_image_model(tmp_path / "any", **ANY_SIZE)), list[int]()
    labels = classifier.classify(images, report=reported.append)
    assert reported == [2, 1, 2, 1]
    for image, label in zip(images, labels, strict=True):
        assert label.probabilities == pytest.approx(classifier.classify(image).probabilities, abs=1e-6)


def test_images_of_several_sizes_are_captioned_as_one_by_one(tmp_path: Path, images: list[np.ndarray]) -> None:
    changes = ANY_SIZE | {"encoder.position": ANY_SIZE["encoder.position"] | {"first": 0}}  # no class token
    captioner = load_image_captioner(write_captioning_model(tmp_path / "any", **changes))
    texts = [result.text for result in captioner.caption(images, Beam(2), max_new_tokens=6)]
    assert texts == [captioner.caption(image, Beam(2), max_new_tokens=6).text for image in images]
