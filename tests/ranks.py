"""Compare training on several ranks with training on one: every mode and model family, losses and weights.

    python -m tests.ranks                       # all modes and families, 20 steps each
    python -m tests.ranks ddp2 fsdp3            # some modes
    python -m tests.ranks --steps 5           # shorter

Every run has accumulation (5 batches per step, which no number of ranks divides: some ranks get empty batches),
clipping, dropout, recomputed activations and an exponential moving average. Prints the largest absolute difference of
any loss and of any weight, average included, and exits with code 1 if one exceeds its limit.

Key biases count only with rotary positions. Elsewhere a key bias adds the same number to all scores of a query, which
softmax ignores: its gradient is zero but for rounding, Adam divides this noise by its own size, and the bias takes a
random walk on any number of ranks, without any effect on the model (proven in tests/training/test_ranks.py).

Tensor parallelism in bfloat16 may differ from one rank by as much as one rank whose products are split does, times
`SPLIT_MARGIN`: the parts of a product are rounded to bfloat16 before they are added. The table shows both.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.data.batches.loader import StepBatches
from regard.nn.attention import Attention
from regard.nn.feedforward import FeedForward
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights, load_tensors, save_tensors
from regard.training.data import prepare_data
from regard.training.distributed.processes import SingleProcess
from regard.training.distributed.rank import connect_processes
from regard.training.events import StopReason
from regard.training.resolve import resolve_run
from regard.training.run import fit, resume, run_worker_rank
from regard.training.trainer import Trainer
from tests.training.runs import TASKS, make_small_run, read_metrics, write_corpus
from tests.training.workers import run_workers

Case = tuple[str, str]  # mode and task
Samples = list[tuple[int, list[int]]]  # that a rank read, by step
CHANGING_RUNS = ("one", "changing")
STEPS = 20
TIME_LIMIT = 1200.0  # seconds of a group of ranks; a machine may be busy
UNDETERMINED = ".key.bias"
ONE, SPLIT, SPLIT_PARTS = "one", "split", 2  # modes of one rank; all tensor-parallel modes have two parts
SPLIT_MARGIN = 1.5
WORLDS = (1, 2, 1, 3)  # numbers of ranks, one after the other
LIMITS = {"float32": 1e-5, "bfloat16": 1e-3}
# Adam makes a full step of any gradient: where rounding decides its sign, weights differ by the learning rate.
LEARNING_RATES = {"float32": 0.01, "bfloat16": 1e-4}
MODES: dict[str, tuple[int, dict[str, Any]]] = {  # ranks, and changed settings
    "ddp2": (2, {"parallel.mode": "ddp"}),
    "fsdp2": (2, {"parallel.mode": "fsdp"}),
    "fsdp3": (3, {"parallel.mode": "fsdp"}),
    "hsdp2x2": (4, {"parallel.mode": "fsdp", "parallel.replicas": 2}),
    "tensor2": (2, {"parallel.tensor": 2}),
    "fsdp2+tensor2": (4, {"parallel.mode": "fsdp", "parallel.tensor": 2}),
}
_STACK = {"layers": 2, "attention.heads": 4, "attention.key_value_heads": 2}
CHANGES: dict[str, Any] = {
    "train.step_tokens": 5 * 128,
    "train.max_grad_norm": 0.5,
    "train.checkpoint_activations": True,
    "train.spikes.kind": "stop",
}
FAMILY_CHANGES: dict[str, dict[str, Any]] = {
    "translation": {
        f"model.{stack}.{name}": value for stack in ("encoder", "decoder") for name, value in _STACK.items()
    },
    "causal_lm": {f"model.decoder.{name}": value for name, value in _STACK.items()}
    | {"model.decoder.position": {"kind": "rotary"}, "model.decoder.feedforward": {"kind": "gated", "d_ff": 24}},
    "masked_lm": {f"model.encoder.{name}": value for name, value in _STACK.items()}
    | {"model.encoder.position": {"kind": "learned", "length": 40}, "model.encoder.norm_order": "post"},
    "images": {f"model.encoder.{name}": value for name, value in _STACK.items()},
    "audio": {f"model.encoder.{name}": value for name, value in _STACK.items()},
    "pixels": {f"model.decoder.{name}": value for name, value in _STACK.items()},
}


def prepare(folder: Path, changes: Mapping[str, Any] = CHANGES, tasks: Iterable[str] = TASKS) -> None:
    """Write the run files and the data of all families into a folder."""
    files = write_corpus(folder / "corpus")
    for task in tasks:
        run = make_small_run(task, files, {**changes, **FAMILY_CHANGES[task]})
        run_folder = RunFolder(folder / task)
        run_folder.path.mkdir(exist_ok=True)
        run = resolve_run(run, prepare_data(run, run_folder, lambda _: None))
        RUN_FILES.save(run, run_folder.run)


def split_products(model: nn.Module, parts: int) -> None:
    """Let one rank compute products in parts, as tensor parallelism does: each part is rounded, then they are added."""

    def split_columns(linear: nn.Linear, x: Tensor) -> Tensor:
        x = x.view_as(x)  # here the parts of its gradient are added
        bias: Tensor | None = linear.bias
        biases = [None] * parts if bias is None else bias.chunk(parts)
        weights = linear.weight.chunk(parts)
        return torch.cat([F.linear(x, weight, bias) for weight, bias in zip(weights, biases, strict=True)], -1)

    def split_rows(linear: nn.Linear, x: Tensor) -> Tensor:
        pairs = zip(x.chunk(parts, -1), linear.weight.chunk(parts, 1), strict=True)
        biases = [linear.bias, *[None] * (parts - 1)]
        products = [F.linear(part, weight, bias) for (part, weight), bias in zip(pairs, biases, strict=True)]
        return sum(products[1:], start=products[0])

    for module in model.modules():
        columns, rows = list[nn.Linear | None](), list[nn.Linear]()
        if isinstance(module, Attention):
            columns, rows = [module.query, module.key, module.value], [module.output]
        elif isinstance(module, FeedForward):
            columns, rows = [module.up, module.gate], [module.down]
        for linear in filter(None, columns):
            linear.forward = partial(split_columns, linear)  # type: ignore[method-assign]
        for linear in rows:
            linear.forward = partial(split_rows, linear)  # type: ignore[method-assign]


def train_cases(
    folder: str, cases: Sequence[Case], steps: int, processes: SingleProcess | None = None
) -> dict[str, Any]:
    """Train every case (mode, task) on this rank; rank 0 saves weights and averages. Return the losses by case."""
    compile_eagerly = partial(torch.compile, backend="eager")  # inductor takes a minute, and rounds in its own way
    with _use(processes) as group, mock.patch("torch.compile", compile_eagerly):
        return {f"{mode}/{task}": _train_case(Path(folder), mode, task, steps, group) for mode, task in cases}


@contextmanager
def _use(processes: SingleProcess | None) -> Iterator[SingleProcess]:
    """Yield the given processes, or those that the environment describes; these are closed."""
    if processes is not None:
        yield processes
        return
    group = connect_processes()
    try:
        yield group
    finally:
        group.close()


def _train_case(folder: Path, mode: str, task: str, steps: int, processes: SingleProcess) -> dict[str, Any]:
    changes = MODES[mode][1] if mode in MODES else {}
    run: RunConfig = RUN_FILES.change(RUN_FILES.load(folder / task / "run.toml"), changes)
    start = time.process_time()
    processes.init_device_mesh(run)
    data = prepare_data(run, RunFolder(folder / task), lambda _: None)
    run_folder = RunFolder(folder / f"{mode}-{task}")
    run_folder.path.mkdir(exist_ok=True)
    trainer = Trainer(run, run_folder, data, lambda _: None, processes=processes)
    if mode == SPLIT:
        split_products(trainer.model, SPLIT_PARTS)
    losses, norms = [], []
    for step in islice(trainer.loader.steps(), steps):
        epoch = trainer._current_epoch()
        stats = trainer.step_runner.compute_gradients(step.batches, epoch)
        trainer.progress.step += 1
        trainer.progress.position = step.next_position
        trainer.step_runner.step(LEARNING_RATES[run.train.precision])
        assert trainer.ema is not None
        trainer.ema.update(trainer.progress.step)
        losses.append(stats.loss)
        norms.append(stats.gradient_norm)
    assert trainer.ema is not None
    tensors = get_weights(trainer.model) | {f"ema/{name}": tensor for name, tensor in trainer.ema.weights().items()}
    whole = {name: processes.full_tensor(tensor) for name, tensor in tensors.items()}
    if processes.is_main:
        save_tensors(whole, folder / f"{mode}-{task}.safetensors")
    return {
        "losses": losses,
        "norms": norms,
        "seconds": time.process_time() - start,
        "waited": processes.waited_seconds,
    }


def _run(function: str, world_size: int, args: dict[str, Any], folder: Path) -> list[Any]:
    return run_workers(f"tests.ranks:{function}", world_size, args, folder=folder / "ranks", timeout=TIME_LIMIT)


def compare(
    folder: Path, mode: str, task: str, results: dict[str, Any], expected: dict[str, Any]
) -> tuple[float, float]:
    """Return the largest differences of any loss and of any weight to one rank."""
    ours, reference = (load_tensors(folder / f"{name}-{task}.safetensors") for name in (mode, ONE))
    assert ours.keys() == reference.keys()
    names = [name for name in reference if task == "causal_lm" or not name.endswith(UNDETERMINED)]
    weight = max(float((ours[name] - reference[name]).abs().max()) for name in names)
    losses = zip(results[f"{mode}/{task}"]["losses"], expected[f"{ONE}/{task}"]["losses"], strict=True)
    return max(abs(one - other) for one, other in losses), weight


@dataclass(frozen=True)
class Row:
    """The differences of a mode from one rank."""

    mode: str
    task: str
    loss: float
    weight: float
    seconds: float  # CPU seconds of rank 0
    limit: float
    note: str


def prove(
    folder: Path, cases: Sequence[Case], steps: int, precision: str = "float32", changes: Mapping[str, Any] = {}
) -> list[Row]:
    """Train all cases and compare them with one rank."""
    tasks = sorted({task for _, task in cases})
    prepare(folder, {**CHANGES, "train.precision": precision, **changes}, tasks)
    has_split = precision == "bfloat16" and any("tensor" in mode for mode, _ in cases)
    references = [(name, task) for name in (ONE, *([SPLIT] if has_split else [])) for task in tasks]
    expected = train_cases(str(folder), references, steps)
    rows = []
    for world_size in sorted({MODES[mode][0] for mode, _ in cases}):
        group = [(mode, task) for mode, task in cases if MODES[mode][0] == world_size]
        args = {"folder": str(folder), "cases": group, "steps": steps}
        results = _run("train_cases", world_size, args, folder)[0]
        for mode, task in group:
            loss, weight = compare(folder, mode, task, results, expected)
            limit, note = LIMITS[precision], ""
            if precision == "bfloat16" and "tensor" in mode:
                alone = compare(folder, SPLIT, task, expected, expected)
                limit = max(limit, SPLIT_MARGIN * max(alone))
                note = "  one rank with split products: {:.1e} {:.1e}".format(*alone)
            rows.append(Row(mode, task, loss, weight, results[f"{mode}/{task}"]["seconds"], limit, note))
    return rows


def continue_run(folder: str, pause_at: int, processes: SingleProcess | None = None) -> Samples:
    """Start or resume a run on this rank until a step; return the samples that the rank read, by step."""
    seen: Samples = []
    make_step = Trainer._step

    def record(self: Trainer, step: StepBatches) -> StopReason | None:
        samples = [batch.samples.tolist() for batch in step.batches if batch.number is not None]
        seen.append((self.progress.step + 1, list(chain.from_iterable(samples))))
        return make_step(self, step)

    Trainer._step = record  # type: ignore[method-assign]
    run_folder = Path(folder) / "run"
    with _use(processes) as group:
        try:
            if not group.is_main:
                run_worker_rank(run_folder, group)
            elif run_folder.exists():
                resume(run_folder, pause_at=pause_at, processes=group)
            else:
                fit(RUN_FILES.load(Path(folder) / "run.toml"), run_folder, pause_at=pause_at, processes=group)
        finally:
            Trainer._step = make_step  # type: ignore[method-assign]
    return seen


def prepare_changing_runs(folder: Path, task: str, steps: int) -> None:
    """Write the run files of two equal runs: one on one rank, and one whose number of ranks changes."""
    files = write_corpus(folder / "corpus")
    changes = CHANGES | FAMILY_CHANGES[task] | {"train.steps": steps, "parallel.mode": "fsdp"}
    for name in CHANGING_RUNS:
        (folder / name).mkdir()
        RUN_FILES.save(make_small_run(task, files, changes), folder / name / "run.toml")


def compare_changing_runs(
    folder: Path, task: str, steps: int, samples: dict[str, Samples]
) -> tuple[list[str], float, float]:
    """Compare the two runs; `samples` are those of all ranks, by the name of the run.

    Returns:
        Steps that repeated or missed a sample, and the largest differences of losses and of the final weights.
    """
    read = {name: dict[int, list[int]]() for name in CHANGING_RUNS}
    for name, pairs in samples.items():
        for step, seen in pairs:
            read[name].setdefault(step, []).extend(seen)
    faults = [
        f"step {step}"
        for step in range(1, steps + 1)
        if sorted(read["one"][step]) != sorted(read["changing"].get(step, []))
    ]
    runs = [folder / name / "run" for name in CHANGING_RUNS]
    ours, reference = ([line["loss"] for line in read_metrics(path) if "loss" in line] for path in runs)
    loss = max(abs(one - other) for one, other in zip(ours, reference, strict=True))
    weights = [load_tensors(path / "average" / "model.safetensors") for path in runs]
    names = [name for name in weights[0] if task == "causal_lm" or not name.endswith(UNDETERMINED)]
    return faults, loss, max(float((weights[0][name] - weights[1][name]).abs().max()) for name in names)


def change_ranks(folder: Path, task: str, worlds: Sequence[int], steps: int) -> tuple[list[str], float, float]:
    """Train a run with a number of ranks that changes, and the same run on one rank; compare them."""
    prepare_changing_runs(folder, task, steps)
    samples: dict[str, Samples] = {}
    for name, plan in zip(CHANGING_RUNS, ((1,), worlds), strict=True):
        samples[name] = []
        for number, world_size in enumerate(plan, start=1):
            args: dict[str, Any] = {"folder": str(folder / name), "pause_at": steps * number // len(plan)}
            results = [continue_run(**args)] if world_size == 1 else _run("continue_run", world_size, args, folder)
            samples[name] += chain.from_iterable(results)
    return compare_changing_runs(folder, task, steps, samples)


def main() -> None:
    """Print a table of differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.ranks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modes", nargs="*", metavar="MODE", default=list(MODES), help=f"of {', '.join(MODES)}")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--precision", action="append", choices=LIMITS)
    options = parser.parse_args()
    has_failed = False
    for precision in options.precision or LIMITS:
        with tempfile.TemporaryDirectory() as folder:
            cases = [(mode, task) for mode in options.modes for task in options.task or TASKS]
            rows = prove(Path(folder), cases, options.steps, precision)
        sys.stdout.write(f"\n{precision}, {options.steps} steps, limit {LIMITS[precision]:.0e}\n")
        sys.stdout.write(f"{'mode':15} {'task':10} {'loss':>9} {'weight':>9} {'CPU s':>7}\n")
        for row in rows:
            is_wrong = not max(row.loss, row.weight) <= row.limit
            has_failed = has_failed or is_wrong
            mark = "  EXCEEDED" if is_wrong else ""
            figures = f"{row.loss:9.1e} {row.weight:9.1e} {row.seconds:7.1f}{mark}{row.note}"
            sys.stdout.write(f"{row.mode:15} {row.task:10} {figures}\n")
        sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        faults, loss, weight = change_ranks(Path(folder), "translation", WORLDS, 20)
    is_wrong = bool(faults) or not max(loss, weight) <= LIMITS["float32"]
    worlds = " -> ".join(map(str, WORLDS))
    wrong = f"{len(faults)} steps repeat or miss a sample"
    sys.stdout.write(f"\nranks {worlds}: {wrong}; loss {loss:.1e}, weight {weight:.1e}\n")
    sys.exit(has_failed or is_wrong)


if __name__ == "__main__":
    main()
