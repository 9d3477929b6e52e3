"""Runs from beginning to end: folders, resuming, refusing, and what happens when it goes wrong."""

import json
import math
import os
import shutil
import signal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import DamagedError, RegardError
from regard.base.files import verify
from regard.config.codec import RUN_FILES
from regard.config.model import EncoderDecoder
from regard.config.tables import to_dict
from regard.data.held_out import is_held_out
from regard.data.prepare import WorkerError
from regard.pipeline.translator import Translator
from regard.store.model_folder import read_model
from regard.store.run_folder import RunFolder
from regard.store.weights import load_tensors
from regard.train.events import Event, Finished, Said, Started, Updated, Validated, Working
from regard.train.fit import _check_changes, differences, fit, is_finished, resume
from regard.train.schedule import rate
from tests.train.runs import FAMILIES, corpus, fingerprints, metrics, small_run

QUICK: dict[str, Any] = {"train.updates": 4, "train.save_every": 2, "validation.every": 2, "train.average": 2}


def started(folder: Path, changes: dict[str, Any] | None = None, task: str = "translate") -> tuple[Path, list[Event]]:
    """A quick run that is finished, and what it told."""
    heard: list[Event] = []
    run = small_run(task, corpus(folder / "corpus"), QUICK | (changes or {}))
    fit(run, folder / "run", listeners=[heard.append])
    return folder / "run", heard


def those(heard: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in heard if isinstance(event, kind)]


Done = tuple[Path, list[Event]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """A finished run of a translator, which nobody may change."""
    return started(tmp_path_factory.mktemp("done"))


@pytest.fixture
def folder(done: Done, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(done[0], tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def rested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that rests after three of its four updates, which nobody may change."""
    place = tmp_path_factory.mktemp("rested")
    fit(small_run("translate", corpus(place / "corpus"), QUICK), place / "run", pause_at=3)
    return place / "run"


@pytest.fixture
def resting(rested: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(rested, tmp_path / "resting")
    return tmp_path / "resting"


@pytest.mark.parametrize("task", FAMILIES)
def test_a_run_leaves_a_folder_that_says_everything(task: str, tmp_path: Path, done: Done) -> None:
    folder, heard = done if task == "translate" else started(tmp_path, task=task)
    expected = {"run.toml", "corpus.json", "vocabulary", "shards", "validation.jsonl", "metrics.jsonl", "timing.jsonl"}
    assert expected | {"checkpoints", "best", "average"} <= {path.name for path in folder.iterdir()}
    for name in ("best", "average"):
        verify(folder / name)
        names = {path.name for path in (folder / name).iterdir()}
        assert names == {"model.toml", "model.safetensors", "tokenizer.json", "README.md", "manifest.json"}
    run = RUN_FILES().load(folder / "run.toml")
    assert run.train.accumulate == 2
    stored = read_model(folder)
    size = stored.tokenizers.source.size
    assert stored.settings == run.model
    assert stored.model.head is not None
    assert size == stored.tokenizers.target.size
    lines = metrics(folder)
    assert [line["update"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    rates = [rate(run.train.schedule, update, updates=4, width=16) for update in (1, 2, 3, 4)]
    assert [line["rate"] for line in lines if "loss" in line] == rates
    known = {"update", "epoch", "loss", "negative_log_likelihood", "tokens", "rate", "gradient"}
    assert all(set(line) == known for line in lines if "loss" in line)
    assert [line["update"] for line in lines if "validation" in line] == [2, 4, 4]
    assert "time" not in (folder / "metrics.jsonl").read_text()
    assert those(heard, Finished)[0].why == "finished"
    assert those(heard, Started)[0].update == 0
    state = json.loads((folder / "checkpoints" / "step-00000004" / "state.json").read_text())
    assert state["progress"]["tokens"] == sum(line["tokens"] for line in lines if "loss" in line)
    card = (folder / "best" / "README.md").read_text()
    assert f"{those(heard, Started)[0].parameters:,} parameters" in card
    assert "| loss |" in card


def test_the_scores_of_a_translator_carry_signatures(done: Done) -> None:
    folder, heard = done
    told = those(heard, Validated)[0]
    assert set(told.scores) == {"loss", "perplexity", "accuracy", "bits_per_byte", "bleu", "chrf"}
    assert told.scores["perplexity"] == pytest.approx(math.exp(told.scores["loss"]))
    assert "tok:13a" in told.signatures["bleu"]
    card = (folder / "best" / "README.md").read_text()
    assert told.signatures["bleu"].replace("|", "\\|") in card  # a bare | would end the cell of the table
    assert "tok:13a" in (folder / "best" / "README.md").read_text()
    assert told.shown[0].reference
    assert told.shown[0].source


def test_a_model_folder_translates_raw_text(tmp_path: Path) -> None:
    changes = {"train.updates": 60, "validation.every": 60, "train.save_every": 60, "train.schedule.peak": 0.03}
    folder, _ = started(tmp_path, changes)
    translator = regard.load(folder)
    (found,) = translator.translate(["the dog"])  # type: ignore[union-attr]
    assert isinstance(found.text, str)
    lines = metrics(folder)
    losses = [line["loss"] for line in lines if "loss" in line]
    epochs = [line["epoch"] for line in lines if "loss" in line]
    assert epochs == sorted(epochs)
    assert epochs[0] == 0 < epochs[-1]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10]), "it must learn"


def test_classes_and_tags_can_be_learned_too(tmp_path: Path) -> None:
    rows = [("good dog", "yes"), ("bad cat", "no")] * 40
    (tmp_path / "rows.tsv").write_text("".join(f"{text} {n}\t{label}\n" for n, (text, label) in enumerate(rows)))
    changes = QUICK | {
        "data.train": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "model.task": "classify",
        "model.head": {"kind": "classes", "labels": ["one", "other"]},
        "train.updates": 20,
        "validation.every": 20,
        "validation.metric": "accuracy",
    }
    heard: list[Event] = []
    fit(small_run("fill", corpus(tmp_path / "corpus"), changes), tmp_path / "run", listeners=[heard.append])
    assert RUN_FILES().load(tmp_path / "run" / "run.toml").model.head.labels == ("no", "yes")  # type: ignore[union-attr]
    assert those(heard, Validated)[-1].scores["accuracy"] > 0.9


def test_a_label_that_is_only_held_out_is_known(tmp_path: Path) -> None:
    rare = next(text for text in map("odd mouse {}".format, count()) if is_held_out(text, 0.1, seed=1))
    rows = [(f"{text} {n}", label) for n, (text, label) in enumerate([("good dog", "yes"), ("bad cat", "no")] * 40)]
    (tmp_path / "rows.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in [*rows, (rare, "rare")]))
    changes = QUICK | {
        "data.train": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "model.task": "classify",
        "model.head": {"kind": "classes", "labels": ["one", "other"]},
        "validation.metric": "accuracy",
    }
    fit(small_run("fill", corpus(tmp_path / "corpus"), changes), tmp_path / "run")
    labels = RUN_FILES().load(tmp_path / "run" / "run.toml").model.head.labels  # type: ignore[union-attr]
    assert labels == ("no", "rare", "yes")


def test_a_model_with_a_flipped_bit_is_never_used(folder: Path) -> None:
    path = folder / "best" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=r"model\.safetensors has other content"):
        read_model(folder)


def test_without_validation_the_last_model_is_the_one(tmp_path: Path) -> None:
    folder, heard = started(tmp_path, {"data.held_out": 0.0, "train.average": 1, "train.ema": 0.0})
    assert not those(heard, Validated)
    best = read_model(folder).model.state_dict()
    newest = max((folder / "checkpoints").iterdir())
    for name, tensor in load_tensors(newest / "model.safetensors").items():
        assert torch.equal(tensor, best[name])


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path, done: Done) -> None:
    folder, _ = done
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)
    with pytest.raises(RegardError, match="not empty") as caught:
        fit(run, folder)
    assert "--resume" in (caught.value.fix or "")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(RegardError, match="not empty"):
        fit(run, tmp_path / "other")


def test_a_busy_folder_is_refused(folder: Path) -> None:
    with RunFolder(folder).lock(), pytest.raises(RegardError, match="Another process"):
        resume(folder, more=2)


def test_what_is_finished_is_not_done_again(folder: Path, resting: Path, tmp_path: Path) -> None:
    assert [is_finished(path) for path in (folder, resting, tmp_path / "nothing")] == [True, False, False]
    with pytest.raises(RegardError, match="finished: it has made 4 of 4") as caught:
        resume(folder)
    assert "--more" in (caught.value.fix or "")


def test_total_and_addition_cannot_be_confused(folder: Path) -> None:
    with pytest.raises(RegardError, match="made 4 updates already, more than the 3"):
        resume(folder, updates=3)
    with pytest.raises(RegardError, match="Both a new total"):
        resume(folder, updates=6, more=2)
    assert resume(folder, more=1).update == 5
    assert resume(folder, updates=6).update == 6
    updates = [line["update"] for line in metrics(folder) if "loss" in line]
    assert updates == [1, 2, 3, 4, 5, 6]


def test_changed_settings_are_named_one_by_one_and_refused(folder: Path) -> None:
    changes = {"train.clip": 2.0, "train.schedule.peak": 0.02}
    with pytest.raises(RegardError) as caught:
        resume(folder, more=2, changes=changes)
    assert "train.clip: was 1.0, is 2.0" in caught.value.what
    assert "train.schedule.peak: was 0.01, is 0.02" in caught.value.what
    assert "--accept config" in (caught.value.fix or "")
    assert RUN_FILES().load(folder / "run.toml").train.clip == 1.0
    assert resume(folder, more=2, changes=changes, accept={"config"}).update == 6
    assert RUN_FILES().load(folder / "run.toml").train.clip == 2.0


def test_a_run_file_that_was_edited_is_noticed(folder: Path) -> None:
    text = (folder / "run.toml").read_text().replace("label_smoothing = 0.1", "label_smoothing = 0.2")
    (folder / "run.toml").write_text(text)
    with pytest.raises(RegardError, match=r"label_smoothing: was 0\.1, is 0\.2"):
        resume(folder, more=2)
    (folder / "run.toml").write_text(
        text.replace("label_smoothing = 0.2", "label_smoothing = 0.1").replace("updates = 4", "updates = 9")
    )
    with pytest.raises(RegardError, match=r"train\.updates: was 4, is 9"):
        resume(folder)


def test_a_changed_corpus_is_named_and_refused(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    path = tmp_path / "corpus" / "all.en"
    path.write_text(path.read_text().replace("dog", "fox"))
    with pytest.raises(RegardError, match=r"all\.en has other content") as caught:
        resume(folder, more=2)
    assert "--accept data" in (caught.value.fix or "")
    heard: list[Event] = []
    assert resume(folder, more=2, accept={"data"}, listeners=[heard.append]).update == 6
    assert any("goes on with the tokens that it has" in said.text for said in those(heard, Said))


def test_a_folder_that_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no run"):
        resume(tmp_path)


def test_a_run_killed_before_its_first_update_can_be_resumed(tmp_path: Path, done: Done) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)

    def killed(event: Event) -> None:
        if isinstance(event, Started):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(run, tmp_path / "run", listeners=[killed])
    assert resume(tmp_path / "run").update == 4
    assert learned(tmp_path / "run") == learned(done[0])


def test_a_run_that_rested_ends_as_one_that_did_not(resting: Path, done: Done, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    assert resume(resting).update == 4
    assert threads == [1], "sums depend on it"
    assert learned(resting) == learned(done[0])


def learned(folder: Path) -> dict[str, str]:
    """The fingerprints, but for those that name the corpus' own folder."""
    leave = ("checkpoint/state.json", "checkpoint/manifest.json")
    return {name: print_ for name, print_ in fingerprints(folder).items() if name not in leave}


def test_training_stops_when_nothing_gets_better(tmp_path: Path) -> None:
    changes = {
        "train.updates": 40,
        "validation.every": 2,
        "validation.patience": 2,
        "train.schedule": {"kind": "constant", "peak": 1e-12},
        "validation.metric": "accuracy",  # which does not move at all
    }
    folder, heard = started(tmp_path, changes)
    finished = those(heard, Finished)[0]
    assert finished.why == "no longer better"
    assert finished.update == 6  # the first is the best, two more are not better
    with pytest.raises(RegardError, match="finished: it has made 6 of 40") as caught:
        resume(folder)
    assert "validation.patience" in (caught.value.fix or "")
    assert resume(folder, changes={"validation.patience": 1}, accept={"config"}).update == 8  # it waits anew


def test_differences_are_told_key_by_key() -> None:
    before = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert list(differences(before, {"a": {"b": 1, "c": [2]}, "e": 3})) == [
        ("a.c", [1], [2]),
        ("d", 2, "(not set)"),
        ("e", "(not set)", 3),
    ]


def test_listeners_hear_what_the_journal_holds(done: Done) -> None:
    folder, heard = done
    written = [line["loss"] for line in metrics(folder) if "loss" in line]
    assert written == [event.loss for event in those(heard, Updated)]
    assert json.loads((folder / "corpus.json").read_text())


def test_a_listener_may_be_slow_but_changes_nothing(tmp_path: Path, done: Done) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)

    def noisy(_: Event) -> None:
        torch.rand(3)

    fit(run, tmp_path / "two", listeners=[noisy])
    assert learned(done[0]) == learned(tmp_path / "two")


def test_a_signal_while_the_run_is_set_up_changes_nothing_later(tmp_path: Path) -> None:
    changes = QUICK | {"train.average": 3, "train.keep": 3}  # more than there are: what was saved at 0 is none of them
    run = small_run("translate", corpus(tmp_path / "corpus"), changes)

    def terminated(event: Event) -> None:
        if isinstance(event, Working):
            os.kill(os.getpid(), signal.SIGTERM)

    heard: list[Event] = []
    rest = fit(run, tmp_path / "stopped", listeners=[terminated, heard.append])
    assert (rest.update, rest.why) == (0, "asked to stop")
    assert len(those(heard, Working)) == 1, "it stops at once, and does not cut the text first"
    assert any(said.text.startswith("SIGTERM: ") for said in those(heard, Said))
    resume(tmp_path / "stopped")
    fit(run, tmp_path / "whole")
    assert fingerprints(tmp_path / "stopped") == fingerprints(tmp_path / "whole")


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_signal_to_all_processes_also_ends_those_that_cut_text(
    is_asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object, **__: object) -> None:
        if is_asked:
            os.kill(os.getpid(), signal.SIGTERM)
        raise WorkerError("A worker process died.")

    monkeypatch.setattr("regard.train.corpora.prepare", ended)
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)
    if is_asked:
        assert fit(run, tmp_path / "run").why == "asked to stop"
    else:
        with pytest.raises(WorkerError):
            fit(run, tmp_path / "run")


def test_what_was_accepted_is_not_asked_again_after_a_kill(folder: Path) -> None:
    def killed(event: Event) -> None:
        if isinstance(event, Updated):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resume(folder, more=2, listeners=[killed])
    assert resume(folder).update == 6


def test_settings_that_do_not_fit_are_not_written_down(resting: Path) -> None:
    before = (resting / "run.toml").read_bytes()
    with pytest.raises(RegardError, match=r"those of another model:\n  - model\.width: was 16, is 32"):
        resume(resting, changes={"model.width": 32}, accept={"config"})
    with pytest.raises(RegardError, match="rules of its order have changed"):
        resume(resting, changes={"data.seed": 2}, accept={"config"})
    assert (resting / "run.toml").read_bytes() == before


def test_what_does_not_shape_the_weights_may_change(resting: Path) -> None:
    changes = {"model.encoder.dropout.sublayer": 0.2, "model.encoder.position.kind": "rotary"}
    with pytest.raises(RegardError, match="not those that the run has had"):
        resume(resting, changes=changes)
    assert resume(resting, changes=changes, accept={"config"}).update == 4


def test_an_update_may_grow_and_what_follows_from_it_is_no_change(resting: Path) -> None:
    with pytest.raises(RegardError) as caught:
        resume(resting, changes={"train.update_tokens": 512})
    assert "train.update_tokens: was 256, is 512" in caught.value.what
    assert "together" not in caught.value.what
    resume(resting, changes={"train.update_tokens": 512}, accept={"config"})
    assert RUN_FILES().load(resting / "run.toml").train.accumulate == 4


def test_a_run_that_is_ended_early_validates_its_last_update(resting: Path) -> None:
    resume(resting, updates=3)
    assert [line["update"] for line in metrics(resting) if "validation" in line and "averaged" not in line] == [2, 3]


def test_another_metric_has_another_best(resting: Path) -> None:
    best = json.loads((resting / "checkpoints" / "step-00000003" / "state.json").read_text())["progress"]["best_scores"]
    heard: list[Event] = []
    resume(resting, changes={"validation.metric": "accuracy"}, accept={"config"}, listeners=[heard.append])
    (start,) = those(heard, Started)
    assert start.best == best["accuracy"]


def test_another_loss_is_not_compared_with_those_before(resting: Path) -> None:
    resume(resting, changes={"train.label_smoothing": 0.3}, accept={"config"}, pause_at=3)
    state = json.loads((resting / "checkpoints" / "step-00000003" / "state.json").read_text())
    assert state["progress"]["losses"] == []


def test_damaged_text_can_be_restored_from_running_text(tmp_path: Path) -> None:
    files = corpus(tmp_path / "corpus")
    source = {"kind": "documents", "path": files["book.txt"]}
    changes = QUICK | {"model.task": "restore", "data.train": [source], "tokenizer.dropout": 0.0}
    changes |= {"tokenizer.specials.extra": [f"<x{n}>" for n in range(9)]}
    assert fit(small_run("translate", files, changes), tmp_path / "run").update == 4


def test_what_the_tokens_were_made_with_cannot_change(resting: Path) -> None:
    with pytest.raises(RegardError) as caught:
        resume(resting, changes={"tokenizer.vocabulary": 400, "data.held_out": 0.5}, accept={"config"})
    assert "tokenizer.vocabulary: was 300, is 400" in caught.value.what
    assert "data.held_out: was 0.1, is 0.5" in caught.value.what
    assert resume(resting, changes={"tokenizer.dropout": 0.2}, accept={"config"}).update == 4


def test_an_average_that_is_wanted_later_begins_then(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK | {"train.ema": 0.0})
    fit(run, tmp_path / "run", pause_at=2)
    resume(tmp_path / "run", changes={"train.ema": 0.5}, accept={"config"}, pause_at=3)
    before, after = (tmp_path / "run" / "checkpoints" / f"step-0000000{step}" for step in (2, 3))
    old, new = (load_tensors(path / "model.safetensors") for path in (before, after))
    for name, average in load_tensors(after / "ema.safetensors").items():
        share = 0.5 * (1 - 0.5**2) / (1 - 0.5**3)  # the decay of the third update
        torch.testing.assert_close(average, share * old[name] + (1 - share) * new[name])


def test_a_device_that_is_not_there_is_said_before_anything_is_done(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK | {"device.name": "gpu"})
    with pytest.raises(RegardError, match="no device 'gpu'"):
        fit(run, tmp_path / "run")
    assert not (tmp_path / "run" / "vocabulary").exists()


def test_settings_that_are_new_since_a_run_began_had_their_defaults(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path))
    before = to_dict(run)
    del before["model"]["growth"], before["train"]["clip"]
    _check_changes(before, run, accepted=False, longer=False, where="run.toml")
    before["train"]["clip"] = 0.123
    with pytest.raises(RegardError, match=r"train\.clip: was 0\.123"):
        _check_changes(before, run, accepted=False, longer=False, where="run.toml")


def test_how_far_sources_may_grow_is_found_in_the_corpus(tmp_path: Path) -> None:
    """Every word of a source becomes twelve."""
    (tmp_path / "in").write_text("".join(f"go {n}\n" for n in range(300)), encoding="utf-8")
    (tmp_path / "out").write_text("".join("left right " * 12 + f"{n}\n" for n in range(300)), encoding="utf-8")
    files = {**corpus(tmp_path), "all.en": str(tmp_path / "in"), "all.de": str(tmp_path / "out")}
    fit(small_run("translate", files, {"train.updates": 2}), tmp_path / "run")
    settings = read_model(tmp_path / "run").settings
    assert isinstance(settings, EncoderDecoder)
    assert settings.max_length_ratio > 5
    translator = regard.load(tmp_path / "run")
    assert isinstance(translator, Translator)
    (source,) = translator.encode_sources(["go 1"], None)
    assert translator.resolve_max_lengths([source], None) == [math.ceil(settings.max_length_ratio * len(source)) + 50]


def test_samples_that_are_set_aside_are_told(tmp_path: Path) -> None:
    _, heard = started(tmp_path, {"data.longest": 12})
    told = [said for said in those(heard, Said) if "12 tokens" in said.text]
    assert told
    assert told[0].kind == "warning"
