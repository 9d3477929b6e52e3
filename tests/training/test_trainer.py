"""The training loop under spikes, kills and damaged checkpoints: the best model stays, and a stop changes nothing."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.nn.autocast_attention import AutocastAttention
from regard.nn.stack import Stack
from regard.store.model_folder import read_model
from regard.store.weights import load_tensors
from regard.training.checkpoint.folder import Checkpoints
from regard.training.events import Diverged, Event, Finished, Message, Saved, Spiked, StepFinished, Validated
from regard.training.run import fit, resume
from regard.training.trainer import Trainer
from tests.training.factories import SpikyObjective, make_trainer
from tests.training.runs import (
    DIVERGING,
    SHORT_RUN,
    compute_fingerprints,
    make_small_run,
    read_metrics,
    run_to_end,
    select_events,
    write_corpus,
)


def read_progress(folder: Path, step: int) -> dict[str, Any]:
    """Read the progress of a run from a checkpoint."""
    state = json.loads((folder / "checkpoints" / f"step-{step:08}" / "state.json").read_text())
    return dict(state["progress"])


@pytest.fixture
def spiky(monkeypatch: pytest.MonkeyPatch) -> type[SpikyObjective]:
    monkeypatch.setattr("regard.training.trainer.Objective", SpikyObjective)
    SpikyObjective.batch_count, SpikyObjective.faults, SpikyObjective.batch_factors, SpikyObjective.gradient_factors = (
        0,
        {},
        {},
        {},
    )
    return SpikyObjective


@pytest.fixture(scope="module")
def diverged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that has diverged and recovered at least twice; tests must not change it."""
    folder = tmp_path_factory.mktemp("diverged")
    run = make_small_run("translation", write_corpus(folder / "corpus"), DIVERGING)
    assert fit(run, folder / "run").reason == "finished"
    assert sum("divergence" in line for line in read_metrics(folder / "run")) >= 2
    return folder / "run"


@pytest.mark.parametrize("fault", [math.nan, math.inf])
def test_a_loss_that_is_no_number_never_reaches_the_weights(
    fault: float, tmp_path: Path, spiky: type[SpikyObjective]
) -> None:
    spiky.faults = {5: fault}  # the first batch of the third step
    folder, events = run_to_end(tmp_path)
    (spike,) = select_events(events, Spiked)
    assert spike.action == "skipped"
    lines = read_metrics(folder)
    (line,) = [line for line in lines if "spike" in line]
    assert line["step"] == 3
    assert line["batches"] == [4, 5]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    assert [line["step"] for line in lines if "validation" in line] == [2, 4, 4], "skipped steps are not validated"
    for tensor in read_model(folder).model.state_dict().values():
        assert torch.isfinite(tensor).all()


def test_the_policy_stop_saves_what_was_before_the_spike(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = {7: math.nan}  # step 4
    folder, events = run_to_end(tmp_path, {"train.spikes": {"kind": "stop"}})
    assert select_events(events, Finished)[0].reason == "spike"
    assert select_events(events, Finished)[0].step == 3
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-00000002", "step-00000003"]
    assert read_metrics(folder)[-1]["action"] == "stopped"
    assert read_progress(folder, 3)["spikes"] == 0, "the checkpoint is from before the spike"
    spiky.faults = {}
    assert resume(folder).step == 4
    lines = read_metrics(folder)
    assert not any("spike" in line for line in lines), "the spike must not recur"
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]


RECOVERING: dict[str, Any] = {
    "train.spikes.window": 8,
    "train.steps": 16,
    "train.save_every": 4,
    "train.average": 1,
    "validation.every_steps": 16,
    "validation.sentences": 0,
}


def test_spikes_in_a_row_go_back_with_a_third_of_the_learning_rate(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = dict.fromkeys(range(2 * 14 - 1, 2 * 14 + 15), 1e3)  # from step 14 on: eight steps of two batches
    folder, events = run_to_end(tmp_path, RECOVERING | {"train.schedule": {"kind": "constant", "lr": 0.01}})
    (divergence,) = select_events(events, Diverged)
    assert divergence.fault.startswith("8 spikes in a row; the loss is")
    assert divergence.action == "back to step 12 with train.schedule.lr lowered from 0.01 to 0.0033"
    lines = [line for line in read_metrics(folder) if "loss" in line]
    assert [line["step"] for line in lines] == [*range(1, 14), *range(13, 17)]
    assert [line["learning_rate"] for line in lines] == pytest.approx([0.01] * 13 + [0.01 / 3] * 4)
    assert [line["action"] for line in read_metrics(folder) if "action" in line][-1] == divergence.action
    assert read_progress(folder, 16)["recoveries"] == [12]


def test_a_few_spikes_in_a_row_are_skipped(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = dict.fromkeys(range(2 * 14 - 1, 2 * 14 + 13), 1e3)  # seven steps
    _, events = run_to_end(tmp_path, RECOVERING)
    assert [event.action for event in select_events(events, Spiked)] == ["skipped"] * 7


def test_a_run_without_a_healthy_checkpoint_starts_over(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = dict.fromkeys(range(5, 21), math.nan)  # from step 3 on; the checkpoint of step 2 may be too late
    folder, events = run_to_end(tmp_path)
    (divergence,) = select_events(events, Diverged)
    assert divergence.action.startswith("back to step 0 with")
    losses = [line["negative_log_likelihood"] for line in read_metrics(folder) if "loss" in line]
    assert losses[2] == pytest.approx(losses[0], abs=0.3), "the initial weights again, with other batches"
    assert [line["step"] for line in read_metrics(folder) if "loss" in line] == [1, 2, 1, 2, 3, 4]


def test_too_many_divergences_stop_the_run_and_name_the_setting(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = dict.fromkeys(range(3, 300), math.nan)
    folder, events = run_to_end(tmp_path, {"train.average": 1})
    (finished,) = select_events(events, Finished)
    assert (finished.reason, finished.rate_change) == ("divergence", "train.schedule.lr=4e-05")
    assert finished.shortfall.startswith("The likely cause is train.schedule.lr = 0.01; values down to 0.00012 did not")
    assert len(select_events(events, Diverged)) == 5
    assert read_metrics(folder)[-1]["action"] == "stopped; the run can continue from step 0"
    spiky.faults = {}
    assert resume(folder, changes={"train.schedule.lr": 0.001}, force=True).reason == "finished"
    rates = [line["learning_rate"] for line in read_metrics(folder) if "loss" in line]
    assert max(rates[-4:]) == pytest.approx(0.001), "a new learning rate is not lowered"


def test_the_policy_stop_leaves_the_checkpoint_from_before_the_divergence(tmp_path: Path) -> None:
    folder, events = run_to_end(tmp_path, DIVERGING | {"train.spikes.kind": "stop"})
    (finished,) = select_events(events, Finished)
    assert finished.reason in ("divergence", "spike")
    assert finished.step < DIVERGING["train.steps"]
    assert read_metrics(folder)[-1]["action"].startswith("stopped")


def test_a_tuned_model_goes_back_to_its_parent(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    files = write_corpus(tmp_path / "corpus")
    fit(make_small_run("translation", files, SHORT_RUN), tmp_path / "parent")
    parent = load_tensors(tmp_path / "parent" / "best" / "model.safetensors")
    changes = {"finetune": {"parent": str(tmp_path / "parent")}, "tokenizer": {"kind": "parent"}, "train.ema": 0.0}
    spiky.batch_count, spiky.faults = 0, dict.fromkeys(range(7, 23), math.nan)  # from step 4 on

    def interrupt(event: Event) -> None:
        if isinstance(event, Diverged):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(make_small_run("translation", files, SHORT_RUN | changes), tmp_path / "tuned", listeners=[interrupt])
    restored = load_tensors(tmp_path / "tuned" / "checkpoints" / "step-00000000" / "model.safetensors")
    assert all(torch.equal(tensor, parent[name]) for name, tensor in restored.items())


@pytest.mark.parametrize("kill", ["first removal", "last removal", "save", "event"])
def test_a_kill_during_recovery_leaves_no_trace(kill: str, tmp_path: Path, diverged_run: Path) -> None:
    removals, recoveries = 0, 0
    with pytest.MonkeyPatch.context() as patch:
        remove, save, recover = Checkpoints.remove, Trainer._save, Trainer._recover

        def killing_recover(trainer: Trainer, *arguments: Any) -> Any:
            nonlocal removals, recoveries
            recoveries += 1
            removals = len(trainer.checkpoints.steps()) - (trainer._find_healthy_step() in trainer.checkpoints.steps())
            return recover(trainer, *arguments)

        def killing_remove(checkpoints: Checkpoints, step: int) -> None:
            nonlocal removals
            remove(checkpoints, step)
            removals -= 1
            if recoveries == 2 and (kill == "first removal" or (kill == "last removal" and not removals)):
                raise KeyboardInterrupt

        def killing_save(trainer: Trainer) -> None:
            if recoveries == 2 and kill == "save":
                raise KeyboardInterrupt
            save(trainer)

        def killing_listener(event: Event) -> None:
            if recoveries == 2 and isinstance(event, Diverged):
                raise KeyboardInterrupt

        patch.setattr(Trainer, "_recover", killing_recover)
        patch.setattr(Checkpoints, "remove", killing_remove)
        patch.setattr(Trainer, "_save", killing_save)
        with pytest.raises(KeyboardInterrupt):
            fit(RUN_FILES.load(diverged_run / "run.toml"), tmp_path / "run", listeners=[killing_listener])
    resume(tmp_path / "run")
    assert compute_fingerprints(tmp_path / "run") == compute_fingerprints(diverged_run)


def test_float16_finds_its_scale_without_counting_steps(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.gradient_factors = {1: math.inf, 3: math.inf}
    events: list[Event] = []
    changes = SHORT_RUN | {"train.precision": "float16", "train.average": 1}
    folder = tmp_path / "run"
    fit(
        make_small_run("translation", write_corpus(tmp_path / "corpus"), changes),
        folder,
        listeners=[events.append],
        pause_at=2,
    )
    resume(folder, listeners=[events.append])
    assert not select_events(events, Spiked)
    lines = read_metrics(folder)
    assert [line["batches"] for line in lines if "overflow" in line] == [[0, 1], [2, 3]]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2, 3, 4]
    assert [event.step for event in select_events(events, Validated)] == [2, 4]
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step-00000002", "step-00000004"]
    assert read_progress(folder, 4)["scaler"]["scale"] == 2**14  # from 2^16, halved twice, and restored after the stop


def test_a_gradient_that_no_scale_mends_is_a_spike(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.gradient_factors = dict.fromkeys(range(1, 200), math.nan)
    folder, events = run_to_end(tmp_path, {"train.precision": "float16"})
    assert select_events(events, Finished)[0].reason == "divergence"
    assert sum("overflow" in line for line in read_metrics(folder)) == 16  # from 2^16 down to 1


def test_every_setting_reaches_its_place(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "train.checkpoint_activations": True,
        "train.label_smoothing": 0.3,
        "train.max_grad_norm": 0.5,
        "device.logit_rows": 7,
    }
    settings |= {"device.attention": "float32"}
    trainer = make_trainer("translation", tmp_path, settings)
    stacks = [module for module in trainer.model.modules() if isinstance(module, Stack)]
    assert [stack.checkpoint_activations for stack in stacks] == [True, True]
    attentions = [module for module in trainer.model.modules() if isinstance(module, AutocastAttention)]
    assert [attention.should_upcast for attention in attentions] == [True] * 3  # self-attention twice, cross-attention
    assert (trainer.objective.label_smoothing, trainer.objective.logit_rows, trainer.step_runner._clip) == (0.3, 7, 0.5)
    assert trainer.loader.gradient_accumulation == trainer.run.gradient_accumulation == 2
    assert trainer.loader._resegment is not None
    assert trainer.validator is not None
    assert trainer.validator.loader._resegment is None, "validation has no subword noise"


SAVING: dict[str, Any] = {
    "train.steps": 6,
    "train.average": 3,
    "train.keep_checkpoints": 2,
    "validation.every_steps": 4,
}


@pytest.fixture(scope="module")
def paused_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is paused at step 5, with checkpoints 2, 4 and 5; tests must not change it."""
    folder = tmp_path_factory.mktemp("saved")
    fit(make_small_run("translation", write_corpus(folder / "corpus"), SHORT_RUN | SAVING), folder / "run", pause_at=5)
    return folder / "run"


def damage(folder: Path, step: int) -> None:
    path = folder / "checkpoints" / f"step-{step:08}" / "state.json"
    path.write_text(path.read_text() + " ")


def test_a_damaged_checkpoint_never_pushes_out_a_good_one(paused_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(paused_run, folder)
    damage(folder, 5)
    damage(folder, 4)
    events: list[Event] = []
    changes = {"train.average": 1, "train.keep_checkpoints": 1}
    finished = resume(folder, changes=changes, force=True, pause_at=3, listeners=[events.append])
    assert finished.step == 3
    assert any("step-00000004 is damaged" in message.text for message in select_events(events, Message))
    names = sorted(path.name for path in (folder / "checkpoints").iterdir() if path.suffix != ".damaged")
    assert names == ["step-00000002", "step-00000003"]
    steps = [line["step"] for line in read_metrics(folder) if "loss" in line]
    assert steps == [1, 2, 3], "metrics.jsonl is truncated to the checkpoint"
    assert resume(folder).step == 6


def test_a_damaged_checkpoint_is_left_out_of_the_average(paused_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(paused_run, folder)
    damage(folder, 2)
    events: list[Event] = []
    resume(folder, listeners=[events.append])
    lines = read_metrics(folder)
    assert [line["averaged"] for line in lines if "averaged" in line] == [[4, 6]]
    assert [line["step"] for line in lines if "validation" in line] == [4, 6, 6], "always after the last step"
    assert any("step-00000002 is damaged" in message.text for message in select_events(events, Message))


@pytest.mark.parametrize("is_average_better", [True, False])
def test_a_better_average_is_the_best_model(
    is_average_better: bool, paused_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(paused_run, tmp_path / "run")
    monkeypatch.setattr("regard.training.trainer.is_better", lambda *_: is_average_better)
    resume(tmp_path / "run")
    best, average, last = (
        load_tensors(tmp_path / "run" / name / "model.safetensors")["encoder.final_norm.weight"]
        for name in ("best", "average", "checkpoints/step-00000006")
    )
    assert torch.equal(best, average) == is_average_better
    assert not torch.equal(last, average), "training continues from its own weights, not from the average"
    four, two = (
        load_tensors(paused_run / "checkpoints" / f"step-0000000{step}" / "model.safetensors")[
            "encoder.final_norm.weight"
        ]
        for step in (4, 2)
    )
    torch.testing.assert_close(average, (two + four + last) / 3)


def test_a_lost_journal_is_reported(paused_run: Path, tmp_path: Path) -> None:
    shutil.copytree(paused_run, tmp_path / "run")
    (tmp_path / "run" / "metrics.jsonl").unlink()
    with pytest.raises(RegardError, match="Lines are missing"):
        resume(tmp_path / "run")


def test_a_kill_at_the_very_end_leaves_no_trace(paused_run: Path, tmp_path: Path) -> None:
    """Killed while averaging, or between the last model and the last checkpoint."""
    for name in ("whole", "one", "two"):
        shutil.copytree(paused_run, tmp_path / name)
    resume(tmp_path / "whole")
    names = sorted(path.name for path in (tmp_path / "whole" / "checkpoints").iterdir())
    assert names == ["step-00000002", "step-00000004", "step-00000006"], "the checkpoint of the stop at 5 is removed"

    def interrupt(event: Event, after: type[Any], step: int) -> None:
        if isinstance(event, after) and event.step == step:
            raise KeyboardInterrupt

    for name, after in (("one", Validated), ("two", StepFinished)):
        with pytest.raises(KeyboardInterrupt):
            resume(tmp_path / name, listeners=[lambda event, after=after: interrupt(event, after, 6)])  # type: ignore[misc]
        resume(tmp_path / name)
        assert compute_fingerprints(tmp_path / name) == compute_fingerprints(tmp_path / "whole")


def test_the_last_checkpoint_is_written_once_without_averaging(tmp_path: Path) -> None:
    run = make_small_run("causal_lm", write_corpus(tmp_path / "corpus"), {"train.steps": 10, "train.average": 1})
    saved: list[int] = []
    fit(
        run,
        tmp_path / "run",
        listeners=[lambda event: saved.append(event.step) if isinstance(event, Saved) else None],
    )
    assert saved == [5, 10]
    assert read_progress(tmp_path / "run", 10)["finished"]


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm"])
def test_speed_counts_the_tokens_that_the_model_reads(task: str, tmp_path: Path) -> None:
    events: list[Event] = []
    trainer = make_trainer(task, tmp_path, {"train.steps": 1}, events)
    batches = next(iter(trainer.loader.steps(None))).batches
    pad = trainer.validator._context.tokenizers.source.specials.pad if trainer.validator is not None else -1
    inputs = [tensor for batch in batches for tensor in (batch.source, batch.target) if tensor is not None]
    read_tokens = sum(int((tensor != pad).sum()) for tensor in inputs)
    trainer.train()
    (updated,) = [event for event in events if isinstance(event, StepFinished)]
    assert updated.input_tokens == read_tokens
    if task == "causal_lm":
        assert updated.tokens == read_tokens
    elif task == "translation":
        assert updated.tokens < read_tokens
