"""Images generated pixel by pixel, from end to end: train, resume to the byte, sample, complete, evaluate."""

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import regard
from regard.base.errors import ConfigError, RegardError
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.sources import ImagesConfig
from regard.data.codebook import Codebook
from regard.data.example import Defects
from regard.data.k_means import cluster_levels
from regard.data.readers import read
from regard.serve.loaded import load_model
from regard.store.run_folder import RunFolder
from regard.training.batches import make_loader
from regard.training.data import prepare_data
from regard.training.recipes.configure import configure
from regard.training.run import fit, resume
from tests.commands import run_command, show_next_steps
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus, write_folders, write_images


def make_run(folder: Path, changes: dict[str, Any] | None = None) -> RunConfig:
    return make_small_run("pixels", write_corpus(folder), changes)


def test_a_killed_run_resumes_to_the_byte(tmp_path: Path) -> None:
    run = make_run(tmp_path / "corpus")
    finished = fit(run, tmp_path / "whole")
    fit(run, tmp_path / "parts", pause_at=7)
    resume(tmp_path / "parts")
    assert compute_fingerprints(tmp_path / "parts") == compute_fingerprints(tmp_path / "whole")
    assert set(finished.best_scores) == {"loss", "perplexity", "accuracy", "bits_per_pixel"}
    scores = finished.best_scores
    assert scores["bits_per_pixel"] == pytest.approx(scores["loss"] * 17 / 16 / log(2)), "16 pixels and eos"
    card = (tmp_path / "whole" / "best" / "README.md").read_text()
    assert "images of 4 x 4 pixels, 1 channel" in card


def test_the_colours_are_those_of_the_training_part(tmp_path: Path) -> None:
    run = make_run(tmp_path / "corpus")
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    source = run.data.train[0]
    images = [example.image for example in read(source, Defects()) if example.image is not None]
    assert data.validation is not None
    held_out = {data.validation.locate(sample).line for sample in range(len(data.validation))}
    parts = [np.frombuffer(image.pixels, np.uint8) for number, image in enumerate(images, 1) if number not in held_out]
    counts = np.bincount(np.concatenate(parts), minlength=256)
    codebook = Codebook(data.tokenizers.source)
    assert codebook.colors[:, 0].tolist() == cluster_levels(counts, 4).tolist()
    everything = np.bincount(np.frombuffer(b"".join(image.pixels for image in images), np.uint8), minlength=256)
    assert counts.sum() == everything.sum() - 16 * len(held_out)


def test_a_row_is_a_label_and_all_pixels_of_one_image(tmp_path: Path) -> None:
    run = make_run(tmp_path / "corpus")
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    codebook = Codebook(data.tokenizers.source)
    batch = next(make_loader(run, data.train, data.tokenizers).iter_epoch(0))
    assert batch.target is not None
    assert batch.target.shape[1] == 17
    assert set(batch.target[:, 0].tolist()) <= set(codebook.labels.values())
    assert set(batch.target[:, 1:].flatten().tolist()) <= set(codebook.tokens.tolist())
    assert batch.labels[:, :-1].equal(batch.target[:, 1:])
    assert set(batch.labels[:, -1].tolist()) == {data.tokenizers.source.specials.eos}


def test_bits_per_pixel_are_those_of_the_model(tmp_path: Path) -> None:
    fit(make_run(tmp_path / "corpus", {"train.steps": 3}), tmp_path / "run")
    generator = regard.load_image_generator(tmp_path / "run")
    rng = np.random.default_rng(1)
    images = list(rng.integers(0, 255, (3, 4, 4), np.uint8))
    labels = ["0", "1", "0"]
    expected = []
    for image, label in zip(images, labels, strict=True):
        row = torch.tensor([[generator.codebook.find_label(label), *generator.codebook.encode(image[None])]])
        with torch.no_grad():
            logprobs = generator.model(row[:, :-1]).log_softmax(dim=-1)  # (1, 16, V)
        expected.append(-float(logprobs.gather(2, row[:, 1:, None]).sum()) / 16 / log(2))
    assert generator.bits_per_pixel(images, labels) == pytest.approx(expected, rel=1e-5)
    with pytest.raises(RegardError, match="An image has no label"):
        generator.bits_per_pixel(images)
    assert repr(generator).startswith("ImageGenerator(decoder_only, ")


def test_a_folder_of_images_becomes_a_generator(tmp_path: Path) -> None:
    images, out, samples = write_folders(tmp_path, 120), tmp_path / "run", tmp_path / "samples"
    small = [
        "--set",
        "model.raster.size=[4,4]",
        "--preset",
        "image-gpt",
        "--steps",
        "60",
        "--set",
        "train.step_tokens=180",
    ]
    sizes = {"d_model": 16, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.feedforward.d_ff": 16}
    small += [argument for name, value in sizes.items() for argument in ("--set", f"model.{name}={value}")]
    small += ["--set", "tokenizer.colors=2", "--set", "train.schedule.lr=0.02"]
    result = run_command("train", "--images", str(images), "--out", str(out), "--explain", *small)
    assert result.code == 0, result.errors
    assert "120 images with 2 labels: preset image-gpt" in result.output
    assert "Vocabulary: set by you" in result.output or "2 grays, the centers of k-means" in result.output
    assert f"regard generate {out} --out IMAGES" in show_next_steps(out)
    generator = regard.load_image_generator(out)
    assert generator.labels == ("class 0", "class 1")
    result = run_command(
        "generate", str(out), "--label", "class 1", "--count", "3", "--seed", "1", "--out", str(samples)
    )
    assert result.code == 0, result.errors
    pictures = [np.asarray(Pillow.open(samples / f"class 1-{number}.png")) for number in (1, 2, 3)]
    dark, bright = generator.codebook.colors[:, 0].tolist()
    for picture in pictures:
        assert picture.shape == (4, 4)
        assert set(picture.flatten().tolist()) <= {dark, bright}
        assert picture[2:].mean() > picture[:2].mean() + 50, "class 1 is bright below"
    again = generator.generate("class 1", 3, filters=regard_filters(), seed=1)
    assert [picture.tolist() for picture in again] == [picture.tolist() for picture in pictures]
    check_completions(out, images, tmp_path)
    result = run_command("evaluate", str(out), "--images", str(images), "--json")
    evaluation = json.loads(result.output)
    assert evaluation["images"] == 120
    assert evaluation["bits_per_pixel"]["value"] < 0.8, "1 bit is chance"
    files = sorted(map(str, images.rglob("*.png")))
    bits = generator.bits_per_pixel(files, [Path(file).parent.name for file in files])
    assert evaluation["bits_per_pixel"]["value"] == pytest.approx(sum(bits) / 120)
    assert "bits per pixel (lower is better)" in run_command("evaluate", str(out), "--images", str(images)).output
    check_errors(out, tmp_path)


def regard_filters() -> Any:
    from regard.decode.filters import Filters

    return Filters(temperature=0.8, top_p=0.95)


def check_completions(model: Path, images: Path, folder: Path) -> None:
    """The upper half stays, and the label that makes it most probable decides about the lower half."""
    bright_above = next((images / "class 0").iterdir())
    arguments = ["--complete", str(bright_above), "--count", "2", "--seed", "1", "--out", str(folder / "completed")]
    result = run_command("generate", str(model), *arguments)
    assert result.code == 0, result.errors
    picture = np.asarray(Pillow.open(folder / "completed" / f"{bright_above.stem}-2.png"))
    generator = regard.load_image_generator(model)
    own = generator.complete([str(bright_above)], rows=3, seed=1)[0]
    assert picture[:2].tolist() == own[:2].tolist()
    assert picture[2:].mean() < picture[:2].mean() - 50
    opposite = np.zeros((4, 4), np.uint8)
    assert generator.complete([opposite], ["class 1"], rows=2, seed=1)[0][2:].mean() > 100
    bright_below = opposite.copy()
    bright_below[2:] = 200
    assert generator.find_labels([str(bright_above), bright_below]) == list(generator.labels)
    with pytest.raises(RegardError, match="cannot be kept"):
        generator.complete([opposite], rows=4)
    with pytest.raises(RegardError, match="2 labels for 1 image"):
        generator.complete([opposite], ["class 0", "class 1"])


def check_errors(model: Path, folder: Path) -> None:
    """Every wrong use says what to do instead."""
    for arguments, message in (
        (["generate", str(model), "--label", "class 9", "--out", "x"], "No training image had the label 'class 9'"),
        (["generate", str(model), "--out", "x"], "An image has no label"),
        (["generate", str(model), "--label", "class 0"], "Give --out FOLDER"),
        (["generate", str(model), "text", "--out", "x"], "A prompt is for models that generate text"),
        (["generate", str(model), "--label", "class 0", "--rows", "2", "--out", "x"], "--rows needs --complete"),
        (["translate", str(model), "text"], "This is a model that generates images, not a translation model"),
        (["evaluate", str(model), "--text", __file__], "Give labeled images: a folder with one folder per label"),
        (["look", str(model), "text", "--save", str(folder / "page.html")], "this model's tokens are pixels"),
    ):
        result = run_command(*arguments)
        assert result.code != 0, arguments
        assert message in " ".join(result.errors.split()), arguments
    with pytest.raises(RegardError, match="cannot be fine-tuned yet"):
        configure(ImagesConfig(path=str(folder / "png")), parent=model)
    with pytest.raises(RegardError, match="The server has no route for models that generate images"):
        load_model(model, "torch", {})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": {"kind": "byte"}}, "Set tokenizer.kind = 'codebook'"),
        ({"data.max_length": 32}, "Set it to 18"),
        ({"model.starts_with_bos": True}, "an image starts with its label"),
        ({"model.raster": None}, "which is learned from pixels, not from text"),
        ({"validation.metric": "bits_per_byte"}, "but the tokens are pixels"),
        ({"data.augmentation": {"shift": 1}}, "the model reads no images"),
        (
            {"model.raster.size": [8, 8], "data.max_length": 66},
            "has a different size or number of channels than model.raster",
        ),
        ({"model.decoder.position": {"kind": "learned", "length": 16}}, "an image is 18 tokens long"),
    ],
)
def test_settings_that_do_not_fit_pixels_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_run(tmp_path, changes)


def test_a_label_that_no_training_image_had_is_located(tmp_path: Path) -> None:
    run = make_run(tmp_path / "corpus")
    write_images(tmp_path / "test-images-idx3-ubyte", 4)
    labels = tmp_path / "test-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + bytes([7]))
    source: dict[str, Any] = {"kind": "images", "path": str(tmp_path / "test-images-idx3-ubyte")}
    source |= {"labels": str(labels), "size": [4, 4], "channels": 1}
    run = RUN_FILES.change(run, {"data.held_out": 0.0, "data.validation": [source]})
    with pytest.raises(RegardError, match="No training image had the label '7'") as caught:
        prepare_data(run, RunFolder(tmp_path), lambda _: None)
    assert caught.value.location == f"{tmp_path / 'test-images-idx3-ubyte'}:4"
