"""Save and load a checkpoint of about 400 MB (weights and two moments of Adam): one process, and two ranks by FSDP2.

    python -m bench.checkpoints
    python -m bench.checkpoints --rounds 1            # once instead of three times
    python -m bench.checkpoints --quick               # 12 MB
    python -m bench.checkpoints --folder /mnt/disk    # another disk than the temporary folder's

Seconds include everything that a run waits for: writing, flushing, hashing and sealing; verifying and reading. CPU
seconds are the sum over the ranks. `torch async` is torch.distributed.checkpoint's asynchronous save into the same
storage, without our manifest: `blocked` is how long the caller waits, CPU seconds include its thread.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from regard.training.distributed.processes import SingleProcess
from regard.training.distributed.rank import connect_processes

SIZES = {True: 1, False: 33}  # million weights, by --quick
Times = dict[str, list[float]]  # seconds of this process: wall and CPU time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small checkpoint")
    parser.add_argument("--rounds", type=int, default=3, help="how often (default: 3)")
    parser.add_argument("--folder", type=Path, help="where to write (default: the temporary folder)")
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        print(json.dumps(run_rank(Path(options.rank[0]), SIZES[options.quick], options.rank[1] == "True")))
        return
    results: dict[str, list[list[float]]] = {}
    for _ in range(options.rounds):
        for ranks in (1, 2):
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                for name, times in start(ranks, Path(folder), options.quick).items():
                    results.setdefault(f"{name}, {ranks} rank{'s' * (ranks > 1)}", []).append(times)
    print(f"{12 * SIZES[options.quick]} MB, median of {options.rounds}   {'seconds':>9} {'CPU s':>7}")
    medians: dict[str, list[float]] = {}
    for name, rounds in results.items():
        wall, cpu = medians[name] = [statistics.median(column) for column in zip(*rounds, strict=True)]
        print(f"{name:28} {wall:9.2f} {cpu:7.2f}")
    ratio = medians["torch async, done, 2 ranks"][1] / medians["save, 2 ranks"][1]
    print(json.dumps({"save2/torch_async": round(ratio, 3)}))


def start(ranks: int, folder: Path, is_quick: bool) -> Times:
    """Run all ranks in processes of their own; the slowest wall time counts, and the sum of the CPU times."""
    environment = {"WORLD_SIZE": str(ranks), "REGARD_STORE": str(folder / "store"), "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, "-m", "bench.checkpoints", "--rank", str(folder), str(ranks > 1)]
    processes = [
        subprocess.Popen(  # noqa: S603
            command + ["--quick"] * is_quick,
            env={**os.environ, **environment, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    times = [json.loads(output.splitlines()[-1]) for output in outputs]
    return {name: [max(t[name][0] for t in times), sum(t[name][1] for t in times)] for name in times[0]}


def run_rank(folder: Path, millions: int, is_sharded: bool) -> Times:
    """Save and load as one rank; return wall and CPU seconds."""
    processes = connect_processes()
    tensors = [make_tensors(millions, processes, is_sharded) for _ in range(3)]
    moments = {
        f"{key}/{name}": tensor
        for key, named in zip(("exp_avg", "exp_avg_sq"), tensors[1:], strict=True)
        for name, tensor in named.items()
    }
    checkpoint = Checkpoint(tensors[0], moments, {}, {"progress": {"step": 1}})
    checkpoints = Checkpoints(folder / "checkpoints", print, processes=processes, parameters=tensors[0])
    times = {
        "save": measure(processes, lambda: checkpoints.save(1, checkpoint)),
        "load": measure(processes, lambda: checkpoints.load(1)),
    }
    if is_sharded:
        times |= measure_async(folder / "async", processes, {**tensors[0], **moments})
    processes.wait()
    if processes.is_main:
        shutil.rmtree(folder / "checkpoints")
    processes.close()
    return times


def make_tensors(millions: int, processes: SingleProcess, is_sharded: bool) -> dict[str, Tensor]:
    """Make matrices of a million weights each, sharded over all ranks if asked for."""
    whole = {f"layer.{number}.weight": torch.randn(1000, 1000) for number in range(millions)}
    if not is_sharded:
        return whole
    from torch.distributed.device_mesh import init_device_mesh  # noqa: TID251
    from torch.distributed.tensor import Shard, distribute_tensor  # noqa: TID251

    import regard.training.checkpoint.sharded  # noqa: F401 - the first save imports it: not measured
    from regard.training.distributed.layout import ParallelLayout

    processes.layout = ParallelLayout(shards=processes.world_size)  # type: ignore[attr-defined]
    mesh = init_device_mesh("cpu", (processes.world_size,))
    return {name: distribute_tensor(tensor, mesh, [Shard(0)]) for name, tensor in whole.items()}


def measure(processes: SingleProcess, action: Callable[[], object]) -> list[float]:
    """Return wall and CPU seconds of an action that all ranks start together."""
    processes.wait()
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return [time.perf_counter() - wall, time.process_time() - cpu]


def measure_async(folder: Path, processes: SingleProcess, tensors: dict[str, Tensor]) -> Times:
    """Time torch's asynchronous save: until it returns, and until it is done."""
    import torch.distributed as dist  # noqa: TID251
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter  # noqa: TID251
    from torch.distributed.checkpoint.state_dict_saver import async_save  # noqa: TID251

    group = dist.new_group(backend="gloo")
    processes.wait()
    wall, cpu = time.perf_counter(), time.process_time()
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    future = async_save(tensors, storage_writer=writer, process_group=group)
    blocked = [time.perf_counter() - wall, time.process_time() - cpu]
    future.result()  # type: ignore[union-attr]
    return {
        "torch async, blocked": blocked,
        "torch async, done": [time.perf_counter() - wall, time.process_time() - cpu],
    }


if __name__ == "__main__":
    main()
