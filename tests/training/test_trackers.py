"""Trackers receive the metrics of metrics.jsonl; each test runs only if its tracker is installed."""

from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.store.run_folder import RunFolder
from regard.training.run import fit, resume
from regard.training.trackers import experiment_id, make_tracker, save_experiment_id
from tests.training.runs import make_small_run, read_metrics, write_corpus

SHORT_RUN: dict[str, Any] = {"train.steps": 4, "validation.every_steps": 2, "train.average": 1}


def run_with(name: str, tmp_path: Path) -> list[dict[str, Any]]:
    """Pause and resume a run with a tracker; return the lines of its metrics.jsonl."""
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), SHORT_RUN)
    folder = tmp_path / "run"
    fit(run, folder, listeners=[make_tracker(name, folder)], pause_at=2)
    resume(folder, listeners=[make_tracker(name, folder)])
    return read_metrics(folder)


def test_tensorboard_has_the_numbers_of_the_journal(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    lines = run_with("tensorboard", tmp_path)
    accumulator = events.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    expected = [(line["step"], line["loss"]) for line in lines if "loss" in line]
    logged = [(event.step, event.value) for event in accumulator.Scalars("train/loss")]
    assert logged == [(step, pytest.approx(value, rel=1e-6)) for step, value in expected]
    assert [event.step for event in accumulator.Scalars("validation/bleu")] == [2, 4]


def test_a_tracker_writes_into_the_run_folder_only(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    run = make_small_run("causal_lm", write_corpus(tmp_path / "corpus", 60), SHORT_RUN)
    folder, outside = tmp_path / "run", tmp_path / "outside"
    outside.mkdir()
    fit(run, folder, pause_at=2)
    (folder / "tensorboard").symlink_to(outside)
    with pytest.raises(RegardError, match="not a regular file"):
        resume(folder, listeners=[make_tracker("tensorboard", folder)])
    assert not list(outside.iterdir())


def test_links_that_wandb_makes_are_accepted(tmp_path: Path) -> None:
    """W&B links its newest run and its log; such links stay inside its folder."""
    (tmp_path / "wandb" / "offline-run-1" / "logs").mkdir(parents=True)
    (tmp_path / "wandb" / "latest-run").symlink_to("offline-run-1")
    (tmp_path / "wandb" / "debug.log").symlink_to("offline-run-1/logs/debug.log")
    with RunFolder(tmp_path).lock():
        pass
    (tmp_path / "wandb" / "debug.log").unlink()
    (tmp_path / "wandb" / "debug.log").symlink_to("../../debug.log")
    with pytest.raises(RegardError, match="not a regular file") as caught, RunFolder(tmp_path).lock():
        pass
    assert (caught.value.location or "").endswith("debug.log")


@pytest.mark.filterwarnings("ignore")  # warnings of the tracker itself
def test_mlflow_has_the_numbers_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'ml.db'}")
    monkeypatch.chdir(tmp_path)
    lines = run_with("mlflow", tmp_path)
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("regard")
    (run,) = client.search_runs([experiment.experiment_id])
    logged = [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, "train/loss")]
    assert logged == [(line["step"], line["loss"]) for line in lines if "loss" in line]


@pytest.mark.filterwarnings("ignore")  # warnings of the tracker itself
def test_wandb_works_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    run_with("wandb", tmp_path)
    files = list((tmp_path / "run" / "wandb").glob("offline-run-*/run-*.wandb"))
    assert files
    assert all(path.stat().st_size > 0 for path in files)
    assert (tmp_path / "run" / "trackers.json").is_file()


def test_an_unknown_tracker_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no tracker 'tensorbord'") as caught:
        make_tracker("tensorbord", tmp_path)
    assert "tensorboard" in (caught.value.hint or "")


def test_experiments_are_remembered(tmp_path: Path) -> None:
    assert experiment_id(tmp_path, "wandb") is None
    save_experiment_id(tmp_path, "wandb", "a1")
    save_experiment_id(tmp_path, "mlflow", "b2")
    assert [experiment_id(tmp_path, name) for name in ("wandb", "mlflow", "tensorboard")] == ["a1", "b2", None]


@pytest.mark.parametrize("content", ["{", "[1]", '{"wandb": 3}', "[" * 100_000])
def test_a_damaged_list_of_experiments_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "trackers.json").write_text(content)
    with pytest.raises(RegardError) as caught:
        experiment_id(tmp_path, "wandb")
    assert "trackers.json" in (caught.value.location or "")
    assert "Remove the file" in (caught.value.hint or "")
