"""`examples/captions` in small: dark and bright images of 4 x 4 pixels, and their captions."""

import re
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from examples.captions import corpus, run

import regard
from regard.config.codec import RUN_FILES
from regard.training.run import fit
from tests.training.runs import SMALL_LANGUAGE_MODEL


def write_idx(folder: Path, count: int, seed: int) -> Path:
    """Write images of two labels: 0 is dark, 1 is bright."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    images = rng.integers(0, 100, (count, 4, 4)) + 120 * labels[:, None, None]
    path = folder / "images-idx3-ubyte"
    path.write_bytes(struct.pack(">HBBIII", 0, 8, 3, count, 4, 4) + images.astype(np.uint8).tobytes())
    content = struct.pack(">HBBI", 0, 8, 1, count) + labels.astype(np.uint8).tobytes()
    (folder / "labels-idx1-ubyte").write_bytes(content)
    return path


def test_images_become_words_and_images_again() -> None:
    words = corpus.GrayWords([0, 100, 250])
    (text,) = words.encode(np.array([[[3, 90], [255, 120]]], np.uint8))
    assert text == "#000000 #646464 #fafafa #646464"
    image = words.decode(text, 2)
    assert image is not None
    assert image.tolist() == [[0, 100], [250, 100]]
    assert words.decode("#000000 a #fafafa #646464", 2) is None, "a word of a caption is no pixel"
    assert words.decode("#000000", 2) is None, "too few pixels"


def test_one_model_writes_captions_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    images, test = write_idx(tmp_path / "train", 120, seed=1), write_idx(tmp_path / "test", 40, seed=2)
    data, picture = tmp_path / "data", tmp_path / "picture.png"
    settings = {"SIDE": 4, "GRAYS": 4, "VALIDATION": 20, "NAMES": corpus.NAMES[:2]}
    for name, value in settings.items():
        monkeypatch.setattr(run, name, value)
    run_step(monkeypatch, "prepare", images, data)
    assert (data / "train.draw.prompts.txt").read_text().splitlines()[1] == "draw: a photo of a trouser"
    monkeypatch.chdir(data)
    changes = {**SMALL_LANGUAGE_MODEL, "train.steps": 200}
    fit(RUN_FILES.change(RUN_FILES.load(run.RUN_FILE), changes), tmp_path / "run")
    small = {"d_model": 16, "encoder.layers": 1, "encoder.attention.heads": 2, "encoder.feedforward.d_ff": 32}
    options = {"model": small, "data.augmentation.flip": False, "train.schedule.lr": 0.01}
    regard.train(images=images, out=tmp_path / "vit", steps=40, settings=options)
    capsys.readouterr()
    options_of_step = ("--count", "40", "--picture", picture, "--vit", tmp_path / "vit")
    run_step(monkeypatch, "evaluate", images, test, data, tmp_path / "run", *options_of_step)
    printed = capsys.readouterr().out
    pattern = re.compile(r"^([a-z0-9 ,]+): ([\d.]+)% right", re.MULTILINE)
    shares = {name: float(share) for name, share in pattern.findall(printed)}
    subjects, judges = ("test images in grays", "drawn images"), ("5 nearest images", "vit")
    assert set(shares) == {
        "captions",
        *(f"{subject}, {judge}" for subject in subjects for judge in judges),
    }
    assert min(shares.values()) >= 90
    assert re.search(r"^drawn texts that are no image: [0-4] of 40$", printed, re.MULTILINE)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def run_step(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", *map(str, arguments)])
    run.main()
