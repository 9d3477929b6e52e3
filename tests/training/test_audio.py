"""Sound classification from end to end: train, resume to the byte, label, evaluate; without a tokenizer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.base.errors import ConfigError, RegardError
from regard.config.codec import MODEL_FILES, RUN_FILES
from regard.data.mel import log_mel
from regard.measure.error_rate import cer
from regard.models.build import build
from regard.store.run_folder import RunFolder
from regard.tasks.search import Beam
from regard.training.batches import make_loader
from regard.training.data import prepare_data
from regard.training.objective import Objective
from regard.training.run import fit, resume
from tests.commands import run_command, show_next_steps
from tests.training.runs import (
    compute_fingerprints,
    make_audio_run,
    make_small_run,
    write_audio,
    write_corpus,
    write_wav,
)

SMALL = {"d_model": 16, "encoder.layers": 1, "encoder.attention.heads": 2, "encoder.feedforward.d_ff": 16}


def test_the_statistics_are_those_of_the_training_part(tmp_path: Path) -> None:
    fit(make_audio_run(tmp_path / "corpus", {"train.steps": 1}), tmp_path / "run")
    resolved = RUN_FILES.load(tmp_path / "run" / "run.toml")
    data = prepare_data(resolved, RunFolder(tmp_path / "run"), lambda _: None)
    mel: Any = resolved.model.source  # type: ignore[union-attr]
    (shard,) = data.train.shards
    parts = np.split(np.asarray(shard.tokens), shard.offsets()[1:-1])
    frames = np.concatenate([log_mel(part.view(np.int16), mel) for part in parts])
    assert len(shard) < 60, "held-out audio clips do not count"
    assert mel.mean == pytest.approx(frames.mean(axis=0), abs=1e-5)
    assert mel.std == pytest.approx(frames.std(axis=0), abs=1e-5)


def test_padding_does_not_matter(tmp_path: Path) -> None:
    run = make_audio_run(tmp_path / "corpus")
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    batches: list[Any] = list(make_loader(run, data.train, None).iter_epoch(0))
    batch = next(batch for batch in batches if not batch.source_valid.all())
    plain, masked = (
        next(make_loader(run, data.train, None, masks).iter_epoch(0)) for masks in (None, run.data.spec_augment)
    )
    assert plain.source is not None
    assert masked.source is not None
    assert not plain.source.equal(masked.source), "training audio clips are masked, validation audio clips are not"
    assert batch.input_count == int(batch.source_valid.sum()), "frames are counted"
    model: Any = build(run.model, seed=1).eval()
    objective = Objective.from_run(model, run).eval()
    loss = objective(batch).total.item()
    alone = [
        model(source[None, : int(valid.sum())]).log_softmax(-1)[0, label].item()
        for source, valid, label in zip(batch.source, batch.source_valid, batch.labels, strict=True)
    ]
    assert loss == pytest.approx(-sum(alone), abs=1e-3)


def test_a_folder_of_audio_becomes_a_model(tmp_path: Path) -> None:
    write_audio(tmp_path, 60)
    audio, out = tmp_path / "audio", tmp_path / "run"
    small = [argument for name, value in SMALL.items() for argument in ("--set", f"model.{name}={value}")]
    result = run_command("train", "--audio", str(audio), "--out", str(out), "--steps", "30", "--explain", *small)
    assert result.code == 0, result.errors
    assert "60 audio clips with 2 labels: preset audio-encoder" in result.output
    assert "Audio: 8,000 samples per second" in result.output
    assert f'regard predict {out} "CLIP.wav"' in show_next_steps(out)
    files = sorted(map(str, audio.rglob("*.wav")))
    result = run_command("predict", str(out), files[0], files[-1], "--json")
    records = [json.loads(line) for line in result.output.splitlines()]
    assert [record["source"] for record in records] == [files[0], files[-1]]
    assert set(records[0]["probabilities"]) == {"low", "high"}
    predictions = tmp_path / "labels"
    result = run_command("evaluate", str(out), "--audio", str(audio), "--json", "--output", str(predictions))
    evaluation = json.loads(result.output)
    assert evaluation["audio"] == 60
    classifier = regard.load_audio_classifier(out)
    predicted = [label.label for label in classifier.classify(files)]
    assert predictions.read_text().splitlines() == predicted
    right = sum(Path(file).parent.name == label for file, label in zip(files, predicted, strict=True))
    assert evaluation["scores"]["accuracy"]["value"] == pytest.approx(100 * right / 60)
    assert repr(classifier).startswith("AudioClassifier(encoder_only, ")
    recorded = classifier.record(files[0])
    assert recorded.source_tokens[:2] == ("0.00", "0.02")
    assert recorded["encoder.0.self"].shape[1] == len(recorded.source_tokens)
    slow = write_wav(tmp_path / "slow.wav", bytes(3200), rate=16000)
    errors = run_command("predict", str(out), str(slow)).errors
    assert "16,000 samples per second; the model reads 8,000" in errors
    assert "-ar 8000" in errors
    assert (
        "classification model for audio clips, not a translation" in run_command("translate", str(out), "text").errors
    )
    assert "These are audio clips" in run_command("check", str(audio)).errors
    assert "not an audio file" in run_command("look", str(out), "text").errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": {"kind": "byte"}}, "tokenizer.kind: is 'byte', but the model reads audio"),
        (
            {"data.train": [{"kind": "lines", "source": "a"}]},
            "data.train.0.kind: is 'lines', but the model reads audio",
        ),
        ({"data.augmentation": {"shift": 1}}, "the model reads no images"),
        ({"model.source.mean": [0.1, 0.2]}, "has 2 values for 8 bins"),
        ({"model.source.rate": 10}, "a hop of 0 samples"),
        (
            {"model.task": "embedding", "model.head": {"kind": "none"}},
            "'embedding', which is learned from text",
        ),
        ({"model.encoder.position": {"kind": "learned", "length": 15}}, "the encoder learns 15 positions"),
    ],
)
def test_settings_that_do_not_fit_audio_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_audio_run(tmp_path, changes)
    make_audio_run(tmp_path / "16", {"model.encoder.position": {"kind": "learned", "length": 16}})  # 32 frames


def test_text_settings_refuse_masks_on_audio(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the model reads no audio"):
        make_small_run("masked_lm", write_corpus(tmp_path, 10), {"data.spec_augment": {}})


def test_speech_becomes_text(tmp_path: Path) -> None:
    """A transcription run resumes to the byte; the commands write and score texts."""
    changes = {"train.steps": 80, "train.step_tokens": 128, "validation.every_steps": 20, "train.average": 1}
    run = make_audio_run(tmp_path / "corpus", changes, "transcription")
    finished = fit(run, tmp_path / "whole")
    fit(run, tmp_path / "parts", pause_at=7)
    resume(tmp_path / "parts")
    assert compute_fingerprints(tmp_path / "parts") == compute_fingerprints(tmp_path / "whole")
    assert finished.best_scores["accuracy"] > 0.9
    model = MODEL_FILES.load(tmp_path / "whole" / "best" / "model.toml")
    assert model.family == "encoder_decoder"
    assert 0.4 < model.max_length_ratio < 1.5, "4 or 5 tokens for 4 to 12 frames"
    table, out = tmp_path / "corpus" / "speech.tsv", str(tmp_path / "whole")
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    files = [str(table.parent / file) for file, _ in rows]
    result = run_command("predict", out, *files[:8])
    assert result.code == 0, result.errors
    texts = result.output.splitlines()
    assert texts == [text for _, text in rows[:8]]
    transcriber = regard.load_transcriber(out)
    assert [result.text for result in transcriber.transcribe(files[:8], Beam(1))] == texts
    one = transcriber.transcribe(files[0], n_best=2)
    assert (one.text, len(one.alternatives)) == (texts[0], 1)
    assert transcriber.transcribe(files[0], max_new_tokens=1).ended is False
    with pytest.raises(RegardError, match="max_new_tokens cannot be 0"):
        transcriber.transcribe(files[0], max_new_tokens=0)
    assert "audio clips of 8000 samples per second" in repr(transcriber)
    predictions = tmp_path / "texts"
    evaluated = run_command("evaluate", out, "--audio", str(table), "--json", "--output", str(predictions))
    scores = json.loads(evaluated.output)
    assert scores["audio"] == 60
    written = predictions.read_text().splitlines()
    expected = cer(written, [text for _, text in rows]).value
    assert scores["scores"]["cer"]["value"] == expected < 10
    named = table.with_name("named.tsv")
    named.write_text("file\ttext\n" + table.read_text())
    again = run_command("evaluate", "--audio", str(named), "--hypotheses", str(predictions), "--json")
    assert json.loads(again.output)["scores"] == scores["scores"]
    record = json.loads(run_command("predict", out, files[0], "--json").output)
    assert (record["source"], record["text"]) == (files[0], texts[0])
    assert f"{files[0]}\t" in run_command("predict", out, files[0], "--n-best", "2").output
    errors = run_command("translate", out, "text").errors
    assert "This is a transcription model, not a translation model" in errors
    assert "regard predict" in errors
    errors = run_command("evaluate", out, "--audio", str(table.parent / "audio")).errors
    assert "labeled audio clips" in errors
    assert "not an audio file" in run_command("look", out, "text").errors
