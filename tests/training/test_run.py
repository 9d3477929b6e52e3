"""Whole runs: folders, resuming, refused changes, and failures."""

import json
import math
import os
import shutil
import signal
from itertools import count
from pathlib import Path

import pytest
import torch

import regard
from regard.base.errors import DamagedError, RegardError
from regard.base.files import verify
from regard.config.codec import RUN_FILES
from regard.config.model import EncoderDecoderConfig
from regard.data.held_out import is_held_out
from regard.data.shards.prepare import WorkerError
from regard.store.model_folder import read_model, set_languages
from regard.store.run_folder import RunFolder
from regard.store.weights import load_tensors
from regard.tasks.translation.translator import Translator
from regard.training.events import Event, Finished, Message, Stage, Started, StepFinished, Validated
from regard.training.run import fit, is_finished, resume
from regard.training.schedule import learning_rate
from tests.training.runs import (
    SHORT_RUN,
    TASKS,
    FinishedRun,
    compute_fingerprints,
    make_small_run,
    read_metrics,
    run_to_end,
    select_events,
    write_corpus,
)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A finished translation run; tests must not change it."""
    return run_to_end(tmp_path_factory.mktemp("done"))


@pytest.fixture
def folder(finished_run: FinishedRun, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(finished_run[0], tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def paused_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is paused after three of its four steps; tests must not change it."""
    folder = tmp_path_factory.mktemp("rested")
    fit(make_small_run("translation", write_corpus(folder / "corpus"), SHORT_RUN), folder / "run", pause_at=3)
    return folder / "run"


@pytest.fixture
def paused_copy(paused_run: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(paused_run, tmp_path / "resting")
    return tmp_path / "resting"


@pytest.mark.parametrize("task", TASKS)
def test_a_run_leaves_a_folder_that_says_everything(task: str, tmp_path: Path, finished_run: FinishedRun) -> None:
    folder, events = finished_run if task == "translation" else run_to_end(tmp_path, task=task)
    expected = {"run.toml", "corpus.json", "tokenizer", "shards", "validation.jsonl", "metrics.jsonl", "timing.jsonl"}
    assert expected | {"checkpoints", "best", "average"} <= {path.name for path in folder.iterdir()}
    for name in ("best", "average"):
        verify(folder / name)
        names = {path.name for path in (folder / name).iterdir()}
        assert names == {"model.toml", "model.safetensors", "tokenizer.json", "README.md", "manifest.json"}
    run = RUN_FILES.load(folder / "run.toml")
    assert run.gradient_accumulation == 2
    stored = read_model(folder)
    size = stored.tokenizers.source.size
    assert stored.settings == run.model.with_context_length(run.data.max_length)
    assert stored.model.head is not None
    assert size == stored.tokenizers.target.size
    lines = read_metrics(folder)
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    learning_rates = [learning_rate(run.train.schedule, step, steps=4, d_model=16) for step in (1, 2, 3, 4)]
    assert [line["learning_rate"] for line in lines if "loss" in line] == learning_rates
    keys = {"step", "epoch", "loss", "negative_log_likelihood", "tokens", "learning_rate", "gradient_norm"}
    assert all(set(line) == keys for line in lines if "loss" in line)
    assert [line["step"] for line in lines if "validation" in line] == [2, 4, 4]
    assert "time" not in (folder / "metrics.jsonl").read_text()
    assert select_events(events, Finished)[0].reason == "finished"
    assert select_events(events, Started)[0].step == 0
    state = json.loads((folder / "checkpoints" / "step-00000004" / "state.json").read_text())
    assert state["progress"]["tokens"] == sum(line["tokens"] for line in lines if "loss" in line)
    card = (folder / "best" / "README.md").read_text()
    assert f"{select_events(events, Started)[0].parameters:,} parameters" in card
    assert "| loss |" in card


def test_the_scores_of_a_translator_carry_signatures(finished_run: FinishedRun) -> None:
    folder, events = finished_run
    validated = select_events(events, Validated)[0]
    assert set(validated.scores) == {"loss", "perplexity", "accuracy", "bits_per_byte", "bleu", "chrf"}
    assert validated.scores["perplexity"] == pytest.approx(math.exp(validated.scores["loss"]))
    assert "tok:13a" in validated.signatures["bleu"]
    card = (folder / "best" / "README.md").read_text()
    assert validated.signatures["bleu"].replace("|", "\\|") in card  # a bare | would end the cell of the table
    assert "tok:13a" in (folder / "best" / "README.md").read_text()
    assert validated.samples[0].reference
    assert validated.samples[0].source


def test_a_model_folder_translates_raw_text(tmp_path: Path) -> None:
    changes = {"train.steps": 60, "validation.every_steps": 60, "train.save_every": 60, "train.schedule.lr": 0.03}
    folder, _ = run_to_end(tmp_path, changes)
    translator = regard.load_translator(folder)
    (translation,) = translator.translate(["the dog"])
    assert isinstance(translation.text, str)
    lines = read_metrics(folder)
    losses = [line["loss"] for line in lines if "loss" in line]
    epochs = [line["epoch"] for line in lines if "loss" in line]
    assert epochs == sorted(epochs)
    assert epochs[0] == 0 < epochs[-1]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10]), "the loss must fall"


def test_classes_and_tags_can_be_learned_too(tmp_path: Path) -> None:
    rows = [("good dog", "yes"), ("bad cat", "no")] * 40
    (tmp_path / "rows.tsv").write_text("".join(f"{text} {n}\t{label}\n" for n, (text, label) in enumerate(rows)))
    changes = SHORT_RUN | {
        "data.train": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "model.task": "text_classification",
        "model.head": {"kind": "classes", "labels": ["one", "other"]},
        "train.steps": 20,
        "validation.every_steps": 20,
        "validation.metric": "accuracy",
    }
    events: list[Event] = []
    fit(
        make_small_run("masked_lm", write_corpus(tmp_path / "corpus"), changes),
        tmp_path / "run",
        listeners=[events.append],
    )
    assert RUN_FILES.load(tmp_path / "run" / "run.toml").model.head.labels == ("no", "yes")  # type: ignore[union-attr]
    assert select_events(events, Validated)[-1].scores["accuracy"] > 0.9


def test_a_label_that_is_only_held_out_is_known(tmp_path: Path) -> None:
    rare = next(text for text in map("odd mouse {}".format, count()) if is_held_out(text, 0.1, seed=1))
    rows = [(f"{text} {n}", label) for n, (text, label) in enumerate([("good dog", "yes"), ("bad cat", "no")] * 40)]
    (tmp_path / "rows.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in [*rows, (rare, "rare")]))
    changes = SHORT_RUN | {
        "data.train": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "model.task": "text_classification",
        "model.head": {"kind": "classes", "labels": ["one", "other"]},
        "validation.metric": "accuracy",
    }
    fit(make_small_run("masked_lm", write_corpus(tmp_path / "corpus"), changes), tmp_path / "run")
    labels = RUN_FILES.load(tmp_path / "run" / "run.toml").model.head.labels  # type: ignore[union-attr]
    assert labels == ("no", "rare", "yes")


def test_a_model_with_a_flipped_bit_is_never_used(folder: Path) -> None:
    path = folder / "best" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=r"model\.safetensors has different content"):
        read_model(folder)


def test_without_validation_the_last_model_is_the_one(tmp_path: Path) -> None:
    folder, events = run_to_end(tmp_path, {"data.held_out": 0.0, "train.average": 1, "train.ema": 0.0})
    assert not select_events(events, Validated)
    best = read_model(folder).model.state_dict()
    newest = max((folder / "checkpoints").iterdir())
    for name, tensor in load_tensors(newest / "model.safetensors").items():
        assert torch.equal(tensor, best[name])


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, finished_run: FinishedRun) -> None:
    folder, _ = finished_run
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN)
    with pytest.raises(RegardError, match="not empty") as caught:
        fit(run, folder)
    assert "--resume" in (caught.value.hint or "")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(RegardError, match="not empty"):
        fit(run, tmp_path / "other")


def test_a_busy_folder_is_refused(folder: Path) -> None:
    with RunFolder(folder).lock(), pytest.raises(RegardError, match="Another process"):
        resume(folder, more=2)


def test_what_is_finished_is_not_done_again(folder: Path, paused_copy: Path, tmp_path: Path) -> None:
    assert [is_finished(path) for path in (folder, paused_copy, tmp_path / "nothing")] == [True, False, False]
    with pytest.raises(RegardError, match="finished: it completed 4 of 4") as caught:
        resume(folder)
    assert "--more" in (caught.value.hint or "")


def test_total_and_addition_cannot_be_confused(folder: Path) -> None:
    with pytest.raises(RegardError, match="already completed 4 steps, more than the requested 3"):
        resume(folder, steps=3)
    with pytest.raises(RegardError, match="Both --steps and --more"):
        resume(folder, steps=6, more=2)
    assert resume(folder, more=1).step == 5
    assert resume(folder, steps=6).step == 6
    steps = [line["step"] for line in read_metrics(folder) if "loss" in line]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_changed_settings_are_named_one_by_one_and_refused(folder: Path) -> None:
    changes = {"train.max_grad_norm": 2.0, "train.schedule.lr": 0.02}
    with pytest.raises(RegardError) as caught:
        resume(folder, more=2, changes=changes)
    assert "train.max_grad_norm: was 1.0, is 2.0" in caught.value.message
    assert "train.schedule.lr: was 0.01, is 0.02" in caught.value.message
    assert "--force" in (caught.value.hint or "")
    assert RUN_FILES.load(folder / "run.toml").train.max_grad_norm == 1.0
    assert resume(folder, more=2, changes=changes, force=True).step == 6
    assert RUN_FILES.load(folder / "run.toml").train.max_grad_norm == 2.0


def test_a_run_file_that_was_edited_is_noticed(folder: Path) -> None:
    text = (folder / "run.toml").read_text().replace("label_smoothing = 0.1", "label_smoothing = 0.2")
    (folder / "run.toml").write_text(text)
    with pytest.raises(RegardError, match=r"label_smoothing: was 0\.1, is 0\.2"):
        resume(folder, more=2)
    (folder / "run.toml").write_text(
        text.replace("label_smoothing = 0.2", "label_smoothing = 0.1").replace("steps = 4", "steps = 9")
    )
    with pytest.raises(RegardError, match=r"train\.steps: was 4, is 9"):
        resume(folder)


def test_a_changed_corpus_is_named_and_refused(tmp_path: Path) -> None:
    folder, _ = run_to_end(tmp_path)
    path = tmp_path / "corpus" / "all.en"
    path.write_text(path.read_text().replace("dog", "fox"))
    with pytest.raises(RegardError, match=r"all\.en has different content") as caught:
        resume(folder, more=2)
    assert "--force" in (caught.value.hint or "")
    events: list[Event] = []
    assert resume(folder, more=2, force=True, listeners=[events.append]).step == 6
    assert any(
        "Continuing with the tokens in the run folder" in message.text for message in select_events(events, Message)
    )


def test_a_folder_that_is_no_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="not a run folder"):
        resume(tmp_path)


def test_a_run_killed_before_its_first_step_can_be_resumed(tmp_path: Path, finished_run: FinishedRun) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN)

    def interrupt(event: Event) -> None:
        if isinstance(event, Started):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(run, tmp_path / "run", listeners=[interrupt])
    assert resume(tmp_path / "run").step == 4
    assert compute_weight_fingerprints(tmp_path / "run") == compute_weight_fingerprints(finished_run[0])


def test_a_run_that_rested_ends_as_one_that_did_not(
    paused_copy: Path, finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    assert resume(paused_copy).step == 4
    assert threads == [1], "sums depend on the number of threads"
    assert compute_weight_fingerprints(paused_copy) == compute_weight_fingerprints(finished_run[0])


def compute_weight_fingerprints(folder: Path) -> dict[str, str]:
    """Return the fingerprints without those of files that name the corpus folder."""
    excluded = ("checkpoint/state.json", "checkpoint/manifest.json")
    return {name: fingerprint for name, fingerprint in compute_fingerprints(folder).items() if name not in excluded}


def test_training_stops_when_nothing_gets_better(tmp_path: Path) -> None:
    changes = {
        "train.steps": 40,
        "validation.every_steps": 2,
        "validation.patience": 2,
        "train.schedule": {"kind": "constant", "lr": 1e-12},
        "validation.metric": "accuracy",  # constant in this run
    }
    folder, events = run_to_end(tmp_path, changes)
    finished = select_events(events, Finished)[0]
    assert finished.reason == "no improvement"
    assert finished.step == 6  # the first validation is the best, the next two are not better
    with pytest.raises(RegardError, match="finished: it completed 6 of 40") as caught:
        resume(folder)
    assert "validation.patience" in (caught.value.hint or "")
    assert resume(folder, changes={"validation.patience": 1}, force=True).step == 8  # patience starts again


def test_listeners_receive_what_the_journal_holds(finished_run: FinishedRun) -> None:
    folder, events = finished_run
    written = [line["loss"] for line in read_metrics(folder) if "loss" in line]
    assert written == [event.loss for event in select_events(events, StepFinished)]
    assert json.loads((folder / "corpus.json").read_text())


def test_a_listener_may_be_slow_but_changes_nothing(tmp_path: Path, finished_run: FinishedRun) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN)

    def draw_random(_: Event) -> None:
        torch.rand(3)

    fit(run, tmp_path / "two", listeners=[draw_random])
    assert compute_weight_fingerprints(finished_run[0]) == compute_weight_fingerprints(tmp_path / "two")


@pytest.mark.parametrize("kind", [Stage, Started])
def test_a_signal_before_the_first_step_changes_nothing_later(kind: type[Event], tmp_path: Path) -> None:
    changes = SHORT_RUN | {
        "train.average": 3,
        "train.keep_checkpoints": 3,
    }  # more than exist: the checkpoint at step 0 does not count
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), changes)

    def terminate(event: Event) -> None:
        if isinstance(event, kind):
            os.kill(os.getpid(), signal.SIGTERM)

    events: list[Event] = []
    finished = fit(run, tmp_path / "stopped", listeners=[terminate, events.append])
    assert (finished.step, finished.reason) == (0, "stop requested")
    if kind is Stage:
        assert len(select_events(events, Stage)) == 1, "the run stops at once, before it tokenizes the text"
    assert any(message.text.startswith("SIGTERM: ") for message in select_events(events, Message))
    resume(tmp_path / "stopped")
    fit(run, tmp_path / "whole")
    assert compute_fingerprints(tmp_path / "stopped") == compute_fingerprints(tmp_path / "whole")


@pytest.mark.parametrize("is_signaled", [True, False])
def test_a_signal_to_all_processes_also_ends_those_that_cut_text(
    is_signaled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        if is_signaled:
            os.kill(os.getpid(), signal.SIGTERM)
        raise WorkerError("A worker process died.")

    monkeypatch.setattr("regard.training.data.prepare_parts", fail)
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN)
    if is_signaled:
        assert fit(run, tmp_path / "run").reason == "stop requested"
    else:
        with pytest.raises(WorkerError):
            fit(run, tmp_path / "run")


def test_what_was_accepted_is_not_asked_again_after_a_kill(folder: Path) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, StepFinished):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resume(folder, more=2, listeners=[interrupt])
    assert resume(folder).step == 6


def test_settings_that_do_not_fit_are_not_written_down(paused_copy: Path) -> None:
    before = (paused_copy / "run.toml").read_bytes()
    with pytest.raises(RegardError, match=r"do not fit the model settings:\n  - model\.d_model: was 16, is 32"):
        resume(paused_copy, changes={"model.d_model": 32}, force=True)
    with pytest.raises(RegardError, match="settings that decide its order, have changed"):
        resume(paused_copy, changes={"data.seed": 2}, force=True)
    assert (paused_copy / "run.toml").read_bytes() == before


def test_what_does_not_shape_the_weights_may_change(paused_copy: Path) -> None:
    changes = {"model.encoder.dropout.sublayer": 0.2, "model.encoder.position.kind": "rotary"}
    with pytest.raises(RegardError, match="settings differ from the run's settings"):
        resume(paused_copy, changes=changes)
    assert resume(paused_copy, changes=changes, force=True).step == 4


@pytest.mark.parametrize("name", [".", "best"])
def test_resume_after_set_languages_keeps_the_languages(paused_copy: Path, name: str) -> None:
    set_languages(paused_copy / name, ("en", "pt-BR"))
    assert resume(paused_copy).step == 4
    assert RUN_FILES.load(paused_copy / "run.toml").model.languages == ("en", "pt-BR")
    for folder in ("best", "average"):
        assert read_model(paused_copy / folder).settings.languages == ("en", "pt-BR")


def test_resume_with_more_step_tokens_accumulates_more_batches(paused_copy: Path) -> None:
    with pytest.raises(RegardError) as caught:
        resume(paused_copy, changes={"train.step_tokens": 512})
    assert "train.step_tokens: was 256, is 512" in caught.value.message
    resume(paused_copy, changes={"train.step_tokens": 512}, force=True)
    assert RUN_FILES.load(paused_copy / "run.toml").gradient_accumulation == 4


def test_a_run_that_is_ended_early_validates_its_last_step(paused_copy: Path) -> None:
    resume(paused_copy, steps=3)
    assert [line["step"] for line in read_metrics(paused_copy) if "validation" in line and "averaged" not in line] == [
        2,
        3,
    ]


def test_another_metric_has_another_best(paused_copy: Path) -> None:
    best = json.loads((paused_copy / "checkpoints" / "step-00000003" / "state.json").read_text())["progress"][
        "best_scores"
    ]
    events: list[Event] = []
    resume(paused_copy, changes={"validation.metric": "accuracy"}, force=True, listeners=[events.append])
    (start,) = select_events(events, Started)
    assert start.best_score == best["accuracy"]


def test_another_loss_is_not_compared_with_those_before(paused_copy: Path) -> None:
    resume(paused_copy, changes={"train.label_smoothing": 0.3}, force=True, pause_at=3)
    state = json.loads((paused_copy / "checkpoints" / "step-00000003" / "state.json").read_text())
    assert state["progress"]["losses"] == []


def test_damaged_text_can_be_restored_from_running_text(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    source = {"kind": "documents", "path": files["book.txt"]}
    changes = SHORT_RUN | {"model.task": "span_corruption", "data.train": [source], "tokenizer.dropout": 0.0}
    changes |= {"tokenizer.specials.extra": [f"<x{n}>" for n in range(9)]}
    assert fit(make_small_run("translation", files, changes), tmp_path / "run").step == 4


def test_what_the_tokens_were_made_with_cannot_change(paused_copy: Path) -> None:
    with pytest.raises(RegardError) as caught:
        resume(paused_copy, changes={"tokenizer.vocabulary": 400, "data.held_out": 0.5}, force=True)
    assert "tokenizer.vocabulary: was 300, is 400" in caught.value.message
    assert "data.held_out: was 0.1, is 0.5" in caught.value.message
    assert resume(paused_copy, changes={"tokenizer.dropout": 0.2}, force=True).step == 4


def test_an_average_that_is_wanted_later_begins_then(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN | {"train.ema": 0.0})
    fit(run, tmp_path / "run", pause_at=2)
    resume(tmp_path / "run", changes={"train.ema": 0.5}, force=True, pause_at=3)
    before, after = (tmp_path / "run" / "checkpoints" / f"step-0000000{step}" for step in (2, 3))
    old, new = (load_tensors(path / "model.safetensors") for path in (before, after))
    for name, average in load_tensors(after / "ema.safetensors").items():
        share = 0.5 * (1 - 0.5**2) / (1 - 0.5**3)  # the decay of the third step
        torch.testing.assert_close(average, share * old[name] + (1 - share) * new[name])


def test_a_missing_device_is_reported_before_anything_is_done(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN | {"device.name": "gpu"})
    with pytest.raises(RegardError, match="no device 'gpu'"):
        fit(run, tmp_path / "run")
    assert not (tmp_path / "run" / "tokenizer").exists()


def test_the_max_length_ratio_is_taken_from_the_corpus(tmp_path: Path) -> None:
    """Every source word becomes twelve target words."""
    (tmp_path / "in").write_text("".join(f"go {n}\n" for n in range(300)), encoding="utf-8")
    (tmp_path / "out").write_text("".join("left right " * 12 + f"{n}\n" for n in range(300)), encoding="utf-8")
    files = {**write_corpus(tmp_path), "all.en": str(tmp_path / "in"), "all.de": str(tmp_path / "out")}
    fit(make_small_run("translation", files, {"train.steps": 2}), tmp_path / "run")
    settings = read_model(tmp_path / "run").settings
    assert isinstance(settings, EncoderDecoderConfig)
    assert settings.max_length_ratio > 5
    translator = regard.load(tmp_path / "run")
    assert isinstance(translator, Translator)
    (source,) = translator.encode_sources(["go 1"], None)
    assert translator.resolve_max_lengths([source], None) == [math.ceil(settings.max_length_ratio * len(source)) + 50]


def test_samples_that_are_set_aside_are_reported(tmp_path: Path) -> None:
    _, events = run_to_end(tmp_path, {"data.max_length": 12})
    messages = [message for message in select_events(events, Message) if "12 tokens" in message.text]
    assert messages
    assert messages[0].kind == "warning"
