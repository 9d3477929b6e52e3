"""Runs from beginning to end: folders, resuming, refusing, and what happens when it goes wrong."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.base.files import verify
from regard.config.codec import runs
from regard.data.batch import Batch
from regard.store.model_folder import read_model
from regard.store.run_folder import RunFolder
from regard.store.weights import load_tensors
from regard.train.events import Event, Finished, Listener, Said, Spiked, Started, Updated, Validated
from regard.train.fit import differences, fit, resume
from regard.train.loss import WordLoss
from regard.train.objective import Objective
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


@pytest.mark.parametrize("task", FAMILIES)
def test_a_run_leaves_a_folder_that_says_everything(task: str, tmp_path: Path) -> None:
    folder, heard = started(tmp_path, task=task)
    expected = {"run.toml", "corpus.json", "vocabulary", "shards", "validation.jsonl", "metrics.jsonl", "timing.jsonl"}
    assert expected | {"checkpoints", "best", "average"} <= {path.name for path in folder.iterdir()}
    for name in ("best", "average"):
        verify(folder / name)
        names = {path.name for path in (folder / name).iterdir()}
        assert names == {"model.toml", "model.safetensors", "tokenizer.json", "README.md", "manifest.json"}
    run = runs().load(folder / "run.toml")
    assert run.train.together == 2
    stored = read_model(folder)
    size = stored.vocabularies.source.size
    assert stored.settings == run.model
    assert stored.model.head is not None
    assert size == stored.vocabularies.target.size
    lines = metrics(folder)
    assert [line["update"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    known = {"update", "epoch", "loss", "negative_log_likelihood", "tokens", "rate", "gradient"}
    assert all(set(line) == known for line in lines if "loss" in line)
    assert [line["update"] for line in lines if "validation" in line] == [2, 4, 4]
    assert "time" not in (folder / "metrics.jsonl").read_text()
    assert those(heard, Finished)[0].why == "finished"
    assert those(heard, Started)[0].update == 0
    card = (folder / "best" / "README.md").read_text()
    assert f"{those(heard, Started)[0].parameters:,} parameters" in card
    assert "| loss |" in card


def test_the_scores_of_a_translator_carry_signatures(tmp_path: Path) -> None:
    folder, heard = started(tmp_path)
    told = those(heard, Validated)[0]
    assert set(told.scores) == {"loss", "perplexity", "accuracy", "bits_per_byte", "bleu", "chrf"}
    assert told.scores["perplexity"] == pytest.approx(math.exp(told.scores["loss"]))
    assert "tok:13a" in told.signatures["bleu"]
    assert "tok:13a" in (folder / "best" / "README.md").read_text()
    assert told.shown[0].reference
    assert told.shown[0].source


def test_a_model_folder_translates_raw_text(tmp_path: Path) -> None:
    folder, _ = started(tmp_path, {"train.updates": 120, "validation.every": 60, "train.save_every": 60})
    translator = regard.load(folder)
    (found,) = translator.translate(["the dog"])  # type: ignore[union-attr]
    assert isinstance(found.text, str)
    lines = metrics(folder)
    losses = [line["loss"] for line in lines if "loss" in line]
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10]), "it must learn"


def test_classes_and_tags_can_be_learned_too(tmp_path: Path) -> None:
    rows = [("good dog", "yes"), ("bad cat", "no")] * 40
    (tmp_path / "rows.tsv").write_text("".join(f"{text} {n}\t{label}\n" for n, (text, label) in enumerate(rows)))
    changes = QUICK | {
        "data.train": [{"kind": "table", "path": str(tmp_path / "rows.tsv"), "label": 2}],
        "model.task": "classify",
        "model.head": {"kind": "classes", "labels": ["one", "other"]},
        "train.updates": 40,
        "validation.every": 40,
        "validation.metric": "accuracy",
    }
    heard: list[Event] = []
    fit(small_run("fill", corpus(tmp_path / "corpus"), changes), tmp_path / "run", listeners=[heard.append])
    assert runs().load(tmp_path / "run" / "run.toml").model.head.labels == ("no", "yes")  # type: ignore[union-attr]
    assert those(heard, Validated)[-1].scores["accuracy"] > 0.9


def test_without_validation_the_last_model_is_the_one(tmp_path: Path) -> None:
    folder, heard = started(tmp_path, {"data.held_out": 0.0, "train.average": 1, "train.ema": 0.0})
    assert not those(heard, Validated)
    best = read_model(folder).model.state_dict()
    newest = max((folder / "checkpoints").iterdir())
    for name, tensor in load_tensors(newest / "model.safetensors").items():
        assert torch.equal(tensor, best[name])


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)
    with pytest.raises(RegardError, match="not empty") as caught:
        fit(run, folder)
    assert "--resume" in (caught.value.fix or "")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(RegardError, match="not empty"):
        fit(run, tmp_path / "other")


def test_a_busy_folder_is_refused(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    with RunFolder(folder).held(), pytest.raises(RegardError, match="Another process"):
        resume(folder, more=2)


def test_what_is_finished_is_not_done_again(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    with pytest.raises(RegardError, match="finished: it has made 4 of 4") as caught:
        resume(folder)
    assert "--more" in (caught.value.fix or "")


def test_total_and_addition_cannot_be_confused(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    with pytest.raises(RegardError, match="made 4 updates already, more than the 3"):
        resume(folder, updates=3)
    with pytest.raises(RegardError, match="Both a new total"):
        resume(folder, updates=6, more=2)
    assert resume(folder, more=2).update == 6
    assert resume(folder, updates=7).update == 7
    updates = [line["update"] for line in metrics(folder) if "loss" in line]
    assert updates == [1, 2, 3, 4, 5, 6, 7]


def test_changed_settings_are_named_one_by_one_and_refused(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    changes = {"train.clip": 2.0, "train.schedule.peak": 0.02}
    with pytest.raises(RegardError) as caught:
        resume(folder, more=2, changes=changes)
    assert "train.clip: was 1.0, is 2.0" in caught.value.what
    assert "train.schedule.peak: was 0.01, is 0.02" in caught.value.what
    assert "--accept config" in (caught.value.fix or "")
    assert runs().load(folder / "run.toml").train.clip == 1.0
    assert resume(folder, more=2, changes=changes, accept={"config"}).update == 6
    assert runs().load(folder / "run.toml").train.clip == 2.0


def test_a_run_file_that_was_edited_is_noticed(tmp_path: Path) -> None:
    folder, _ = started(tmp_path)
    text = (folder / "run.toml").read_text().replace("label_smoothing = 0.1", "label_smoothing = 0.2")
    (folder / "run.toml").write_text(text)
    with pytest.raises(RegardError, match=r"label_smoothing: was 0\.1, is 0\.2"):
        resume(folder, more=2)


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


def test_a_run_killed_before_its_first_update_can_be_resumed(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)
    whole = tmp_path / "whole"
    fit(run, whole)

    def killed(event: Event) -> None:
        if isinstance(event, Started):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(run, tmp_path / "run", listeners=[killed])
    assert resume(tmp_path / "run").update == 4
    assert fingerprints(tmp_path / "run") == fingerprints(whole)


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
    with pytest.raises(RegardError, match="finished: it has made 6 of 40"):
        resume(folder)


class Spiky(Objective):
    """An objective that is not finite, or far too high, for some batches."""

    faults: dict[int, float]
    seen = 0

    def __call__(self, batch: Batch) -> WordLoss:
        found = super().__call__(batch)
        if self.model.training:
            Spiky.seen += 1
            return WordLoss(found.total * self.faults.get(Spiky.seen, 1.0), found.negative_log_likelihood, found.right)
        return found


@pytest.fixture
def spiky(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Spiky]]:
    monkeypatch.setattr("regard.train.trainer.Objective", Spiky)
    Spiky.seen, Spiky.faults = 0, {}
    yield Spiky
    Spiky.faults = {}


@pytest.mark.parametrize("fault", [math.nan, math.inf])
def test_a_loss_that_is_no_number_never_reaches_the_weights(fault: float, tmp_path: Path, spiky: type[Spiky]) -> None:
    spiky.faults = {3: fault}  # the first batch of the second update
    folder, heard = started(tmp_path)
    (spike,) = those(heard, Spiked)
    assert spike.done == "left out"
    lines = metrics(folder)
    (line,) = [line for line in lines if "spike" in line]
    assert line["update"] == 2
    assert len(line["batches"]) == 2
    assert [line["update"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    for tensor in read_model(folder).model.state_dict().values():
        assert torch.isfinite(tensor).all()


def test_the_policy_stop_stops_before_the_spike(tmp_path: Path, spiky: type[Spiky]) -> None:
    spiky.faults = {7: math.nan}  # update 4
    folder, heard = started(tmp_path, {"train.spikes": {"kind": "stop"}})
    assert those(heard, Finished)[0].why == "spike"
    assert those(heard, Finished)[0].update == 3
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["step-00000002"]


def test_the_policy_rewind_goes_back_and_leaves_out_the_batches(tmp_path: Path, spiky: type[Spiky]) -> None:
    spiky.faults = {2 * 20 - 1: 1e3}  # update 20
    policy = {"kind": "rewind", "back": 5, "window": 8}
    changes = {"train.spikes": policy, "train.updates": 24, "train.save_every": 4, "validation.every": 24}
    folder, heard = started(tmp_path, changes)
    (spike,) = those(heard, Spiked)
    assert "went back to update 12" in spike.done
    updates = [event.update for event in those(heard, Updated)]
    assert updates == [*range(1, 20), *range(13, 25)]
    assert [line["update"] for line in metrics(folder) if "loss" in line] == updates
    assert not any(path.name > "step-00000024" for path in (folder / "checkpoints").iterdir())


def test_too_many_spikes_end_the_run(tmp_path: Path, spiky: type[Spiky]) -> None:
    spiky.faults = dict.fromkeys(range(3, 200), math.nan)
    _, heard = started(tmp_path, {"train.spikes": {"kind": "skip", "most": 3}})
    assert those(heard, Finished)[0].why == "spike"
    assert len(those(heard, Spiked)) == 4


def test_differences_are_told_key_by_key() -> None:
    before = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert list(differences(before, {"a": {"b": 1, "c": [2]}, "e": 3})) == [
        ("a.c", [1], [2]),
        ("d", 2, "(not set)"),
        ("e", "(not set)", 3),
    ]


def test_listeners_hear_what_the_journal_holds(tmp_path: Path) -> None:
    folder, heard = started(tmp_path)
    written = [line["loss"] for line in metrics(folder) if "loss" in line]
    assert written == [event.loss for event in those(heard, Updated)]
    assert json.loads((folder / "corpus.json").read_text())


def test_a_listener_may_be_slow_but_changes_nothing(tmp_path: Path) -> None:
    run = small_run("translate", corpus(tmp_path / "corpus"), QUICK)

    def noisy(_: Event) -> None:
        torch.rand(3)

    quiet: list[Listener] = []
    fit(run, tmp_path / "one", listeners=quiet)
    fit(run, tmp_path / "two", listeners=[noisy])
    assert fingerprints(tmp_path / "one") == fingerprints(tmp_path / "two")
