"""Training with two ranks: against two threads, and our step against the same model wrapped by hand.

    python -m bench.ranks            # about six minutes; the first run also makes a vocabulary and shards
    python -m bench.ranks --quick    # under one minute: a quarter of the batch, few rounds

Transformer-tiny on Multi30k as in `bench.train`, float32, two batches of 4096 tokens per step: one per rank.

regard-ddp, regard-fsdp   `Trainer._step` on two ranks with one thread each: loader, token count, forward, backward,
                          clipping, spike detection, fused Adam, decisions of rank 0, metrics.jsonl, event
bare-ddp, bare-fsdp       the same model and kernels in `DistributedDataParallel` or `fully_shard`, over the same
                          batches, built beforehand: token count, forward, backward, clipping, fused Adam
threads2                  `Trainer._step` in one process with two threads: both batches one after the other

All contestants stay in memory and run in turns: a process waits for its name on standard input. Before timing starts,
bare and regard must have the same losses for two steps. `ddp/bare` and `fsdp2/bare` are medians over the rounds of
their CPU time / ours, both ranks together; `ranks2/threads2` is the median of the wall time of threads2 /
that of regard-ddp, because two threads wait for each other without using the CPU. It needs two idle cores. The last
line is JSON.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist  # noqa: TID251
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard  # noqa: TID251
from torch.nn.parallel import DistributedDataParallel

from bench.loops import ADAM, PreparedBatch, RegardLoop, make_kernel_loss, prepare_batch
from bench.timing import ratio, restart_with_tuned_malloc
from bench.training_cases import CLIP, LEARNING_RATE, TrainingCase, make_tiny_case, read_corpus
from regard.config.codec import RUN_FILES
from regard.models.build import build
from regard.nn.stack import Stack
from regard.store.run_folder import RunFolder
from regard.training.distributed.context import DistributedContext, connect
from regard.training.distributed.processes import SingleProcess
from regard.training.events import Event
from regard.training.resolve import resolve_run
from regard.training.step import seed_batch
from regard.training.trainer import Trainer

MODES = ("ddp", "fsdp")
THREADS = "threads2"
CHECKED_STEPS, TOLERANCE = 2, 1e-4
RANKS = 2


class HandWrapped:
    """The model in torch's own wrapper, and the shortest correct loop."""

    def __init__(self, mode: str, trainer: Trainer, steps: int) -> None:
        run = trainer.run
        model = build(run.model, seed=run.seed).train()
        root: nn.Module = _Loss(model, make_kernel_loss(model, run.train.label_smoothing, run.device.logit_rows or 0))
        if mode == "ddp":
            root = DistributedDataParallel(root, gradient_as_bucket_view=True)
        else:
            for module in model.modules():
                if isinstance(module, Stack):
                    for layer in module.layers:
                        fully_shard(layer)
            fully_shard(root)
        self._root, self._seed = root, run.seed
        self._parameters = list(root.parameters())
        self._optimizer = torch.optim.Adam(
            self._parameters, lr=LEARNING_RATE, betas=ADAM.betas, eps=ADAM.eps, fused=True
        )
        self._steps = [
            [prepare_batch(batch) for batch in step.batches] for step in islice(trainer.loader.steps(), steps)
        ]
        self._calls = 0

    def rewind(self) -> None:
        """Restart the data."""
        self._calls = 0

    def __call__(self) -> Tensor:
        """Make one step; return this rank's part of its loss."""
        (prepared,) = self._steps[self._calls % len(self._steps)]
        self._calls += 1
        tokens = torch.tensor(float(prepared.labels.numel()))
        dist.all_reduce(tokens)
        seed_batch(self._seed, 0, prepared.original.number)
        loss: Tensor = self._root(prepared)
        (loss * RANKS / tokens).backward()
        nn.utils.clip_grad_norm_(self._parameters, CLIP)
        self._optimizer.step()
        self._optimizer.zero_grad()
        return loss.detach() / tokens


class _Loss(nn.Module):
    """The loss as the root module that wrappers need."""

    def __init__(self, model: nn.Module, loss: Callable[[PreparedBatch], Tensor]) -> None:
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, prepared: PreparedBatch) -> Tensor:
        return self._loss(prepared)


def serve(case: TrainingCase, folder: Path) -> None:
    """Create the contestants of this process, then run those that standard input names; answer with their times."""
    contestants = _make_rank_contestants(case, folder) if "RANK" in os.environ else _make_threads(case, folder)
    answer: dict[str, Any] = {"ready": list(contestants)}
    print(json.dumps(answer), flush=True)
    for line in sys.stdin:
        name, steps = line.split()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(steps)):
            contestants[name]()
        answer = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(answer), flush=True)


def _make_loop(case: TrainingCase, folder: Path, processes: SingleProcess, mode: str) -> RegardLoop:
    run = RUN_FILES.change(case.run(), {"parallel.mode": mode})
    data = read_corpus(run, case.corpus)
    run = resolve_run(run, data)
    processes.init_device_mesh(run)
    folder.mkdir(parents=True, exist_ok=True)
    events: list[Event] = []
    return RegardLoop(Trainer(run, RunFolder(folder), data, events.append, processes=processes), events, case.steps)


def _make_threads(case: TrainingCase, folder: Path) -> dict[str, Callable[[], object]]:
    torch.set_num_threads(RANKS)
    run = RUN_FILES.change(case.run(), {"device.threads": RANKS})
    data = read_corpus(run, case.corpus)
    place = folder / THREADS
    place.mkdir()
    events: list[Event] = []
    trainer = Trainer(resolve_run(run, data), RunFolder(place), data, events.append)
    return {THREADS: RegardLoop(trainer, events, case.steps)}


def _make_rank_contestants(case: TrainingCase, folder: Path) -> dict[str, Callable[[], object]]:
    torch.set_num_threads(1)
    connect()
    contestants: dict[str, Callable[[], object]] = {}
    for mode in MODES:
        processes = DistributedContext()
        ours = _make_loop(case, folder / mode, processes, mode)
        bare = HandWrapped(mode, ours.trainer, case.steps)
        for number in range(1, CHECKED_STEPS + 1):
            ours()
            loss = bare().double()
            dist.all_reduce(loss)
            if processes.is_main and abs(loss.item() - ours.last_event.loss) > TOLERANCE:
                raise SystemExit(f"{mode}, step {number}: bare has {loss.item():.6f}, ours {ours.last_event.loss:.6f}.")
        ours.rewind()
        bare.rewind()
        contestants |= {f"regard-{mode}": ours, f"bare-{mode}": bare}
    return contestants


class Group:
    """The processes of some contestants."""

    def __init__(self, size: int, arguments: list[str], folder: Path) -> None:
        self._processes = []
        for rank in range(size):
            environment = os.environ | {"OMP_NUM_THREADS": "1" if size > 1 else str(RANKS), "GLOO_SOCKET_IFNAME": "lo"}
            if size > 1:
                places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
                environment |= {name: str(value) for name, value in places.items()}
                environment["REGARD_STORE"] = str(folder / "store")
            command = [sys.executable, "-m", "bench.ranks", "--serve", str(folder), *arguments]
            self._processes.append(
                subprocess.Popen(  # noqa: S603 - our own command
                    command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )

    def names(self) -> list[str]:
        """Wait until the contestants are ready; return their names."""
        return self._read()[0]["ready"]

    def run(self, name: str, steps: int) -> tuple[float, float]:
        """Make some steps; return milliseconds of wall time and of CPU time per step, all ranks together."""
        for process in self._processes:
            assert process.stdin is not None  # noqa: S101
            process.stdin.write(f"{name} {steps}\n")
            process.stdin.flush()
        answers = self._read()
        wall, cpu = max(answer["wall"] for answer in answers), sum(answer["cpu"] for answer in answers)
        return 1000 * wall / steps, 1000 * cpu / steps

    def _read(self) -> list[dict[str, Any]]:
        lines = [process.stdout.readline() for process in self._processes if process.stdout is not None]
        if not all(lines):
            raise SystemExit("A process ended; see its error above.")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.wait()


def compete(case: TrainingCase, folder: Path, arguments: list[str], steps: int) -> dict[str, float]:
    """Run the contestants in turns and return the ratios."""
    groups = [Group(RANKS, arguments, folder), Group(1, arguments, folder)]
    try:
        owners = {name: group for group in groups for name in group.names()}
        wall: dict[str, list[float]] = {name: [] for name in owners}
        cpu: dict[str, list[float]] = {name: [] for name in owners}
        for name, group in owners.items():
            group.run(name, 1)  # warm-up
        order, rng = list(owners), random.Random(0)  # noqa: S311 - an order, not a secret
        deadline = time.perf_counter() + case.seconds
        while len(wall[THREADS]) < 3 or time.perf_counter() < deadline:
            rng.shuffle(order)
            for name in order:
                wall_time, cpu_time = owners[name].run(name, steps)
                wall[name].append(wall_time)
                cpu[name].append(cpu_time)
    finally:
        for group in groups:
            group.close()
    print(f"{'':<14}{'wall ms/step':>16}{'CPU ms/step':>16}{'rounds':>8}")
    for name in owners:
        print(
            f"{name:<14}{statistics.median(wall[name]):>16.1f}{statistics.median(cpu[name]):>16.1f}{len(wall[name]):>8}"
        )
    return {
        "ranks2/threads2": ratio(wall[THREADS], wall["regard-ddp"]),
        "ddp/bare": ratio(cpu["bare-ddp"], cpu["regard-ddp"]),
        "fsdp2/bare": ratio(cpu["bare-fsdp"], cpu["regard-fsdp"]),
        "ddp/bare_wall": ratio(wall["bare-ddp"], wall["regard-ddp"]),
        "fsdp2/bare_wall": ratio(wall["bare-fsdp"], wall["regard-fsdp"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller batches and few rounds: under a minute")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)  # a process of the contest
    options = parser.parse_args()
    restart_with_tuned_malloc()
    case = make_tiny_case(
        10.0 if options.quick else 300.0, tokens=1024 if options.quick else 4096, gradient_accumulation=RANKS
    )
    if options.serve is not None:
        serve(case, options.serve)
        return
    start_time = time.perf_counter()
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, tuned malloc")
    run = case.run()
    read_corpus(run, case.corpus)  # once, before the contestants read it
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--quick"] if options.quick else []
        results = compete(case, Path(folder), arguments, steps=1 if options.quick else 3)
    elapsed = timedelta(seconds=round(time.perf_counter() - start_time))
    print(f"\n{elapsed}. Ratio: median over the rounds of their time / ours.")
    print(json.dumps({name: round(value, 3) for name, value in results.items()}))


if __name__ == "__main__":
    main()
