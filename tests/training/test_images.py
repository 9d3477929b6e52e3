"""Image classification from end to end: train, resume to the byte, label, evaluate; without a tokenizer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image as Pillow

import regard
from regard.base.errors import ConfigError, RegardError
from regard.base.labels import IGNORE_INDEX
from regard.cli.train import _print_next_steps
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.sources import LinesConfig
from regard.models.build import build
from regard.store.model_folder import read_model
from regard.store.run_folder import RunFolder
from regard.training.batches import make_loader
from regard.training.data import prepare_data
from regard.training.objective import Objective
from regard.training.recipes.configure import configure
from regard.training.run import fit, resume
from tests.commands import run_command, show_next_steps
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus, write_folders

MASKED: dict[str, Any] = {"model.task": "masked_patches", "model.head": {"kind": "pixels"}}


def make_run(folder: Path, changes: dict[str, Any] | None = None) -> RunConfig:
    return make_small_run("images", write_corpus(folder), changes)


def test_the_statistics_are_those_of_the_training_part(tmp_path: Path) -> None:
    run = make_run(tmp_path / "corpus", {"train.steps": 1})
    fit(run, tmp_path / "run")
    resolved = RUN_FILES.load(tmp_path / "run" / "run.toml")
    data = prepare_data(resolved, RunFolder(tmp_path / "run"), lambda _: None)
    pixels = np.concatenate([data.train.load_tokens(number) for number in range(len(data.train.shards))]) / 255
    assert resolved.model.source.mean == (pytest.approx(pixels.mean(), abs=1e-6),)  # type: ignore[union-attr]
    assert data.validation is not None
    whole = np.concatenate([pixels, data.validation.load_tokens(0) / 255])
    assert abs(whole.mean() - pixels.mean()) > 1e-6, "held-out images do not count"


def test_validation_images_are_not_changed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "corpus")
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    plain, changed = (
        next(make_loader(run, data.train, None, augmentation).iter_epoch(0))
        for augmentation in (None, run.data.augmentation)
    )
    assert plain.samples.equal(changed.samples)
    assert plain.source is not None
    assert changed.source is not None
    assert not plain.source.equal(changed.source)


def test_a_folder_of_images_becomes_a_model(tmp_path: Path) -> None:
    images, out = write_folders(tmp_path), tmp_path / "run"
    sizes = {"d_model": 16, "encoder.layers": 1, "encoder.attention.heads": 2, "encoder.feedforward.d_ff": 16}
    small = [argument for name, value in sizes.items() for argument in ("--set", f"model.{name}={value}")]
    result = run_command("train", "--images", str(images), "--out", str(out), "--steps", "30", "--explain", *small)
    assert result.code == 0, result.errors
    assert "80 images with 2 labels: preset vit" in result.output
    assert "Patches of 4 x 4 pixels: 4 vectors and the class token" in result.output
    assert f"regard predict {out}" in show_next_steps(out)
    files = sorted(map(str, images.rglob("*.png")))
    result = run_command("predict", str(out), files[0], files[-1], "--json")
    records = [json.loads(line) for line in result.output.splitlines()]
    assert [record["source"] for record in records] == [files[0], files[-1]]
    assert set(records[0]["probabilities"]) == {"class 0", "class 1"}
    result = run_command("evaluate", str(out), "--images", str(images), "--json", "--output", str(tmp_path / "labels"))
    evaluation = json.loads(result.output)
    classifier = regard.load_image_classifier(out)
    predicted = [label.label for label in classifier.classify(files)]
    assert (tmp_path / "labels").read_text().splitlines() == predicted
    right = sum(Path(file).parent.name == label for file, label in zip(files, predicted, strict=True))
    assert evaluation["scores"]["accuracy"]["value"] == pytest.approx(100 * right / 80)
    from_python = regard.evaluate(classifier, images)  # the model says that the folder holds images
    assert json.loads(json.dumps(from_python)) == evaluation
    assert repr(classifier).startswith("ImageClassifier(encoder_only, ")
    with Pillow.open(files[0]) as picture:
        assert classifier.classify(np.asarray(picture)).label == predicted[0]
    recorded = classifier.record(files[0])
    assert list(recorded.source_tokens) == ["class token", "0,0", "0,1", "1,0", "1,1"]
    assert tuple(recorded["encoder.0.self"].shape) == (2, 5, 5)
    assert run_command("predict", str(out), str(tmp_path / "none.png")).code == 1
    unconstrained = run_command("evaluate", str(out), "--images", str(images), "--unconstrained")
    assert "--unconstrained is for taggers of text" in unconstrained.errors
    result = run_command("translate", str(out), "text")
    assert "This is a classification model for images, not a translation model" in result.errors
    assert "These are images" in run_command("check", str(images)).errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": {"kind": "byte"}}, "tokenizer.kind: is 'byte', but the model reads images"),
        ({"data.train": [{"kind": "lines", "source": "a"}]}, "data.train.0.kind: is 'lines'"),
        ({"model.source.size": [9, 8]}, "does not divide into patches"),
        ({"model.source.mean": [0.1, 0.2]}, "has 2 values for 1 channels"),
        ({"model.task": "masked_lm", "model.head": {"kind": "mlm"}}, "the source has no tokens"),
        ({"model.task": "masked_patches"}, "Use head kind 'pixels'"),
        (MASKED | {"model.source.stem": "convolution"}, "source.stem: is 'convolution'"),
        ({"model.encoder.position.length": 4, "model.source.size": [8, 8], "data.max_length": 4}, "becomes 5 vectors"),
    ],
)
def test_settings_that_do_not_fit_images_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_run(tmp_path, changes)


def test_text_settings_refuse_image_settings(tmp_path: Path) -> None:
    files = write_corpus(tmp_path)
    with pytest.raises(ConfigError, match="the model reads no images"):
        make_small_run("masked_lm", files, {"data.augmentation": {"shift": 1}})
    with pytest.raises(ConfigError, match="the model reads tokens"):
        make_small_run("masked_lm", files, {"tokenizer": {"kind": "none"}})


def make_masked_run(folder: Path, changes: dict[str, Any] | None = None) -> RunConfig:
    masking = {"task_options": {"probability": 0.5}}
    return make_run(folder, {**MASKED, **masking, "train.label_smoothing": 0.0, **(changes or {})})


def test_only_visible_patches_are_encoded(tmp_path: Path) -> None:
    run = make_masked_run(tmp_path / "corpus")
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    batch = next(make_loader(run, data.train, None).iter_epoch(0))
    assert batch.source is not None
    assert batch.positions is not None
    rows = len(batch.labels)
    assert batch.positions.shape == (rows, 3), "the class token, and 2 of 4 patches"
    assert batch.label_count == 2 * rows
    assert batch.input_count == 3 * rows
    for positions, labels in zip(batch.positions.tolist(), batch.labels, strict=True):
        assert [index + 1 for index in range(4) if labels[index] == IGNORE_INDEX] == positions[1:]
    model: Any = build(run.model, seed=1).eval()
    with torch.no_grad():
        states, _ = model.hidden_states(batch.source, positions=batch.positions)
        assert states.shape == (rows, 3, run.model.d_model)
        changed = batch.source.clone()
        for row, labels in enumerate(batch.labels):
            for index in (labels == 0).nonzero()[:, 0].tolist():
                top, left = 4 * (index // 2), 4 * (index % 2)
                changed[row, :, top : top + 4, left : left + 4] += 1
        assert model(changed, positions=batch.positions).equal(model(batch.source, positions=batch.positions))
        assert not model(changed).equal(model(batch.source))


def test_the_loss_is_the_squared_error_of_masked_patches(tmp_path: Path) -> None:
    run = make_masked_run(tmp_path / "corpus")
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    batch = next(make_loader(run, data.train, None).iter_epoch(0))
    model: Any = build(run.model, seed=1).eval()
    objective = Objective.from_run(model, run).eval()
    assert batch.source is not None
    with torch.no_grad():
        predicted, total = model(batch.source, positions=batch.positions), 0.0
        for row, labels in enumerate(batch.labels):
            for index in (labels == 0).nonzero()[:, 0].tolist():
                top, left = 4 * (index // 2), 4 * (index % 2)
                pixels = batch.source[row, 0, top : top + 4, left : left + 4].flatten()
                target = (pixels - pixels.mean()) / (pixels.var(correction=0) + 1e-6).sqrt()
                total += float(((predicted[row, index] - target) ** 2).mean())
        assert float(objective(batch).total) == pytest.approx(total, rel=1e-5)


def test_masked_patches_then_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pre-training resumes to the byte, and `regard tune` gives the encoder a head for labels."""
    run = make_masked_run(tmp_path / "corpus")
    finished = fit(run, tmp_path / "whole")
    fit(run, tmp_path / "parts", pause_at=7)
    resume(tmp_path / "parts")
    assert compute_fingerprints(tmp_path / "parts") == compute_fingerprints(tmp_path / "whole")
    assert set(finished.best_scores) == {"loss"}
    assert "does not label images" in run_command("predict", str(tmp_path / "whole"), "x.png").errors
    images, out = write_folders(tmp_path), tmp_path / "tuned"
    _print_next_steps(finished)
    _, command = capsys.readouterr().out.splitlines()
    assert command.startswith("Use it: regard ")
    names = {"LABELED": str(images), "TUNED": str(out)}
    arguments = [names.get(word, word) for word in command.removeprefix("Use it: regard ").split()]
    result = run_command(*arguments, "--steps", "3", "--explain")
    assert result.code == 0, result.errors
    assert "Head: a new one for the 2 labels" in result.output
    pretrained, tuned = (read_model(folder) for folder in (tmp_path / "whole", out))
    assert tuned.settings.task == "image_classification"
    assert tuned.settings.source.mean == pretrained.settings.source.mean  # type: ignore[union-attr]
    first = RUN_FILES.load(out / "run.toml")
    assert first.finetune is not None
    assert regard.load_image_classifier(out).labels == ("class 0", "class 1")
    text = tmp_path / "corpus" / "all.en"
    with pytest.raises(RegardError, match="The model reads images"):
        configure(LinesConfig(source=str(text)), parent=tmp_path / "whole")
