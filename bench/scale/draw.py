"""Draw the initial weights of one of 1,024 shards of a 70B model, as a rank of that many does.

    python -m bench.scale.draw              # ranks 0, 511 and 1023 in two layouts: two minutes, 1 GB
    python -m bench.scale.draw --quick      # 8 of the 80 layers, rank 511

The process group is torch's fake one, in which collectives do nothing; the model, its sharding and the draw are those
of training. Every rank is a process of its own. Layouts: 1,024 shards, and 128 shards with tensor parallelism of 8.
For comparison, a matrix is drawn in full with torch's generator: before, every rank drew all of them. The last line is
JSON. Goal: at most 5 CPU-seconds to draw a shard.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product

import torch
import torch.distributed as dist  # noqa: TID251
from torch import nn
from torch.distributed.tensor import DTensor  # noqa: TID251
from torch.testing._internal.distributed.fake_pg import FakeStore

from regard.config.codec import preset
from regard.config.model import AnyModelConfig
from regard.models.build import build
from regard.tasks.task import find_task
from regard.training.distributed.context import DistributedContext, make_mesh
from regard.training.distributed.layout import ParallelLayout
from regard.training.objective import Objective

MODEL = {
    "d_model": 8192,
    "decoder.layers": 80,
    "decoder.attention.heads": 64,
    "decoder.feedforward.d_ff": 28672,
}
LAYOUTS = (ParallelLayout(shards=1024), ParallelLayout(shards=128, tensor=8))
RANKS, QUICK_RANKS, QUICK_LAYERS = (0, 511, 1023), (511,), 8
MAX_SECONDS = 5.0
Row = dict[str, str | int | float]


def measure(settings: AnyModelConfig, layout: ParallelLayout, rank: int) -> Row:
    """Return the size of a rank's shard and the CPU-seconds to draw it."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=layout.world_size)
    try:
        processes = DistributedContext()
        processes.layout, processes.mesh = layout, make_mesh(layout, "cpu")
        model = processes.build(settings, seed=1, device="cpu")
        start = time.process_time()
        processes.shard(Objective(model, find_task(settings.task)))
        start_up = time.process_time() - start
        seconds = measure_seconds(lambda: processes.draw_weights(model, settings, seed=1))
        tensors = [weight.to_local() for weight in model.parameters() if isinstance(weight, DTensor)]
        if not all(bool(tensor.isfinite().all()) for tensor in tensors):
            raise SystemExit("A weight was not drawn.")
    finally:
        dist.destroy_process_group()
    count = sum(tensor.numel() for tensor in tensors)
    return {
        "layout": str(layout),
        "rank": rank,
        "parameters": count,
        "draw_cpu_seconds": round(seconds, 2),
        "shard_and_draw_cpu_seconds": round(start_up, 2),
    }


def measure_seconds(run: Callable[[], object]) -> float:
    """Return the CPU time of a function."""
    start = time.process_time()
    run()
    return time.process_time() - start


def estimate_full_draw(settings: AnyModelConfig) -> float:
    """Return the CPU-seconds to draw all parameters with torch's generator, estimated from one matrix."""
    weight = torch.empty(settings.d_model, settings.d_model)
    seconds = measure_seconds(lambda: nn.init.normal_(weight))
    with torch.device("meta"):
        return seconds / weight.numel() * sum(parameter.numel() for parameter in build(settings).parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_LAYERS} layers, one rank")
    parser.add_argument("--rank", nargs=2, type=int, metavar=("LAYOUT", "RANK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = preset("llama", MODEL | ({"decoder.layers": QUICK_LAYERS} if options.quick else {}))
    if options.rank:
        layout, rank = options.rank
        print(json.dumps(measure(settings, LAYOUTS[layout], rank)))
        return
    rows = list[Row]()
    for layout, rank in product(range(len(LAYOUTS)), QUICK_RANKS if options.quick else RANKS):
        command = [sys.executable, "-m", "bench.scale.draw", "--rank", str(layout), str(rank)]
        command += ["--quick"] if options.quick else []
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
        rows.append(json.loads(output))
        print(output, end="", flush=True)
    slowest = max(float(row["draw_cpu_seconds"]) for row in rows)
    print(json.dumps({"full_draw_cpu_seconds": round(estimate_full_draw(settings)), "slowest_shard": slowest}))
    if slowest > MAX_SECONDS:
        raise SystemExit("The goal is missed.")


if __name__ == "__main__":
    main()
