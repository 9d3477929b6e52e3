"""Captions of images from end to end: a table of files, train, resume to the byte, caption, evaluate."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, pad

import regard
from regard.base.errors import ConfigError, RegardError
from regard.base.labels import IGNORE_INDEX
from regard.config.codec import MODEL_FILES
from regard.config.sources import ImagesConfig, LinesConfig
from regard.look.page import read_document
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import read_model
from regard.store.model_path import find_model
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.tasks.captioning import CaptioningRows
from regard.tasks.search import Beam
from regard.training.batches import make_loader
from regard.training.data import prepare_data
from regard.training.objective import Objective
from regard.training.recipes.configure import configure
from regard.training.run import fit, resume
from tests.commands import run_command, show_next_steps
from tests.tasks.media_models import write_image_model, write_transcription_model
from tests.training.runs import compute_fingerprints, make_small_run, write_captions, write_corpus

LONGER: dict[str, Any] = {"train.steps": 60, "train.step_tokens": 128, "validation.every_steps": 20, "train.average": 1}
LONGER |= {"train.schedule.lr": 0.03}


def test_images_become_captions(tmp_path: Path) -> None:
    """A run resumes to the byte; the commands write and score captions."""
    run = make_small_run("captioning", write_corpus(tmp_path / "corpus", 60), LONGER)
    finished = fit(run, tmp_path / "whole")
    fit(run, tmp_path / "parts", pause_at=7)
    resume(tmp_path / "parts")
    assert compute_fingerprints(tmp_path / "parts") == compute_fingerprints(tmp_path / "whole")
    assert finished.best_scores["accuracy"] > 0.9
    model = MODEL_FILES.load(tmp_path / "whole" / "best" / "model.toml")
    assert model.source.size == (8, 8)  # type: ignore[union-attr]
    assert 0.5 < model.max_length_ratio < 4, "a few tokens for 4 patches"  # type: ignore[union-attr]
    card = (tmp_path / "whole" / "best" / "README.md").read_text()
    assert "input: images of 8 x 8" in card
    table, out = tmp_path / "corpus" / "captions.tsv", str(tmp_path / "whole")
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    files = [str(table.parent / file) for file, _ in rows]
    result = run_command("predict", out, *files[:8])
    assert result.code == 0, result.errors
    texts = result.output.splitlines()
    assert texts == [text for _, text in rows[:8]]
    captioner = regard.load_image_captioner(out)
    assert [result.text for result in captioner.caption(files[:8], Beam(1))] == texts
    one = captioner.caption(files[0], n_best=2)
    assert (one.text, len(one.alternatives)) == (texts[0], 1)
    assert captioner.caption(files[0], max_new_tokens=1).ended is False
    with pytest.raises(RegardError, match="max_new_tokens cannot be 0"):
        captioner.caption(files[0], max_new_tokens=0)
    assert "images of 8 x 8 x 1" in repr(captioner)
    predictions = tmp_path / "texts"
    evaluated = run_command("evaluate", out, "--images", str(table), "--json", "--output", str(predictions))
    scores = json.loads(evaluated.output)
    right = sum(text == caption for text, (_, caption) in zip(predictions.read_text().splitlines(), rows, strict=True))
    assert scores["images"] == 60
    assert scores["scores"]["exact_match"]["value"] == pytest.approx(100 * right / 60)
    assert right > 54
    record = json.loads(run_command("predict", out, files[0], "--json").output)
    assert (record["source"], record["text"]) == (files[0], texts[0])
    assert f"{files[0]}\t" in run_command("predict", out, files[0], "--n-best", "2").output
    errors = run_command("translate", out, "text").errors
    assert "This is a captioning model" in errors
    assert "regard predict" in errors
    page = tmp_path / "look.html"
    assert run_command("look", out, files[0], "--save", str(page)).code == 0
    document = read_document(page.read_text(encoding="utf-8"))
    assert (document["output"], document["picture"]["grid"]) == (texts[0], [2, 2])


def test_a_table_of_captions_becomes_a_model(tmp_path: Path) -> None:
    write_captions(tmp_path, 60)
    table, out = tmp_path / "captions.tsv", tmp_path / "run"
    table.write_text("image\tcaption\n" + table.read_text())
    sizes = {"d_model": 16, "decoder.cross.heads": 2}
    for stack in ("encoder", "decoder"):
        sizes |= {f"{stack}.layers": 1, f"{stack}.attention.heads": 2, f"{stack}.feedforward.d_ff": 16}
    small = [argument for name, value in sizes.items() for argument in ("--set", f"model.{name}={value}")]
    result = run_command("train", "--images", str(table), "--out", str(out), "--steps", "3", "--explain", *small)
    assert result.code == 0, result.errors
    output = " ".join(result.output.split())
    assert "60 images with captions of 13 characters: preset image-to-text" in output
    assert "not mirrored, because a caption may say left or right" in output
    assert f'regard predict {out} "IMAGE.png"' in show_next_steps(out)


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A captioner in the folder `parent`, beside its corpus."""
    folder = tmp_path_factory.mktemp("captioner")
    changes = {"model.encoder.layers": 2, "model.decoder.layers": 2}
    fit(make_small_run("captioning", write_corpus(folder / "corpus", 60), LONGER | changes), folder / "parent")
    return folder / "parent"


def write_new_captions(parent: Path, table: Path) -> list[tuple[str, str]]:
    """Write a table with the images of the parent and other captions; return files and captions."""
    old = parent.parent / "corpus" / "captions.tsv"
    rows = [line.split("\t") for line in old.read_text().splitlines()]
    new = {"a bright sky": "a bright light", "dark over light": "dark over dark"}
    captions = [(str(old.parent / file), new[text]) for file, text in rows]
    table.write_text("file\tcaption\n" + "".join(f"{file}\t{text}\n" for file, text in captions))
    return captions


@pytest.mark.parametrize(
    ("way", "steps"), [((), 60), (("--layers", "1"), 12), (("--lora", "4"), 12)], ids=["full", "layers", "lora"]
)
def test_a_captioner_is_tuned(
    parent: Path, tmp_path: Path, way: tuple[str, ...], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tuned model keeps the parent's tokens and writes other captions; its run resumes to the byte."""
    table, whole, parts = tmp_path / "new.tsv", tmp_path / "whole", tmp_path / "parts"
    captions = write_new_captions(parent, table)
    settings: dict[str, Any] = {"train.step_tokens": 128, "data.batch_tokens": 128, "data.max_length": 32}
    settings |= {"train.schedule.lr": 0.02, "train.ema": 0, "train.average": 1}
    settings |= {"device.threads": 1, "device.attention": "autocast", "device.logit_rows": 0}  # not timed in each run
    changes = [argument for name, value in settings.items() for argument in ("--set", f"{name}={value}")]
    arguments = ("tune", str(parent), "--images", str(table), "--steps", str(steps), *way, *changes)
    result = run_command(*arguments, "--out", str(whole), "--explain")
    assert result.code == 0, result.errors
    output = " ".join(result.output.split())
    stored, before = read_model(whole), read_model(parent)
    assert f"Vocabulary: the {before.tokenizers.target.size} tokens of the parent" in output
    assert "Images: 8 x 8 pixels, gray. Patches of 4 x 4 pixels: 4 vectors." in output
    assert "not mirrored, because a caption may say left or right" in output
    with monkeypatch.context() as patch:
        patch.setattr("regard.training.run.fit", partial(fit, pause_at=7))
        assert run_command(*arguments, "--out", str(parts)).code == 75
    resume(parts)
    assert compute_fingerprints(parts) == compute_fingerprints(whole)
    tokenizers = [(find_model(folder) / "tokenizer.json").read_bytes() for folder in (whole, parent)]
    assert tokenizers[0] == tokenizers[1]
    assert stored.settings.source == before.settings.source, "mean and deviation of the parent"  # type: ignore[union-attr]
    changed = {
        name
        for name, tensor in get_weights(before.model).items()
        if not torch.equal(tensor, get_weights(stored.model)[name])
    }
    if way == ("--layers", "1"):
        assert all(".layers.1." in name or "final_norm" in name for name in changed)
        assert {name.split(".")[0] for name in changed} == {"encoder", "decoder"}
    elif way:
        assert all(name.endswith("weight") and (".attention." in name or ".cross." in name) for name in changed)
    else:
        assert changed == get_weights(before.model).keys()
    card, sha256 = (find_model(whole) / "README.md").read_text(), hash_of_weights(find_model(parent))
    assert f"parent: {parent}" in card
    assert f"sha256 of the parent's weights: {sha256}" in card
    files = [file for file, _ in captions]
    texts = [text.text for text in regard.load_image_captioner(whole).caption(files)]
    if not way:
        assert sum(text == caption for text, (_, caption) in zip(texts, captions, strict=True)) > 54
    if "--lora" in way:
        beside = regard.load(parent, task="captioning", adapters={"new": whole})
        with beside.adapters.active("new"):
            assert [text.text for text in beside.caption(files)] == texts
        assert [text.text for text in beside.caption(files)] != texts


def test_a_captioner_is_tuned_on_captions_only(parent: Path, tmp_path: Path) -> None:
    corpus = parent.parent / "corpus"
    labels = tmp_path / "labels.tsv"
    rows = [line.split("\t") for line in (corpus / "captions.tsv").read_text().splitlines()]
    labels.write_text("".join(f"{corpus / file}\t{text[0]}\n" for file, text in rows))
    with pytest.raises(RegardError, match=r"'captioning', which needs .*, but this corpus contains labeled images"):
        configure(ImagesConfig(path=str(labels)), parent=parent)
    with pytest.raises(RegardError, match="The model reads images, but this corpus contains text"):
        configure(LinesConfig(source=str(corpus / "all.en")), parent=parent)
    with pytest.raises(RegardError, match="The model reads images, but this corpus contains pairs"):
        configure(LinesConfig(source=str(corpus / "all.en"), target=str(corpus / "all.de")), parent=parent)
    captions = ImagesConfig(path=str(corpus / "captions.tsv"), second="text")
    shapes = write_image_model(tmp_path / "shapes")
    with pytest.raises(
        RegardError, match=r"is 'image_classification', which needs .*, but this corpus contains images with captions"
    ):
        configure(captions, parent=shapes)
    speech = write_transcription_model(tmp_path / "speech")
    with pytest.raises(RegardError, match="The model reads audio, but this corpus contains images"):
        configure(captions, parent=speech)


def test_a_tuned_captioner_learns_new_tokens(parent: Path, tmp_path: Path) -> None:
    table, tokens = tmp_path / "new.tsv", tmp_path / "tokens.txt"
    write_new_captions(parent, table)
    tokens.write_text("bright light\n")
    regard.tune(parent, images=table, out=tmp_path / "run", add_tokens=tokens, steps=2)
    stored, before = read_model(tmp_path / "run"), read_model(parent)
    assert stored.tokenizers.target.size == before.tokenizers.target.size + 1
    assert stored.settings.target.vocabulary == stored.tokenizers.target.size  # type: ignore[union-attr]


def test_padding_and_the_other_captions_of_a_batch_do_not_matter(tmp_path: Path) -> None:
    run = make_small_run("captioning", write_corpus(tmp_path, 60))
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    batch: Any = next(make_loader(run, data.train, data.tokenizers).iter_epoch(0))
    labels, target = pad(batch.labels, (0, 2), value=IGNORE_INDEX), pad(batch.target, (0, 2))
    batch = replace(batch, labels=labels, target=target)
    model = build(run.model, seed=1).eval()
    assert isinstance(model, EncoderDecoder)
    loss = Objective.from_run(model, run).eval()(batch).total.item()
    alone = 0.0
    for image, target, labels in zip(batch.source, batch.target, batch.labels, strict=True):
        length = int((labels >= 0).sum())
        logits = model(image[None], target[None, :length])[0]
        alone += cross_entropy(logits, labels[:length], reduction="sum").item()
    assert loss == pytest.approx(alone, abs=1e-3)
    task = make_loader(run, data.train, data.tokenizers).rows
    assert isinstance(task, CaptioningRows)
    assert task.row_lengths(np.array([[64], [5]])).tolist() == [[4], [6]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": {"kind": "none"}}, "is 'none', but the model writes tokens"),
        ({"data.train": [{"kind": "lines", "source": "a"}]}, "data.train.0.kind: is 'lines', but the model reads ima"),
        ({"data.spec_augment": {}}, "the model reads no audio"),
        ({"model.task": "translation"}, "'translation', which is learned from text, not from im"),
        ({"model.source": {"kind": "mel", "bins": 8}}, "is 'captioning', which is learned from images, not from"),
        ({"model.source.size": [16, 16]}, "an image becomes 16 vectors"),
    ],
)
def test_settings_that_do_not_fit_captions_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_small_run("captioning", {"all.en": "", "all.de": "", "book.txt": ""}, changes)
