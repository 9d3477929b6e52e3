"""`--track prometheus` keeps the newest metrics in a file that Prometheus can parse."""

from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families

from regard.training.events import StepFinished, Timed, Validated
from regard.training.prometheus import PrometheusListener
from regard.training.run import fit
from regard.training.trackers import make_tracker
from tests.training.runs import make_small_run, read_metrics, write_corpus


def read(path: Path) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the values of a file by name and labels."""
    families = text_string_to_metric_families(path.read_text(encoding="utf-8"))
    samples = (sample for family in families for sample in family.samples)
    return {(sample.name, tuple(sample.labels.values())): sample.value for sample in samples}


def test_file_has_a_value_for_each_rank(tmp_path: Path) -> None:
    listener = PrometheusListener(tmp_path / "metrics.prom")
    timed = Timed(50, 9.0, 0.5, 1e9, 1, (3.0, 3.0), (0.5, 0.25), (2.0, 0.0), (1.0, 3.0), (1.0, 2.0), (7, 8))
    listener(StepFinished(50, 0, 2.5, 2.5, 9, 9, 0.01, 1.5, 3.0))
    listener(timed)
    values = read(tmp_path / "metrics.prom")
    assert values["regard:train_loss", ()] == 2.5
    assert values["regard:train_mfu", ()] == 0.5
    assert values["regard:train_slowest_rank", ()] == 1
    assert [values["regard:train_work_seconds", (rank,)] for rank in "01"] == [1.0, 3.0]
    assert [values["regard:train_memory_bytes", (rank,)] for rank in "01"] == [7, 8]
    listener(Validated(50, {"loss": 2.25}, True))
    assert read(tmp_path / "metrics.prom")["regard:train_validation", ("loss",)] == 2.25


def test_run_ends_with_the_numbers_of_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.training.trainer.INTERVAL", 2)
    changes = {"train.steps": 4, "train.average": 1, "validation.every_steps": 4}
    run, folder = make_small_run("causal_lm", write_corpus(tmp_path / "corpus", 60), changes), tmp_path / "run"
    fit(run, folder, listeners=[make_tracker("prometheus", folder)])
    values = read(folder / "metrics.prom")
    lines = read_metrics(folder)
    assert values["regard:train_step", ()] == 4
    assert values["regard:train_loss", ()] == [line["loss"] for line in lines if "loss" in line][-1]
    (scores,) = [line["validation"] for line in lines if "validation" in line]
    assert values["regard:train_validation", ("loss",)] == scores["loss"]
    assert values["regard:train_step_seconds", ("0",)] > 0
