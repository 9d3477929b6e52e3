"""The training loop under spikes, kills and damaged checkpoints: the best model stays, and a stop changes nothing."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.nn.autocast_attention import AutocastAttention
from regard.nn.stack import Stack
from regard.store.model_folder import read_model
from regard.store.weights import load_tensors
from regard.training.events import Event, Finished, Message, Saved, Spiked, StepFinished, Validated
from regard.training.run import fit, resume
from tests.training.factories import SpikyObjective, make_trainer
from tests.training.runs import (
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


REWIND: dict[str, Any] = {
    "train.spikes": {"kind": "rewind", "rewind_steps": 5, "window": 8},
    "train.steps": 16,
    "train.save_every": 4,
    "validation.every_steps": 16,
}


def test_the_policy_rewind_goes_back_and_leaves_out_the_batches(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = {2 * 14 - 1: 1e3}  # step 14
    folder, events = run_to_end(tmp_path, REWIND)
    (spike,) = select_events(events, Spiked)
    assert "rewound to update 8" in spike.action
    steps = [event.step for event in select_events(events, StepFinished)]
    assert steps == [*range(1, 14), *range(9, 17)]
    lines = read_metrics(folder)
    assert [line["step"] for line in lines if "loss" in line] == steps
    assert [line["step"] for line in lines if "validation" in line] == [16, 16]
    assert max(path.name for path in (folder / "checkpoints").iterdir()) == "step-00000016"


def test_a_checkpoint_to_go_back_to_is_kept_however_often_is_saved(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = {2 * 14 - 1: 1e3}  # step 14
    changes = {"train.save_every": 1, "train.keep_checkpoints": 1, "train.average": 1}
    _, events = run_to_end(tmp_path, REWIND | changes)
    (spike,) = select_events(events, Spiked)
    assert "rewound to update 8" in spike.action


def test_a_kill_after_going_back_leaves_no_trace(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.batch_factors = {26: 1e3}  # step 14
    run = make_small_run(
        "translate", write_corpus(tmp_path / "corpus", 400), SHORT_RUN | REWIND | {"validation.every_steps": 5}
    )
    fit(run, tmp_path / "whole")

    def interrupt(event: Event) -> None:
        if isinstance(event, Spiked):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(run, tmp_path / "run", listeners=[interrupt])
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())[-1] == "step-00000008"
    assert read_progress(tmp_path / "run", 8)["best_step"] == 10, "the best model is still the best"
    resume(tmp_path / "run")
    assert compute_fingerprints(tmp_path / "run") == compute_fingerprints(tmp_path / "whole")


def test_going_back_does_not_forget_how_often(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = {2 * 10 - 1: 1e3, 2 * 11 - 1: 1e3}  # step 10, and the next one after it
    changes = REWIND | {"train.spikes": {"kind": "rewind", "rewind_steps": 1, "window": 8, "max_spikes": 1}}
    _, events = run_to_end(tmp_path, changes)
    assert [spike.action.split(":")[0].split(";")[0] for spike in select_events(events, Spiked)] == [
        "rewound to update 8",
        "stopped",
    ]


def test_a_run_goes_back_to_where_an_undisturbed_one_would(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    run = make_small_run("translate", write_corpus(tmp_path / "corpus"), SHORT_RUN | REWIND | {"train.save_every": 10})
    spiky.faults = {2 * 9 - 1: 1e3}  # step 9
    fit(run, tmp_path / "run", pause_at=3)  # the checkpoint of the pause is not a regular one
    resume(tmp_path / "run", pause_at=9)
    (line,) = [line for line in read_metrics(tmp_path / "run") if "spike" in line]
    assert line["action"] == "skipped"


def test_too_many_spikes_end_the_run(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.faults = dict.fromkeys(range(3, 200), math.nan)
    folder, events = run_to_end(tmp_path, {"train.spikes": {"kind": "skip", "max_spikes": 3}})
    assert select_events(events, Finished)[0].reason == "spike"
    assert len(select_events(events, Spiked)) == 4
    assert [line["action"] for line in read_metrics(folder) if "spike" in line] == ["skipped"] * 3 + ["stopped"]


def test_float16_finds_its_scale_without_counting_steps(tmp_path: Path, spiky: type[SpikyObjective]) -> None:
    spiky.gradient_factors = {1: math.inf, 3: math.inf}
    events: list[Event] = []
    changes = SHORT_RUN | {"train.precision": "float16", "train.average": 1}
    folder = tmp_path / "run"
    fit(
        make_small_run("translate", write_corpus(tmp_path / "corpus"), changes),
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
    changes = {"train.precision": "float16", "train.spikes": {"kind": "skip", "max_spikes": 2}}
    folder, events = run_to_end(tmp_path, changes)
    assert select_events(events, Finished)[0].reason == "spike"
    assert sum("overflow" in line for line in read_metrics(folder)) == 16  # from 2^16 down to 1


def test_every_setting_reaches_its_place(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "train.checkpoint_activations": True,
        "train.label_smoothing": 0.3,
        "train.max_grad_norm": 0.5,
        "device.logit_rows": 7,
    }
    settings |= {"device.attention": "float32"}
    trainer = make_trainer("translate", tmp_path, settings)
    stacks = [module for module in trainer.model.modules() if isinstance(module, Stack)]
    assert [stack.checkpoint_activations for stack in stacks] == [True, True]
    attentions = [module for module in trainer.model.modules() if isinstance(module, AutocastAttention)]
    assert [attention.should_upcast for attention in attentions] == [True] * 3  # self-attention twice, cross-attention
    assert (trainer.objective.label_smoothing, trainer.objective.logit_rows, trainer.step_runner._clip) == (0.3, 7, 0.5)
    assert trainer.loader.gradient_accumulation == trainer.run.gradient_accumulation == 2
    assert trainer.loader._resegment is not None
    assert trainer.validator is not None
    assert trainer.validator.loader._resegment is None, "validation has no subword noise"


def test_the_last_step_is_saved_whatever_the_interval(tmp_path: Path) -> None:
    trainer = make_trainer("translate", tmp_path, {"train.steps": 7, "train.save_every": 5})
    assert [step for step in range(11) if trainer._is_regular(step)] == [5, 7, 10]


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
    fit(make_small_run("translate", write_corpus(folder / "corpus"), SHORT_RUN | SAVING), folder / "run", pause_at=5)
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
    with pytest.raises(RegardError, match="has lost lines"):
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


@pytest.mark.parametrize("task", ["translate", "causal_lm", "masked_lm"])
def test_speed_counts_the_tokens_that_the_model_reads(task: str, tmp_path: Path) -> None:
    events: list[Event] = []
    trainer = make_trainer(task, tmp_path, {"train.steps": 1}, events)
    batches = next(iter(trainer.loader.steps(None))).batches
    pad = trainer.validator._tokenizers.source.specials.pad if trainer.validator is not None else -1
    inputs = [tensor for batch in batches for tensor in (batch.source, batch.target) if tensor is not None]
    read_tokens = sum(int((tensor != pad).sum()) for tensor in inputs)
    trainer.train()
    (updated,) = [event for event in events if isinstance(event, StepFinished)]
    assert updated.input_tokens == read_tokens
    if task == "causal_lm":
        assert updated.tokens == read_tokens
    elif task == "translate":
        assert updated.tokens < read_tokens
