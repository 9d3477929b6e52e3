"""Compare training on several ranks with training on one: every mode and model family, losses and weights.

    python -m tests.ranks                       # all modes and families, 20 updates each
    python -m tests.ranks ddp2 fsdp3            # some modes
    python -m tests.ranks --updates 5           # shorter

Every run has accumulation (5 batches per update, which no number of ranks divides: some ranks get empty batches),
clipping, dropout, recomputed activations and an exponential moving average. Prints the largest absolute difference of
any loss and of any weight, average included, and exits with code 1 if one exceeds its limit.

Key biases count only with rotary positions. Elsewhere a key bias adds the same number to all scores of a query, which
softmax ignores: its gradient is zero but for rounding, Adam divides this noise by its own size, and the bias takes a
random walk on any number of ranks, without any effect on the model.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.data.batches.loader import Update
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights, load_tensors, save_tensors
from regard.train.data import prepare_data
from regard.train.fit import _resolve, fit, follow, resume
from regard.train.processes import SingleProcess, connect_processes
from regard.train.trainer import Trainer
from tests.train.runs import TASKS, make_small_run, read_metrics, write_corpus
from tests.train.workers import run_workers

Case = tuple[str, str]  # mode and task
UPDATES = 20
TIME_LIMIT = 1200.0  # seconds of a group of ranks; a machine may be busy
UNDETERMINED = ".key.bias"
WORLDS = (1, 2, 1, 3)  # numbers of ranks, one after the other
LIMITS = {"float32": 1e-5, "bfloat16": 1e-3}
# Adam makes a full step of any gradient: where rounding decides its sign, weights differ by the learning rate.
LEARNING_RATES = {"float32": 0.01, "bfloat16": 1e-4}
MODES: dict[str, tuple[int, dict[str, Any]]] = {  # ranks, and settings of [parallel]
    "ddp2": (2, {"mode": "ddp"}),
    "fsdp2": (2, {"mode": "fsdp"}),
    "fsdp3": (3, {"mode": "fsdp"}),
    "hsdp2x2": (4, {"mode": "fsdp", "replicas": 2}),
    "tensor2": (2, {"tensor": 2}),
    "fsdp2+tensor2": (4, {"mode": "fsdp", "tensor": 2}),
}
_STACK = {"layers": 2, "attention.heads": 4, "attention.key_value_heads": 2}
CHANGES: dict[str, Any] = {
    "train.update_tokens": 5 * 128,
    "train.clip": 0.5,
    "train.checkpoint_activations": True,
    "train.spikes": {"kind": "skip", "max_spikes": 0},
}
FAMILY_CHANGES: dict[str, dict[str, Any]] = {
    "translate": {f"model.{stack}.{name}": value for stack in ("encoder", "decoder") for name, value in _STACK.items()},
    "continue": {f"model.decoder.{name}": value for name, value in _STACK.items()}
    | {"model.decoder.position": {"kind": "rotary"}, "model.decoder.feedforward": {"kind": "gated", "hidden": 24}},
    "fill": {f"model.encoder.{name}": value for name, value in _STACK.items()}
    | {"model.encoder.position": {"kind": "learned", "length": 40}, "model.encoder.placement": "post"},
}


def prepare(folder: Path, precision: str = "float32", tasks: Iterable[str] = TASKS) -> None:
    """Write the run files and the data of all families into a folder."""
    files = write_corpus(folder / "corpus")
    for task in tasks:
        changes = CHANGES | FAMILY_CHANGES[task] | {"train.precision": precision}
        run = make_small_run(task, files, changes)
        run_folder = RunFolder(folder / task)
        run_folder.path.mkdir(exist_ok=True)
        run = _resolve(run, prepare_data(run, run_folder, lambda _: None))
        RUN_FILES.save(run, run_folder.run)


def train_cases(folder: str, cases: Sequence[Case], updates: int) -> dict[str, Any]:
    """Train every case (mode, task) on this rank; rank 0 saves weights and averages. Return the losses by case."""
    processes = connect_processes()
    results: dict[str, Any] = {}
    try:
        for mode, task in cases:
            results[f"{mode}/{task}"] = _train_case(Path(folder), mode, task, updates, processes)
    finally:
        processes.close()
    return results


def _train_case(folder: Path, mode: str, task: str, updates: int, processes: SingleProcess) -> dict[str, Any]:
    changes = {f"parallel.{name}": value for name, value in MODES[mode][1].items()} if mode in MODES else {}
    run: Run = RUN_FILES.change(RUN_FILES.load(folder / task / "run.toml"), changes)
    start = time.process_time()
    processes.arrange(run)
    data = prepare_data(run, RunFolder(folder / task), lambda _: None)
    run_folder = RunFolder(folder / f"{mode}-{task}")
    run_folder.path.mkdir(exist_ok=True)
    trainer = Trainer(run, run_folder, data, lambda _: None, processes=processes)
    losses, norms = [], []
    for update in islice(trainer.loader.updates(), updates):
        epoch = trainer._current_epoch()
        stats = trainer.updater.compute_gradients(update.batches, epoch)
        trainer.progress.update += 1
        trainer.progress.position = update.next_position
        trainer.updater.step(LEARNING_RATES[run.train.precision])
        assert trainer.ema is not None
        trainer.ema.update(trainer.progress.update)
        losses.append(stats.loss)
        norms.append(stats.gradient_norm)
    assert trainer.ema is not None
    tensors = get_weights(trainer.model) | {f"ema/{name}": tensor for name, tensor in trainer.ema.weights().items()}
    whole = {name: processes.whole(tensor) for name, tensor in tensors.items()}
    if processes.is_main:
        save_tensors(whole, folder / f"{mode}-{task}.safetensors")
    return {"losses": losses, "norms": norms, "seconds": time.process_time() - start}


def _run(function: str, world_size: int, args: dict[str, Any], folder: Path) -> list[Any]:
    return run_workers(f"tests.ranks:{function}", world_size, args, folder=folder / "ranks", timeout=TIME_LIMIT)


def compare(
    folder: Path, mode: str, task: str, results: dict[str, Any], expected: dict[str, Any]
) -> tuple[float, float]:
    """Return the largest differences of any loss and of any weight to one rank."""
    ours, reference = (load_tensors(folder / f"{name}-{task}.safetensors") for name in (mode, "one"))
    assert ours.keys() == reference.keys()
    names = [name for name in reference if task == "continue" or not name.endswith(UNDETERMINED)]
    weight = max(float((ours[name] - reference[name]).abs().max()) for name in names)
    losses = zip(results[f"{mode}/{task}"]["losses"], expected[f"one/{task}"]["losses"], strict=True)
    return max(abs(one - other) for one, other in losses), weight


def prove(
    folder: Path, cases: Sequence[Case], updates: int, precision: str = "float32"
) -> list[tuple[str, str, float, float, float]]:
    """Train all cases; return for each: mode, task, difference of losses, of weights, and CPU seconds of rank 0."""
    tasks = sorted({task for _, task in cases})
    prepare(folder, precision, tasks)
    expected = train_cases(str(folder), [("one", task) for task in tasks], updates)
    rows = []
    for world_size in sorted({MODES[mode][0] for mode, _ in cases}):
        group = [(mode, task) for mode, task in cases if MODES[mode][0] == world_size]
        args = {"folder": str(folder), "cases": group, "updates": updates}
        results = _run("train_cases", world_size, args, folder)[0]
        for mode, task in group:
            loss, weight = compare(folder, mode, task, results, expected)
            rows.append((mode, task, loss, weight, results[f"{mode}/{task}"]["seconds"]))
    return rows


def continue_run(folder: str, pause_at: int) -> list[tuple[int, list[int]]]:
    """Start or resume a run on this rank until an update; return the samples that the rank read, by update."""
    seen: list[tuple[int, list[int]]] = []
    make_update = Trainer._update

    def record(self: Trainer, update: Update) -> bool:
        samples = [batch.samples.tolist() for batch in update.batches if batch.number is not None]
        seen.append((self.progress.update + 1, list(chain.from_iterable(samples))))
        return make_update(self, update)

    Trainer._update = record  # type: ignore[method-assign]
    processes = connect_processes()
    run_folder = Path(folder) / "run"
    try:
        if not processes.is_main:
            follow(run_folder, processes)
        elif run_folder.exists():
            resume(run_folder, pause_at=pause_at, processes=processes)
        else:
            fit(RUN_FILES.load(Path(folder) / "run.toml"), run_folder, pause_at=pause_at, processes=processes)
    finally:
        processes.close()
        Trainer._update = make_update  # type: ignore[method-assign]
    return seen


def change_ranks(folder: Path, task: str, worlds: Sequence[int], updates: int) -> tuple[list[str], float, float]:
    """Train a run with a number of ranks that changes, and the same run on one rank.

    Returns:
        Updates that repeated or missed a sample, and the largest differences of losses and of the final weights.
    """
    files = write_corpus(folder / "corpus")
    changes = CHANGES | FAMILY_CHANGES[task] | {"train.updates": updates, "parallel.mode": "fsdp"}
    samples: dict[str, dict[int, list[int]]] = {}
    for name, plan in (("one", [1]), ("changing", worlds)):
        (folder / name).mkdir()
        RUN_FILES.save(make_small_run(task, files, changes), folder / name / "run.toml")
        samples[name] = {}
        for number, world_size in enumerate(plan, start=1):
            args: dict[str, Any] = {"folder": str(folder / name), "pause_at": updates * number // len(plan)}
            results = [continue_run(**args)] if world_size == 1 else _run("continue_run", world_size, args, folder)
            for update, seen in chain.from_iterable(results):
                samples[name].setdefault(update, []).extend(seen)
    faults = [
        f"update {update}"
        for update in range(1, updates + 1)
        if sorted(samples["one"][update]) != sorted(samples["changing"].get(update, []))
    ]
    runs = [folder / name / "run" for name in ("one", "changing")]
    ours, reference = ([line["loss"] for line in read_metrics(path) if "loss" in line] for path in runs)
    loss = max(abs(one - other) for one, other in zip(ours, reference, strict=True))
    weights = [load_tensors(path / "average" / "model.safetensors") for path in runs]
    names = [name for name in weights[0] if task == "continue" or not name.endswith(UNDETERMINED)]
    return faults, loss, max(float((weights[0][name] - weights[1][name]).abs().max()) for name in names)


def main() -> None:
    """Print a table of differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.ranks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modes", nargs="*", metavar="MODE", default=list(MODES), help=f"of {', '.join(MODES)}")
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--precision", action="append", choices=LIMITS)
    options = parser.parse_args()
    has_failed = False
    for precision in options.precision or LIMITS:
        with tempfile.TemporaryDirectory() as folder:
            cases = [(mode, task) for mode in options.modes for task in options.task or TASKS]
            rows = prove(Path(folder), cases, options.updates, precision)
        sys.stdout.write(f"\n{precision}, {options.updates} updates, limit {LIMITS[precision]:.0e}\n")
        sys.stdout.write(f"{'mode':15} {'task':10} {'loss':>9} {'weight':>9} {'CPU s':>7}\n")
        for mode, task, loss, weight, seconds in rows:
            is_wrong = not max(loss, weight) <= LIMITS[precision]
            has_failed = has_failed or is_wrong
            mark = "  EXCEEDED" if is_wrong else ""
            sys.stdout.write(f"{mode:15} {task:10} {loss:9.1e} {weight:9.1e} {seconds:7.1f}{mark}\n")
        sys.stdout.flush()
    with tempfile.TemporaryDirectory() as folder:
        faults, loss, weight = change_ranks(Path(folder), "translate", WORLDS, 20)
    is_wrong = bool(faults) or not max(loss, weight) <= LIMITS["float32"]
    worlds = " -> ".join(map(str, WORLDS))
    wrong = f"{len(faults)} updates repeat or miss a sample"
    sys.stdout.write(f"\nranks {worlds}: {wrong}; loss {loss:.1e}, weight {weight:.1e}\n")
    sys.exit(has_failed or is_wrong)


if __name__ == "__main__":
    main()
